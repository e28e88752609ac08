// Small helpers shared by the element-wise kernels: complex arithmetic and the one-operand forms.
#pragma once
#include "pointwise.h"
#include "wrapping.h"

namespace msa {

// The product of two numbers. Complex numbers are multiplied by the plain formula; std::complex also checks for
// infinities, which is slower and gives other results than PyTorch. Integers wrap round.
template <class T>
inline T mul(T a, T b) {
  if constexpr (is_complex_v<T>)
    return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  else
    return wrapping_mul(a, b);
}

template <class T>
inline T conjugate(T a) {
  if constexpr (is_complex_v<T>)
    return std::conj(a);
  else
    return a;
}

template <class T>
inline bool is_nan(T x) {
  if constexpr (is_complex_v<T>)
    return std::isnan(x.real()) || std::isnan(x.imag());
  else if constexpr (std::is_floating_point_v<T>)
    return x != x;
  else
    return false;
}

template <class T>
inline constexpr T kPi = T(3.14159265358979323846);

}  // namespace msa

// The result is an expression of x, an element of operand 0: MSA_UNARY_BODY(FLOAT, "exp", std::exp(x)). It has the type
// of this operand.
#define MSA_UNARY_BODY(Types, Op, ...) MSA_UNARY_GRAIN_BODY(::msa::kGrain, Types, Op, __VA_ARGS__)
#define MSA_UNARY_GRAIN_BODY(Grain, Types, Op, ...)                                                          \
  do {                                                                                                       \
    const ::msa::Tensor &input_ = c.in(0);                                                                   \
    ::msa::Tensor output_ = c.out_pointwise(0, input_.dtype, {&input_});                                     \
    MSA_COMPUTE_##Types(input_.dtype, Op,                                                                    \
                        (::msa::unary<T, T>(output_, input_, [](T x) -> T { return __VA_ARGS__; }, Grain))); \
  } while (0)
#define MSA_UNARY_KERNEL(Name, Types, Op, ...) \
  MSA_POINTWISE_KERNEL(Name) { MSA_UNARY_BODY(Types, Op, __VA_ARGS__); }
#define MSA_COSTLY_KERNEL(Name, Types, Op, ...) \
  MSA_POINTWISE_KERNEL(Name) { MSA_UNARY_GRAIN_BODY(::msa::kCostlyGrain, Types, Op, __VA_ARGS__); }
// The result is an expression of x and y, elements of operands 0 and 1, which are promoted to one type.
#define MSA_BINARY_BODY(Types, Op, ...)                                                                  \
  do {                                                                                                   \
    const ::msa::Two pair_ = ::msa::operands(c);                                                         \
    ::msa::Tensor output_ = ::msa::out2(c, pair_.dtype, pair_);                                          \
    MSA_COMPUTE_##Types(                                                                                 \
        pair_.dtype, Op,                                                                                 \
        (::msa::binary<T, T, T>(output_, pair_.a, pair_.b, [](T x, T y) -> T { return __VA_ARGS__; }))); \
  } while (0)
#define MSA_BINARY_KERNEL(Name, Types, Op, ...) \
  MSA_POINTWISE_KERNEL(Name) { MSA_BINARY_BODY(Types, Op, __VA_ARGS__); }
// The same, with a bool result.
#define MSA_COMPARE_KERNEL(Name, Types, Op, ...)                                                               \
  MSA_POINTWISE_KERNEL(Name) {                                                                                 \
    const ::msa::Two pair_ = ::msa::operands(c);                                                               \
    ::msa::Tensor output_ = ::msa::out2(c, ::msa::DType::Bool, pair_);                                         \
    MSA_COMPUTE_##Types(                                                                                       \
        pair_.dtype, Op,                                                                                       \
        (::msa::binary<bool, T, T>(output_, pair_.a, pair_.b, [](T x, T y) -> bool { return __VA_ARGS__; }))); \
  }
#define MSA_PREDICATE_KERNEL(Name, Types, Op, ...)                                                          \
  MSA_POINTWISE_KERNEL(Name) {                                                                              \
    const ::msa::Tensor &input_ = c.in(0);                                                                  \
    ::msa::Tensor output_ = c.out_pointwise(0, ::msa::DType::Bool, {&input_});                              \
    MSA_COMPUTE_##Types(input_.dtype, Op,                                                                   \
                        (::msa::unary<bool, T>(output_, input_, [](T x) -> bool { return __VA_ARGS__; }))); \
  }

// Macros for special functions. They are computed in double for every float type, and the result is rounded.
#pragma once
#include <limits>

#include "pointwise_math.h"

namespace msa {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kPiD = 3.14159265358979323846;

inline void special_unary(Call &c, const char *op, double (*f)(double)) {
  const Tensor &a = c.in(0);
  if (is_complex(a.dtype)) unsupported(op, a.dtype);
  Tensor o = c.out_pointwise(0, is_integral(a.dtype) ? DType::F32 : a.dtype, {&a});
  unary<double, double>(o, a, f, kCostlyGrain);
}
inline void special_binary(Call &c, const char *op, double (*f)(double, double)) {
  const Two p = operands(c);
  if (is_complex(p.dtype)) unsupported(op, p.dtype);
  Tensor o = out2(c, is_integral(p.dtype) ? DType::F32 : p.dtype, p);
  binary<double, double, double>(o, p.a, p.b, f, kCostlyGrain);
}
// A kernel with one function for float64, and a short one for all other types.
template <class F>
void with_short_form(Call &c, const char *op, double (*exact)(double), F brief) {
  const Tensor &a = c.in(0);
  if (a.dtype == DType::F64) return special_unary(c, op, exact);
  if (is_complex(a.dtype)) unsupported(op, a.dtype);
  unary<double, double>(c.out_pointwise(0, is_integral(a.dtype) ? DType::F32 : a.dtype, {&a}), a, brief);
}

}  // namespace msa

#define MSA_SPECIAL_KERNEL(Name, Op, F) \
  MSA_POINTWISE_KERNEL(Name) { special_unary(c, Op, F); }
#define MSA_SPECIAL_BINARY_KERNEL(Name, Op, F) \
  MSA_POINTWISE_KERNEL(Name) { special_binary(c, Op, F); }
#define MSA_SHORT_KERNEL(Name, Op, Exact, Short)                                            \
  MSA_POINTWISE_KERNEL(Name) {                                                              \
    with_short_form(c, Op, [](double x) { return Exact; }, [](double x) { return Short; }); \
  }

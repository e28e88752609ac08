// Arithmetic: + - * / and their remainders, fused forms, sign and root functions.
#include "pointwise.h"
#include "pointwise_math.h"
#include "vec_functions.h"

namespace msa {
namespace {

void check_alpha(DType d, const Scalar &alpha) {
  check(alpha.kind != Scalar::kBool || d == DType::Bool, "Boolean alpha only supported for Boolean results.");
  check(is_floating(d) || is_complex(d) || alpha.kind <= Scalar::kInt,
        "For integral input tensors, argument alpha must not be a floating point number.");
  check(is_complex(d) || alpha.kind != Scalar::kComplex,
        "For non-complex input tensors, argument alpha must not be a complex number.");
}

// a + sign * alpha * b for 16-bit types. As in PyTorch, the product is rounded to 16 bits only in the tail (tail_of()).
template <class E>
void add_scaled16(Call &c, const Two &p, const Tensor &o, int sign) {
  const float alpha = E(static_cast<float>(c.number(2) * sign));
  E tail[kVectorBytes];
  const int64_t n = tail_of(o, {&p.a, &p.b}), first = o.numel - n;
  for (int64_t i = 0; i < n; ++i)
    tail[i] = static_cast<E>(Stepwise<E>(p.a.ptr<E>()[first + i]) +
                             Stepwise<E>(alpha) * Stepwise<E>(p.b.ptr<E>()[first + i]));
  binary<float, float, float>(o, p.a, p.b, [alpha](float x, float y) { return x + alpha * y; });
  std::copy_n(tail, n, o.ptr<E>() + first);
}

void add_scaled(Call &c, const char *op, int sign) {
  const Two p = operands(c);
  Scalar alpha_number;
  alpha_number.i = 1;
  if (c.has(2)) {
    alpha_number = c.scalar(2);
    check_alpha(p.dtype, alpha_number);
    if (p.dtype == DType::Bool) {  // then alpha is a bool too
      alpha_number.i = alpha_number.to<bool>();
      alpha_number.kind = Scalar::kBool;
      alpha_number.is_unsigned = false;
    }
  }
  const bool scaled = !(alpha_number.kind <= Scalar::kInt && alpha_number.i == 1);
  check(sign > 0 || p.dtype != DType::Bool,
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` "
        "or `logical_xor()` operator instead.");
  MSA_SWITCH_STORED(p.dtype, op, (static_cast<void>(alpha_number.to<T>())));
  Tensor o = out2(c, p.dtype, p);
  if (scaled && p.dtype == DType::F16) return add_scaled16<Half>(c, p, o, sign);
  if (scaled && p.dtype == DType::BF16) return add_scaled16<BFloat16>(c, p, o, sign);
  MSA_COMPUTE_ALL(p.dtype, op, {
    if (!scaled && sign > 0)
      binary<T, T, T>(o, p.a, p.b, [](T x, T y) { return wrapping_add(x, y); });
    else if (!scaled)
      binary<T, T, T>(o, p.a, p.b, [](T x, T y) { return wrapping_sub(x, y); });
    else {
      const T alpha = mul(alpha_number.to<T>(), T(sign));
      binary<T, T, T>(o, p.a, p.b, [alpha](T x, T y) { return wrapping_add(x, mul(alpha, y)); });
    }
  });
}

// The floor of a / b from the remainder of the division, and the remainder with the sign of b.
template <class T>
MSA_INLINE T floor_quotient(T a, T b, T mod) {
  const T even = (a - mod) / b, div = mod != 0 && (b < 0) != (mod < 0) ? even - T(1) : even;
  const T f = vec::floored(div), nearest = div - f > T(0.5) ? f + T(1) : f;
  return div == 0 ? vec::copysign(T(0), a / b) : nearest;
}
template <class T>
MSA_INLINE T with_sign_of(T b, T mod) {
  return mod != 0 && (b < 0) != (mod < 0) ? mod + b : mod;
}
// Floor division as Python does it. It is right also if the quotient (a - mod) / b is rounded.
template <class T>
T floor_divide(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) throw std::runtime_error("ZeroDivisionError");
    if (b == -1) return wrapping_neg(a);
    const T q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
  } else {
    if (b == 0) return a / b;
    return floor_quotient(a, b, std::fmod(a, b));
  }
}
template <class T>
T remainder(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) throw std::runtime_error("ZeroDivisionError");
    if (b == -1) return 0;
    const T m = a % b;
    return m != 0 && (m < 0) != (b < 0) ? m + b : m;
  } else {
    return with_sign_of(b, std::fmod(a, b));
  }
}
template <class T>
T fmod_of(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) throw std::runtime_error("ZeroDivisionError");
    return b == -1 ? 0 : a % b;
  } else {
    return std::fmod(a, b);
  }
}
template <class T>
T trunc_divide(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) throw std::runtime_error("ZeroDivisionError");
    return b == -1 ? wrapping_neg(a) : a / b;
  } else {
    return std::trunc(a / b);
  }
}

template <class T>
T absolute(T x) {
  if constexpr (std::is_integral_v<T>)
    return x < 0 ? wrapping_neg(x) : x;
  else
    return std::abs(x);
}

// In 16 bits, PyTorch rounds after every step of these two functions. This matters for quotients close to an integer.
template <class H>
float trunc_divide16(float a, float b) {
  return std::trunc(float(H(a / b)));
}
template <class H>
float floor_divide16(float a, float b) {
  if (b == 0) return a / b;
  const float mod = H(std::fmod(a, b));
  float div = H(float(H(a - mod)) / b);
  if (mod != 0 && (b < 0) != (mod < 0)) div = H(div - 1);
  if (div == 0) return std::copysign(0.f, a / b);
  const float f = H(std::floor(div));
  return div - f > 0.5f ? f + 1 : f;
}

// Single complex numbers are divided in double, where no product overflows. Infinities, NaN and zero divisors take
// std::complex's way.
inline c64 complex_quotient(c64 x, c64 y) {
  const double a = x.real(), b = x.imag(), c = y.real(), d = y.imag(), square = c * c + d * d;
  if (!(square > 0 && square < INFINITY && std::abs(a) + std::abs(b) < INFINITY)) return x / y;
  return c64(static_cast<float>((a * c + b * d) / square), static_cast<float>((b * c - a * d) / square));
}

void true_divide(Call &c) {
  Two p = operands(c, true);
  if (is_integral(p.dtype)) p.dtype = DType::F32;
  Tensor o = out2(c, p.dtype, p);
  if (p.dtype == DType::C64)
    return binary<c64, c64, c64>(o, p.a, p.b, [](c64 x, c64 y) { return complex_quotient(x, y); });
  MSA_COMPUTE_FLOAT_COMPLEX(p.dtype, "div_true_cpu", (binary<T, T, T>(o, p.a, p.b, [](T x, T y) { return x / y; })));
}
// o = whole(a, b) for integers and for what vec::fmod() does not serve, and part(a, b, remainder) elsewhere.
template <class T, class P>
void divided(const Tensor &o, const Two &p, T (*whole)(T, T), P part) {
  if constexpr (std::is_integral_v<T>)
    binary<T, T, T>(o, p.a, p.b, whole);
  else
    binary_where<T>(
        o, p.a, p.b,
        [](T x, T y) { return (vec::abs(x / y) <= vec::kQuotientLimit<T>)&(vec::abs(y) < vec::kInfinity<T>); },
        [part](T x, T y) { return part(x, y, vec::fmod(x, y)); }, whole, kGrain);
}
void floor_division(Call &c) {
  const Two p = operands(c);
  Tensor o = out2(c, p.dtype, p);
  if (p.dtype == DType::F16) return binary<float, float, float>(o, p.a, p.b, floor_divide16<Half>);
  if (p.dtype == DType::BF16) return binary<float, float, float>(o, p.a, p.b, floor_divide16<BFloat16>);
  MSA_COMPUTE_REAL(
      p.dtype, "div_floor_cpu",
      (divided<T>(o, p, floor_divide<T>, [](auto x, auto y, auto mod) { return floor_quotient(x, y, mod); })));
}

}  // namespace

MSA_POINTWISE_KERNEL(AddExt) { add_scaled(c, "add", 1); }  // input, other, alpha
MSA_KERNEL_ALIAS(Add, AddExt)
MSA_KERNEL_ALIAS(AddScalar, AddExt)
MSA_KERNEL_ALIAS(InplaceAddExt, AddExt)
MSA_KERNEL_ALIAS(InplaceAddsExt, AddExt)
MSA_POINTWISE_KERNEL(SubExt) { add_scaled(c, "sub", -1); }  // input, other, alpha
MSA_KERNEL_ALIAS(Sub, SubExt)
MSA_KERNEL_ALIAS(SubScalar, SubExt)
MSA_KERNEL_ALIAS(InplaceSubExt, SubExt)
MSA_KERNEL_ALIAS(InplaceSubScalar, SubExt)

MSA_POINTWISE_KERNEL(Mul) {  // input, other
  const Two p = operands(c, true);
  Tensor o = out2(c, p.dtype, p);
  MSA_COMPUTE_ALL(p.dtype, "mul_cpu", (binary<T, T, T>(o, p.a, p.b, [](T x, T y) { return mul(x, y); })));
}
MSA_KERNEL_ALIAS(Muls, Mul)
MSA_KERNEL_ALIAS(InplaceMul, Mul)
MSA_KERNEL_ALIAS(InplaceMuls, Mul)

MSA_POINTWISE_KERNEL(Div) { true_divide(c); }  // input, other
MSA_KERNEL_ALIAS(RealDiv, Div)
MSA_KERNEL_ALIAS(Divs, Div)
MSA_KERNEL_ALIAS(InplaceDiv, Div)
MSA_KERNEL_ALIAS(InplaceDivs, Div)

MSA_POINTWISE_KERNEL(DivMod) {  // input, other, rounding_mode (1 trunc, 2 floor)
  if (!c.has(2)) return true_divide(c);
  if (c.integer(2) == 2) return floor_division(c);
  const Two p = operands(c);
  Tensor o = out2(c, p.dtype, p);
  const bool exact = p.b.numel == 1;  // PyTorch does not round the quotient first if the divisor is a single number
  if (p.dtype == DType::F16 && !exact) return binary<float, float, float>(o, p.a, p.b, trunc_divide16<Half>);
  if (p.dtype == DType::BF16 && !exact) return binary<float, float, float>(o, p.a, p.b, trunc_divide16<BFloat16>);
  MSA_COMPUTE_REAL(p.dtype, "div_trunc_cpu",
                   (binary<T, T, T>(o, p.a, p.b, [](T x, T y) { return trunc_divide(x, y); })));
}
MSA_KERNEL_ALIAS(DivMods, DivMod)
MSA_KERNEL_ALIAS(InplaceDivMod, DivMod)
MSA_KERNEL_ALIAS(InplaceDivMods, DivMod)

MSA_POINTWISE_KERNEL(FloorDiv) { floor_division(c); }  // input, other
MSA_KERNEL_ALIAS(FloorDivScalar, FloorDiv)
MSA_KERNEL_ALIAS(InplaceFloorDivide, FloorDiv)
MSA_KERNEL_ALIAS(InplaceFloorDivides, FloorDiv)

MSA_POINTWISE_KERNEL(RemainderTensorTensor) {  // input, other: the sign is that of other
  const Two p = operands(c);
  Tensor o = out2(c, p.dtype, p);
  MSA_COMPUTE_REAL(p.dtype, "remainder_cpu",
                   (divided<T>(o, p, remainder<T>, [](auto, auto y, auto mod) { return with_sign_of(y, mod); })));
}
MSA_KERNEL_ALIAS(RemainderTensorScalar, RemainderTensorTensor)
MSA_KERNEL_ALIAS(RemainderScalarTensor, RemainderTensorTensor)
MSA_KERNEL_ALIAS(InplaceRemainderTensorTensor, RemainderTensorTensor)
MSA_KERNEL_ALIAS(InplaceRemainderTensorScalar, RemainderTensorTensor)

MSA_POINTWISE_KERNEL(FmodTensor) {  // input, other: the sign is that of input
  const Two p = operands(c);
  Tensor o = out2(c, p.dtype, p);
  MSA_COMPUTE_REAL(p.dtype, "fmod_cpu", (divided<T>(o, p, fmod_of<T>, [](auto, auto, auto mod) { return mod; })));
}
MSA_KERNEL_ALIAS(FmodScalar, FmodTensor)

// ---- operands: input, tensor1, tensor2, value
MSA_POINTWISE_KERNEL(AddcmulExt) {
  const Tensor &a = c.in(0), &x = c.in(1), &y = c.in(2);
  Tensor o = c.out_pointwise(0, a.dtype, {&a, &x, &y});
  MSA_COMPUTE_NUMBER(a.dtype, "addcmul_cpu_out", {
    const T value = c.has(3) ? c.scalar(3).to<T>() : T(1);
    ternary<T, T, T, T>(o, a, x, y, [value](T s, T u, T v) { return wrapping_add(s, mul(mul(value, u), v)); });
  });
}
MSA_KERNEL_ALIAS(Addcmul, AddcmulExt)
MSA_POINTWISE_KERNEL(AddcdivExt) {
  const Tensor &a = c.in(0), &x = c.in(1), &y = c.in(2);
  check(!is_integral(a.dtype),
        "Integer division with addcdiv is no longer supported, and in a future  release addcdiv "
        "will perform a true division of tensor1 and tensor2. The historic addcdiv behavior can be "
        "implemented as (input + value * torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer "
        "inputs and as (input + value * tensor1 / tensor2) for float inputs.");
  Tensor o = c.out_pointwise(0, a.dtype, {&a, &x, &y});
  MSA_COMPUTE_FLOAT_COMPLEX(a.dtype, "addcdiv_cpu_out", {
    const T value = c.has(3) ? c.scalar(3).to<T>() : T(1);
    ternary<T, T, T, T>(o, a, x, y, [value](T s, T u, T v) { return s + mul(value, u) / v; });
  });
}
MSA_KERNEL_ALIAS(Addcdiv, AddcdivExt)

// ---- operands: input, end, weight. The result is computed from the nearer end, so that a weight of 1 gives exactly
// `end`.
MSA_POINTWISE_KERNEL(Lerp) {
  const Tensor &a = c.in(0), &e = c.in(1);
  const Tensor w = operand(c, 2, a.dtype, true);
  Tensor o = c.out_pointwise(0, a.dtype, {&a, &e, &w});
  MSA_COMPUTE_FLOAT_COMPLEX(a.dtype, c.args[2].kind == Arg::kScalar ? "lerp_kernel_scalar" : "lerp_kernel_tensor",
                            (ternary<T, T, T, T>(o, a, e, w, [](T s, T t, T u) {
                              return std::abs(u) < 0.5 ? s + mul(u, t - s) : t - mul(t - s, T(1) - u);
                            })));
}
MSA_KERNEL_ALIAS(LerpScalar, Lerp)

// ---- one operand
MSA_POINTWISE_KERNEL(Neg) {
  check(c.in(0).dtype != DType::Bool,
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to "
        "invert a mask, use the `~` or `logical_not()` operator instead.");
  MSA_UNARY_BODY(NUMBER, "neg", wrapping_neg(x));
}
MSA_POINTWISE_KERNEL(Square) {  // bool -> int64
  const Tensor &a = c.in(0);
  Tensor o = c.out_pointwise(0, a.dtype == DType::Bool ? DType::I64 : a.dtype, {&a});
  MSA_COMPUTE_ALL(a.dtype, "pow", (unary<T, T>(o, a, [](T x) { return mul(x, x); })));
}
MSA_UNARY_KERNEL(Reciprocal, FLOAT_COMPLEX, "reciprocal_cpu", T(1) / x)

MSA_POINTWISE_KERNEL(Abs) {  // complex -> real
  const Tensor &a = c.in(0);
  if (is_complex(a.dtype)) {
    Tensor o = c.out_pointwise(0, real_of(a.dtype), {&a});
    MSA_COMPUTE_COMPLEX(a.dtype, "abs_cpu", (unary<T::value_type, T>(o, a, [](T x) { return std::abs(x); })));
    return;
  }
  if (a.dtype == DType::F16 || a.dtype == DType::BF16) {  // the same numbers without the bit of the sign
    Tensor bits = a, o = c.out_pointwise(0, a.dtype, {&a});
    bits.dtype = o.dtype = DType::U16;
    return unary<uint16_t, uint16_t>(o, bits, [](uint16_t x) { return static_cast<uint16_t>(x & 0x7FFF); });
  }
  MSA_UNARY_BODY(REAL, "abs_cpu", absolute(x));
}
MSA_POINTWISE_KERNEL(Sign) {
  if (is_complex(c.in(0).dtype))
    throw NotImplementedError(
        "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.");
  MSA_UNARY_BODY(REAL_BOOL, "sign_cpu", T(T(0) < x) - T(x < T(0)));
}
MSA_KERNEL_ALIAS(InplaceSign, Sign)
MSA_POINTWISE_KERNEL(Sgn) {
  const Tensor &a = c.in(0);
  if (!is_complex(a.dtype)) {
    MSA_UNARY_BODY(REAL_BOOL, "sign_cpu", T(T(0) < x) - T(x < T(0)));
    return;
  }
  Tensor o = c.out_pointwise(0, a.dtype, {&a});
  MSA_COMPUTE_COMPLEX(a.dtype, "sgn_cpu", (unary<T, T>(o, a, [](T x) {
                        const auto r = std::abs(x);
                        return r == 0 ? T(0) : x / r;
                      })));
}

}  // namespace msa

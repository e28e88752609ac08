// Functions of two operands: powers, bits, integer theory, sign and neighbour functions.
#include "pointwise_math.h"
#include "vec_functions.h"

namespace msa {
namespace {

// Powers of integers by repeated squaring, which wrap round. A negative exponent gives the power of 1 / base,
// truncated.
int64_t int_power(int64_t base, int64_t e) {
  if (e < 0) return base == 1 ? 1 : base == -1 ? (e % 2 ? -1 : 1) : 0;
  uint64_t r = 1, b = static_cast<uint64_t>(base);
  for (; e; e >>= 1, b *= b)
    if (e & 1) r *= b;
  return static_cast<int64_t>(r);
}
template <class T>
MSA_INLINE T power(T x, T y) {
  if constexpr (std::is_integral_v<T>)
    return int_power(x, y);
  else if constexpr (std::is_floating_point_v<T>)
    return vec::pow(x, y);
  else
    return std::pow(x, y);
}

// Handles exponents that do not need pow. Returns false for all others.
template <class T>
bool simple_power(const Tensor &o, const Tensor &a, double e) {
  if (e == 2)
    unary<T, T>(o, a, [](T x) { return mul(x, x); });
  else if (e == 3)
    unary<T, T>(o, a, [](T x) { return mul(mul(x, x), x); });
  else if (e == 1)
    unary<T, T>(o, a, [](T x) { return x; });
  else if (e == 0)
    unary<T, T>(o, a, [](T) { return T(1); });
  else if constexpr (!std::is_integral_v<T>) {
    if (e == 0.5)
      unary<T, T>(o, a, [](T x) { return std::sqrt(x); });
    else if (e == -0.5)
      unary<T, T>(o, a, [](T x) { return T(1) / std::sqrt(x); });
    else if (e == -1)
      unary<T, T>(o, a, [](T x) { return T(1) / x; });
    else if (e == -2)
      unary<T, T>(o, a, [](T x) { return T(1) / mul(x, x); });
    else
      return false;
  } else
    return false;
  return true;
}

// Whether the exponent is one real number for all elements. `value` receives it.
bool single_exponent(const Tensor &b, double *value) {
  if (b.ndim != 0 || is_complex(b.dtype)) return false;
  MSA_SWITCH_REAL_BOOL(b.dtype, "pow", (*value = convert<double>(*b.ptr<T>())));
  return true;
}

// log(e^a + e^b) without overflow. logaddexp2 is the same with base 2.
template <class T>
T logaddexp(T a, T b) {
  const T m = a > b || a != a ? a : b, y = m + vec::log1p(vec::exp(-vec::abs(a - b)));
  return a == b && vec::abs(a) == vec::kInfinity<T> ? a : y;
}
template <class R>
std::complex<R> logaddexp(std::complex<R> a, std::complex<R> b) {
  if (is_nan(a)) return a;
  if (is_nan(b)) return b;
  const bool first = a.real() >= b.real();
  const std::complex<R> high = first ? a : b, low = first ? b : a;
  if (std::isinf(low.real()) && low.real() == high.real())
    return low.real() < 0 ? low : std::log(std::exp(low) + std::exp(high));
  const std::complex<R> e = std::exp(low - high);
  const R x = e.real(), y = e.imag();
  const std::complex<R> l = std::abs(x) < R(0.5)
                                ? std::complex<R>(R(0.5) * std::log1p(x * (R(2) + x) + y * y), std::atan2(y, R(1) + x))
                                : std::log(R(1) + e);
  return l + high;
}
template <class T>
T logaddexp2(T a, T b) {
  const T m = a > b || a != a ? a : b;
  const T y = m + vec::log1p(vec::exp2(-vec::abs(a - b))) * T(1.44269504088896340736);
  return a == b && vec::abs(a) == vec::kInfinity<T> ? a : y;
}

uint64_t magnitude(int64_t x) { return x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x); }
int64_t gcd_of(int64_t x, int64_t y) {
  uint64_t a = magnitude(x), b = magnitude(y);
  while (b) {
    const uint64_t r = a % b;
    a = b;
    b = r;
  }
  return static_cast<int64_t>(a);
}
// The product wraps round in the type C before its sign is dropped. As in PyTorch, C is int32 for int32 and int64 for
// the other types.
template <class C>
int64_t lcm_of(int64_t x, int64_t y) {
  const int64_t g = gcd_of(x, y);
  if (g == 0) return 0;
  const C product = static_cast<C>(wrapping_mul(x / g, y));
  return product < 0 ? wrapping_neg(product) : product;
}

// The neighbour of x towards y in a 16-bit format whose bits are ordered as sign and magnitude.
template <class T>
T neighbour16(T x, T y) {
  const float a = x, b = y;
  if (a != a) return x;
  if (b != b) return y;
  if (a == b) return y;
  T r = x;
  if (a == 0)
    r.bits = static_cast<uint16_t>((b < 0 ? 0x8000 : 0) | 1);
  else
    r.bits = static_cast<uint16_t>(x.bits + ((b > a) == (a > 0) ? 1 : -1));
  return r;
}

// A float operator. Integer operands become float32 if MindSpore's engine calls it directly.
template <class F>
void float_binary(Call &c, const char *op, F f, int64_t grain = kCostlyGrain) {
  Two p = operands(c);
  if (is_integral(p.dtype)) p.dtype = DType::F32;
  Tensor o = out2(c, p.dtype, p);
  MSA_COMPUTE_FLOAT(p.dtype, op, (binary<T, T, T>(o, p.a, p.b, f, grain)));
}

// For these exponents PyTorch multiplies bfloat16 numbers and rounds every product. (float16 is computed in float.)
bool rounding_power(const Tensor &o, const Tensor &a, double exponent) {
  using S = Stepwise<BFloat16>;
  if (exponent == 3)
    unary<float, float>(o, a, [](float x) { return (S(x) * S(x) * S(x)).v; });
  else if (exponent == -2)
    unary<float, float>(o, a, [](float x) { return (S(1) / (S(x) * S(x))).v; });
  else
    return false;
  return true;
}

}  // namespace

MSA_POINTWISE_KERNEL(Pow) {  // input, exponent: tensors or numbers
  const Two p = operands(c);
  Tensor o = out2(c, p.dtype, p);
  double exponent = 0;
  const bool one = single_exponent(p.b, &exponent);
  if (one && p.dtype == DType::BF16 && rounding_power(o, p.a, exponent)) return;
  if (one && c.args[1].kind == Arg::kScalar && is_integral(p.dtype))
    check(exponent >= 0 && c.scalar(1).wrapped<double>() >= 0, "Integers to negative integer powers are not allowed.");
  if (p.dtype == DType::Bool && c.args[1].kind == Arg::kScalar)  // the exponent is True or False
    return unary<bool, bool>(o, p.a, [exponent](bool x) { return exponent == 0 || x; });
  MSA_COMPUTE_NUMBER(p.dtype, "pow", {
    if (!(one && simple_power<T>(o, p.a, exponent)))
      binary<T, T, T>(o, p.a, p.b, [](T x, T y) { return power(x, y); }, kCostlyGrain);
  });
}
MSA_KERNEL_ALIAS(PowTensorScalar, Pow)
MSA_KERNEL_ALIAS(PowScalarTensor, Pow)

MSA_POINTWISE_KERNEL(Atan2Ext) {
  float_binary(c, "atan2_cpu", [](auto y, auto x) { return vec::atan2(y, x); });
}
MSA_KERNEL_ALIAS(Atan2, Atan2Ext)
MSA_BINARY_KERNEL(Hypot, FLOAT, "hypot_cpu", vec::hypot(x, y))
MSA_POINTWISE_KERNEL(CopySign) {
  float_binary(c, "copysign_cpu", [](auto x, auto y) { return std::copysign(x, y); }, kGrain);
}
// x 2^n. For float the power and the product are in double, where neither overflows, so that the result is rounded
// once.
inline float times_power(float x, int64_t n) {
  const int64_t bounded = n < -400 ? -400 : n > 400 ? 400 : n;
  const uint64_t bits = static_cast<uint64_t>(bounded + 1023) << 52;
  double power;
  std::memcpy(&power, &bits, sizeof power);
  return static_cast<float>(static_cast<double>(x) * power);
}
inline double times_power(double x, int64_t n) {
  return std::ldexp(x, static_cast<int>(std::clamp<int64_t>(n, -5000, 5000)));
}
MSA_POINTWISE_KERNEL(Ldexp) {  // x (floats), n (integers)
  const Tensor &x = c.in(0), &n = c.in(1);
  if (!is_integral(n.dtype, false)) unsupported("ldexp_cpu_exp", n.dtype);
  const Tensor o = c.out_pointwise(0, x.dtype, {&x, &n});
  MSA_COMPUTE_FLOAT(x.dtype, "ldexp_cpu",
                    (binary<T, T, int64_t>(o, x, n, [](T a, int64_t b) { return times_power(a, b); })));
}

MSA_POINTWISE_KERNEL(NextAfter) {
  const Two p = operands(c);
  Tensor o = out2(c, p.dtype, p);
  switch (p.dtype) {
    case DType::F16:
      return binary<Half, Half, Half>(o, c.cast(p.a, DType::F16), c.cast(p.b, DType::F16), neighbour16<Half>);
    case DType::BF16:
      return binary<BFloat16, BFloat16, BFloat16>(o, c.cast(p.a, DType::BF16), c.cast(p.b, DType::BF16),
                                                  neighbour16<BFloat16>);
    default: break;
  }
  MSA_COMPUTE_FLOAT(p.dtype, "nextafter_cpu",
                    (binary<T, T, T>(o, p.a, p.b, [](T x, T y) { return vec::nextafter(x, y); })));
}
MSA_POINTWISE_KERNEL(Heaviside) {  // input, value where input is 0
  check(!is_complex(c.in(0).dtype), "heaviside is not yet implemented for complex tensors.");
  MSA_BINARY_BODY(REAL_BOOL, "heaviside_cpu", x == T(0) ? y : T(x > T(0)));
}
MSA_BINARY_KERNEL(LogAddExp, FLOAT_COMPLEX, "logaddexp_cpu", logaddexp(x, y))
MSA_BINARY_KERNEL(LogAddExp2, FLOAT, "logaddexp2_cpu", logaddexp2(x, y))

// x f(y) for a logarithm f: 0 where x is 0, and NaN where y is NaN. In a 16-bit type, the logarithm is rounded before
// the product.
template <class E, class F>
void times_log16(const Tensor &o, const Two &p, F log) {
  binary<float, float, float>(
      o, p.a, p.b,
      [log](float x, float y) {
        const float l = E(static_cast<float>(log(y)));
        return y != y ? y : x == 0 ? 0.f : x * l;
      },
      kCostlyGrain);
}
template <class F>
bool times_log_reduced(Call &c, F log) {
  const DType d = common_dtype(c, 0, 1);
  if (d != DType::F16 && d != DType::BF16) return false;
  const Two p = operands(c);
  const Tensor o = out2(c, d, p);
  if (d == DType::F16)
    times_log16<Half>(o, p, log);
  else
    times_log16<BFloat16>(o, p, log);
  return true;
}

MSA_POINTWISE_KERNEL(Xlogy) {
  if (times_log_reduced(c, [](float y) { return vec::log(y); })) return;
  float_binary(c, "xlogy_cpu", [](auto x, auto y) {
    using T = decltype(x);
    const T l = vec::log(y);
    return y != y ? y : x == 0 ? T(0) : x * l;
  });
}
MSA_KERNEL_ALIAS(XLogYScalarOther, Xlogy)
MSA_KERNEL_ALIAS(XLogYScalarSelf, Xlogy)
MSA_POINTWISE_KERNEL(Xlog1py) {
  if (times_log_reduced(c, [](float y) { return vec::log1p(y); })) return;
  float_binary(c, "xlog1py_cpu", [](auto x, auto y) {
    using T = decltype(x);
    const T l = vec::log1p(y);
    return y != y ? y : x == 0 ? T(0) : x * l;
  });
}

MSA_POINTWISE_KERNEL(Frexp) {  // input -> mantissa, exponent (int32)
  const Tensor &a = c.in(0);
  check(is_floating(a.dtype), "torch.frexp() only supports floating-point dtypes");
  Tensor m = c.out_pointwise(0, a.dtype, {&a}), e = c.out_pointwise(1, DType::I32, {&a});
  MSA_COMPUTE_FLOAT(a.dtype, "frexp", (unary_pair<T, int32_t, T>(m, e, a, [](T x, int32_t *exponent) {
                      int k = 0;
                      const T r = std::frexp(x, &k);
                      *exponent = std::isfinite(x) ? k : 0;
                      return r;
                    })));
}

// ---- integers and bits
MSA_BINARY_KERNEL(Gcd, INT, "gcd_cpu", gcd_of(x, y))
MSA_POINTWISE_KERNEL(Lcm) {
  if (common_dtype(c, 0, 1) == DType::I32)
    MSA_BINARY_BODY(INT, "lcm_cpu", lcm_of<int32_t>(x, y));
  else
    MSA_BINARY_BODY(INT, "lcm_cpu", lcm_of<int64_t>(x, y));
}
MSA_BINARY_KERNEL(BitwiseAndTensor, INT_BOOL, "bitwise_and_cpu", x &y)
MSA_KERNEL_ALIAS(BitwiseAndScalar, BitwiseAndTensor)
MSA_KERNEL_ALIAS(BitwiseAnd, BitwiseAndTensor)
MSA_BINARY_KERNEL(BitwiseOrTensor, INT_BOOL, "bitwise_or_cpu", x | y)
MSA_KERNEL_ALIAS(BitwiseOrScalar, BitwiseOrTensor)
MSA_KERNEL_ALIAS(BitwiseOr, BitwiseOrTensor)
MSA_BINARY_KERNEL(BitwiseXorTensor, INT_BOOL, "bitwise_xor_cpu", x ^ y)
MSA_KERNEL_ALIAS(BitwiseXorScalar, BitwiseXorTensor)
MSA_KERNEL_ALIAS(BitwiseXor, BitwiseXorTensor)
MSA_POINTWISE_KERNEL(BitwiseNot) {
  if (c.in(0).dtype == DType::Bool)
    MSA_UNARY_BODY(INT_BOOL, "bitwise_not_cpu", x == 0);
  else
    MSA_UNARY_BODY(INT, "bitwise_not_cpu", ~x);
}
// A shift by a negative number, or by at least 64 bits, gives 0 to the left. To the right it gives -1 for negative
// numbers and 0 for others.
MSA_BINARY_KERNEL(LeftShift, INT, "lshift_cpu", y < 0 || y > 63 ? 0 : T(static_cast<uint64_t>(x) << y))
MSA_BINARY_KERNEL(RightShift, INT, "rshift_cpu", x >> (y < 0 || y > 63 ? 63 : y))

}  // namespace msa

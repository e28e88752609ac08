// Elementary functions of one operand.
#include "pointwise_math.h"
#include "vec_functions.h"

// A kernel with one expression for float types and another one for complex types.
#define MSA_REAL_COMPLEX_KERNEL(Name, Op, Grain, Real, Complex) \
  MSA_POINTWISE_KERNEL(Name) {                                  \
    if (is_complex(c.in(0).dtype))                              \
      MSA_UNARY_GRAIN_BODY(kCostlyGrain, COMPLEX, Op, Complex); \
    else                                                        \
      MSA_UNARY_GRAIN_BODY(Grain, FLOAT, Op, Real);             \
  }
// A kernel for sin, cos or tan.
#define MSA_CIRCULAR_KERNEL(Name, Op, Function)                                                 \
  MSA_POINTWISE_KERNEL(Name) {                                                                  \
    const Tensor &a_ = c.in(0);                                                                 \
    if (is_complex(a_.dtype)) {                                                                 \
      MSA_UNARY_GRAIN_BODY(kCostlyGrain, COMPLEX, Op, std::Function(x));                        \
      return;                                                                                   \
    }                                                                                           \
    Tensor o_ = c.out_pointwise(0, a_.dtype, {&a_});                                            \
    MSA_COMPUTE_FLOAT(a_.dtype, Op,                                                             \
                      (unary_within<T>(                                                         \
                          o_, a_, T(vec::kCircularLimit), [](T x) { return vec::Function(x); }, \
                          [](T x) { return std::Function(x); }, kMediumGrain)));                \
  }

namespace msa {
namespace {

constexpr int64_t kMediumGrain = 8192;

template <class T>
T log2_of(T x) {
  return std::log(x) / typename T::value_type(0.69314718055994530942);
}
template <class T>
T round_even(T x) {
  return std::nearbyint(x);
}

// sin(pi x) / (pi x)
template <class T>
T sinc_of(T x) {
  if (x == T(0)) return T(1);
  const T p = x * T(3.14159265358979323846);
  return std::sin(p) / p;
}
// log(1 + z). Near the unit circle, its real part is computed with log1p from |1 + z|^2 - 1.
template <class R>
std::complex<R> log1p_of(std::complex<R> z) {
  const R x = z.real(), y = z.imag();
  if (!(std::abs(x) < 0.5 && std::abs(y) < 0.5)) return std::log(z + R(1));
  return {R(0.5) * std::log1p(x * (R(2) + x) + y * y), std::atan2(y, R(1) + x)};
}
// The real part of e^(a + bi) - 1 is expm1(a) cos b + (cos b - 1), and cos b - 1 = -2 sin^2(b/2).
template <class R>
std::complex<R> expm1_of(std::complex<R> z) {
  const R s = std::sin(z.imag() / 2), real = std::expm1(z.real()) * std::cos(z.imag()) - 2 * s * s;
  return {real, std::exp(z.real()) * std::sin(z.imag())};
}

// Integers stay as they are.
bool keep_integers(Call &c, const char *op) {
  const Tensor &a = c.in(0);
  if (is_complex(a.dtype)) throw NotImplementedError(text(op, " is not supported for complex inputs"));
  if (!is_integral(a.dtype, false)) return false;
  copy_into(c.out_pointwise(0, a.dtype, {&a}), a);
  return true;
}

}  // namespace

MSA_REAL_COMPLEX_KERNEL(Exp, "exp_vml_cpu", kMediumGrain, vec::exp(x), std::exp(x))
MSA_KERNEL_ALIAS(InplaceExp, Exp)
MSA_REAL_COMPLEX_KERNEL(Log, "log_vml_cpu", kMediumGrain, vec::log(x), std::log(x))
MSA_KERNEL_ALIAS(InplaceLog, Log)
MSA_REAL_COMPLEX_KERNEL(Sqrt, "sqrt_vml_cpu", kGrain, vec::sqrt(x), std::sqrt(x))
// 1 / sqrt(x). As in PyTorch, the root of a 16-bit number is rounded before it is inverted, but only in the tail
// (tail_of()).
template <class E>
void rsqrt16(const Tensor &o, const Tensor &a) {
  E tail[kVectorBytes];
  const int64_t n = tail_of(o, {&a}), first = o.numel - n;
  for (int64_t i = 0; i < n; ++i)
    tail[i] = static_cast<E>(Stepwise<E>(1) / Stepwise<E>(std::sqrt(static_cast<float>(a.ptr<E>()[first + i]))));
  unary<float, float>(o, a, [](float x) { return 1 / vec::sqrt(x); });
  std::copy_n(tail, n, o.ptr<E>() + first);
}
MSA_POINTWISE_KERNEL(Rsqrt) {
  const Tensor &a = c.in(0);
  if (a.dtype == DType::F16) return rsqrt16<Half>(c.out_pointwise(0, a.dtype, {&a}), a);
  if (a.dtype == DType::BF16) return rsqrt16<BFloat16>(c.out_pointwise(0, a.dtype, {&a}), a);
  if (is_complex(a.dtype))
    MSA_UNARY_GRAIN_BODY(kCostlyGrain, COMPLEX, "rsqrt_cpu", T(1) / std::sqrt(x));
  else
    MSA_UNARY_GRAIN_BODY(kGrain, FLOAT, "rsqrt_cpu", T(1) / vec::sqrt(x));
}
MSA_UNARY_KERNEL(Erf, FLOAT, "erf_vml_cpu", vec::erf(x))

MSA_REAL_COMPLEX_KERNEL(Exp2, "exp2", kMediumGrain, vec::exp2(x), std::exp(x *T(0.69314718055994530942)))
MSA_REAL_COMPLEX_KERNEL(Expm1, "expm1_vml_cpu", kMediumGrain, vec::expm1(x), expm1_of(x))
MSA_REAL_COMPLEX_KERNEL(Log2, "log2_vml_cpu", kMediumGrain, vec::log2(x), log2_of(x))
MSA_REAL_COMPLEX_KERNEL(Log10, "log10_vml_cpu", kMediumGrain, vec::log10(x), std::log10(x))
MSA_REAL_COMPLEX_KERNEL(Log1p, "log1p_vml_cpu", kMediumGrain, vec::log1p(x), log1p_of(x))
MSA_CIRCULAR_KERNEL(Sin, "sin_vml_cpu", sin)
MSA_CIRCULAR_KERNEL(Cos, "cos_vml_cpu", cos)
MSA_CIRCULAR_KERNEL(Tan, "tan_vml_cpu", tan)
MSA_REAL_COMPLEX_KERNEL(AsinExt, "asin_vml_cpu", kMediumGrain, vec::asin(x), std::asin(x))
MSA_KERNEL_ALIAS(Asin, AsinExt)
MSA_REAL_COMPLEX_KERNEL(AcosExt, "acos_vml_cpu", kMediumGrain, vec::acos(x), std::acos(x))
MSA_KERNEL_ALIAS(ACos, AcosExt)
MSA_REAL_COMPLEX_KERNEL(AtanExt, "atan_vml_cpu", kMediumGrain, vec::atan(x), std::atan(x))
MSA_KERNEL_ALIAS(Atan, AtanExt)
MSA_REAL_COMPLEX_KERNEL(Sinh, "sinh_vml_cpu", kMediumGrain, vec::sinh(x), std::sinh(x))
MSA_REAL_COMPLEX_KERNEL(Cosh, "cosh_vml_cpu", kMediumGrain, vec::cosh(x), std::cosh(x))
MSA_REAL_COMPLEX_KERNEL(AsinhExt, "asinh_vml_cpu", kMediumGrain, vec::asinh(x), std::asinh(x))
MSA_KERNEL_ALIAS(Asinh, AsinhExt)
MSA_REAL_COMPLEX_KERNEL(AcoshExt, "acosh_vml_cpu", kMediumGrain, vec::acosh(x), std::acosh(x))
MSA_KERNEL_ALIAS(Acosh, AcoshExt)
MSA_REAL_COMPLEX_KERNEL(Atanh, "atanh_vml_cpu", kMediumGrain, vec::atanh(x), std::atanh(x))
MSA_POINTWISE_KERNEL(Sinc) {
  const Tensor &a = c.in(0);
  Tensor o = c.out_pointwise(0, a.dtype, {&a});
  if (is_complex(a.dtype)) {
    MSA_COMPUTE_COMPLEX(a.dtype, "sinc_cpu", (unary<T, T>(o, a, [](T x) { return sinc_of(x); }, kCostlyGrain)));
    return;
  }
  MSA_COMPUTE_FLOAT(a.dtype, "sinc_cpu",
                    (unary_within<T>(
                        o, a, T(vec::kCircularLimit / 4), [](T x) { return vec::sinc(x); },
                        [](T x) { return sinc_of(x); }, kMediumGrain)));
}
MSA_UNARY_KERNEL(Erfc, FLOAT, "erfc_vml_cpu", vec::erfc(x))

// ---- rounding
MSA_POINTWISE_KERNEL(Floor) {
  if (!keep_integers(c, "floor")) MSA_UNARY_BODY(FLOAT, "floor_vml_cpu", std::floor(x));
}
MSA_KERNEL_ALIAS(InplaceFloor, Floor)
MSA_POINTWISE_KERNEL(Ceil) {
  if (!keep_integers(c, "ceil")) MSA_UNARY_BODY(FLOAT, "ceil_vml_cpu", std::ceil(x));
}
MSA_POINTWISE_KERNEL(Trunc) {
  if (!keep_integers(c, "trunc")) MSA_UNARY_BODY(FLOAT, "trunc_vml_cpu", std::trunc(x));
}
MSA_UNARY_KERNEL(Frac, FLOAT, "frac_cpu", x - std::trunc(x))
MSA_POINTWISE_KERNEL(Round) {  // input, decimals: half to even
  const int64_t decimals = c.has(1) ? c.integer(1) : 0;
  if (decimals == 0) {
    if (!keep_integers(c, "round")) MSA_UNARY_BODY(FLOAT, "round_vml_cpu", round_even(x));
    return;
  }
  const Tensor &a = c.in(0);
  if (is_integral(a.dtype))
    throw NotImplementedError(text("\"round_cpu\" not implemented for '", dtype_name(a.dtype), "'"));
  Tensor o = c.out_pointwise(0, a.dtype, {&a});
  const double ten = std::pow(10., std::abs(static_cast<double>(decimals)));
  MSA_COMPUTE_FLOAT(a.dtype, "round_cpu", {
    const T scale = T(ten);
    if (decimals > 0)
      unary<T, T>(o, a, [scale](T x) { return round_even(x * scale) / scale; });
    else
      unary<T, T>(o, a, [scale](T x) { return round_even(x / scale) * scale; });
  });
}

}  // namespace msa

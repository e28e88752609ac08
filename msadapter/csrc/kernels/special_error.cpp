// Inverse and scaled error functions, ndtr, and functions for entropies.
#include "special_math.h"
#include "vec_functions.h"

namespace msa {

namespace vec {
// erfc(-x / sqrt(2)) / 2, with the rounding error of the quotient, which the steep tail of erfc would magnify.
MSA_INLINE float ndtr(float x) {
  const float z = between(x, -15.f, 15.f), t = -z * 0.70710678f;
  const float rest = fma(-z, 0.70710678f, -t) - z * 1.21016175e-8f;
  const float y = erfc(t) - rest * 1.12837917f * exp(-t * t);
  return 0.5f * (y <= 0.f ? 0.f : y);  // a negative zero may come out of the difference
}
// -x log(x), which is 0 at 0 and -infinity for negative numbers
MSA_INLINE float entr(float x) {
  const float y = -x * log(x);  // NaN at 0, for negative numbers and for NaN
  return x > 0.f ? y : x == 0.f ? 0.f : x < 0.f ? -INFINITY : x;
}
}  // namespace vec

namespace {

constexpr double kSqrtPi = 1.77245385090551602730;
constexpr double kSqrtTwo = 1.41421356237309504880;

// exp(x^2), corrected for the rounding error of x^2.
double exp_of_square(double x) {
  const double s = x * x;
  return std::exp(s) * (1 + std::fma(x, x, -s));
}

// exp(x^2) erfc(x), by the asymptotic series if erfc underflows.
double erfcx(double x) {
  if (x != x) return x;
  if (x < 25) return x < -26.7 ? kInf : exp_of_square(x) * std::erfc(x);
  const double z = 0.5 / (x * x);
  return (1 - z * (1 - z * (3 - z * (15 - z * 105)))) / (x * kSqrtPi);
}

// The same for float and narrower types, in double without branches: a Chebyshev interpolation of (1 + 2 x) erfcx(x) in
// (x - 2.5) / (x + 2.5) for x >= 0, with relative errors below 3e-9.
MSA_INLINE double short_erfcx_positive(double x) {
  const double t = (x - 2.5) / (x + 2.5);
  const double p = vec::polynomial(t, 8.47561150681802443e-06, -6.17724884862357320e-05, -8.93404672508878514e-05,
                                   5.75361742333516417e-04, 4.91931990461478164e-04, -4.35011754053379364e-03,
                                   9.31936844641322124e-04, 3.27518875080941296e-02, -1.02967065512206385e-01,
                                   1.57631024098286582e-01, -9.90245391799077779e-02, -1.22356802257071934e-01,
                                   1.26483818436686235e+00);
  return p / (1 + 2 * x);
}
constexpr double kBeyondFloat = 1e39;  // stands for infinity, of which quotients are NaN
MSA_INLINE double short_erfcx(double x) {
  const double a = vec::abs(x), z = a > kBeyondFloat ? kBeyondFloat : a, right = short_erfcx_positive(z);
  return x < 0 ? 2 * vec::exp(z * z) - right : a > kBeyondFloat ? 0. : right;
}
// For x < 0 the factor exp(-x^2 / 2) is taken out of the logarithm.
MSA_INLINE double short_log_ndtr(double x) {
  const double a = vec::abs(x) / kSqrtTwo, z = a > kBeyondFloat ? kBeyondFloat : a;
  const double half = 0.5 * short_erfcx_positive(z), square = z * z;
  const double left = vec::log(half) - square, right = vec::log1p(-half * vec::exp(-square));
  return x < 0 ? left : right;
}

// The inverse of erf: Winitzki's approximation, improved by Halley steps for erf, or for erfc in the tail.
double erfinv_tail(double q);
double erfinv(double y) {
  if (!(std::abs(y) < 1)) return std::abs(y) == 1 ? std::copysign(kInf, y) : kNaN;
  if (y == 0) return y;
  if (std::abs(y) > 0.5) return std::copysign(erfinv_tail(1 - std::abs(y)), y);
  const double l = std::log1p(-y * y), a = 2 / (kPiD * 0.147) + l / 2;
  double x = std::copysign(std::sqrt(std::sqrt(a * a - l / 0.147) - a), y);
  for (int i = 0; i < 3; ++i) {
    const double e = (std::erf(x) - y) * (kSqrtPi / 2) * std::exp(x * x);
    x -= e / (1 + x * e);
  }
  return x;
}
// Returns x with erfc(x) = q, for 0 < q < 1.
double erfinv_tail(double q) {
  const double l = std::log(q) + std::log(2 - q), a = 2 / (kPiD * 0.147) + l / 2;
  double x = std::sqrt(std::sqrt(a * a - l / 0.147) - a);
  for (int i = 0; i < 4; ++i) {
    // relative form: erfc(x) e^{x^2} = erfcx(x)
    const double e = (q * exp_of_square(x) - erfcx(x)) * (kSqrtPi / 2);
    x -= e / (1 + x * e);
  }
  return x;
}

double ndtr(double x) { return x < 1 ? 0.5 * std::erfc(-x / kSqrtTwo) : 0.5 + 0.5 * std::erf(x / kSqrtTwo); }
double log_ndtr(double x) {
  if (x < -1) return std::log(erfcx(-x / kSqrtTwo) / 2) - x * x / 2;
  return std::log1p(-std::erfc(x / kSqrtTwo) / 2);
}
double ndtri(double p) {
  if (p == 0) return -kInf;
  if (p == 1) return kInf;
  if (!(p > 0 && p < 1)) return kNaN;
  if (p < 0.25) return -kSqrtTwo * erfinv_tail(2 * p);
  if (p > 0.75) return kSqrtTwo * erfinv_tail(2 * (1 - p));
  return kSqrtTwo * erfinv(2 * p - 1);
}
// In 16 bits, PyTorch rounds each step.
template <class H>
float logit16(float x, bool clamped, double eps) {
  const float lo = H(static_cast<float>(eps)), hi = H(1 - lo);
  const float z = !clamped ? x : x < lo ? lo : x > hi ? hi : x;
  return z == 1 ? INFINITY : std::log(float(H(z / float(H(1 - z)))));
}

double entr(double x) { return x != x ? x : x > 0 ? -x * std::log(x) : x == 0 ? 0 : -kInf; }

}  // namespace

// A kernel whose float32 and 16-bit types have a function of their own.
#define MSA_VECTOR_KERNEL(Name, Op, Function)                                           \
  MSA_POINTWISE_KERNEL(Name) {                                                          \
    const Tensor &a_ = c.in(0);                                                         \
    const DType d_ = is_integral(a_.dtype) ? DType::F32 : a_.dtype;                     \
    Tensor o_ = c.out_pointwise(0, d_, {&a_});                                          \
    if (d_ == DType::F64) return unary<double, double>(o_, a_, Function, kCostlyGrain); \
    if (!is_floating(d_)) unsupported(Op, d_);                                          \
    unary<float, float>(o_, a_, [](float x) { return vec::Function(x); });              \
  }
MSA_VECTOR_KERNEL(Erfinv, "erfinv_vml_cpu", erfinv)
MSA_KERNEL_ALIAS(InplaceErfinv, Erfinv)
MSA_SHORT_KERNEL(Erfcx, "erfcx", erfcx(x), short_erfcx(x))
MSA_VECTOR_KERNEL(Ndtr, "ndtr_cpu", ndtr)
MSA_VECTOR_KERNEL(Ndtri, "ndtri_cpu", ndtri)
MSA_SHORT_KERNEL(LogNdtr, "log_ndtr_cpu", log_ndtr(x), short_log_ndtr(x))
MSA_VECTOR_KERNEL(Entr, "entr_cpu", entr)

MSA_POINTWISE_KERNEL(Logit) {  // input, eps?: log(z / (1 - z)), z clamped to [eps, 1 - eps]
  const Tensor &a = c.in(0);
  if (is_complex(a.dtype)) unsupported("logit_cpu", a.dtype);
  Tensor o = c.out_pointwise(0, is_integral(a.dtype) ? DType::F32 : a.dtype, {&a});
  const bool clamped = c.has(1);
  const double eps = clamped ? c.number(1) : 0;
  if (o.dtype == DType::F16) return unary<float, float>(o, a, [=](float x) { return logit16<Half>(x, clamped, eps); });
  if (o.dtype == DType::BF16)
    return unary<float, float>(o, a, [=](float x) { return logit16<BFloat16>(x, clamped, eps); });
  MSA_COMPUTE_FLOAT(o.dtype, "logit_cpu", {
    const T lo = T(eps);
    const T hi = T(1) - lo;
    unary<T, T>(o, a, [=](T x) {
      const T z = !clamped ? x : x < lo ? lo : x > hi ? hi : x;
      return z == T(1) ? T(INFINITY) : vec::log(z / (T(1) - z));
    });
  });
}
// The slope of logit with the limits and steps of the 16-bit type.
template <class E>
void logit_grad16(const Tensor &o, const Tensor &g, const Tensor &a, bool clamped, double eps) {
  using S = Stepwise<E>;
  const S lo = S(eps), hi = S(1) - lo;
  binary<float, float, float>(o, g, a, [=](float d, float x) {
    if (clamped ? S(x) < lo || S(x) > hi : x < 0 || x > 1) return clamped ? 0.f : NAN;
    return !clamped && (x == 0 || x == 1) ? d * INFINITY : (S(d) / (S(x) * (S(1) - S(x)))).v;
  });
}

MSA_POINTWISE_KERNEL(LogitGrad) {  // dy, input, eps?
  const Tensor &g = c.in(0), &a = c.in(1);
  Tensor o = c.out_pointwise(0, g.dtype, {&g, &a});
  const bool clamped = c.has(2);
  const double eps = clamped ? c.number(2) : 0;
  if (o.dtype == DType::F16) return logit_grad16<Half>(o, g, a, clamped, eps);
  if (o.dtype == DType::BF16) return logit_grad16<BFloat16>(o, g, a, clamped, eps);
  MSA_COMPUTE_FLOAT(o.dtype, "logit_backward_cpu", {
    const T lo = T(eps);
    const T hi = T(1) - lo;
    binary<T, T, T>(o, g, a, [=](T d, T x) {
      if (clamped) return x < lo || x > hi ? T(0) : d / (x * (T(1) - x));
      return x < 0 || x > 1 ? T(NAN) : x == 0 || x == 1 ? T(d * INFINITY) : T(d / (x * (T(1) - x)));
    });
  });
}

}  // namespace msa

// Gamma, its logarithmic derivatives, the Hurwitz zeta function and the incomplete gamma functions.
#include "special_math.h"
#include "vec_math.h"

namespace msa {
namespace {

// digamma: the recurrence up to 10, then the asymptotic series, and the reflection formula for negative numbers. float
// is computed in float, so that the numbers equal PyTorch's near the zeros, where terms cancel.
template <class T>
T digamma(T x) {
  if (x == 0) return std::copysign(T(INFINITY), -x);
  if (std::isinf(x)) return x > 0 ? x : T(NAN);
  if (x < 0) {
    double whole;
    const double fraction = std::modf(static_cast<double>(x), &whole);
    if (fraction == 0) return T(NAN);
    return digamma(1 - x) - static_cast<T>(kPiD / std::tan(kPiD * fraction));
  }
  T r = 0;
  for (; x < 10; x += 1) r -= 1 / x;
  if (x == 10) return r + T(2.25175258906672110764);
  const T z = 1 / (x * x);
  // B_2k / 2k
  const T tail =
      z * (T(1. / 12) -
           z * (T(1. / 120) -
                z * (T(1. / 252) - z * (T(1. / 240) - z * (T(1. / 132) - z * (T(691. / 32760) - z / T(12)))))));
  return r + std::log(x) - T(0.5) / x - tail;
}

// The Hurwitz zeta function, the sum of (k + q)^-s over k >= 0. Ten terms or more are added directly, and the rest is
// the Euler-Maclaurin formula.
double zeta(double s, double q) {
  if (s == 1) return kInf;
  if (!(s > 1)) return kNaN;
  if (q <= 0) {
    if (q == std::floor(q)) return kInf;
    if (s != std::floor(s)) return kNaN;
  }
  double sum = 0, a = q;
  int terms = 0;
  for (; terms < 10 || a < 10; ++terms, a += 1) {
    const double t = std::pow(a, -s);
    sum += t;
    if (std::abs(t) < 1e-17 * std::abs(sum) && a > 0) return sum;
  }
  double power = std::pow(a, -s);
  sum += a * power / (s - 1) + 0.5 * power;
  // (2k)! / B_2k
  static const double factors[] = {12.,
                                   -720.,
                                   30240.,
                                   -1209600.,
                                   47900160.,
                                   -1.8924375803183791606e9,
                                   7.47242496e10,
                                   -2.950130727918164224e12,
                                   1.1646782814350067249e14,
                                   -4.5979787224074726105e15,
                                   1.8152105401943546773e17,
                                   -7.1661652561756670113e18};
  double rising = 1, k = 0;
  for (const double f : factors) {
    rising *= s + k;
    power /= a;
    const double t = rising * power / f;
    sum += t;
    if (std::abs(t) < 1e-17 * std::abs(sum)) break;
    rising *= s + k + 1;
    power /= a;
    k += 2;
  }
  return sum;
}

double lgamma_of(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}

// The same for 0 < x < infinity, without branches. Below 8, it is the logarithm for x + 8 without that of x (x + 1) ...
// (x + 7). The series is Stirling's.
MSA_INLINE double positive_lgamma(double x) {
  const bool low = x < 8;
  const double z = low ? x + 8 : x, u = 1 / z, v = u * u, first = low ? x : 1.;
  const double a = x * (x + 7), product = a * (a + 6) * (a + 10) * (a + 12);  // pairs from both ends
  const double series = u * vec::polynomial(v, -2.95506535947712418e-02, 6.41025641025641026e-03,
                                            -1.91752691752691753e-03, 8.41750841750841751e-04, -5.95238095238095238e-04,
                                            7.93650793650793651e-04, -2.77777777777777778e-03, 8.33333333333333333e-02);
  const double stirling = (z - 0.5) * vec::log(z) - z + 0.91893853320467274178 + series;
  const double y = stirling - vec::log(low ? product : first);
  return x == 1 || x == 2 ? 0 : y;
}
void lgamma_of_floats(const Tensor &o, const Tensor &a) {
  const Tensor *t[] = {&o, &a};
  const DType d[] = {DType::F64, DType::F64};
  run_blocks(
      2, 1, t, d,
      [](char *const *p, int64_t n, const void *) {
        double *to = reinterpret_cast<double *>(p[0]);
        const double *from = reinterpret_cast<const double *>(p[1]);
        int others = 0;
        for (int64_t i = 0; i < n; ++i) others |= !((from[i] > 0) & (from[i] < kInf));
        if (others) {
          for (int64_t i = 0; i < n; ++i)
            to[i] = from[i] > 0 && from[i] < kInf ? positive_lgamma(from[i]) : lgamma_of(from[i]);
          return;
        }
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) to[i] = positive_lgamma(from[i]);
      },
      nullptr, kCostlyGrain);
}

// trigamma: six steps of the recurrence, then the asymptotic series, and the reflection formula below 1/2.
template <class T>
T trigamma(T x) {
  T reflected = 0;
  const bool left = x < T(0.5);
  if (left) {
    const T s = std::sin(kPi<T> * x);
    reflected = kPi<T> * kPi<T> / (s * s);
    x = 1 - x;
  }
  T r = 0;
  for (int k = 0; k < 6; ++k, x += 1) r += 1 / (x * x);
  const T z = 1 / (x * x);
  r += (1 + 1 / (2 * x) + z * (T(1. / 6) - z * (T(1. / 30) - z * T(1. / 42)))) / x;
  return left ? reflected - r : r;
}

// zeta(s, q) in float. Where terms of both signs cancel, the numbers equal PyTorch's for 16-bit types.
float zeta_float(float s, float q) {
  if (q <= 0 && q == std::floor(q)) return static_cast<float>(kInf);
  float a = q, sum = std::pow(q, -s), power = 0;
  for (int i = 0; i < 9 || a <= 9; ++i) {
    a += 1;
    power = std::pow(a, -s);
    sum += power;
    if (-6e-8f * sum < power && power < 6e-8f * sum) return sum;
  }
  sum += power * a / (s - 1) - 0.5f * power;
  static const float factors[] = {12.f,
                                  -720.f,
                                  30240.f,
                                  -1209600.f,
                                  47900160.f,
                                  -1.8924375803183791606e9f,
                                  7.47242496e10f,
                                  -2.950130727918164224e12f,
                                  1.1646782814350067249e14f,
                                  -4.5979787224074726105e15f,
                                  1.8152105401943546773e17f,
                                  -7.1661652561756670113e18f};
  float rising = 1, k = 0;
  for (const float f : factors) {
    rising *= s + k;
    power /= a;
    const float t = rising * power / f;
    sum += t;
    if (std::abs(t / sum) < 6e-8f) return sum;
    rising *= s + k + 1;
    power /= a;
    k += 2;
  }
  return sum;
}
template <class E>
float polygamma16(int64_t n, float x) {
  const double factor = (n % 2 ? 1. : -1.) * std::exp(lgamma_of(static_cast<double>(n) + 1));
  return static_cast<float>(factor * static_cast<float>(E(zeta_float(static_cast<float>(n + 1), x))));
}

double polygamma(int64_t n, double x) {
  return (n % 2 ? 1. : -1.) * std::exp(lgamma_of(static_cast<double>(n) + 1)) * zeta(static_cast<double>(n) + 1, x);
}

// x^a e^-x / Gamma(a + 1). For a large a near x, where the direct formula loses digits, Stirling's series is used.
double gamma_factor(double a, double x) {
  if (a < 50) return std::exp(a * std::log(x) - x - lgamma_of(a + 1));
  const double d = (x - a) / a;
  const double exponent = std::abs(d) < 0.5 ? a * (std::log1p(d) - d) : a * std::log(x / a) + a - x;
  const double z = 1 / (a * a), stirling = (1. / 12 - z * (1. / 360 - z * (1. / 1260 - z / 1680))) / a;
  return std::exp(exponent - stirling) / std::sqrt(2 * kPiD * a);
}
double lower_series(double a, double x) {
  double term = 1, sum = 1;
  for (double k = 1; k < 200000; k += 1) {
    term *= x / (a + k);
    sum += term;
    if (term < 1e-17 * sum) break;
  }
  return gamma_factor(a, x) * sum;
}
// The upper incomplete gamma function by a continued fraction (Lentz's algorithm), for x > a + 1.
double upper_fraction(double a, double x) {
  double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
  for (double i = 1; i < 200000; i += 1) {
    const double an = -i * (i - a);
    b += 2;
    d = an * d + b;
    d = std::abs(d) < 1e-300 ? 1e-300 : d;
    c = b + an / c;
    c = std::abs(c) < 1e-300 ? 1e-300 : c;
    d = 1 / d;
    const double step = d * c;
    h *= step;
    if (std::abs(step - 1) < 1e-16) break;
  }
  return gamma_factor(a, x) * a * h;
}
// Gamma(a, x) / Gamma(a) for small a and x, where 1 - P cancels
double upper_small(double a, double x) {
  double term = 1, sum = 0;
  for (double k = 1; k < 200; k += 1) {
    term *= -x / k;
    const double t = term / (a + k);
    sum += t;
    if (std::abs(t) < 1e-17 * std::abs(sum)) break;
  }
  const double log_factor = a * std::log(x) - lgamma_of(1 + a);
  return -std::expm1(log_factor) - std::exp(log_factor) * a * sum;
}

enum class Part { lower, upper };
double incomplete_gamma(Part part, double a, double x) {
  const bool lower = part == Part::lower;
  if (std::isnan(a) || std::isnan(x) || x < 0 || a < 0) return kNaN;
  if (a == 0) return x > 0 ? (lower ? 1 : 0) : kNaN;
  if (x == 0) return lower ? 0 : 1;
  if (std::isinf(a)) return std::isinf(x) ? kNaN : (lower ? 0 : 1);
  if (std::isinf(x)) return lower ? 1 : 0;
  if (x > 1.1 && x > a + 1) {
    const double q = upper_fraction(a, x);
    return lower ? 1 - q : q;
  }
  if (!lower && a < 1 && x <= 1.1) return upper_small(a, x);
  const double p = lower_series(a, x);
  return lower ? p : 1 - p;
}

}  // namespace

MSA_POINTWISE_KERNEL(Lgamma) {
  const Tensor &a = c.in(0);
  if (a.dtype == DType::F64) return special_unary(c, "lgamma_vml_cpu", lgamma_of);
  if (is_complex(a.dtype)) unsupported("lgamma_vml_cpu", a.dtype);
  lgamma_of_floats(c.out_pointwise(0, is_integral(a.dtype) ? DType::F32 : a.dtype, {&a}), a);
}
MSA_COSTLY_KERNEL(Digamma, FLOAT, "digamma", digamma(x))
MSA_SPECIAL_BINARY_KERNEL(Zeta, "zeta", zeta)
MSA_SPECIAL_BINARY_KERNEL(Igamma, "igamma_cpu", [](double a, double x) { return incomplete_gamma(Part::lower, a, x); })
MSA_SPECIAL_BINARY_KERNEL(Igammac, "igammac_cpu",
                          [](double a, double x) { return incomplete_gamma(Part::upper, a, x); })

MSA_POINTWISE_KERNEL(Polygamma) {  // n, input
  const int64_t n = c.integer(0);
  const Tensor &a = c.in(1);
  check(n >= 0, "polygamma(n, x) does not support negative n.");
  Tensor o = c.out_pointwise(0, is_integral(a.dtype) ? DType::F32 : a.dtype, {&a});
  if (n > 1 && o.dtype == DType::F16)
    return unary<float, float>(o, a, [n](float x) { return polygamma16<Half>(n, x); }, kCostlyGrain);
  if (n > 1 && o.dtype == DType::BF16)
    return unary<float, float>(o, a, [n](float x) { return polygamma16<BFloat16>(n, x); }, kCostlyGrain);
  if (n > 1) return unary<double, double>(o, a, [n](double x) { return polygamma(n, x); }, kCostlyGrain);
  MSA_COMPUTE_FLOAT(o.dtype, "polygamma", {
    if (n == 0)
      unary<T, T>(o, a, [](T x) { return digamma(x); }, kCostlyGrain);
    else
      unary<T, T>(o, a, [](T x) { return trigamma(x); }, kCostlyGrain);
  });
}

}  // namespace msa

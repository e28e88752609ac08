// The derivatives of gamma and Dirichlet samples with respect to their parameters: dx/da = -(dF/da) / f for the
// distribution function F and the density f. Both are one-dimensional integrals of smooth decaying functions,
// computed with the double-exponential rule.
#include <cmath>

#include "loops.h"

namespace msa {
namespace {

double digamma(double x) {  // x > 0
  double r = 0;
  for (; x < 12; ++x) r -= 1 / x;
  const double i = 1 / (x * x);
  return r + std::log(x) - 0.5 / x -
         i * (1.0 / 12 - i * (1.0 / 120 - i * (1.0 / 252 - i * (1.0 / 240 - i * (1.0 / 132)))));
}

// Integral of f over (0, inf), for f that decays at least like exp(-w).
template <class F>
double half_line(F f) {
  constexpr double kStep = 0.0625;
  double sum = 0;
  for (double u = -4; u < 7; u += kStep) {
    const double e = std::exp(-u), w = std::exp(u - e), term = f(w) * w * (1 + e);
    if (std::isfinite(term)) sum += term;
  }
  return sum * kStep;
}

// Gamma(a, 1) at the sample x. Below the mean the integral runs over (0, x), above it over (x, inf).
double gamma_slope(double a, double x) {
  if (x <= 0) return 0;
  const double psi = digamma(a), log_x = std::log(x);
  if (x < a) return -x * half_line([&](double w) { return std::exp(-w * a - x * std::expm1(-w)) * (log_x - w - psi); });
  return half_line(
      [&](double w) { return std::exp((a - 1) * std::log1p(w / x) - w) * (log_x + std::log1p(w / x) - psi); });
}

// Beta(a, b) at x, divided by 1 - x: the factor of a Dirichlet gradient.
double beta_slope(double a, double b, double x) {
  const double c = digamma(a) - digamma(a + b);
  if (x < a / (a + b)) {
    const double log_rest = std::log1p(-x);
    return -x / (1 - x) * half_line([&](double w) {
      const double s = x * std::exp(-w);
      return std::exp(-a * w + (b - 1) * (std::log1p(-s) - log_rest)) * (std::log(x) - w - c);
    });
  }
  const double log_x = std::log(x);
  return half_line([&](double w) {
    const double log_s = std::log1p(-(1 - x) * std::exp(-w));
    return std::exp(-b * w + (a - 1) * (log_s - log_x)) * (log_s - c);
  });
}

}  // namespace

MSA_KERNEL(StandardGammaGrad) {  // alpha, sample
  const Tensor o = c.out_pointwise(0, c.in(0).dtype, {&c.in(0), &c.in(1)});
  MSA_SWITCH_FLOAT(o.dtype, "_standard_gamma_grad_cpu",
                   (map2<T, T, T>(
                       o, c.in(0), c.in(1),
                       [](T a, T x) { return convert<T>(gamma_slope(convert<double>(a), convert<double>(x))); }, 64)));
}

MSA_KERNEL(DirichletGrad) {  // x, alpha, sum of the alphas
  const Tensor o = c.out_pointwise(0, c.in(0).dtype, {&c.in(0), &c.in(1), &c.in(2)});
  MSA_SWITCH_FLOAT(o.dtype, "_dirichlet_grad_cpu",
                   (map3<T, T, T, T>(
                       o, c.in(0), c.in(1), c.in(2),
                       [](T x, T a, T total) {
                         const double alpha = convert<double>(a);
                         return convert<T>(beta_slope(alpha, convert<double>(total) - alpha, convert<double>(x)));
                       },
                       64)));
}

}  // namespace msa

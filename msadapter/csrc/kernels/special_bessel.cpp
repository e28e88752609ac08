// Bessel functions and Airy's Ai.
#include "special_math.h"

namespace msa {
namespace {

constexpr double kAsymptotic = 30;

// e^-|x| I_n(x), by the power series, which has only positive terms, and for |x| > 30 by the asymptotic series.
double scaled_bessel_i(int n, double x) {
  const double a = std::abs(x), sign = n == 1 && x < 0 ? -1 : 1;
  if (a != a) return a;
  if (std::isinf(a)) return 0;
  if (a < kAsymptotic) {
    const double z = a * a / 4;
    double term = n == 0 ? 1 : a / 2, sum = term;
    for (int k = 1; term > 1e-17 * sum; ++k) {
      term *= z / (static_cast<double>(k) * (k + n));
      sum += term;
    }
    return sign * sum * std::exp(-a);
  }
  const double mu = 4. * n * n;
  double term = 1, sum = 1;
  for (int k = 1; k < 40; ++k) {
    const double odd = 2 * k - 1, next = -term * (mu - odd * odd) / (8 * k * a);
    if (std::abs(next) > std::abs(term) || std::abs(next) < 1e-17) break;
    sum += next;
    term = next;
  }
  return sign * sum / std::sqrt(2 * kPiD * a);
}
double bessel_i(int n, double x) {
  const double a = std::abs(x);
  if (a > 713) return n == 1 && x < 0 ? -kInf : a != a ? a : kInf;
  // e^a in two factors, because it may overflow although the product does not
  return scaled_bessel_i(n, x) * std::exp(a / 2) * std::exp(a / 2);
}

double scaled_bessel_k(int n, double x) {
  if (x == 0) return kInf;
  if (!(x > 0)) return kNaN;
  if (x < kAsymptotic) return std::cyl_bessel_k(static_cast<double>(n), x) * std::exp(x);
  if (std::isinf(x)) return 0;
  const double mu = 4. * n * n;
  double term = 1, sum = 1;
  for (int k = 1; k < 40; ++k) {
    const double odd = 2 * k - 1, next = term * (mu - odd * odd) / (8 * k * x);
    if (std::abs(next) > std::abs(term) || std::abs(next) < 1e-17) break;
    sum += next;
    term = next;
  }
  return sum * std::sqrt(kPiD / (2 * x));
}
double bessel_k(int n, double x) {
  if (x > 0 && x < kAsymptotic) return std::cyl_bessel_k(static_cast<double>(n), x);
  return scaled_bessel_k(n, x) * std::exp(-x);
}

double spherical_j0(double x) {
  if (std::isinf(x)) return 0;
  if (std::abs(x) >= 0.5) return std::sin(x) / x;
  const double z = x * x;
  return 1 - z / 6 * (1 - z / 20 * (1 - z / 42 * (1 - z / 72 * (1 - z / 110 * (1 - z / 156)))));
}

// Ai(0) f(x) + Ai'(0) g(x), the two power series
double airy_series(double x) {
  double f = 1, g = x, tf = 1, tg = x;
  const double cube = x * x * x;
  for (int k = 1; k < 100; ++k) {
    tf *= cube / ((3. * k - 1) * (3. * k));
    tg *= cube / ((3. * k) * (3. * k + 1));
    f += tf;
    g += tg;
    if (std::abs(tf) < 1e-18 && std::abs(tg) < 1e-18) break;
  }
  return 0.35502805388781723926 * f - 0.25881940379280679841 * g;
}
double airy_ai(double x) {
  if (x != x || std::isinf(x)) return kNaN;
  if (std::abs(x) < 2) return airy_series(x);
  const double a = std::abs(x), zeta = a * std::sqrt(a) * 2 / 3;
  if (x > 0) return zeta > 700 ? 0 : std::sqrt(a / 3) / kPiD * std::cyl_bessel_k(1. / 3, zeta);
  if (zeta > 1000) {  // leading terms of the oscillating expansion
    const double phase = zeta + kPiD / 4, u1 = 5. / 72 / zeta, u2 = 385. / 10368 / (zeta * zeta);
    return (std::sin(phase) * (1 - u2) - std::cos(phase) * u1) / (std::sqrt(kPiD) * std::pow(a, 0.25));
  }
  // J_-1/3 = cos(pi/3) J_1/3 - sin(pi/3) Y_1/3
  const double j = std::cyl_bessel_j(1. / 3, zeta), y = std::cyl_neumann(1. / 3, zeta);
  return std::sqrt(a) / 3 * (j + 0.5 * j - 0.86602540378443864676 * y);
}

double bessel_j0(double x) { return ::j0(x); }
double bessel_j1(double x) { return ::j1(x); }
double bessel_y0(double x) { return x < 0 ? kNaN : ::y0(x); }
double bessel_y1(double x) { return x < 0 ? kNaN : ::y1(x); }

}  // namespace

MSA_SPECIAL_KERNEL(I0, "i0_vml_cpu", [](double x) { return bessel_i(0, x); })
MSA_SPECIAL_KERNEL(I0e, "i0e_vml_cpu", [](double x) { return scaled_bessel_i(0, x); })
MSA_SPECIAL_KERNEL(I1, "i1_vml_cpu", [](double x) { return bessel_i(1, x); })
MSA_SPECIAL_KERNEL(I1e, "i1e_vml_cpu", [](double x) { return scaled_bessel_i(1, x); })
MSA_KERNEL_ALIAS(ModifiedBesselI0, I0)
MSA_KERNEL_ALIAS(ModifiedBesselI1, I1)
MSA_SPECIAL_KERNEL(ModifiedBesselK0, "modified_bessel_k0_cpu", [](double x) { return bessel_k(0, x); })
MSA_SPECIAL_KERNEL(ModifiedBesselK1, "modified_bessel_k1_cpu", [](double x) { return bessel_k(1, x); })
MSA_SPECIAL_KERNEL(ScaledModifiedBesselK0, "scaled_modified_bessel_k0_cpu",
                   [](double x) { return scaled_bessel_k(0, x); })
MSA_SPECIAL_KERNEL(ScaledModifiedBesselK1, "scaled_modified_bessel_k1_cpu",
                   [](double x) { return scaled_bessel_k(1, x); })
MSA_SPECIAL_KERNEL(BesselJ0, "bessel_j0_cpu", bessel_j0)
MSA_SPECIAL_KERNEL(BesselJ1, "bessel_j1_cpu", bessel_j1)
MSA_SPECIAL_KERNEL(BesselY0, "bessel_y0_cpu", bessel_y0)
MSA_SPECIAL_KERNEL(BesselY1, "bessel_y1_cpu", bessel_y1)
MSA_SPECIAL_KERNEL(SphericalBesselJ0, "spherical_bessel_j0_cpu", spherical_j0)
MSA_SPECIAL_KERNEL(AiryAi, "airy_ai_cpu", airy_ai)

}  // namespace msa

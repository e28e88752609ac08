// Bessel functions and Airy's Ai.
#include "special_math.h"
#include "vec_math.h"

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

// ---- The modified Bessel functions of float and of narrower types. They are computed in double, without branches, so
// that the compiler vectorises the loops. The polynomials are Chebyshev interpolations with relative errors below 2e-8,
// which is less than half of the last place of float.

// e^-a I_0(a) and e^-a I_1(a) / a for a = 4 + 4 t, and sqrt(a) e^-a I_n(a) for 8 / a = (1 + t) / 2.
inline double i0e_low(double t) {
  return vec::polynomial(t, -8.17972546089710704e-04, 1.97830875988182480e-03, -8.99162406195438187e-04,
                         1.24037947315317376e-03, -7.76633266205100595e-03, 1.45077776364947071e-02,
                         -1.90906641467484539e-02, 2.86252843561838818e-02, -4.31948777047844734e-02,
                         5.73258882341428216e-02, -6.95000631764459420e-02, 7.91670574283440676e-02,
                         -8.49674181753457824e-02, 8.73540400773372971e-02, -8.90432893551710847e-02,
                         9.45152284074261689e-02, -1.13004327825252160e-01, 2.07001923696054191e-01);
}
inline double i1e_low(double t) {
  return vec::polynomial(t, -1.19315815103713046e-04, 3.07029645728051383e-04, -2.21153768034676955e-04,
                         4.12977838266178233e-04, -1.66623655537974044e-03, 3.35892988660775474e-03,
                         -5.45739863946357543e-03, 9.36950283549412878e-03, -1.55984900972592298e-02,
                         2.37616591758482779e-02, -3.36660111472889892e-02, 4.46596864483077630e-02,
                         -5.52805633785347431e-02, 6.37688644810381483e-02, -6.84825864792795030e-02,
                         6.80575449174863067e-02, -6.11243381515213513e-02, 4.46877102153253533e-02);
}
inline double i0e_high(double t) {
  return vec::polynomial(t, 3.21343456778251988e-09, 3.17346826512834583e-08, 1.02229579521244109e-07,
                         3.07125179471581788e-07, 1.48016686823559218e-06, 1.11399240039040787e-05,
                         1.36216348103728119e-04, 3.36055222710755211e-03, 4.02176509445008101e-01);
}
inline double i1e_high(double t) {
  return vec::polynomial(t, -4.23689780674967452e-09, -3.59046383293652146e-08, -1.14235341613201558e-07,
                         -3.58195364814527723e-07, -1.83102123821915271e-06, -1.50353903624545455e-05,
                         -2.19236053390118078e-04, -9.74957744113404828e-03, 3.89398459025872334e-01);
}

// For x^2 = 2 + 2 t: I_0(x) and I_1(x) / x, and what remains of K_0(x) and x K_1(x) without their logarithms.
inline double i0_near_zero(double t) {
  return vec::polynomial(t, 3.23667183123601851e-08, 2.35815184037333266e-06, 1.19820683593948593e-04,
                         3.92856481920545245e-03, 7.35898683613311483e-02, 6.35861728191872699e-01,
                         1.56608292975635055e+00);
}
inline double i1_near_zero(double t) {
  return vec::polynomial(t, 2.29151906010105326e-09, 1.94209199451350714e-07, 1.17878948166842951e-05,
                         4.79282725486234167e-04, 1.17856953169257726e-02, 1.47179736724329074e-01,
                         6.35861728156068562e-01);
}
inline double k0_rest(double t) {
  return vec::polynomial(t, 6.09431609298809916e-08, 4.05566572424269416e-06, 1.82805553508158465e-04,
                         5.05339206363240000e-03, 7.17770103430014766e-02, 3.40497321085826532e-01,
                         -3.03620772915755455e-01);
}
inline double k1_rest(double t) {
  return vec::polynomial(t, -7.08262707749690852e-07, -3.89344982262162956e-05, -1.38316877194876093e-03,
                         -2.78542273157766883e-02, -2.43838528877077021e-01, -3.32240956228320949e-01,
                         8.85088287729589362e-01);
}

// sqrt(x) e^x K_n(x) for 2 / x = (1 + t) / 2
inline double k0_high(double t) {
  return vec::polynomial(t, 1.73660281338673281e-07, -4.33413097344738676e-07, 6.63179687286020649e-07,
                         -2.00751499287284925e-06, 7.03902215985982091e-06, -2.48197573005475285e-05,
                         9.95537989802365049e-05, -4.79753568513615822e-04, 3.03289215127797770e-03,
                         -3.10714626069956840e-02, 1.21859533851339052e+00);
}
inline double k1_high(double t) {
  return vec::polynomial(t, -2.03640728345070221e-07, 5.14536989573261136e-07, -8.14990760476017877e-07,
                         2.51656418386075441e-06, -9.00354998791051343e-06, 3.29420632207512632e-05,
                         -1.39582452698777166e-04, 7.35706174561172950e-04, -5.56673027248150588e-03,
                         1.03349738661670590e-01, 1.36315189037134199e+00);
}

inline double short_i0e(double x) {
  const double a = vec::abs(x), low = i0e_low(0.25 * (a < 8 ? a : 8) - 1);
  const double high = i0e_high(16 / (a > 8 ? a : 8) - 1) / vec::sqrt(a);
  return a < 8 ? low : high;
}
inline double short_i1e(double x) {
  const double a = vec::abs(x), low = a * i1e_low(0.25 * (a < 8 ? a : 8) - 1);
  const double high = i1e_high(16 / (a > 8 ? a : 8) - 1) / vec::sqrt(a), y = a < 8 ? low : high;
  return x < 0 ? -y : y;
}
// A float is infinite long before this limit, which keeps the exponential of double finite.
constexpr double kLargestExponent = 700;
inline double short_i0(double x) {
  const double a = vec::abs(x), y = short_i0e(x) * vec::exp(a > kLargestExponent ? kLargestExponent : a);
  return a > kLargestExponent ? kInf : y;
}
inline double short_i1(double x) {
  const double a = vec::abs(x), y = short_i1e(x) * vec::exp(a > kLargestExponent ? kLargestExponent : a);
  return a > kLargestExponent ? vec::copysign(kInf, x) : y;
}
// K_n(x) for x <= 2, and e^x K_n(x) above. It is NaN below 0.
inline double short_k0_parts(double x) {
  const double t = 0.5 * (x < 2 ? x * x : 4) - 1, low = k0_rest(t) - vec::log(0.5 * x) * i0_near_zero(t);
  const double high = k0_high(4 / (x > 2 ? x : 2) - 1) / vec::sqrt(x);
  return x <= 2 ? low : high;
}
inline double short_k1_parts(double x) {
  const double t = 0.5 * (x < 2 ? x * x : 4) - 1, low = k1_rest(t) / x + vec::log(0.5 * x) * x * i1_near_zero(t);
  const double high = k1_high(4 / (x > 2 ? x : 2) - 1) / vec::sqrt(x);
  return x == 0 ? kInf : x <= 2 ? low : high;
}
inline double short_k0(double x) { return short_k0_parts(x) * (x <= 2 ? 1. : vec::exp(-x)); }
inline double short_k1(double x) { return short_k1_parts(x) * (x <= 2 ? 1. : vec::exp(-x)); }
inline double short_scaled_k0(double x) { return short_k0_parts(x) * (x <= 2 ? vec::exp(x) : 1.); }
inline double short_scaled_k1(double x) { return short_k1_parts(x) * (x <= 2 ? vec::exp(x) : 1.); }

}  // namespace

MSA_SHORT_KERNEL(I0, "i0_vml_cpu", bessel_i(0, x), short_i0(x))
MSA_SHORT_KERNEL(I0e, "i0e_vml_cpu", scaled_bessel_i(0, x), short_i0e(x))
MSA_SHORT_KERNEL(I1, "i1_vml_cpu", bessel_i(1, x), short_i1(x))
MSA_SHORT_KERNEL(I1e, "i1e_vml_cpu", scaled_bessel_i(1, x), short_i1e(x))
MSA_KERNEL_ALIAS(ModifiedBesselI0, I0)
MSA_KERNEL_ALIAS(ModifiedBesselI1, I1)
MSA_SHORT_KERNEL(ModifiedBesselK0, "modified_bessel_k0_cpu", bessel_k(0, x), short_k0(x))
MSA_SHORT_KERNEL(ModifiedBesselK1, "modified_bessel_k1_cpu", bessel_k(1, x), short_k1(x))
MSA_SHORT_KERNEL(ScaledModifiedBesselK0, "scaled_modified_bessel_k0_cpu", scaled_bessel_k(0, x), short_scaled_k0(x))
MSA_SHORT_KERNEL(ScaledModifiedBesselK1, "scaled_modified_bessel_k1_cpu", scaled_bessel_k(1, x), short_scaled_k1(x))
MSA_SPECIAL_KERNEL(BesselJ0, "bessel_j0_cpu", bessel_j0)
MSA_SPECIAL_KERNEL(BesselJ1, "bessel_j1_cpu", bessel_j1)
MSA_SPECIAL_KERNEL(BesselY0, "bessel_y0_cpu", bessel_y0)
MSA_SPECIAL_KERNEL(BesselY1, "bessel_y1_cpu", bessel_y1)
MSA_SPECIAL_KERNEL(SphericalBesselJ0, "spherical_bessel_j0_cpu", spherical_j0)
MSA_SPECIAL_KERNEL(AiryAi, "airy_ai_cpu", airy_ai)

}  // namespace msa

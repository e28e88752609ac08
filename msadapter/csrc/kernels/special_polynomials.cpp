// Orthogonal polynomials by their three-term recurrences; Chebyshev's by their trigonometric form for
// high degrees inside (-1, 1).
#include "special_math.h"

namespace msa {
namespace {

enum class Chebyshev { T, U, V, W };

double chebyshev_at_end(Chebyshev kind, bool right, int64_t n) {
  const double sign = n % 2 ? -1 : 1, m = static_cast<double>(n);
  switch (kind) {
    case Chebyshev::T: return right ? 1 : sign;
    case Chebyshev::U: return right ? m + 1 : sign * (m + 1);
    case Chebyshev::V: return right ? 1 : sign * (2 * m + 1);
    default: return right ? 2 * m + 1 : sign;
  }
}
double chebyshev_inside(Chebyshev kind, double x, double n) {
  const double t = std::acos(x);
  switch (kind) {
    case Chebyshev::T: return std::cos(n * t);
    case Chebyshev::U: return std::sin(t) != 0 ? std::sin((n + 1) * t) / std::sin(t) : (n + 1) * std::cos((n + 1) * t) / x;
    case Chebyshev::V: return std::sin(t / 2) != 1 ? std::cos((n + 0.5) * t) / std::cos(t / 2) : 2 * n + 1;
    default: return std::cos(t / 2) != 1 ? std::sin((n + 0.5) * t) / std::sin(t / 2) : 2 * n + 1;
  }
}
double chebyshev(Chebyshev kind, double x, double degree) {
  if (std::isnan(x) || std::isnan(degree)) return kNaN;
  const int64_t n = static_cast<int64_t>(degree);
  if (n < 0) return 0;
  if (std::abs(x) == 1) return chebyshev_at_end(kind, x > 0, n);
  if (n > 8 && std::abs(x) < 1) return chebyshev_inside(kind, x, static_cast<double>(n));
  if (n == 0) return 1;
  double p = 1, q = x;
  if (kind == Chebyshev::U) q = 2 * x;
  if (kind == Chebyshev::V) q = 2 * x - 1;
  if (kind == Chebyshev::W) q = 2 * x + 1;
  for (int64_t k = 2; k <= n && !std::isnan(q); ++k) {
    const double r = 2 * x * q - p;
    p = q;
    q = r;
  }
  return q;
}

// p_{k+1} = a(k) p_k + b(k) p_{k-1}, from p_0 = 1 and p_1
template <class Next> double recurrence(double degree, double first, Next next) {
  if (std::isnan(degree)) return kNaN;
  const int64_t n = static_cast<int64_t>(degree);
  if (n < 0) return 0;
  if (n == 0) return 1;
  double p = 1, q = first;
  for (int64_t k = 1; k < n && !std::isnan(q); ++k) {
    const double r = next(static_cast<double>(k), q, p);
    p = q;
    q = r;
  }
  return q;
}
double hermite_h(double x, double n) {
  return recurrence(n, 2 * x, [x](double k, double q, double p) { return 2 * x * q - 2 * k * p; });
}
double hermite_he(double x, double n) {
  return recurrence(n, x, [x](double k, double q, double p) { return x * q - k * p; });
}
double laguerre_l(double x, double n) {
  return recurrence(n, 1 - x, [x](double k, double q, double p) { return ((2 * k + 1 - x) * q - k * p) / (k + 1); });
}
double legendre_p(double x, double n) {
  return recurrence(n, x, [x](double k, double q, double p) { return ((2 * k + 1) * x * q - k * p) / (k + 1); });
}

}  // namespace

#define MSA_CHEBYSHEV(K)                                                                                     \
  MSA_SPECIAL_BINARY_KERNEL(ChebyshevPolynomial##K, "chebyshev_polynomial_cpu",                              \
                            [](double x, double n) { return chebyshev(Chebyshev::K, x, n); })                \
  MSA_SPECIAL_BINARY_KERNEL(ShiftedChebyshevPolynomial##K, "shifted_chebyshev_polynomial_cpu",               \
                            [](double x, double n) { return chebyshev(Chebyshev::K, 2 * x - 1, n); })
MSA_CHEBYSHEV(T)
MSA_CHEBYSHEV(U)
MSA_CHEBYSHEV(V)
MSA_CHEBYSHEV(W)
MSA_SPECIAL_BINARY_KERNEL(HermitePolynomialH, "hermite_polynomial_h_cpu", hermite_h)
MSA_SPECIAL_BINARY_KERNEL(HermitePolynomialHe, "hermite_polynomial_he_cpu", hermite_he)
MSA_SPECIAL_BINARY_KERNEL(LaguerrePolynomialL, "laguerre_polynomial_l_cpu", laguerre_l)
MSA_SPECIAL_BINARY_KERNEL(LegendrePolynomialP, "legendre_polynomial_p_cpu", legendre_p)

}  // namespace msa

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
    case Chebyshev::U:
      return std::sin(t) != 0 ? std::sin((n + 1) * t) / std::sin(t) : (n + 1) * std::cos((n + 1) * t) / x;
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

// p_{k+1} from k, p_k and p_{k-1}, beginning with p_0 = 1 and p_1. float is computed in float, with products fused as
// in PyTorch's build, so that the numbers equal PyTorch's near zeros, where terms cancel.
template <class T, class Next>
T recurrence(T degree, T first, Next next) {
  if (std::isnan(degree)) return T(kNaN);
  const int64_t n = static_cast<int64_t>(degree);
  if (n < 0) return 0;
  T p = 1, q = n == 0 ? T(1) : first;
  for (int64_t k = 1; k < n && !std::isnan(q); ++k) {
    const T r = next(static_cast<T>(k), q, p);
    p = q;
    q = r;
  }
  return q;
}

template <class T>
T hermite_h(T x, T n) {
  return recurrence<T>(n, 2 * x, [x](T k, T q, T p) { return std::fma(2 * x, q, -(2 * k * p)); });
}
template <class T>
T hermite_he(T x, T n) {
  return recurrence<T>(n, x, [x](T k, T q, T p) { return std::fma(x, q, -(k * p)); });
}
template <class T>
T laguerre_l(T x, T n) {
  return recurrence<T>(n, 1 - x, [x](T k, T q, T p) { return std::fma(2 * k + (1 - x), q, -(k * p)) / (k + 1); });
}
template <class T>
T legendre_p(T x, T n) {
  return recurrence<T>(n, x, [x](T k, T q, T p) { return std::fma((2 * k + 1) * x, q, -(k * p)) / (k + 1); });
}

template <class F>
void polynomial(Call &c, const char *op, F f) {
  const Two p = operands(c);
  if (!is_integral(p.dtype) && p.dtype != DType::F32) return special_binary(c, op, f);
  const Tensor o = out2(c, DType::F32, p);
  binary<float, float, float>(o, p.a, p.b, f, kCostlyGrain);
}

}  // namespace

#define MSA_CHEBYSHEV(K)                                                                       \
  MSA_SPECIAL_BINARY_KERNEL(ChebyshevPolynomial##K, "chebyshev_polynomial_cpu",                \
                            [](double x, double n) { return chebyshev(Chebyshev::K, x, n); })  \
  MSA_SPECIAL_BINARY_KERNEL(ShiftedChebyshevPolynomial##K, "shifted_chebyshev_polynomial_cpu", \
                            [](double x, double n) { return chebyshev(Chebyshev::K, 2 * x - 1, n); })
MSA_CHEBYSHEV(T)
MSA_CHEBYSHEV(U)
MSA_CHEBYSHEV(V)
MSA_CHEBYSHEV(W)
#define MSA_POLYNOMIAL_KERNEL(Name, Op, F)                                  \
  MSA_POINTWISE_KERNEL(Name) {                                              \
    polynomial(c, Op, [](auto x, auto n) { return F<decltype(x)>(x, n); }); \
  }
MSA_POLYNOMIAL_KERNEL(HermitePolynomialH, "hermite_polynomial_h_cpu", hermite_h)
MSA_POLYNOMIAL_KERNEL(HermitePolynomialHe, "hermite_polynomial_he_cpu", hermite_he)
MSA_POLYNOMIAL_KERNEL(LaguerrePolynomialL, "laguerre_polynomial_l_cpu", laguerre_l)
MSA_POLYNOMIAL_KERNEL(LegendrePolynomialP, "legendre_polynomial_p_cpu", legendre_p)

}  // namespace msa

// Functions of float and double without branches, so that the compiler can vectorise loops that call them. Their errors
// are at most about 2 units in the last place. Infinities, NaN, signed zeros and results below the smallest normal
// number are those of the C library. The polynomials are minimax approximations that were fitted for this project on
// the given intervals. vec_functions.h has the less frequent functions.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#define MSA_INLINE inline __attribute__((always_inline))

namespace msa::vec {

// The parts of a floating point number. Its bits are unsigned, because the bits of NaN and of numbers out of range make
// sums and shifts wrap round.
template <class T>
struct Parts;
template <>
struct Parts<float> {
  using U = uint32_t;
  using I = int32_t;
  static constexpr int kDigits = 23;
  static constexpr U kOne = 0x3f800000, kSign = 0x80000000, kSqrtHalf = 0x3f3504f3;
  // x + kRound has the integer nearest to x in its low bits
  static constexpr float kRound = 12582912.f, kTwoToDigits = 8388608.f, kSmallest = 1.17549435e-38f;
};
template <>
struct Parts<double> {
  using U = uint64_t;
  using I = int64_t;
  static constexpr int kDigits = 52;
  static constexpr U kOne = 0x3ff0000000000000, kSign = 0x8000000000000000, kSqrtHalf = 0x3fe6a09e667f3bcd;
  static constexpr double kRound = 6755399441055744., kTwoToDigits = 4503599627370496.,
                          kSmallest = 2.2250738585072014e-308;
};

template <class T>
MSA_INLINE typename Parts<T>::U bits_of(T x) {
  typename Parts<T>::U i;
  std::memcpy(&i, &x, sizeof(T));
  return i;
}
MSA_INLINE float number_of(uint32_t i) {
  float x;
  std::memcpy(&x, &i, 4);
  return x;
}
MSA_INLINE double number_of(uint64_t i) {
  double x;
  std::memcpy(&x, &i, 8);
  return x;
}
template <class T>
MSA_INLINE T abs(T x) {
  return number_of(bits_of(x) & ~Parts<T>::kSign);
}
template <class T>
MSA_INLINE T copysign(T magnitude, T sign) {
  return number_of((bits_of(magnitude) & ~Parts<T>::kSign) | (bits_of(sign) & Parts<T>::kSign));
}
MSA_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
MSA_INLINE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
MSA_INLINE float sqrt(float x) { return __builtin_sqrtf(x); }
MSA_INLINE double sqrt(double x) { return __builtin_sqrt(x); }
MSA_INLINE float truncated(float x) { return __builtin_truncf(x); }
MSA_INLINE double truncated(double x) { return __builtin_trunc(x); }
MSA_INLINE float floored(float x) { return __builtin_floorf(x); }
MSA_INLINE double floored(double x) { return __builtin_floor(x); }

// The polynomial with these coefficients, of which the one of the highest power comes first.
template <class T>
MSA_INLINE T polynomial(T, T sum) {
  return sum;
}
template <class T, class... More>
MSA_INLINE T polynomial(T x, T sum, T next, More... more) {
  return polynomial(x, fma(sum, x, next), more...);
}
// A polynomial of each type.
#define MSA_POLYNOMIAL(Name, Single, Double)                   \
  MSA_INLINE float Name(float x) { return polynomial Single; } \
  MSA_INLINE double Name(double x) { return polynomial Double; }

// (exp(r) - 1 - r) / r^2 for |r| <= ln2/2
MSA_POLYNOMIAL(exp_tail,
               (x, 1.991937764e-4f, 1.394722497e-3f, 8.333262643e-3f, 4.166625375e-2f, 1.666666687e-1f,
                5.000000083e-1f),
               (x, 2.09216819142945105e-09, 2.51053130444216695e-08, 2.75572526402217172e-07, 2.75572551691274699e-06,
                2.48015873476190835e-05, 1.98412698750031086e-04, 1.38888888888742809e-03, 8.33333333332608207e-03,
                4.16666666666666852e-02, 1.66666666666666713e-01, 5.00000000000000000e-01))
// (2^r - 1) / r for |r| <= 1/2
MSA_INLINE float exp2_tail(float r) {
  return polynomial(r, 1.535336196e-04f, 1.339887502e-03f, 9.618436918e-03f, 5.550332367e-02f, 2.402264774e-01f,
                    6.931471825e-01f);
}
// (tanh(r) / r - 1) / x for x = r^2 and |r| <= 0.625
MSA_POLYNOMIAL(tanh_tail, (x, -5.717495653e-3f, 2.065104299e-2f, -5.374366036e-2f, 1.333149365e-1f, -3.333328404e-1f),
               (x, 6.05015005212049952e-06, -3.02058660416449392e-05, 9.15782998535362436e-05, -2.37023981513559336e-04,
                5.89456616162983079e-04, -1.45572720922400333e-03, 3.59211422236135371e-03, -8.86323433874860664e-03,
                2.18694884706990209e-02, -5.39682539661494459e-02, 1.33333333333299608e-01, -3.33333333333333148e-01))

// ln2 in two parts, of which the first one has few bits, so that its products with exponents are exact.
template <class T>
constexpr T kLn2High = sizeof(T) == 4 ? T(0.693359375) : T(6.93147180369123816490e-01);
template <class T>
constexpr T kLn2Rest = sizeof(T) == 4 ? T(-2.12194440e-4) : T(1.90821492927058770002e-10);

// For x = n ln2 + r with |r| <= ln2/2, returns exp(r) - 1. The low bits of `shifted` receive n.
template <class T>
MSA_INLINE T expm1_reduced(T x, T *shifted) {
  *shifted = fma(x, T(1.44269504088896339), Parts<T>::kRound);
  const T n = *shifted - Parts<T>::kRound, r = fma(n, -kLn2Rest<T>, fma(n, -kLn2High<T>, x));
  return fma(exp_tail(r), r * r, r);
}
// n, from the number that expm1_reduced() gives
template <class T>
MSA_INLINE typename Parts<T>::I exponent_of(T shifted) {
  return static_cast<typename Parts<T>::I>(bits_of(shifted) - bits_of(Parts<T>::kRound));
}

// 2^n for the exponents n of normal numbers.
template <class T>
MSA_INLINE T power_of_two(typename Parts<T>::I n) {
  return number_of((static_cast<typename Parts<T>::U>(n) << Parts<T>::kDigits) + Parts<T>::kOne);
}
// x 2^n. 2^n is multiplied in two factors, so that results below the smallest normal number are right.
template <class T>
MSA_INLINE T scaled(T x, typename Parts<T>::I n) {
  const auto half = n >> 1;
  return x * power_of_two<T>(half) * power_of_two<T>(n - half);
}
template <class T>
MSA_INLINE T between(T x, T low, T high) {  // NaN stays NaN
  const T y = x < low ? low : x;
  return y > high ? high : y;
}

// Results that round to zero have a factor of zero, because a product that underflows takes a processor 150 cycles, and
// masked scores are full of exp(-inf).
template <class T>
MSA_INLINE T exp(T x) {
  constexpr T low = sizeof(T) == 4 ? T(-104) : T(-746), high = sizeof(T) == 4 ? T(89) : T(710);
  T shifted;
  const T q = expm1_reduced(between(x, low, high), &shifted);
  const auto n = exponent_of(shifted), half = n >> 1;
  return (q + T(1)) * power_of_two<T>(half) * (x < low ? T(0) : power_of_two<T>(n - half));
}

// 1 + exp(x). Where exp(x) is too small for a normal number the sum is 1, so one power of two is enough. It is that of
// exp(x) / 2, which is finite up to the largest x.
template <class T>
MSA_INLINE T one_plus_exp(T x) {
  using U = typename Parts<T>::U;
  T shifted;
  const T q = expm1_reduced(sizeof(T) == 4 ? between(x, T(-86), T(89)) : between(x, T(-708), T(710)), &shifted);
  const T half = number_of((bits_of(shifted) << Parts<T>::kDigits) + (Parts<T>::kOne - (U(1) << Parts<T>::kDigits)));
  return fma((q + T(1)) * half, T(2), T(1));
}

// exp(x) for x in [-87, 0], where neither overflow nor underflow can occur.
MSA_INLINE float exp_negative(float x) {
  float shifted;
  const float p = expm1_reduced(x, &shifted) + 1.f;
  return number_of(bits_of(p) + (bits_of(shifted) << 23));
}

// Returns f for x = 2^n (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)).
template <class T>
MSA_INLINE T log_reduced(T x, T *n) {
  using P = Parts<T>;
  const bool denormal = x < P::kSmallest;
  const auto i = bits_of(denormal ? x * P::kTwoToDigits : x);
  const auto exponent = (i + (P::kOne - P::kSqrtHalf)) >> P::kDigits;  // with its bias
  const T zero = P::kTwoToDigits + T(P::kOne >> P::kDigits);
  *n = number_of(exponent | bits_of(P::kTwoToDigits)) - (denormal ? zero + T(P::kDigits) : zero);
  return number_of(i - (exponent << P::kDigits) + P::kOne) - T(1);
}
// log(1 + f) - f without its two largest terms for float, log(1 + f) = f - (f^2/2 - s (f^2/2 + R)) for double, where s
// is f / (2 + f) and R a polynomial of s^2.
MSA_INLINE float log_rest(float f) {
  return polynomial(f, 6.917983163e-2f, -1.177966695e-1f, 1.186603552e-1f, -1.238579856e-1f, 1.421991855e-1f,
                    -1.666919744e-1f, 2.000215141e-1f, -2.499998688e-1f, 3.333331183e-1f) *
         f * (f * f);
}
MSA_INLINE double log_rest(double f) {
  const double s = f / (2. + f), z = s * s;
  const double r =
      2. * z *
      polynomial(z, 7.40623272001045552e-02, 7.65624244570795448e-02, 9.09181099797534004e-02, 1.11110987679836390e-01,
                 1.42857143758677918e-01, 1.99999999996881811e-01, 3.33333333333336979e-01);
  return s * fma(0.5 * f, f, r);
}
// n ln2 + log(1 + f)
template <class T>
MSA_INLINE T log_sum(T n, T f) {
  const T y = fma(T(-0.5), f * f, fma(n, kLn2Rest<T>, log_rest(f)));
  return fma(n, kLn2High<T>, f + y);
}
// The logarithm of x, for which y was computed, also for 0, negative numbers, infinity and NaN.
template <class T>
MSA_INLINE T log_of_special(T x, T y) {
  y = x == T(0) ? T(-INFINITY) : y;
  y = x < T(0) ? T(NAN) : y;
  return x < T(INFINITY) ? y : x;
}
template <class T>
MSA_INLINE T log(T x) {
  T n;
  const T f = log_reduced(x, &n);
  return log_of_special(x, log_sum(n, f));
}

// An odd polynomial for |x| < 0.625, and 1 - 2 / (exp(2|x|) + 1) above.
template <class T>
MSA_INLINE T tanh(T x) {
  const T a = abs(x), z = x * x;
  const T small = fma(tanh_tail(z) * z, a, a);
  const T large = T(1) - T(2) / one_plus_exp(T(2) * a);
  return copysign(a < T(0.625) ? small : large, x);
}

// An odd polynomial for |x| < 0.93, and 1 - exp(|x| q(|x|)) above, where q approximates log(erfc(t)) / t.
inline float erf(float x) {
  const float a = abs(x), z = x * x;
  float p = -5.976893799e-4f;
  p = __builtin_fmaf(p, z, 4.990980253e-3f);
  p = __builtin_fmaf(p, z, -2.676556700e-2f);
  p = __builtin_fmaf(p, z, 1.128180277e-1f);
  p = __builtin_fmaf(p, z, -3.761249432e-1f);
  p = __builtin_fmaf(p, z, 1.283791500e-1f);
  const float small = __builtin_fmaf(p, x, x);
  const float t = a > 4.f ? 4.f : a;
  float q = -4.850785691e-6f;
  q = __builtin_fmaf(q, t, 4.451304617e-5f);
  q = __builtin_fmaf(q, t, 5.504672519e-5f);
  q = __builtin_fmaf(q, t, -2.945297893e-3f);
  q = __builtin_fmaf(q, t, 2.269874348e-2f);
  q = __builtin_fmaf(q, t, -1.052861454e-1f);
  q = __builtin_fmaf(q, t, -6.356131370e-1f);
  q = __builtin_fmaf(q, t, -1.128554382e+0f);
  const float large = copysign(1.f - exp_negative(q * t), x);
  return a < 0.93f ? small : (x != x ? x : large);
}

template <class T>
MSA_INLINE T sigmoid(T x) {
  return T(1) / one_plus_exp(-x);
}
// A polynomial for |x| < 1, and 1 - exp(-x^2) t P(t) above for t = 1 / (1 + |x| / 2), which is 1 beyond 6. Both
// polynomials interpolate at Chebyshev's nodes.
MSA_INLINE double erf(double x) {
  const double a = abs(x), z = x * x;
  const double p =
      polynomial(z, 5.957176147748911e-11, -1.1372848856791674e-09, 1.4659775274047436e-08, -1.6350312701054695e-07,
                 1.6461000484121368e-06, -1.4925595266831182e-05, 1.205533111164271e-04, -8.54832698083379e-04,
                 5.2239776248180145e-03, -2.6866170645076792e-02, 1.1283791670954879e-01, -3.761263890318375e-01,
                 1.283791670955126e-01);
  const double b = a > 6. ? 6. : a, t = 1. / fma(0.5, b, 1.), u = fma(t, 4.8, -2.2);
  const double q =
      polynomial(u, 2.39763910504207e-13, -5.02481949888666e-12, 1.2327978811083222e-11, 7.912998236729892e-11,
                 -5.308008843901155e-10, -1.219909424148243e-10, 1.286676016683198e-08, -3.1132177950656725e-08,
                 -2.677661789077012e-07, 1.3738825880004212e-06, 6.479355528141488e-06, -4.948906826569367e-05,
                 -2.789266303559174e-04, 1.5599066398772207e-03, 2.3394523545105864e-02, 1.3362278624164275e-01,
                 4.8311899686530574e-01);
  const double large = copysign(fma(-t * q, exp(-b * b), 1.), x);
  return a < 1. ? fma(x, p, x) : x != x ? x : large;
}

constexpr double kSqrtHalf = 0.70710678118654752440;
constexpr double kInvSqrt2Pi = 0.39894228040143267794;
constexpr double kSqrt2OverPi = 0.79788456080286535588;

// The probability that a standard normal number is below -a, for a >= 0. It is exp(-a^2 / 2) times a polynomial in
// 1 / (1 + 0.3 a). The absolute error is at most 2e-7. The relative error is at most 1e-6 for a <= 3, where 1 + erf(x /
// sqrt(2)) has lost most of its digits. *density receives exp(-a^2 / 2).
inline float normal_tail(float a, float *density) {
  const float b = a < 12.5f ? a : 12.5f, t = 1.f / __builtin_fmaf(b, 0.3f, 1.f);
  float p = 3.591529280e-02f;
  p = __builtin_fmaf(p, t, -1.578723937e-01f);
  p = __builtin_fmaf(p, t, 2.068985105e-01f);
  p = __builtin_fmaf(p, t, -5.360266939e-02f);
  p = __builtin_fmaf(p, t, 1.282069236e-01f);
  p = __builtin_fmaf(p, t, 1.001129895e-01f);
  p = __builtin_fmaf(p, t, 1.207083017e-01f);
  p = __builtin_fmaf(p, t, 1.196330637e-01f);
  const float e = exp_negative(-0.5f * b * b);
  *density = a < 12.5f ? e : 0.f;
  return p * t * *density;
}
inline float normal_cdf(float x, float *density) {
  const float below = normal_tail(abs(x), density);
  return x > 0.f ? 1.f - below : below;
}
MSA_INLINE double normal_cdf(double x, double *density) {
  *density = exp(-0.5 * x * x);
  return 0.5 * (1. + erf(x * kSqrtHalf));
}

// The same probability without the density and without a division: 2 to the power of a polynomial, whose even and odd
// powers are summed side by side. Its absolute error is at most 2e-7, and its relative error at most 1.1e-6 for a <= 3.
// It is 0 from 6 on, where the true value is 1e-9.
MSA_INLINE float normal_tail(float a) {
  const float b = a < 6.f ? a : 6.f, square = b * b;
  const float even = polynomial(square, -3.44527393e-06f, -0.000132319881f, 0.00732755568f, -0.459132433f, -1.f);
  const float odd = polynomial(square, 1.40636558e-07f, 3.33450407e-05f, -0.00030668432f, -0.0527049936f, -1.15111423f);
  const float exponent = fma(odd, b, even);
  const float shifted = exponent + Parts<float>::kRound, r = exponent - (shifted - Parts<float>::kRound);
  const float p = fma(exp2_tail(r), r, 1.f);
  return a < 6.f ? number_of(bits_of(p) + (bits_of(shifted) << 23)) : 0.f;
}

MSA_INLINE float gelu(float x) {
  const float below = normal_tail(abs(x));
  return x * (x > 0.f ? 1.f - below : below);
}
MSA_INLINE double gelu(double x) {
  double density;
  return x * normal_cdf(x, &density);
}
// dy times the derivative of gelu at x.
template <class T>
MSA_INLINE T gelu_grad(T dy, T x) {
  T density;
  const T cdf = normal_cdf(x, &density);
  return dy * (cdf + x * density * T(kInvSqrt2Pi));
}
template <class T>
inline T gelu_tanh(T x) {
  const T inner = T(kSqrt2OverPi) * (x + T(0.044715) * x * x * x);
  return T(0.5) * x * (T(1) + tanh(inner));
}
template <class T>
inline T gelu_tanh_grad(T dy, T x) {
  const T s = x * x, th = tanh(T(kSqrt2OverPi) * (x + T(0.044715) * s * x));
  const T inner = T(kSqrt2OverPi) * (T(1) + T(3 * 0.044715) * s);
  return dy * (T(0.5) * (T(1) + th) + T(0.5) * x * (T(1) - th * th) * inner);
}
template <class T>
inline T silu(T x) {
  return x / one_plus_exp(-x);
}
template <class T>
inline T silu_grad(T dy, T x) {
  const T s = sigmoid(x);
  return dy * s * (T(1) + x * (T(1) - s));
}

}  // namespace msa::vec

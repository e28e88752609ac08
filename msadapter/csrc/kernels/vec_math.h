// Float functions without branches, so that the compiler can vectorise loops that call them. Their errors are at most
// about 2 units in the last place. Infinities, NaN, signed zeros and results below the smallest normal number are those
// of the C library. The polynomials are minimax approximations that were fitted for this project on the given
// intervals. The overloads for double call the C library.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

namespace msa::vec {

// The bits of a number are unsigned, because the bits of NaN and of numbers out of range make sums and shifts wrap
// round.
inline uint32_t bits_of(float x) {
  uint32_t i;
  std::memcpy(&i, &x, 4);
  return i;
}
inline float float_of(uint32_t i) {
  float x;
  std::memcpy(&x, &i, 4);
  return x;
}
inline float copysign(float magnitude, float sign) {
  return float_of((bits_of(magnitude) & 0x7fffffff) | (bits_of(sign) & 0x80000000));
}
inline float abs(float x) { return float_of(bits_of(x) & 0x7fffffff); }

// For x = n ln2 + r with |r| <= ln2/2, returns exp(r). The low bits of `shifted` receive n.
inline float exp_reduced(float x, float *shifted) {
  *shifted = __builtin_fmaf(x, 1.44269504f, 12582912.f);
  const float n = *shifted - 12582912.f;
  float r = __builtin_fmaf(n, -0.693359375f, x);
  r = __builtin_fmaf(n, 2.12194440e-4f, r);
  float p = 1.991937764e-4f;
  p = __builtin_fmaf(p, r, 1.394722497e-3f);
  p = __builtin_fmaf(p, r, 8.333262643e-3f);
  p = __builtin_fmaf(p, r, 4.166625375e-2f);
  p = __builtin_fmaf(p, r, 1.666666687e-1f);
  p = __builtin_fmaf(p, r, 5.000000083e-1f);
  return __builtin_fmaf(p, r * r, r) + 1.f;
}

// 2^n for n in [-126, 127].
inline float power_of_two(int32_t n) { return float_of(static_cast<uint32_t>(n + 127) << 23); }

// exp(x) = exp(r) 2^n. 2^n is multiplied in two factors, so that results below the smallest normal number are right.
inline float exp(float x) {
  float z = x < -104.f ? -104.f : x, shifted;
  z = z > 89.f ? 89.f : z;
  const float p = exp_reduced(z, &shifted);
  const int32_t e = static_cast<int32_t>(bits_of(shifted) - 0x4b400000), half = e >> 1;
  return p * power_of_two(half) * power_of_two(e - half);
}

// exp(x) for x in [-87, 0], where neither overflow nor underflow can occur.
inline float exp_negative(float x) {
  float shifted;
  const float p = exp_reduced(x, &shifted);
  return float_of(bits_of(p) + (bits_of(shifted) << 23));
}

// log(x) = e ln2 + log(m) for x = 2^e m with m in [sqrt(1/2), sqrt(2)).
inline float log(float x) {
  const bool denormal = x < 1.17549435e-38f;
  const float scaled = denormal ? x * 8388608.f : x;
  const uint32_t i = bits_of(scaled);
  const int32_t e = static_cast<int32_t>(i - 0x3f3504f3) >> 23;
  const float n = static_cast<float>(e) + (denormal ? -23.f : 0.f);
  const float f = float_of(i - static_cast<uint32_t>(e) * 8388608) - 1.f, s = f * f;
  float p = 6.917983163e-2f;
  p = __builtin_fmaf(p, f, -1.177966695e-1f);
  p = __builtin_fmaf(p, f, 1.186603552e-1f);
  p = __builtin_fmaf(p, f, -1.238579856e-1f);
  p = __builtin_fmaf(p, f, 1.421991855e-1f);
  p = __builtin_fmaf(p, f, -1.666919744e-1f);
  p = __builtin_fmaf(p, f, 2.000215141e-1f);
  p = __builtin_fmaf(p, f, -2.499998688e-1f);
  p = __builtin_fmaf(p, f, 3.333331183e-1f);
  float y = p * f * s;
  y = __builtin_fmaf(n, -2.12194440e-4f, y);
  y = __builtin_fmaf(-0.5f, s, y);
  y = __builtin_fmaf(n, 0.693359375f, f + y);
  y = x == 0.f ? -INFINITY : y;
  y = x < 0.f ? NAN : y;
  return x < INFINITY ? y : x;  // +inf and NaN pass through
}

// An odd polynomial for |x| < 0.625, and 1 - 2 / (exp(2|x|) + 1) above.
inline float tanh(float x) {
  const float a = abs(x), z = x * x;
  float p = -5.717495653e-3f;
  p = __builtin_fmaf(p, z, 2.065104299e-2f);
  p = __builtin_fmaf(p, z, -5.374366036e-2f);
  p = __builtin_fmaf(p, z, 1.333149365e-1f);
  p = __builtin_fmaf(p, z, -3.333328404e-1f);
  const float small = __builtin_fmaf(p * z, a, a);
  const float large = 1.f - 2.f / (exp(2.f * a) + 1.f);
  return copysign(a < 0.625f ? small : large, x);
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

inline float sigmoid(float x) { return 1.f / (1.f + exp(-x)); }
inline float sqrt(float x) { return __builtin_sqrtf(x); }

inline double abs(double x) { return std::fabs(x); }
inline double exp(double x) { return std::exp(x); }
inline double log(double x) { return std::log(x); }
inline double tanh(double x) { return std::tanh(x); }
inline double erf(double x) { return std::erf(x); }
inline double sigmoid(double x) { return 1. / (1. + std::exp(-x)); }
inline double sqrt(double x) { return std::sqrt(x); }

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
inline double normal_cdf(double x, double *density) {
  *density = std::exp(-0.5 * x * x);
  return 0.5 * (1. + std::erf(x * kSqrtHalf));
}

template <class T>
inline T gelu(T x) {
  T density;
  return x * normal_cdf(x, &density);
}
// dy times the derivative of gelu at x.
template <class T>
inline T gelu_grad(T dy, T x) {
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
  return x / (T(1) + exp(-x));
}
template <class T>
inline T silu_grad(T dy, T x) {
  const T s = sigmoid(x);
  return dy * s * (T(1) + x * (T(1) - s));
}

}  // namespace msa::vec

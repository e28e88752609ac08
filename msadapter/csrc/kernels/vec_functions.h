// Elementary functions of float and double without branches, so that the compiler vectorises loops that call them, for
// every instruction set that it knows. One body serves both types; only polynomials and constants differ. The errors
// are below 2 units in the last place, and infinities, NaN, signed zeros and numbers below the smallest normal one are
// treated as in the C library (tests/ops/test_vector_functions.py). The polynomials are minimax approximations that
// were fitted for this project. vec_math.h has the other functions.
#pragma once
#include <limits>
#include <type_traits>

#include "vec_math.h"

namespace msa::vec {

template <class T>
constexpr bool is_single = std::is_same_v<T, float>;

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();
template <class T>
constexpr T kNan = std::numeric_limits<T>::quiet_NaN();

// A constant for both types. A constant that needs more digits than one number has is a sum of two or three: the first
// parts may have few bits, so that their products are exact.
#define MSA_CONSTANT(Name, Single, Double) \
  template <class T>                       \
  constexpr T Name = is_single<T> ? T(Single) : T(Double)
MSA_CONSTANT(kHalfPi, 1.57079637e+0, 1.57079632679489656e+00);
MSA_CONSTANT(kHalfPi2, -4.37113883e-8, 6.12323399573676604e-17);
MSA_CONSTANT(kHalfPi3, -1.71512451e-15, -1.49738490485916983e-33);
MSA_CONSTANT(kLog10Of2, 0.301025390625, 3.01029995663611771306e-01);
MSA_CONSTANT(kLog10Of2Low, 4.60503907e-6, 3.69423907715893078616e-13);
MSA_CONSTANT(kLog2E, 1.44269502e+0, 1.44269504088896339e+00);
MSA_CONSTANT(kLog2ELow, 1.92596303e-8, 2.03552737409310331e-17);
MSA_CONSTANT(kLog10E, 4.34294492e-1, 4.34294481903251817e-01);
MSA_CONSTANT(kLog10ELow, -1.01030519e-8, 1.09831965021676507e-17);
MSA_CONSTANT(kLn2, 6.93147182e-1, 6.93147180559945286e-01);
MSA_CONSTANT(kLn2Low, -1.90465421e-9, 2.31904681384629956e-17);
MSA_CONSTANT(kFar, 1e9, 1e18);  // above it, 1 + x is rounded to x. The square of it is still finite.
#undef MSA_CONSTANT

// (sin(r) / r - 1) / x and (cos(r) - 1 + x / 2) / x^2 for x = r^2 and |r| <= pi/4
MSA_POLYNOMIAL(sin_tail, (x, 2.832510063e-06f, -1.985306444e-04f, 8.333379403e-03f, -1.666666716e-01f),
               (x, -7.38947134975623354e-13, 1.60543116959076330e-10, -2.50520709236636118e-08, 2.75573190739852345e-06,
                -1.98412698409624726e-04, 8.33333333333304178e-03, -1.66666666666666657e-01))
MSA_POLYNOMIAL(cos_tail, (x, 2.443067024e-05f, -1.388730132e-03f, 4.166664556e-02f),
               (x, 4.57955647977235507e-14, -1.14665851862466053e-11, 2.08767197635624729e-09, -2.75573190519776583e-07,
                2.48015873011648828e-05, -1.38888888888883777e-03, 4.16666666666666644e-02))
// (f(r) / r - 1) / x for x = r^2: asin for |r| <= 1/2, atan and sinh for |r| <= 1
MSA_POLYNOMIAL(asin_tail, (x, 4.215839878e-02f, 2.418474108e-02f, 4.546915367e-02f, 7.495309412e-02f, 1.666675210e-01f),
               (x, 3.19296314881531915e-02, -1.62365357825798029e-02, 1.95299646893269084e-02, 6.52877495060219179e-03,
                1.21688770030641599e-02, 1.38852866308517738e-02, 1.73597010711911831e-02, 2.23717581598036341e-02,
                3.03819591373262893e-02, 4.46428568282543833e-02, 7.50000000033712033e-02, 1.66666666666654084e-01))
MSA_POLYNOMIAL(atan_tail,
               (x, -1.784404623e-03f, 1.087364648e-02f, -3.110262007e-02f, 5.788423121e-02f, -8.399369568e-02f,
                1.095088571e-01f, -1.426401585e-01f, 1.999852955e-01f, -3.333329856e-01f),
               (x, 1.32302512009687908e-05, -1.52213423333726283e-04, 8.31569107203481653e-04, -2.88563356064188911e-03,
                7.19792588359423249e-03, -1.39026244221683790e-02, 2.19871133483651067e-02, -2.99057635120400130e-02,
                3.66431615536213853e-02, -4.21924322385473435e-02, 4.72234806255174971e-02, -5.25352664525245636e-02,
                5.88052976711902348e-02, -6.66640441474804918e-02, 7.69227988765837645e-02, -9.09090700767419130e-02,
                1.11111110073341249e-01, -1.42857142825878053e-01, 1.99999999999517453e-01, -3.33333333333330706e-01))
MSA_POLYNOMIAL(sinh_tail, (x, 2.782213187e-06f, 1.984289556e-04f, 8.333310485e-03f, 1.666666716e-01f),
               (x, 7.77660528188030761e-13, 1.60566590779700630e-10, 2.50521309992373530e-08, 2.75573191067556856e-06,
                1.98412698415934105e-04, 8.33333333333291168e-03, 1.66666666666666685e-01))

// ---------------------------------------------------------------- circular functions
// sin, cos and tan are accurate for |x| up to this number. Callers use the C library for larger |x| (unary_within()).
constexpr double kCircularLimit = 2e4;

// An angle in reduced form: |x| = quadrant * pi/2 + (hi + lo), with |hi| <= pi/4. Only the low bits of quadrant count.
template <class T>
struct Angle {
  T hi, lo;
  typename Parts<T>::U quadrant;
};
template <class T>
MSA_INLINE Angle<T> angle_of(T x) {
  const T a = abs(x), shifted = fma(a, T(0.63661977236758134308), Parts<T>::kRound), n = shifted - Parts<T>::kRound;
  const T rest = fma(-n, kHalfPi<T>, a);  // exact
  const T second = n * kHalfPi2<T>, second_low = fma(n, kHalfPi2<T>, -second), hi = rest - second;
  return {hi, fma(-n, kHalfPi3<T>, (rest - hi) - second - second_low), bits_of(shifted)};
}
// The sine and the cosine of a reduced angle, without the quadrant. The last rounding of the result loses digits. *low
// receives the part that was lost, so that tan can use it.
template <class T>
MSA_INLINE T sin_of(const Angle<T> &r, T *low) {
  const T z = r.hi * r.hi, rest = fma(z, fma(r.hi, sin_tail(z), T(-0.5) * r.lo), r.lo), y = r.hi + rest;
  *low = rest - (y - r.hi);
  return y;
}
template <class T>
MSA_INLINE T cos_of(const Angle<T> &r, T *low) {
  const T z = r.hi * r.hi, half = T(0.5) * z, top = T(1) - half;
  const T rest = (T(1) - top) - half + fma(z * z, cos_tail(z), -r.hi * r.lo), y = top + rest;
  *low = rest - (y - top);
  return y;
}
// -y if bit 1 of `turns` is set, otherwise y
template <class T>
MSA_INLINE T turned(T y, typename Parts<T>::U turns) {
  constexpr int kSign = sizeof(T) * 8 - 1;
  return number_of(bits_of(y) ^ (turns >> 1 << kSign));
}
template <class T>
MSA_INLINE T sin(T x) {
  T low;
  const Angle<T> r = angle_of(x);
  const T y = r.quadrant & 1 ? cos_of(r, &low) : sin_of(r, &low);
  return number_of(bits_of(turned(y, r.quadrant)) ^ (bits_of(x) & Parts<T>::kSign));
}
template <class T>
MSA_INLINE T cos(T x) {
  T low;
  const Angle<T> r = angle_of(x);
  return turned(r.quadrant & 1 ? sin_of(r, &low) : cos_of(r, &low), r.quadrant + 1);
}
template <class T>
MSA_INLINE T tan(T x) {
  T s_low, c_low;
  const Angle<T> r = angle_of(x);
  const T s = sin_of(r, &s_low), c = cos_of(r, &c_low);
  const bool odd = r.quadrant & 1;
  const T a = odd ? -c : s, a_low = odd ? -c_low : s_low, b = odd ? s : c, b_low = odd ? s_low : c_low;
  const T inverse = T(1) / b, q = a * inverse;  // q is a / b up to a rounding error, which the next line corrects
  const T y = fma(fma(-q, b, a) + fma(-q, b_low, a_low), inverse, q);
  return number_of(bits_of(y) ^ (bits_of(x) & Parts<T>::kSign));
}

// sin(pi x) / (pi x), where pi x is rounded as in PyTorch. It is accurate where sin is, for |pi x| <= kCircularLimit.
template <class T>
MSA_INLINE T sinc(T x) {
  const T p = x * T(3.14159265358979323846), y = sin(p) / p;
  return x == T(0) ? T(1) : y;
}

// For a < 1/2, asin(a) = t + w with t = a. For larger a, asin(a) = pi/2 - 2 (t + w) with t = sqrt((1 - a) / 2).
template <class T>
MSA_INLINE T asin_reduced(T a, T *w) {
  const T z = a < T(0.5) ? a * a : T(0.5) * (T(1) - a), t = a < T(0.5) ? a : sqrt(z);
  *w = t * z * asin_tail(z);
  return t;
}
template <class T>
MSA_INLINE T asin(T x) {
  T w;
  const T a = abs(x), t = asin_reduced(a, &w), top = kHalfPi<T> - T(2) * t, lost = (kHalfPi<T> - top) - T(2) * t;
  return copysign(a < T(0.5) ? t + w : top + (lost - (T(2) * w - kHalfPi2<T>)), x);
}
template <class T>
MSA_INLINE T acos(T x) {
  T w;
  const T a = abs(x), t = asin_reduced(a, &w);
  const T middle = kHalfPi<T> - (x + (copysign(w, x) - kHalfPi2<T>));
  const T outer = x > T(0) ? T(2) * (t + w) : T(2) * (kHalfPi<T> - (t + (w - kHalfPi2<T>)));
  return a < T(0.5) ? middle : outer;
}
template <class T>
MSA_INLINE T atan(T x) {
  const T a = abs(x), inverse = T(1) / a, t = a > T(1) ? inverse : a, z = t * t;
  const T r = fma(t * z, atan_tail(z), t);
  return copysign(a > T(1) ? kHalfPi<T> - (r - kHalfPi2<T>) : r, x);
}

template <class T>
MSA_INLINE T atan2(T y, T x) {
  const T a = abs(x), b = abs(y), low = b > a ? a : b, high = b > a ? b : a, ratio = low / high;
  const T t = high == T(0) ? T(0) : low == kInfinity<T> ? T(1) : ratio, z = t * t;
  const T r = fma(t * z, atan_tail(z), t), acute = b > a ? kHalfPi<T> - (r - kHalfPi2<T>) : r;
  const T angle = bits_of(x) & Parts<T>::kSign ? T(2) * kHalfPi<T> - (acute - T(2) * kHalfPi2<T>) : acute;
  return x != x || y != y ? kNan<T> : copysign(angle, y);
}

// ---------------------------------------------------------------- exponentials
template <class T>
MSA_INLINE T exp2(T x) {
  const T z = is_single<T> ? between(x, T(-151), T(129)) : between(x, T(-1076), T(1025));
  const T shifted = z + Parts<T>::kRound, r = z - (shifted - Parts<T>::kRound);
  if constexpr (is_single<T>) return scaled(fma(exp2_tail(r), r, T(1)), exponent_of(shifted));
  const T t = r * kLn2<T>, low = fma(r, kLn2Low<T>, fma(r, kLn2<T>, -t));
  return scaled(T(1) + (t + fma(t * t, exp_tail(t), low)), exponent_of(shifted));
}
template <class T>
MSA_INLINE T expm1(T x) {
  const T z = is_single<T> ? between(x, T(-30), T(89)) : between(x, T(-60), T(709.79));
  T shifted;
  const T q = expm1_reduced(z, &shifted), half = power_of_two<T>(exponent_of(shifted) - 1);
  const T y = T(2) * fma(q, half, half - T(0.5));
  return abs(x) < T(1e-30) ? x : y;
}
// exp(a) / 2 for a >= 0
template <class T>
MSA_INLINE T half_exp(T a) {
  T shifted;
  const T q = expm1_reduced(is_single<T> ? between(a, T(0), T(90)) : between(a, T(0), T(712)), &shifted);
  return scaled(T(1) + q, exponent_of(shifted) - 1);
}
template <class T>
MSA_INLINE T sinh(T x) {
  const T a = abs(x), z = a * a, e = half_exp(a);
  return copysign(a < T(1) ? fma(a * z, sinh_tail(z), a) : e - T(0.25) / e, x);
}
template <class T>
MSA_INLINE T cosh(T x) {
  const T e = half_exp(abs(x));
  return e + T(0.25) / e;
}

// ---------------------------------------------------------------- logarithms
template <class T>
MSA_INLINE T log_in_base(T x, T n_high, T n_low, T base, T base_low) {
  T n;
  const T f = log_reduced(x, &n), high = f * base;
  const T low = fma(log_rest(f) - T(0.5) * f * f, base, fma(f, base_low, fma(f, base, -high)));
  const T y = fma(n, n_high, high + fma(n, n_low, low));
  return log_of_special(x, y);
}
template <class T>
MSA_INLINE T log2(T x) {
  return log_in_base(x, T(1), T(0), kLog2E<T>, kLog2ELow<T>);
}
template <class T>
MSA_INLINE T log10(T x) {
  return log_in_base(x, kLog10Of2<T>, kLog10Of2Low<T>, kLog10E<T>, kLog10ELow<T>);
}
// With 1 + x = 2^e (1 + f), f is computed with one rounding. Near 0, e is 0 and f is x.
template <class T>
MSA_INLINE T log1p(T x) {
  T n;
  const T u = T(1) + x, far = log_reduced(u, &n);
  const T scale =
      number_of((Parts<T>::kOne - (static_cast<typename Parts<T>::U>(static_cast<int32_t>(n)) << Parts<T>::kDigits)));
  const T f = x < kFar<T> ? fma(x, scale, scale - T(1)) : far;
  const T y = log_of_special(u, log_sum(n, f));
  return abs(x) < T(1e-30) ? x : y;
}
template <class T>
MSA_INLINE T asinh(T x) {
  const T a = abs(x), z = a * a, near = a + z / (T(1) + sqrt(T(1) + z));
  return copysign(log1p(a < kFar<T> ? near : a) + (a < kFar<T> ? T(0) : kLn2<T>), x);
}
template <class T>
MSA_INLINE T acosh(T x) {
  const T t = x - T(1), near = t + sqrt(fma(t, t, T(2) * t));
  const T y = log1p(x < kFar<T> ? near : x) + (x < kFar<T> ? T(0) : kLn2<T>);
  return x < T(1) ? kNan<T> : y;
}
template <class T>
MSA_INLINE T atanh(T x) {
  const T a = abs(x), q = a / (T(1) - a), near = fma(a + a, q, a + a);
  return copysign(T(0.5) * log1p(a < T(0.5) ? near : q + q), x);
}

// ---------------------------------------------------------------- powers and lengths
// log2(x) of a positive float, computed in double, and 2^x rounded to float. Their errors are 2^-42 and 2^-36. With
// them, the error of a power of floats is little more than that of its rounding to float.
MSA_INLINE double short_log2(double x) {
  double n;
  const double f = log_reduced(x, &n), s = f / (2. + f), z = s * s;
  const double p = polynomial(z, 9.79909353482553563e-02, 1.10876405714934068e-01, 1.42860645605838332e-01,
                              1.99999977258401879e-01, 3.33333333381209351e-01);
  const double y = fma(2. * kLog2E<double>, fma(p * z, s, s), n);
  return x == 0. ? -kInfinity<double> : x < kInfinity<double> ? y : x;
}
MSA_INLINE float short_exp2(double x) {
  const double z = between(x, -160., 130.), shifted = z + Parts<double>::kRound;
  const double r = (z - (shifted - Parts<double>::kRound)) * kLn2<double>;
  const double p = polynomial(r, 2.48762511350028050e-05, 1.98993921252201759e-04, 1.38888240194944869e-03,
                              8.33329834113458526e-03, 4.16666668542412175e-02, 1.66666667193218793e-01, 0.5);
  const double m = fma(p, r * r, r) + 1.;
  return static_cast<float>(m * power_of_two<double>(exponent_of(shifted)));
}
// |x|^y with the sign and the special values that C's pow has, from this power of |x|.
template <class T>
MSA_INLINE T signed_power(T x, T y, T power) {
  const T half = T(0.5) * y;
  const bool whole = truncated(y) == y, odd = whole && truncated(half) != half;
  const T sign = bits_of(x) & Parts<T>::kSign && odd ? -power : power;
  const T real = x < T(0) && x > -kInfinity<T> && !whole ? kNan<T> : sign;
  return x == T(1) || y == T(0) || (x == T(-1) && abs(y) == kInfinity<T>) ? T(1) : real;
}
// |x|^y = 2^(y log2 |x|)
MSA_INLINE float pow(float x, float y) {
  return signed_power(x, y, short_exp2(static_cast<double>(y) * short_log2(static_cast<double>(abs(x)))));
}

// A sum of two doubles, of which `low` has the digits that `high` has no room for.
struct Pair {
  double high, low;
};
// a + b for |a| >= |b|
MSA_INLINE Pair pair_sum(double a, double b) {
  const double high = a + b;
  return {high, b - (high - a)};
}
MSA_INLINE Pair pair_product(double a, double b) {
  const double high = a * b;
  return {high, fma(a, b, -high)};
}
// log(x) of a positive x with an error of 2^-64 of its size, so that a power whose logarithm is up to 745 is right to
// its last digits. With x = 2^n (1 + f) and s = f / (2 + f) it is n ln2 + 2 s + 2/3 s^3 + 2/5 s^5 + ..., and |s| is at
// most 0.172. The terms from s^5 on are small enough for one number each.
MSA_INLINE Pair pair_log(double x) {
  double n;
  const double f = log_reduced(x, &n), base = 2. + f, base_low = f - (base - 2.), s = f / base;
  const double s_low = (fma(-s, base, f) - s * base_low) / base;
  const Pair square = pair_product(s, s), cube = pair_product(square.high, s);
  const double cube_low = cube.low + fma(fma(2. * s, s_low, square.low), s, square.high * s_low);
  constexpr double kTwoThirds = 2. / 3., kTwoThirdsLow = 3.7007434154171886e-17;
  const Pair third = pair_product(cube.high, kTwoThirds);
  const double third_low = third.low + fma(cube_low, kTwoThirds, cube.high * kTwoThirdsLow);
  const double rest = cube.high * square.high *
                      polynomial(square.high, 2. / 25, 2. / 23, 2. / 21, 2. / 19, 2. / 17, 2. / 15, 2. / 13, 2. / 11,
                                 2. / 9, 2. / 7, 2. / 5);
  const Pair first = pair_sum(n * kLn2High<double>, 2. * s), sum = pair_sum(first.high, third.high);
  const Pair y = pair_sum(sum.high, sum.low + (first.low + fma(n, kLn2Rest<double>, fma(2., s_low, third_low + rest))));
  const bool finite = x > 0. && x < kInfinity<double>;
  return {finite ? y.high : x == 0. ? -kInfinity<double> : x, finite ? y.low : 0.};
}
// exp(high + low)
MSA_INLINE double pair_exp(Pair x) {
  const double z = between(x.high, -746., 710.), shifted = fma(z, 1.44269504088896339, Parts<double>::kRound);
  const double n = shifted - Parts<double>::kRound, near = fma(n, -kLn2High<double>, z);  // exact
  const double r = fma(n, -kLn2Rest<double>, near);
  const double low = fma(n, -kLn2Rest<double>, near - r) + (z == x.high ? x.low : 0.);
  const double q = fma(exp_tail(r), r * r, r);
  return scaled(1. + (q + fma(low, q, low)), exponent_of(shifted));
}
// |x|^y = exp(y log|x|)
MSA_INLINE double pow(double x, double y) {
  const Pair l = pair_log(abs(x)), product = pair_product(y, l.high);
  return signed_power(x, y, pair_exp({product.high, fma(y, l.low, product.low)}));
}
MSA_INLINE float hypot(float x, float y) {
  const double a = x, b = y;
  const float length = static_cast<float>(sqrt(fma(a, a, b * b)));
  return abs(x) == kInfinity<float> || abs(y) == kInfinity<float> ? kInfinity<float> : length;
}
inline double hypot(double x, double y) { return std::hypot(x, y); }

// ---------------------------------------------------------------- remainders
// fmod(x, y) is the remainder of x / y, with the sign of x. It is for |x / y| up to this number, and exact: the
// truncated quotient q is at most 1 off, and the difference x - q y needs no more digits than x and y have.
template <class T>
constexpr T kQuotientLimit = Parts<T>::kTwoToDigits / T(2);
template <class T>
MSA_INLINE T fmod(T x, T y) {
  const T a = abs(x), b = abs(y), q = truncated(a / b), r = fma(-q, b, a), up = r < T(0) ? r + b : r;
  return copysign(up < b ? up : up - b, x);
}

// The next representable number after x towards y. As integers, the bits of numbers of one sign have the order of the
// numbers, so it is found by adding or subtracting 1.
template <class T>
MSA_INLINE T nextafter(T x, T y) {
  using U = typename Parts<T>::U;
  const bool outwards = (y > x) == (x > T(0));
  const T neighbour = number_of(bits_of(x) + (outwards ? U(1) : ~U(0)));
  const T moved = x == T(0) ? copysign(number_of(U(1)), y) : neighbour;
  return x != x || y != y ? kNan<T> : x == y ? y : moved;
}

// ---------------------------------------------------------------- error functions of float
// erfc(a) = exp(-a^2) t P(t) for t = 1 / (1 + a / 2) and 0 <= a <= 10.2. The signs of P's coefficients alternate, so
// that digits would be lost in float. P is therefore computed in double.
MSA_INLINE float erfc(float x) {
  const float a = between(abs(x), 0.f, 10.2f), s = a * a;
  float shifted;
  const float q = expm1_reduced(-s, &shifted) + 1.f, e = fma(q, -fma(a, a, -s), q);  // with the rounding error of a^2
  const double t = 1. / fma(0.5, static_cast<double>(a), 1.);
  const double p =
      polynomial(t, 3.576787561e-02, -1.910133511e-01, 3.813394308e-01, -2.894690335e-01, -2.205905505e-02,
                 3.545347974e-02, 5.486249924e-02, 1.855986416e-01, 2.451785356e-01, 2.822524607e-01, 2.820885181e-01);
  const float y = scaled(static_cast<float>(t * p * static_cast<double>(e)), exponent_of(shifted));
  return x < 0.f ? 2.f - y : y;
}
inline double erfc(double x) { return std::erfc(x); }
// erfinv(x) / x as a function of u = 1 - x^2. It is accurate also where x itself would be rounded to 1.
MSA_INLINE float erfinv_ratio(float u) {
  const float w = -log(u), root = sqrt(w), v = w - 2.5f, near = root - 3.2f, far = root - 7.f;
  const float middle = polynomial(v, 3.354924949e-10f, -8.772890858e-09f, 1.803784322e-08f, 4.658930095e-07f,
                                  -3.434614428e-06f, -4.961915693e-06f, 2.182826283e-04f, -1.252744696e-03f,
                                  -4.177339375e-03f, 2.466402948e-01f, 1.501409411e+00f);
  const float outer =
      polynomial(near, -1.216008168e-04f, -1.435090089e-04f, 1.174726989e-03f, -2.147293417e-03f, 2.911962336e-03f,
                 -4.253548570e-03f, 5.979168229e-03f, 1.004689574e+00f, 3.033636332e+00f);
  const float tail =
      polynomial(far, 1.237755498e-08f, -8.989294997e-08f, 2.948762585e-07f, -1.353464086e-06f, 6.099130132e-06f,
                 5.580560355e-06f, -5.127232289e-04f, 1.008596063e+00f, 6.869019508e+00f);
  return w < 5.f ? middle : root < 4.2f ? outer : tail;
}
MSA_INLINE float erfinv(float x) {
  const float a = abs(x), y = x * erfinv_ratio(a < 0.5f ? fma(-x, x, 1.f) : (1.f - a) * (1.f + a));
  const float edge = a == 1.f ? copysign(kInfinity<float>, x) : kNan<float>;
  return a < 1.f ? y : edge;
}
// sqrt(2) erfinv(2 p - 1), without the loss of digits where p is near 0.
MSA_INLINE float ndtri(float p) {
  const float u = 4.f * p * (1.f - p), x = 2.f * (p - 0.5f), y = 1.41421356f * x * erfinv_ratio(u);
  const float edge = p == 0.f ? -kInfinity<float> : p == 1.f ? kInfinity<float> : kNan<float>;
  return p > 0.f && p < 1.f ? y : edge;
}

// ---------------------------------------------------------------- activation functions
// tanh(log(1 + exp(x))) = n / (n + 2) for n = e (e + 2) and e = exp(x). It is 1 for x above 20.
template <class T>
MSA_INLINE T mish(T x) {
  const T e = exp(x > T(20) ? T(20) : x), n = e * (e + T(2));
  return x * (n / (n + T(2)));
}
// Its derivative is n / (n + 2) + x 4 e (e + 1) / (n + 2)^2, whose second term is 0 for x above 20.
template <class T>
MSA_INLINE T mish_grad(T g, T x) {
  const T e = exp(x > T(20) ? T(20) : x), n = e * (e + T(2)), inverse = T(1) / (n + T(2));
  const T slope = (T(4) * e * inverse) * ((e + T(1)) * inverse);
  return g * (n * inverse + x * (x > T(20) ? T(0) : slope));
}
template <class T>
MSA_INLINE T softplus(T x, T beta, T threshold) {
  const T y = log1p(exp(x * beta)) / beta;
  return x * beta > threshold ? x : y;
}
template <class T>
MSA_INLINE T log_sigmoid(T x, T *z) {
  *z = exp(-abs(x));
  return (x < T(0) ? x : T(0)) - log1p(*z);
}
template <class T>
MSA_INLINE T log_sigmoid_grad(T g, T x) {
  const T z = exp(-abs(x)), share = z / (T(1) + z);
  return g * (x < T(0) ? T(1) - share : share);
}

}  // namespace msa::vec

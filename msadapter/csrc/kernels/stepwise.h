// Arithmetic that rounds to the element type after every step. Some of PyTorch's kernels for 16-bit types compute so.
#pragma once
#include "dtype.h"

namespace msa {

// The vector width that PyTorch uses on this machine.
#ifdef __AVX512F__
constexpr int kVectorBytes = 64;
#else
constexpr int kVectorBytes = 32;
#endif

// A value of a 16-bit type T, kept in a float. Every operation returns a value of T again.
template <class T>
struct Stepwise {
  float v;
  Stepwise() = default;
  Stepwise(float x) : v(T(x)) {}
  Stepwise(double x) : Stepwise(static_cast<float>(x)) {}
  Stepwise(int x) : Stepwise(static_cast<float>(x)) {}
  Stepwise(int64_t x) : Stepwise(static_cast<float>(x)) {}
  Stepwise(T x) : v(x) {}
  explicit operator float() const { return v; }
  explicit operator int64_t() const { return static_cast<int64_t>(v); }
  explicit operator T() const { return T(v); }
  Stepwise operator-() const { return Stepwise(-v); }
  Stepwise &operator+=(Stepwise o) { return *this = Stepwise(v + o.v); }
  Stepwise &operator-=(Stepwise o) { return *this = Stepwise(v - o.v); }
  friend Stepwise operator+(Stepwise a, Stepwise b) { return Stepwise(a.v + b.v); }
  friend Stepwise operator-(Stepwise a, Stepwise b) { return Stepwise(a.v - b.v); }
  friend Stepwise operator*(Stepwise a, Stepwise b) { return Stepwise(a.v * b.v); }
  friend Stepwise operator/(Stepwise a, Stepwise b) { return Stepwise(a.v / b.v); }
  friend bool operator<(Stepwise a, Stepwise b) { return a.v < b.v; }
  friend bool operator>(Stepwise a, Stepwise b) { return a.v > b.v; }
  friend bool operator<=(Stepwise a, Stepwise b) { return a.v <= b.v; }
  friend bool operator>=(Stepwise a, Stepwise b) { return a.v >= b.v; }
  friend bool operator==(Stepwise a, Stepwise b) { return a.v == b.v; }
  friend bool operator!=(Stepwise a, Stepwise b) { return a.v != b.v; }
};

// The type in which a kernel computes that rounds after every step.
template <class T>
struct stepwise_type {
  using type = T;
};
template <>
struct stepwise_type<Half> {
  using type = Stepwise<Half>;
};
template <>
struct stepwise_type<BFloat16> {
  using type = Stepwise<BFloat16>;
};
template <class T>
using stepwise_t = typename stepwise_type<T>::type;

// The value as an ordinary number, for functions such as floor and fmod, whose results fit the element type without
// rounding.
template <class T>
inline float plain(Stepwise<T> x) {
  return x.v;
}
inline float plain(float x) { return x; }
inline double plain(double x) { return x; }

}  // namespace msa

// What element-wise operators share. The checks run when the operator is planned; the returned task computes.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include "values.h"

namespace sim {
// Whether values of one type may be written as another: never from floating to whole numbers, nor from these to bool.
inline void CanCast(bool from_floating, bool from_bool, const Tensor &out) {
  if (from_floating ? !out.floating() : !from_bool && out.type == kBool) {
    Refuse("the result cannot be written as %s", NameOf(out.type).c_str());
  }
}

// One tensor, computed in double whatever its type is.
template <class F>
Task Unary(const Tensor &self, const Tensor &out, Types in, Types into, F f) {
  Takes(self, in);
  Takes(out, into);
  SameShape(self, out);
  return [=] {
    auto x = Reals(self);
    for (auto &v : x) v = static_cast<double>(f(v));
    Write(out, x);
  };
}
// One tensor, whole numbers computed as such.
template <class F>
Task UnaryExact(const Tensor &self, const Tensor &out, Types in, Types into, F f) {
  Takes(self, in);
  Takes(out, into);
  SameShape(self, out);
  return [=] {
    Computed(self.floating(), [&](auto zero) {
      using C = decltype(zero);
      auto x = Read<C>(self);
      for (auto &v : x) v = static_cast<C>(f(v));
      Write(out, x);
    });
  };
}
// Two tensors, broadcast. `compares`: the result is a truth value, so its type may be anything.
template <class F>
Task Binary(const Tensor &self, const Tensor &other, const Tensor &out, Types in, F f, bool compares = false) {
  Takes(self, in);
  Takes(other, in);
  FitsBroadcast({self, other}, out);
  const bool floating = self.floating() || other.floating();
  if (!compares) CanCast(floating, self.type == kBool && other.type == kBool, out);
  return [=] {
    Computed(floating || (out.floating() && !compares), [&](auto zero) {
      using C = decltype(zero);
      auto x = Read<C>(self, out.shape);
      const auto y = Read<C>(other, out.shape);
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<C>(f(x[i], y[i]));
      Write(out, x);
    });
  };
}
// A tensor and a scalar.
template <class F>
Task BinaryScalar(const Tensor &self, const Scalar &other, const Tensor &out, Types in, F f, bool compares = false) {
  Takes(self, in);
  SameShape(self, out);
  const bool floating = self.floating() || other.floating();
  if (!compares) CanCast(floating, self.type == kBool && other.type == kBool, out);
  return [=] {
    Computed(floating || (out.floating() && !compares), [&](auto zero) {
      using C = decltype(zero);
      auto x = Read<C>(self);
      const C y = As<C>(other);
      for (auto &v : x) v = static_cast<C>(f(v, y));
      Write(out, x);
    });
  };
}
// A gradient and one tensor that it belongs to, of equal shapes or broadcast.
template <class F>
Task Backward(const Tensor &gradient, const Tensor &self, const Tensor &out, Types in, F f) {
  Takes(gradient, in);
  Takes(self, in);
  Takes(out, in);
  FitsBroadcast({gradient, self}, out);
  return [=] {
    auto d = Reals(gradient, out.shape);
    const auto x = Reals(self, out.shape);
    for (size_t i = 0; i < d.size(); ++i) d[i] = f(d[i], x[i]);
    Write(out, d);
  };
}

inline double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
}  // namespace sim

#include "pointwise.h"

namespace sim {
namespace {
// Whether values of one type may be written as another: never from floating to whole numbers, nor from these to bool.
void CanCast(bool from_floating, bool from_bool, const Tensor &out) {
  if (from_floating ? !out.floating() : !from_bool && out.type == kBool) {
    Refuse("the result cannot be written as %s", NameOf(out.type).c_str());
  }
}

// Writes f of each x.
template <class C, class F>
void Map(std::vector<C> x, const Tensor &out, const F &f) {
  for (auto &v : x) v = f(v);
  Write(out, x);
}

// Writes f of each x and the y beside it, or of each x and the only y.
template <class C, class F>
void Combine(std::vector<C> x, const std::vector<C> &y, const Tensor &out, const F &f) {
  const size_t step = y.size() == 1 ? 0 : 1;
  for (size_t i = 0; i < x.size(); ++i) x[i] = f(x[i], y[i * step]);
  Write(out, x);
}
}  // namespace

Task Unary(const Tensor &self, const Tensor &out, Types in, Types into, Real f) {
  Takes(self, in);
  Takes(out, into);
  SameShape(self, out);
  return [=] { Map(Reals(self), out, f); };
}

Task UnaryExact(const Tensor &self, const Tensor &out, Types in, Types into, Real real, Whole whole) {
  Takes(self, in);
  Takes(out, into);
  SameShape(self, out);
  return [=] {
    if (self.floating()) {
      Map(Reals(self), out, real);
    } else {
      Map(Wholes(self), out, whole);
    }
  };
}

Task Binary(const Tensor &self, const Tensor &other, const Tensor &out, Types in, Real2 real, Whole2 whole,
            bool compares) {
  Takes(self, in);
  Takes(other, in);
  FitsBroadcast({self, other}, out);
  const bool floating = self.floating() || other.floating();
  if (!compares) CanCast(floating, self.type == kBool && other.type == kBool, out);
  return [=] {
    if (floating || (out.floating() && !compares)) {
      Combine(Reals(self, out.shape), Reals(other, out.shape), out, real);
    } else {
      Combine(Wholes(self, out.shape), Wholes(other, out.shape), out, whole);
    }
  };
}

Task BinaryScalar(const Tensor &self, const Scalar &other, const Tensor &out, Types in, Real2 real, Whole2 whole,
                  bool compares) {
  Takes(self, in);
  SameShape(self, out);
  const bool floating = self.floating() || other.floating();
  if (!compares) CanCast(floating, self.type == kBool && other.type == kBool, out);
  return [=] {
    if (floating || (out.floating() && !compares)) {
      Combine(Reals(self), {As<double>(other)}, out, real);
    } else {
      Combine(Wholes(self), {As<int64_t>(other)}, out, whole);
    }
  };
}

Task Backward(const Tensor &gradient, const Tensor &self, const Tensor &out, Types in, Real2 f) {
  Takes(gradient, in);
  Takes(self, in);
  Takes(out, in);
  FitsBroadcast({gradient, self}, out);
  return [=] { Combine(Reals(gradient, out.shape), Reals(self, out.shape), out, f); };
}
}  // namespace sim

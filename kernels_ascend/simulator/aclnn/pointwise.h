// What element-wise operators share. The checks run when the operator is planned; the returned task computes.
// The functions of single elements are std::function, so that the loops are compiled once and not for each operator.
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "values.h"

namespace sim {
using Real = std::function<double(double)>;
using Whole = std::function<int64_t(int64_t)>;
using Real2 = std::function<double(double, double)>;
using Whole2 = std::function<int64_t(int64_t, int64_t)>;

// One tensor, computed in double whatever its type is.
Task Unary(const Tensor &self, const Tensor &out, Types in, Types into, Real f);
// One tensor, whole numbers computed as such.
Task UnaryExact(const Tensor &self, const Tensor &out, Types in, Types into, Real real, Whole whole);
// Two tensors, broadcast. `compares`: the result is a truth value, so its type may be anything.
Task Binary(const Tensor &self, const Tensor &other, const Tensor &out, Types in, Real2 real, Whole2 whole,
            bool compares);
// A tensor and a scalar.
Task BinaryScalar(const Tensor &self, const Scalar &other, const Tensor &out, Types in, Real2 real, Whole2 whole,
                  bool compares);
// A gradient and one tensor that it belongs to, of equal shapes or broadcast.
Task Backward(const Tensor &gradient, const Tensor &self, const Tensor &out, Types in, Real2 f);

// The same for one function that takes double and int64_t.
template <class F>
Task UnaryExact(const Tensor &self, const Tensor &out, Types in, Types into, F f) {
  return UnaryExact(self, out, in, into, Real(f), Whole(f));
}
template <class F>
Task Binary(const Tensor &self, const Tensor &other, const Tensor &out, Types in, F f, bool compares = false) {
  return Binary(self, other, out, in, Real2(f), Whole2(f), compares);
}
template <class F>
Task BinaryScalar(const Tensor &self, const Scalar &other, const Tensor &out, Types in, F f, bool compares = false) {
  return BinaryScalar(self, other, out, in, Real2(f), Whole2(f), compares);
}

inline double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
}  // namespace sim

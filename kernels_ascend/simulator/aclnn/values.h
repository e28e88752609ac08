// Elements of tensors as C++ vectors. Operators compute on vectors of double (floating types), of int64_t (whole
// numbers and bool) or of float (products of matrices), in row-major order whatever the layout of the tensor is. The
// result is rounded once, when it is written. So the numbers are at least as precise as a device's, and not equal to
// them.
#pragma once
#include <initializer_list>
#include <vector>

#include "operator.h"

namespace sim {
inline int64_t Count(const Shape &shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

// The elements of a tensor, broadcast to a shape. C is double, int64_t or float.
template <class C>
std::vector<C> Read(const Tensor &tensor, const Shape &shape);
template <class C>
std::vector<C> Read(const Tensor &tensor) {
  return Read<C>(tensor, tensor.shape);
}
inline std::vector<double> Reals(const Tensor &tensor) { return Read<double>(tensor, tensor.shape); }
inline std::vector<double> Reals(const Tensor &tensor, const Shape &shape) { return Read<double>(tensor, shape); }
inline std::vector<int64_t> Wholes(const Tensor &tensor) { return Read<int64_t>(tensor, tensor.shape); }
inline std::vector<int64_t> Wholes(const Tensor &tensor, const Shape &shape) { return Read<int64_t>(tensor, shape); }

// Writes all elements, rounded to the tensor's type. Nothing happens for a tensor that is missing.
template <class C>
void Write(const Tensor &tensor, const std::vector<C> &values);
// Copies with conversion and broadcasting. Equal types are copied byte by byte, complex ones included.
void Convert(const Tensor &from, const Tensor &to);
void Fill(const Tensor &tensor, const Scalar &value);

void ReadNumber(const void *bytes, int type, double *real, int64_t *whole);

// Calls f with int64_t(0) or double(0): what the elements of these types are computed in.
template <class F>
void Computed(bool floating, F &&f) {
  if (floating) {
    f(double(0));
  } else {
    f(int64_t(0));
  }
}
template <class C>
C As(const Scalar &scalar) {
  if constexpr (std::is_same_v<C, double>) {
    return scalar.real;
  } else {
    return static_cast<C>(scalar.whole);
  }
}

// ---- views
// Visits the elements of a strided view in row-major order: f(how many, offset of the first, step of the last axis).
template <class F>
void Rows(const Shape &shape, const Shape &stride, F &&f) {
  const int64_t rank = static_cast<int64_t>(shape.size());
  if (Count(shape) == 0) return;
  if (rank == 0) return f(int64_t(1), int64_t(0), int64_t(1));
  Shape at(shape.size(), 0);
  int64_t base = 0;
  for (;;) {
    f(shape[rank - 1], base, stride[rank - 1]);
    int64_t axis = rank - 2;
    for (; axis >= 0; --axis) {
      base += stride[axis];
      if (++at[axis] < shape[axis]) break;
      base -= stride[axis] * shape[axis];
      at[axis] = 0;
    }
    if (axis < 0) return;
  }
}
Shape RowMajor(const Shape &shape);
// The strides of a tensor broadcast to a shape. Throws Failure if it does not fit.
Shape BroadcastStride(const Tensor &tensor, const Shape &shape);
Shape BroadcastShape(const Shape &a, const Shape &b);
// The part [from, from + size) of an axis.
Tensor Part(Tensor tensor, int64_t axis, int64_t from, int64_t size);
// An axis that may count from the end. Throws Failure if the tensor has no such axis.
int64_t Axis(int64_t axis, int64_t rank);
// How many elements lie before, along and after an axis.
struct Around {
  int64_t outer = 1, along = 1, inner = 1;
  Around(const Shape &shape, int64_t axis);
};

// ---- checks. A refusal throws Failure(kRefused) with the operator, the reason and the page.
[[noreturn]] void Refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
void Takes(const Tensor &tensor, Types types);  // a missing tensor passes
void SameType(const Tensor &a, const Tensor &b);
void SameShape(const Tensor &a, const Tensor &b);
void HasShape(const Tensor &tensor, const Shape &shape);
void HasRank(const Tensor &tensor, int64_t least, int64_t most);
void FitsBroadcast(std::initializer_list<Tensor> inputs, const Tensor &out);
inline void Require(bool condition, const char *reason) {
  if (!condition) Refuse("%s", reason);
}
std::string Print(const Shape &shape);
// A task that finds a value outside of its range, such as an index, ends like a kernel that reads beyond a tensor.
[[noreturn]] void OutOfRange(const char *what, int64_t value, int64_t end);
}  // namespace sim

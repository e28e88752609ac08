// Filling, copying, choosing, joining and repeating.
#include <cmath>
#include <numeric>

#include "values.h"

using namespace sim;

namespace {
constexpr Types kBytes = kAll | C64 | C128 | U16 | U32 | U64;  // what is moved and not computed with
constexpr const char *kFill = "ops-math/conversion/fill", *kMask = "ops-math/conversion/masked_fill";

Task Constant(const Tensor &out, int64_t value) {
  return [=] { Write(out, std::vector<int64_t>(static_cast<size_t>(out.numel()), value)); };
}
// The elements are copied as they are, whatever their type is.
void Moves(const Tensor &from, const Tensor &to) {
  Takes(from, kBytes);
  Takes(to, kBytes);
  SameType(from, to);
}
bool IsContiguous(const Tensor &tensor) {
  const Shape dense = RowMajor(tensor.shape);
  for (size_t i = 0; i < dense.size(); ++i) {
    if (tensor.shape[i] > 1 && tensor.stride[i] != dense[i]) return false;
  }
  return true;
}
// Moves the elements that f names: the element i of the result is the element f(i) of the source, both row-major.
template <class F>
Task Rearranged(const Tensor &self, const Tensor &out, F f) {
  SameType(self, out);
  return [=] {
    Computed(self.floating(), [&](auto zero) {
      const auto x = Read<decltype(zero)>(self);
      auto y = std::vector<decltype(zero)>(static_cast<size_t>(out.numel()));
      for (size_t i = 0; i < y.size(); ++i) y[i] = x[static_cast<size_t>(f(static_cast<int64_t>(i)))];
      Write(out, y);
    });
  };
}
}  // namespace

// ---- copies
ACLNN_OP(InplaceCopy, (Out selfRef, Tensor src), "ops-math/conversion/view_copy") {
  Takes(src, kBytes);
  Takes(selfRef, kBytes);
  FitsBroadcast({selfRef, src}, selfRef);
  if (IsComplex(selfRef.type)) Require(IsContiguous(selfRef), "complex numbers are copied only into a dense selfRef");
  return [=] { Convert(src, selfRef); };
}
ACLNN_OP(Cast, (Tensor self, int dtype, Out out), "ops-math/math/cast") {
  Takes(self, kBytes);
  Takes(out, kBytes);
  Require(dtype == out.type, "dtype is the type of out");
  SameShape(self, out);
  return [=] { Convert(self, out); };
}
ACLNN_OP(Expand, (Tensor self, Ints size, Out out), "ops-math/conversion/expand") {
  Moves(self, out);
  HasShape(out, size);
  FitsBroadcast({self, out}, out);
  return [=] { Convert(self, out); };
}
ACLNN_OP(Permute, (Tensor self, Ints dims, Out out), "ops-math/conversion/transpose") {
  Moves(self, out);
  Require(static_cast<int64_t>(dims.size()) == self.rank(), "dims names every axis");
  Tensor view = self;
  for (int64_t i = 0; i < self.rank(); ++i) {
    const int64_t axis = Axis(dims[i], self.rank());
    view.shape[i] = self.shape[axis];
    view.stride[i] = self.stride[axis];
  }
  HasShape(out, view.shape);
  return [=] { Convert(view, out); };
}
ACLNN_OP(Flip, (Tensor self, Ints dims, Out out), "ops-nn/index/reverse_v2") {
  Moves(self, out);
  SameShape(self, out);
  Tensor view = self;
  for (const int64_t dim : dims) {
    const int64_t axis = Axis(dim, self.rank());
    if (self.rank() == 0 || self.numel() == 0) continue;
    view.data += (view.shape[axis] - 1) * view.stride[axis] * static_cast<int64_t>(SizeOf(view.type));
    view.stride[axis] = -view.stride[axis];
  }
  return [=] { Convert(view, out); };
}

// ---- constants
ACLNN_OP(InplaceFillScalar, (Out selfRef, Scalar value), kFill) {
  return [=] { Fill(selfRef, value); };
}
ACLNN_OP(InplaceFillTensor, (Out selfRef, Tensor value), kFill) {
  Require(value.numel() == 1, "value is a single number");
  Tensor one = value;
  one.shape.clear();
  one.stride.clear();
  return [=] { Convert(one, selfRef); };
}
ACLNN_OP(InplaceOne, (Out selfRef), "ops-math/math/ones_like") {
  Takes(selfRef, kAll | U16 | U32 | U64);
  return Constant(selfRef, 1);
}
ACLNN_OP(InplaceZero, (Out selfRef), "ops-math/math/zero_op") {
  Takes(selfRef, kBytes);
  return [=] {
    float number = 0;
    Tensor zero = selfRef;  // one number without axes
    zero.type = kFloat32;
    zero.shape.clear();
    zero.stride.clear();
    zero.data = reinterpret_cast<char *>(&number);
    Convert(zero, selfRef);
  };
}
ACLNN_OP(Eye, (int64_t n, int64_t m, Out out), "ops-math/math/eye") {
  Takes(out, kHalves | kInts | B);
  HasShape(out, {n, m});
  return [=] {
    std::vector<int64_t> y(static_cast<size_t>(n * m));
    for (int64_t i = 0; i < std::min(n, m); ++i) y[i * m + i] = 1;
    Write(out, y);
  };
}
ACLNN_OP(Arange, (Scalar start, Scalar end, Scalar step, Out out), "ops-math/math/range") {
  Takes(out, kFloats | kIndices);
  Require(step.real != 0, "step is not zero");
  Require((end.real - start.real) * step.real >= 0, "the sign of step leads from start to end");
  return [=] {
    Computed(start.floating() || step.floating(), [&](auto zero) {
      using C = decltype(zero);
      std::vector<C> y(static_cast<size_t>(out.numel()));
      for (size_t i = 0; i < y.size(); ++i) y[i] = As<C>(start) + static_cast<C>(i) * As<C>(step);
      Write(out, y);
    });
  };
}
ACLNN_OP(Linspace, (Scalar start, Scalar end, int64_t steps, Out out), "ops-math/math/lin_space") {
  Takes(out, kReals);
  Require(steps >= 0, "steps is not negative");
  HasShape(out, {steps});
  return [=] {
    std::vector<double> y(static_cast<size_t>(steps));
    const double step = steps > 1 ? (end.real - start.real) / static_cast<double>(steps - 1) : 0;
    for (int64_t i = 0; i < steps; ++i) {  // from both ends, so that the last number is `end`
      y[i] = i < steps / 2 || steps == 1 ? start.real + static_cast<double>(i) * step
                                         : end.real - static_cast<double>(steps - 1 - i) * step;
    }
    Write(out, y);
  };
}

// ---- choosing
ACLNN_OP(SWhere, (Tensor condition, Tensor self, Tensor other, Out out), "ops-math/math/select") {
  Takes(condition, B | U8);
  SameType(self, other);
  SameType(self, out);
  FitsBroadcast({condition, self, other}, out);
  return [=] {
    const auto mask = Wholes(condition, out.shape);
    Computed(out.floating(), [&](auto zero) {
      auto x = Read<decltype(zero)>(self, out.shape);
      const auto y = Read<decltype(zero)>(other, out.shape);
      for (size_t i = 0; i < x.size(); ++i) {
        if (mask[i] == 0) x[i] = y[i];
      }
      Write(out, x);
    });
  };
}
namespace {
Task FillMasked(const Tensor &self, const Tensor &mask, std::function<Scalar()> value) {
  Takes(self, kFloats | kIndices | B | I8 | U8 | I16);
  Takes(mask, B);
  FitsBroadcast({self, mask}, self);
  return [=] {
    const auto chosen = Wholes(mask, self.shape);
    const Scalar number = value();
    Computed(self.floating(), [&](auto zero) {
      auto x = Read<decltype(zero)>(self);
      for (size_t i = 0; i < x.size(); ++i) {
        if (chosen[i] != 0) x[i] = As<decltype(zero)>(number);
      }
      Write(self, x);
    });
  };
}
Task MaskTriangle(const Tensor &self, int64_t diagonal, const Tensor &out, bool lower) {
  Takes(self, kAll | U16 | U32 | U64);
  Require(self.rank() >= 2, "at least two axes");
  SameType(self, out);
  SameShape(self, out);
  return [=] {
    Computed(self.floating(), [&](auto zero) {
      auto x = Read<decltype(zero)>(self);
      const int64_t rows = self.shape[self.rank() - 2], columns = self.shape[self.rank() - 1];
      for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
        const int64_t row = i / columns % rows, column = i % columns;
        if (lower ? column > row + diagonal : column < row + diagonal) x[i] = 0;
      }
      Write(out, x);
    });
  };
}
}  // namespace
ACLNN_OP(InplaceMaskedFillScalar, (Out selfRef, Tensor mask, Scalar value), kMask) {
  return FillMasked(selfRef, mask, [value = static_cast<Scalar>(value)] { return value; });
}
ACLNN_OP(InplaceMaskedFillTensor, (Out selfRef, Tensor mask, Tensor value), kMask) {
  Require(value.numel() == 1, "value is a single number");
  return FillMasked(selfRef, mask, [value] {
    Scalar number;
    ReadNumber(value.data, value.type, &number.real, &number.whole);
    return number;
  });
}
ACLNN_OP(Tril, (Tensor self, int64_t diagonal, Out out), "ops-math/conversion/tril") {
  return MaskTriangle(self, diagonal, out, true);
}
ACLNN_OP(InplaceTril, (Out self, int64_t diagonal), "ops-math/conversion/tril") {
  return MaskTriangle(self, diagonal, self, true);
}
ACLNN_OP(Triu, (Tensor self, int64_t diagonal, Out out), "ops-math/conversion/triu") {
  return MaskTriangle(self, diagonal, out, false);
}
ACLNN_OP(InplaceTriu, (Out self, int64_t diagonal), "ops-math/conversion/triu") {
  return MaskTriangle(self, diagonal, self, false);
}

// ---- joining and splitting
ACLNN_OP(Cat, (Tensors tensors, int64_t dim, Out out), "ops-math/conversion/concat_d") {
  Require(!tensors.empty(), "at least one tensor");
  const int64_t axis = Axis(dim, out.rank());
  Takes(out, kBytes);
  Shape whole = out.shape;
  whole[axis] = 0;
  for (const Tensor &one : tensors) {
    Takes(one, kBytes);
    if (one.rank() == 1 && one.shape[0] == 0) continue;  // an empty tensor of one axis fits anywhere
    Require(one.rank() == out.rank(), "all tensors have as many axes");
    whole[axis] += one.shape[axis];
    Shape same = one.shape;
    same[axis] = out.shape[axis];
    if (same != out.shape) Refuse("the shape %s does not fit %s", Print(one.shape).c_str(), Print(out.shape).c_str());
  }
  HasShape(out, whole);
  return [=] {
    int64_t at = 0;
    for (const Tensor &one : tensors) {
      if (one.rank() != out.rank() || one.numel() == 0) continue;
      Convert(one, Part(out, axis, at, one.shape[axis]));
      at += one.shape[axis];
    }
  };
}
ACLNN_OP(Stack, (Tensors tensors, int64_t dim, Out out), "ops-math/conversion/pack") {
  Require(!tensors.empty(), "at least one tensor");
  const int64_t axis = Axis(dim, out.rank());
  Shape whole = tensors[0].shape;
  whole.insert(whole.begin() + axis, static_cast<int64_t>(tensors.size()));
  HasShape(out, whole);
  Takes(out, kBytes);
  for (const Tensor &one : tensors) {
    Takes(one, kBytes);
    HasShape(one, tensors[0].shape);
  }
  return [=] {
    for (size_t i = 0; i < tensors.size(); ++i) {
      Tensor part = Part(out, axis, static_cast<int64_t>(i), 1);
      part.shape.erase(part.shape.begin() + axis);
      part.stride.erase(part.stride.begin() + axis);
      Convert(tensors[i], part);
    }
  };
}
namespace {
Task SplitInto(const Tensor &self, int64_t dim, const std::vector<Tensor> &out) {
  const int64_t axis = Axis(dim, self.rank());
  int64_t total = 0;
  for (const Tensor &one : out) {
    Moves(self, one);
    total += one.shape.at(axis);
  }
  Require(total == self.shape[axis], "the parts add up to the whole axis");
  return [=] {
    int64_t at = 0;
    for (const Tensor &one : out) {
      Convert(Part(self, axis, at, one.shape[axis]), one);
      at += one.shape[axis];
    }
  };
}
}  // namespace
ACLNN_OP(SplitWithSize, (Tensor self, Ints splitSize, int64_t dim, Tensors out), "ops-math/conversion/split_v") {
  Require(splitSize.size() == out.size(), "one result for each size");
  return SplitInto(self, dim, out);
}
ACLNN_OP(SplitTensor, (Tensor self, uint64_t splitSections, int64_t dim, Tensors out), "ops-math/conversion/split_v") {
  Require(splitSections > 0, "splitSections is positive");
  return SplitInto(self, dim, out);
}

// ---- repeating and moving
ACLNN_OP(Repeat, (Tensor self, Ints repeats, Out out), "ops-math/math/tile") {
  Require(static_cast<int64_t>(repeats.size()) >= self.rank(), "as many repeats as axes, or more");
  Shape from(repeats.size() - self.shape.size(), 1);
  from.insert(from.end(), self.shape.begin(), self.shape.end());
  Shape whole = from;
  for (size_t i = 0; i < whole.size(); ++i) whole[i] *= repeats[i];
  HasShape(out, whole);
  const Shape step = RowMajor(from);
  return Rearranged(self, out, [=](int64_t i) {
    int64_t at = 0;
    for (size_t axis = whole.size(); axis-- > 0;) {
      at += i % whole[axis] % from[axis] * step[axis];
      i /= whole[axis];
    }
    return at;
  });
}
ACLNN_OP(Roll, (Tensor x, Ints shifts, Ints dims, Out out), "ops-math/conversion/roll") {
  SameShape(x, out);
  Shape shape = x.shape, shift(x.shape.size(), 0);
  if (dims.empty()) {  // the flattened tensor is rolled
    Require(shifts.size() == 1, "one shift where no axis is given");
    shape = {x.numel()};
    shift = {shifts[0]};
  } else {
    Require(shifts.size() == dims.size(), "one shift for each axis");
    for (size_t i = 0; i < dims.size(); ++i) shift[Axis(dims[i], x.rank())] += shifts[i];
  }
  const Shape step = RowMajor(shape);
  return Rearranged(x, out, [=](int64_t i) {
    int64_t at = 0;
    for (size_t axis = shape.size(); axis-- > 0;) {
      const int64_t size = shape[axis], here = i % size;
      at += ((here - shift[axis]) % size + size) % size * step[axis];
      i /= size;
    }
    return at;
  });
}
namespace {
// `times` says how often each row of an axis is repeated; an axis of -1 means the flattened tensor.
Task RepeatRows(const Tensor &self, std::function<std::vector<int64_t>(int64_t)> times, int64_t axis,
                int64_t output_size, const Tensor &out) {
  Tensor from = self;
  SameType(self, out);
  Shape whole = {output_size};
  if (axis >= 0 && self.rank() > 0) {
    whole = self.shape;
    whole[axis] = output_size;
  }
  HasShape(out, whole);
  return [=] {
    const Around around(from.shape, axis);
    const int64_t rows = axis < 0 ? from.numel() : around.along, outer = axis < 0 ? 1 : around.outer;
    const int64_t inner = axis < 0 ? 1 : around.inner;
    const auto repeats = times(rows);
    const int64_t total = std::accumulate(repeats.begin(), repeats.end(), int64_t(0));
    if (output_size != total) OutOfRange("the sum of the repeats", total, output_size);
    Computed(from.floating(), [&](auto zero) {
      const auto x = Read<decltype(zero)>(from);
      std::vector<decltype(zero)> y;
      y.reserve(static_cast<size_t>(out.numel()));
      for (int64_t o = 0; o < outer; ++o) {
        for (int64_t r = 0; r < rows; ++r) {
          const auto begin = x.begin() + (o * rows + r) * inner;
          for (int64_t k = 0; k < repeats[r]; ++k) y.insert(y.end(), begin, begin + inner);
        }
      }
      Write(out, y);
    });
  };
}
std::function<std::vector<int64_t>(int64_t)> Each(const Tensor &repeats, int64_t rows) {
  Takes(repeats, kIndices);
  Require(repeats.numel() == 1 || repeats.numel() == rows, "one number of repeats for all rows, or one for each");
  return [repeats](int64_t rows) {
    auto given = Wholes(repeats);
    if (given.size() == 1) given.assign(static_cast<size_t>(rows), given[0]);
    return given;
  };
}
std::function<std::vector<int64_t>(int64_t)> Always(int64_t repeats) {
  Require(repeats >= 0, "repeats is not negative");
  return [repeats](int64_t rows) { return std::vector<int64_t>(static_cast<size_t>(rows), repeats); };
}
constexpr const char *kInterleave = "ops-nn/index/repeat_interleave";
}  // namespace
ACLNN_OP(RepeatInterleave, (Tensor self, Tensor repeats, int64_t outputSize, Out out), kInterleave) {
  return RepeatRows(self, Each(repeats, self.numel()), -1, outputSize, out);
}
ACLNN_OP(RepeatInterleaveWithDim, (Tensor self, Tensor repeats, int64_t dim, int64_t outputSize, Out out),
         kInterleave) {
  const int64_t axis = Axis(dim, self.rank());
  return RepeatRows(self, Each(repeats, self.rank() > 0 ? self.shape[axis] : 1), axis, outputSize, out);
}
ACLNN_OP(RepeatInterleaveInt, (Tensor self, int64_t repeats, int64_t outputSize, Out out), kInterleave) {
  return RepeatRows(self, Always(repeats), -1, outputSize, out);
}
ACLNN_OP(RepeatInterleaveIntWithDim, (Tensor self, int64_t repeats, int64_t dim, int64_t outputSize, Out out),
         kInterleave) {
  return RepeatRows(self, Always(repeats), Axis(dim, self.rank()), outputSize, out);
}
ACLNN_OP(ConstantPadNd, (Tensor self, Ints pad, Scalar value, Out out), "ops-math/conversion/pad_v3") {
  SameType(self, out);
  Require(pad.size() % 2 == 0 && static_cast<int64_t>(pad.size()) <= 2 * self.rank(), "two numbers for each axis");
  Tensor from = self, to = out;
  for (size_t i = 0; i < pad.size() / 2; ++i) {  // from the last axis on; negative numbers cut off
    const int64_t axis = self.rank() - 1 - static_cast<int64_t>(i), before = pad[2 * i], after = pad[2 * i + 1];
    const int64_t kept = self.shape[axis] + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0);
    Require(kept >= 0, "more is cut off than there is");
    from = Part(from, axis, std::max<int64_t>(-before, 0), kept);
    to = Part(to, axis, std::max<int64_t>(before, 0), kept);
  }
  HasShape(to, from.shape);
  return [=] {
    Fill(out, value);
    Convert(from, to);
  };
}
ACLNN_OP(OneHot, (Tensor self, int numClasses, Tensor onValue, Tensor offValue, int64_t axis, Out out),
         "ops-math/math/one_hot") {
  Takes(self, kIndices | U8);
  SameType(onValue, offValue);
  const int64_t at = axis < 0 ? self.rank() : axis;
  Shape whole = self.shape;
  whole.insert(whole.begin() + std::min<int64_t>(at, self.rank()), numClasses);
  HasShape(out, whole);
  return [=] {
    const auto index = Wholes(self);
    const double on = Reals(onValue)[0], off = Reals(offValue)[0];
    const Around around(out.shape, at);
    std::vector<double> y(static_cast<size_t>(out.numel()), off);
    for (int64_t o = 0; o < around.outer; ++o) {
      for (int64_t i = 0; i < around.inner; ++i) {
        const int64_t k = index[o * around.inner + i];  // an index out of range marks nothing
        if (k >= 0 && k < numClasses) y[(o * numClasses + k) * around.inner + i] = on;
      }
    }
    Write(out, y);
  };
}
ACLNN_OP(Polar, (Tensor input, Tensor angle, Out out), "ops-math/math/polar") {
  Takes(input, F32);
  Takes(angle, F32);
  Takes(out, C64);
  FitsBroadcast({input, angle}, out);
  return [=] {
    const auto r = Reals(input, out.shape), phi = Reals(angle, out.shape);
    std::vector<double> real(r), imaginary(r);
    for (size_t i = 0; i < r.size(); ++i) {
      real[i] = r[i] * std::cos(phi[i]);
      imaginary[i] = r[i] * std::sin(phi[i]);
    }
    Tensor part = out;  // the real parts as a view of float32 with steps of two
    part.type = kFloat32;
    for (auto &step : part.stride) step *= 2;
    Write(part, real);
    part.data += sizeof(float);
    Write(part, imaginary);
  };
}

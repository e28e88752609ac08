// Gathering and scattering by indices. An index out of range ends the task with an exception of a core, as a kernel
// that reads outside of its tensor does.
#include <cmath>
#include <optional>

#include "values.h"

using namespace sim;

namespace {
constexpr Types kMoved = kAll | U16 | U32 | U64;  // what is moved and not computed with
constexpr Types kCopied = kMoved | C64 | C128;    // by operators that copy the bytes

int64_t Checked(int64_t index, int64_t end) {
  if (index < -end || index >= end) OutOfRange("the index", index, end);
  return index < 0 ? index + end : index;
}
// Visits the elements that an index tensor names along an axis: f(place in the index, place in a tensor of `shape`).
template <class F>
void AlongIndex(const Tensor &index, const Shape &shape, int64_t axis, F f) {
  Shape step = RowMajor(shape), where = index.shape;
  const auto at = Wholes(index);
  if (where.empty()) where = {1};
  if (step.empty()) step = {1};
  const int64_t along = step[axis], end = shape.empty() ? 1 : shape[axis];
  step[axis] = 0;
  int64_t place = 0;
  Rows(where, step, [&](int64_t count, int64_t base, int64_t by) {
    for (int64_t i = 0; i < count; ++i, ++place) f(place, base + i * by + Checked(at[place], end) * along);
  });
}
void CheckAlong(const Tensor &self, const Tensor &index) {
  Takes(index, kIndices);
  Require(std::max<int64_t>(self.rank(), 1) == std::max<int64_t>(index.rank(), 1), "self and index have as many axes");
}
constexpr const char *kScatterPage = "ops-nn/index/scatter_elements_v2";
}  // namespace

// ---- gathering
ACLNN_OP(IndexSelect, (Tensor self, int64_t dim, Tensor index, Out out), "ops-nn/index/gather_v2") {
  for (const Tensor &one : {Tensor(self), Tensor(out)}) Takes(one, kCopied);
  Takes(index, kIndices);
  HasRank(index, 0, 1);
  SameType(self, out);
  const int64_t axis = Axis(dim, self.rank());
  Shape shape = self.shape;
  if (!shape.empty()) shape[axis] = index.numel();
  HasShape(out, shape);
  return [=] {
    const auto at = Wholes(index);
    if (self.rank() == 0) return Convert(self, out);
    for (size_t i = 0; i < at.size(); ++i) {
      Convert(Part(self, axis, Checked(at[i], self.shape[axis]), 1), Part(out, axis, static_cast<int64_t>(i), 1));
    }
  };
}
ACLNN_OP(Gather, (Tensor self, int64_t dim, Tensor index, Out out), "ops-nn/index/gather_elements_v2") {
  Takes(self, kMoved);
  CheckAlong(self, index);
  SameType(self, out);
  SameShape(index, out);
  const int64_t axis = Axis(dim, self.rank());
  return [=] {
    Computed(self.floating(), [&](auto zero) {
      const auto x = Read<decltype(zero)>(self);
      std::vector<decltype(zero)> r(static_cast<size_t>(index.numel()));
      AlongIndex(index, self.shape, axis, [&](int64_t i, int64_t j) { r[i] = x[j]; });
      Write(out, r);
    });
  };
}
ACLNN_OP(Take, (Tensor self, Tensor index, Out out), "ops-nn/index/gather_v2") {
  Takes(index, kIndices);
  SameShape(index, out);
  SameType(self, out);
  return [=] {
    Computed(self.floating(), [&](auto zero) {
      const auto x = Read<decltype(zero)>(self);
      std::vector<decltype(zero)> r;
      for (const int64_t i : Wholes(index)) r.push_back(x[Checked(i, self.numel())]);
      Write(out, r);
    });
  };
}
ACLNN_OP(Embedding, (Tensor weight, Tensor indices, Out out), "ops-nn/index/embedding") {
  Takes(indices, kIndices);
  HasRank(weight, 2, 2);
  SameType(weight, out);
  Shape shape = indices.shape;
  shape.push_back(weight.shape[1]);
  HasShape(out, shape);
  return [=] {
    Computed(weight.floating(), [&](auto zero) {
      const auto x = Read<decltype(zero)>(weight);
      const int64_t n = weight.shape[1];
      std::vector<decltype(zero)> r;
      r.reserve(static_cast<size_t>(out.numel()));
      for (const int64_t i : Wholes(indices)) {
        const auto row = x.begin() + Checked(i, weight.shape[0]) * n;
        r.insert(r.end(), row, row + n);
      }
      Write(out, r);
    });
  };
}
ACLNN_OP(EmbeddingDenseBackward,
         (Tensor grad, Tensor indices, uint64_t numWeights, uint64_t paddingIdx, bool scaleGradByFreq, Out out),
         "ops-nn/index/embedding_dense_grad") {
  Takes(grad, kHalves);
  Takes(indices, kHalves | kInts | B);
  HasRank(out, 2, 2);
  Require(out.shape[0] == static_cast<int64_t>(numWeights), "out has numWeights rows");
  return [=] {
    const auto at = Wholes(indices);
    const auto d = Reals(grad);
    const int64_t n = out.shape[1], rows = out.shape[0];
    std::vector<double> r(static_cast<size_t>(rows * n)), times(static_cast<size_t>(rows));
    for (const int64_t i : at) ++times[Checked(i, rows)];
    for (size_t i = 0; i < at.size(); ++i) {
      if (static_cast<uint64_t>(at[i]) == paddingIdx) continue;
      const double scale = scaleGradByFreq ? 1 / times[at[i]] : 1;
      for (int64_t k = 0; k < n; ++k) r[at[i] * n + k] += d[i * n + k] * scale;
    }
    Write(out, r);
  };
}
ACLNN_OP(EmbeddingRenorm, (Out selfRef, Tensor indices, double maxNorm, double normType), "ops-nn/norm/renorm") {
  Takes(selfRef, kHalves);
  Takes(indices, kIndices);
  HasRank(selfRef, 2, 2);
  return [=] {
    auto x = Reals(selfRef);
    const int64_t n = selfRef.shape[1];
    std::vector<bool> done(static_cast<size_t>(selfRef.shape[0]));
    for (const int64_t i : Wholes(indices)) {
      const int64_t row = Checked(i, selfRef.shape[0]);
      if (done[row]) continue;
      done[row] = true;
      double norm = 0;
      for (int64_t k = 0; k < n; ++k) {
        const double v = std::abs(x[row * n + k]);
        norm = std::isinf(normType) ? std::max(norm, v) : norm + std::pow(v, normType);
      }
      if (!std::isinf(normType)) norm = std::pow(norm, 1 / normType);
      if (norm <= maxNorm) continue;
      for (int64_t k = 0; k < n; ++k) x[row * n + k] *= maxNorm / (norm + 1e-7);
    }
    Write(selfRef, x);
  };
}

// ---- scattering
namespace {
enum ScatterReduce { kReplace = 0, kAdd = 1, kMultiply = 2 };

// Writes the elements of a source to where an index names them. The source may be larger than the index.
Task ScatterInto(const Tensor &self, int64_t dim, const Tensor &index, Tensor source, int64_t reduce,
                 const Tensor &out) {
  Takes(self, kMoved);
  CheckAlong(self, index);
  SameType(self, source);
  SameShape(self, out);
  Require(reduce >= 0 && reduce <= 2, "reduce is 0, 1 or 2");
  const int64_t axis = Axis(dim, self.rank());
  for (int64_t i = 0; i < source.rank() && i < index.rank(); ++i) {
    Require(source.shape[i] >= index.shape[i], "the index is not larger than the source");
  }
  if (source.rank() == index.rank()) source.shape = index.shape;
  return [=] {
    Computed(self.floating(), [&](auto zero) {
      auto x = Read<decltype(zero)>(self);
      const auto v = Read<decltype(zero)>(source, index.shape);
      AlongIndex(index, self.shape, axis, [&](int64_t i, int64_t j) {
        x[j] = reduce == kAdd ? x[j] + v[i] : reduce == kMultiply ? x[j] * v[i] : v[i];
      });
      Write(out, x);
    });
  };
}
Task ScatterNumber(const Tensor &self, int64_t dim, const Tensor &index, const Scalar &value, int64_t reduce,
                   const Tensor &out) {
  CheckAlong(self, index);
  SameShape(self, out);
  Require(reduce >= 0 && reduce <= 2, "reduce is 0, 1 or 2");
  const int64_t axis = Axis(dim, self.rank());
  return [=] {
    Computed(self.floating(), [&](auto zero) {
      auto x = Read<decltype(zero)>(self);
      const auto v = As<decltype(zero)>(value);
      AlongIndex(index, self.shape, axis, [&](int64_t, int64_t j) {
        x[j] = reduce == kAdd ? x[j] + v : reduce == kMultiply ? x[j] * v : v;
      });
      Write(out, x);
    });
  };
}
}  // namespace
ACLNN_OP(Scatter, (Tensor self, int64_t dim, Tensor index, Tensor src, int64_t reduce, Out out), kScatterPage) {
  return ScatterInto(self, dim, index, src, reduce, out);
}
ACLNN_OP(InplaceScatter, (Out selfRef, int64_t dim, Tensor index, Tensor src, int64_t reduce), kScatterPage) {
  return ScatterInto(selfRef, dim, index, src, reduce, selfRef);
}
ACLNN_OP(ScatterValue, (Tensor self, int64_t dim, Tensor index, Scalar value, int64_t reduce, Out out), kScatterPage) {
  return ScatterNumber(self, dim, index, value, reduce, out);
}
ACLNN_OP(InplaceScatterValue, (Out selfRef, int64_t dim, Tensor index, Scalar value, int64_t reduce), kScatterPage) {
  return ScatterNumber(selfRef, dim, index, value, reduce, selfRef);
}
ACLNN_OP(ScatterAdd, (Tensor self, int64_t dim, Tensor index, Tensor src, Out out), "ops-nn/index/scatter_add") {
  return ScatterInto(self, dim, index, src, kAdd, out);
}

// ---- whole rows of an axis
namespace {
Task IndexRows(const Tensor &self, int64_t dim, const Tensor &index, const Tensor &out,
               std::function<void(const Tensor &row, int64_t place)> change) {
  Takes(index, kIndices);
  HasRank(index, 0, 1);
  SameShape(self, out);
  SameType(self, out);
  const int64_t axis = Axis(dim, self.rank());
  return [=] {
    if (self.data != out.data) Convert(self, out);
    const auto at = Wholes(index);
    Tensor whole = out;
    if (whole.rank() == 0) {
      whole.shape = {1};
      whole.stride = {1};
    }
    for (size_t i = 0; i < at.size(); ++i) {
      change(Part(whole, axis, Checked(at[i], whole.shape[axis]), 1), static_cast<int64_t>(i));
    }
  };
}
}  // namespace
ACLNN_OP(IndexAdd, (Tensor self, int64_t dim, Tensor index, Tensor source, Scalar alpha, Out out),
         "ops-nn/index/inplace_scatter_add") {
  Takes(self, kAll);
  SameType(self, source);
  const int64_t axis = Axis(dim, self.rank());
  return IndexRows(self, dim, index, out, [=](const Tensor &row, int64_t place) {
    Computed(row.floating(), [&](auto zero) {
      auto x = Read<decltype(zero)>(row);
      const auto v = source.rank() == 0 ? Read<decltype(zero)>(source, row.shape)
                                        : Read<decltype(zero)>(Part(source, axis, place, 1), row.shape);
      for (size_t i = 0; i < x.size(); ++i) x[i] += As<decltype(zero)>(alpha) * v[i];
      Write(row, x);
    });
  });
}
ACLNN_OP(InplaceIndexCopy, (Out selfRef, int64_t dim, Tensor index, Tensor source), "ops-nn/index/index_copy") {
  for (const Tensor &one : {Tensor(selfRef), Tensor(source)}) Takes(one, kCopied);
  SameType(selfRef, source);
  const int64_t axis = Axis(dim, selfRef.rank());
  return IndexRows(selfRef, dim, index, selfRef, [=](const Tensor &row, int64_t place) {
    Convert(source.rank() == 0 ? Tensor(source) : Part(source, axis, place, 1), row);
  });
}
namespace {
Task IndexFillInto(const Tensor &self, int64_t dim, const std::vector<int64_t> &index, const Scalar &value,
                   const Tensor &out) {
  Takes(self, kAll);
  const int64_t axis = Axis(dim, self.rank());
  for (const int64_t i : index) {
    const int64_t end = self.rank() > 0 ? self.shape[axis] : 1;
    if (i < -end || i >= end) Refuse("the index %lld is out of range, the end is %lld", (long long)i, (long long)end);
  }
  return [=] {
    if (self.data != out.data) Convert(self, out);
    for (const int64_t i : index) {
      Fill(out.rank() == 0 ? out : Part(out, axis, Checked(i, out.shape[axis]), 1), value);
    }
  };
}
}  // namespace
ACLNN_OP(IndexFillTensor, (Tensor self, int64_t dim, Ints index, Scalar value, Out out), "ops-nn/index/index_fill_d") {
  SameShape(self, out);
  return IndexFillInto(self, dim, index, value, out);
}
ACLNN_OP(InplaceIndexFillTensor, (Out selfRef, int64_t dim, Ints index, Scalar value), "ops-nn/index/index_fill_d") {
  return IndexFillInto(selfRef, dim, index, value, selfRef);
}
ACLNN_OP(InplaceScatterUpdate, (Out data, Tensor indices, Tensor updates, int64_t axis), "ops-nn/index/scatter") {
  Takes(indices, kIndices);
  HasRank(data, 4, 4);  // the cache of keys or values: batch, heads, sequence, size
  HasRank(updates, 4, 4);
  const int64_t along = Axis(axis, data.rank());
  return [=] {
    const auto at = Wholes(indices);
    for (int64_t i = 0; i < updates.shape[0]; ++i) {
      const Tensor row = Part(data, 0, indices.rank() == 1 ? i : Checked(at[2 * i], data.shape[0]), 1);
      const int64_t from = indices.rank() == 1 ? at[i] : at[2 * i + 1], size = updates.shape[along];
      if (from < 0 || from + size > data.shape[along]) OutOfRange("the index", from, data.shape[along]);
      Convert(Part(updates, 0, i, 1), Part(row, along, from, size));
    }
  };
}

// ---- lists of index tensors, as in self[i, :, j]
namespace {
// Whether an index is there: an empty tensor without memory stands for a whole axis.
bool IsGiven(const Tensor &index) { return index && !(index.numel() == 0 && index.data == nullptr); }

// One axis of the indexed tensor: taken whole, or at the places that an index names.
struct AxisIndex {
  bool given = false;
  Shape shape;
  std::vector<int64_t> at;
};
// The index of each axis. A mask of several axes stands for as many indices: the places where it is true.
std::vector<AxisIndex> AxesOf(const std::vector<Tensor> &indices) {
  std::vector<AxisIndex> axes;
  for (const Tensor &one : indices) {
    if (!IsGiven(one)) {
      axes.emplace_back();
    } else if (one.type != kBool) {
      axes.push_back({true, one.shape, Wholes(one)});
    } else {
      const auto mask = Wholes(one);
      const Shape step = RowMajor(one.shape);
      for (int64_t axis = 0; axis < one.rank(); ++axis) {
        AxisIndex index{true, {}, {}};
        for (int64_t i = 0; i < one.numel(); ++i) {
          if (mask[i] != 0) index.at.push_back(i / step[axis] % one.shape[axis]);
        }
        index.shape = {static_cast<int64_t>(index.at.size())};
        axes.push_back(index);
      }
    }
  }
  return axes;
}
// Row-major numbers of one shape, broadcast to another.
std::vector<int64_t> Spread(const AxisIndex &index, const Shape &shape) {
  Tensor view;
  view.shape = index.shape;
  view.stride = RowMajor(index.shape);
  std::vector<int64_t> all;
  Rows(shape, BroadcastStride(view, shape), [&](int64_t count, int64_t base, int64_t by) {
    for (int64_t i = 0; i < count; ++i) all.push_back(index.at[base + i * by]);
  });
  return all;
}
// The shape of self[indices]. The broadcast indices replace the axes that they belong to: in their place if these lie
// together, else in front.
struct Layout {
  Shape common, front, behind, front_step, behind_step;

  // `axes` has the shape of the index of each axis, if it has one.
  Layout(const Tensor &self, const std::vector<AxisIndex> &axes) {
    const Shape step = RowMajor(self.shape);
    int64_t first = -1, last = -1, used = 0;
    for (size_t i = 0; i < axes.size(); ++i) {
      if (!axes[i].given) continue;
      common = BroadcastShape(common, axes[i].shape);
      if (first < 0) first = static_cast<int64_t>(i);
      last = static_cast<int64_t>(i);
      ++used;
    }
    const bool together = last - first + 1 == used;
    for (int64_t i = 0; i < self.rank(); ++i) {
      if (i < static_cast<int64_t>(axes.size()) && axes[i].given) continue;
      const bool before = together && i < first;
      (before ? front : behind).push_back(self.shape[i]);
      (before ? front_step : behind_step).push_back(step[i]);
    }
  }
  Shape Whole() const {
    Shape shape;
    for (const Shape &part : {front, common, behind}) shape.insert(shape.end(), part.begin(), part.end());
    return shape;
  }
};
// Which elements a list of indices names.
struct Named {
  Shape shape;                   // of the result
  std::vector<int64_t> offsets;  // of its elements, in a row-major tensor

  Named(const Tensor &self, const std::vector<Tensor> &indices) {
    const auto axes = AxesOf(indices);
    const Shape step = RowMajor(self.shape);
    const Layout layout(self, axes);
    std::vector<int64_t> chosen(static_cast<size_t>(Count(layout.common)), 0);
    for (size_t i = 0; i < axes.size(); ++i) {
      if (!axes[i].given) continue;
      const auto at = Spread(axes[i], layout.common);
      for (size_t k = 0; k < at.size(); ++k) chosen[k] += Checked(at[k], self.shape[i]) * step[i];
    }
    shape = layout.Whole();
    const auto outer = Offsets(layout.front, layout.front_step), inner = Offsets(layout.behind, layout.behind_step);
    for (const int64_t a : outer) {
      for (const int64_t b : chosen) {
        for (const int64_t c : inner) offsets.push_back(a + b + c);
      }
    }
  }
  static std::vector<int64_t> Offsets(const Shape &shape, const Shape &step) {
    std::vector<int64_t> all;
    Rows(shape, step, [&](int64_t count, int64_t base, int64_t by) {
      for (int64_t i = 0; i < count; ++i) all.push_back(base + i * by);
    });
    return all;
  }
};
// Checks the indices, and returns the shape of the result; nothing if it depends on a mask.
std::optional<Shape> CheckNamed(const Tensor &self, const std::vector<Tensor> &indices) {
  std::vector<AxisIndex> axes;
  bool masked = false;
  for (const Tensor &one : indices) {
    Takes(one, kIndices | B);
    if (!one || one.type != kBool) {
      axes.push_back({IsGiven(one), one.shape, {}});
      continue;
    }
    masked = true;
    for (int64_t i = 0; i < one.rank(); ++i) {
      const size_t axis = axes.size();
      if (axis >= self.shape.size() || one.shape[i] != self.shape[axis]) {
        Refuse("the mask of shape %s does not fit the axes of %s from %zu on", Print(one.shape).c_str(),
               Print(self.shape).c_str(), axis - static_cast<size_t>(i));
      }
      axes.push_back({true, {}, {}});
    }
  }
  Require(static_cast<int64_t>(axes.size()) <= self.rank(), "not more indices than axes");
  if (masked) return std::nullopt;
  return Layout(self, axes).Whole();
}
}  // namespace
ACLNN_OP(Index, (Tensor self, Tensors indices, Out out), "ops-nn/index/index") {
  Takes(self, kMoved);
  if (const auto shape = CheckNamed(self, indices)) HasShape(out, *shape);
  SameType(self, out);
  return [=] {
    const Named named(self, indices);
    Computed(self.floating(), [&](auto zero) {
      const auto x = Read<decltype(zero)>(self);
      std::vector<decltype(zero)> r;
      r.reserve(named.offsets.size());
      for (const int64_t at : named.offsets) r.push_back(x[at]);
      Write(out, r);
    });
  };
}
ACLNN_OP(IndexPutImpl, (Out selfRef, Tensors indices, Tensor values, bool accumulate, bool unsafe),
         "ops-nn/index/index_put_v2") {
  Takes(selfRef, kMoved);
  if (const auto shape = CheckNamed(selfRef, indices)) {
    Shape given = values.shape;
    while (given.size() > shape->size() && given[0] == 1) given.erase(given.begin());
    if (BroadcastShape(given, *shape) != *shape) {
      Refuse("the values of shape %s do not fit %s", Print(values.shape).c_str(), Print(*shape).c_str());
    }
  }
  SameType(selfRef, values);
  (void)unsafe;
  return [=] {
    const Named named(selfRef, indices);
    Computed(selfRef.floating(), [&](auto zero) {
      auto x = Read<decltype(zero)>(selfRef);
      const auto v = Read<decltype(zero)>(values, named.shape);
      for (size_t i = 0; i < v.size(); ++i) {
        auto &place = x[named.offsets[i]];
        place = accumulate ? place + v[i] : v[i];
      }
      Write(selfRef, x);
    });
  };
}

// ---- by truth. The shapes of these results depend on the data: the caller reads them after the stream is done.
namespace {
void SetShape(const Tensor &out, Shape shape) {
  out.handle->shape = shape;
  out.handle->stride = RowMajor(shape);
}
}  // namespace
ACLNN_OP(MaskedSelect, (Tensor self, Tensor mask, Out out), "ops-math/conversion/masked_select_v3") {
  Takes(self, kAll);
  Takes(mask, B | U8);
  SameType(self, out);
  const Shape shape = BroadcastShape(self.shape, mask.shape);
  return [=] {
    const auto chosen = Wholes(mask, shape);
    Computed(self.floating(), [&](auto zero) {
      const auto x = Read<decltype(zero)>(self, shape);
      std::vector<decltype(zero)> r;
      for (size_t i = 0; i < x.size(); ++i) {
        if (chosen[i] != 0) r.push_back(x[i]);
      }
      Tensor part = out;
      part.shape = {static_cast<int64_t>(r.size())};
      part.stride = {1};
      Write(part, r);
      SetShape(out, part.shape);
    });
  };
}
namespace {
// The places of all elements that are not zero: a row for each, or a column for each.
Task NonzeroInto(const Tensor &self, const Tensor &out, bool columns) {
  Takes(self, kMoved);
  Takes(out, I64);
  return [=] {
    const auto x = Reals(self);
    std::vector<int64_t> where;
    for (size_t i = 0; i < x.size(); ++i) {
      if (x[i] != 0) where.push_back(static_cast<int64_t>(i));
    }
    const int64_t count = static_cast<int64_t>(where.size()), rank = self.rank();
    const Shape step = RowMajor(self.shape);
    std::vector<int64_t> found(static_cast<size_t>(count * rank));
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t axis = 0; axis < rank; ++axis) {
        found[columns ? axis * count + i : i * rank + axis] = where[i] / step[axis] % self.shape[axis];
      }
    }
    Tensor part = out;
    part.shape = columns ? Shape{rank, count} : Shape{count, rank};
    part.stride = RowMajor(part.shape);
    Write(part, found);
    SetShape(out, part.shape);
  };
}
}  // namespace
ACLNN_OP(Nonzero, (Tensor self, Out out), "ops-nn/index/non_zero") { return NonzeroInto(self, out, false); }
ACLNN_OP(NonzeroV2, (Tensor self, Out out), "ops-nn/index/non_zero") { return NonzeroInto(self, out, true); }
ACLNN_OP(InplaceMaskedScatter, (Out selfRef, Tensor mask, Tensor source), "ops-nn/index/masked_scatter") {
  Takes(selfRef, kAll);
  Takes(mask, B | U8);
  SameType(selfRef, source);
  FitsBroadcast({selfRef, mask}, selfRef);
  return [=] {
    const auto chosen = Wholes(mask, selfRef.shape);
    Computed(selfRef.floating(), [&](auto zero) {
      auto x = Read<decltype(zero)>(selfRef);
      const auto v = Read<decltype(zero)>(source);
      size_t next = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        if (chosen[i] == 0) continue;
        if (next == v.size()) OutOfRange("the number of chosen elements", int64_t(next) + 1, int64_t(v.size()));
        x[i] = v[next++];
      }
      Write(selfRef, x);
    });
  };
}

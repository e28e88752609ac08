// Sorting, selecting, counting, searching.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "values.h"

using namespace sim;

namespace {
void SetShape(const Tensor &out, Shape shape) {
  if (!out) return;
  out.handle->shape = shape;
  out.handle->stride = RowMajor(shape);
}
// Not-a-number comes last in ascending order and first in descending order.
template <class C>
bool Before(C a, C b, bool descending) {
  const bool a_nan = a != a, b_nan = b != b;
  if (a_nan || b_nan) return descending ? a_nan && !b_nan : !a_nan && b_nan;
  return descending ? a > b : a < b;
}
// For each row along an axis: f(the places in sorted order, a function that reads a place, where results begin).
template <class C, class F>
void EachSorted(const Tensor &self, int64_t axis, bool descending, F f) {
  const auto x = Read<C>(self);
  const Around around(self.shape, axis);
  std::vector<int64_t> order(static_cast<size_t>(around.along));
  for (int64_t o = 0; o < around.outer; ++o) {
    for (int64_t i = 0; i < around.inner; ++i) {
      auto at = [&](int64_t k) { return x[(o * around.along + k) * around.inner + i]; };
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t p, int64_t q) { return Before(at(p), at(q), descending); });
      f(order, at, o, i);
    }
  }
}
// The first `keep` of each sorted row.
Task SortInto(const Tensor &self, int64_t dim, bool descending, int64_t keep, const Tensor &value,
              const Tensor &index) {
  SameType(self, value);
  Takes(index, I64);
  const int64_t axis = Axis(dim, self.rank());
  Shape shape = self.shape;
  if (!shape.empty()) shape[axis] = keep;
  HasShape(value, shape);
  HasShape(index, shape);
  return [=] {
    Computed(self.floating(), [&](auto zero) {
      using C = decltype(zero);
      std::vector<C> values(static_cast<size_t>(value.numel()));
      std::vector<int64_t> places(values.size());
      const Around around(shape, axis);
      EachSorted<C>(self, axis, descending, [&](const auto &order, auto at, int64_t o, int64_t i) {
        for (int64_t k = 0; k < keep; ++k) {
          const int64_t to = (o * keep + k) * around.inner + i;
          places[to] = order[k];
          values[to] = at(order[k]);
        }
      });
      Write(value, values);
      Write(index, places);
    });
  };
}
// The element at a place of each sorted row. A median of a row with a not-a-number is not-a-number.
Task NthInto(const Tensor &self, int64_t dim, bool keep_dim, std::function<int64_t(int64_t)> nth, bool nan_wins,
             const Tensor &value, const Tensor &index) {
  SameType(self, value);
  Takes(self, kHalves | kInts);
  const int64_t axis = Axis(dim, self.rank());
  Shape shape = self.shape;
  if (!shape.empty()) {
    if (keep_dim) {
      shape[axis] = 1;
    } else {
      shape.erase(shape.begin() + axis);
    }
  }
  HasShape(value, shape);
  return [=] {
    Computed(self.floating(), [&](auto zero) {
      using C = decltype(zero);
      std::vector<C> values;
      std::vector<int64_t> places;
      EachSorted<C>(self, axis, false, [&](const auto &order, auto at, int64_t, int64_t) {
        const int64_t last = order.back();
        const int64_t place = nan_wins && at(last) != at(last)
                                  ? *std::find_if(order.begin(), order.end(), [&](int64_t k) { return at(k) != at(k); })
                                  : order[nth(static_cast<int64_t>(order.size()))];
        places.push_back(place);
        values.push_back(at(place));
      });
      Write(value, values);
      Write(index, places);
    });
  };
}
int64_t LowerMedian(int64_t count) { return (count - 1) / 2; }
constexpr const char *kGather = "ops-nn/index/gather_v2";
}  // namespace

ACLNN_OP(Sort, (Tensor self, bool stable, int64_t dim, bool descending, Out valuesOut, Out indicesOut),
         "ops-math/math/sort") {
  Takes(self, kHalves | kInts | B);
  (void)stable;  // it is always stable here
  const int64_t axis = Axis(dim, self.rank());
  return SortInto(self, dim, descending, self.rank() > 0 ? self.shape[axis] : 1, valuesOut, indicesOut);
}
ACLNN_OP(Argsort, (Tensor self, int64_t dim, bool descending, Out out), "ops-math/math/sort") {
  Takes(self, kHalves | kInts | B);
  const int64_t axis = Axis(dim, self.rank());
  return SortInto(self, dim, descending, self.rank() > 0 ? self.shape[axis] : 1, Maybe{}, out);
}
ACLNN_OP(Topk, (Tensor self, int64_t k, int64_t dim, bool largest, bool sorted, Out valuesOut, Out indicesOut),
         "ops-math/math/topk") {
  Takes(self, kReals);
  (void)sorted;  // it is always sorted here
  const int64_t axis = Axis(dim, self.rank()), size = self.rank() > 0 ? self.shape[axis] : 1;
  Require(k >= 0 && k <= size, "k is not larger than the axis");
  return SortInto(self, dim, largest, k, valuesOut, indicesOut);
}
ACLNN_OP(Kthvalue, (Tensor self, int64_t k, int64_t dim, bool keepdim, Out valuesOut, Out indicesOut), kGather) {
  const int64_t axis = Axis(dim, self.rank()), size = self.rank() > 0 ? self.shape[axis] : 1;
  Require(k >= 1 && k <= size, "k lies between 1 and the size of the axis");
  return NthInto(self, dim, keepdim, [k](int64_t) { return k - 1; }, false, valuesOut, indicesOut);
}
ACLNN_OP(MedianDim, (Tensor self, int64_t dim, bool keepDim, Out valuesOut, Out indicesOut), kGather) {
  return NthInto(self, dim, keepDim, LowerMedian, true, valuesOut, indicesOut);
}
ACLNN_OP(Median, (Tensor self, Out valuesOut), kGather) {
  SameType(self, valuesOut);
  Takes(self, kHalves | kInts);
  HasShape(valuesOut, {});
  Require(self.numel() > 0, "at least one element");
  return [=] {
    Computed(self.floating(), [&](auto zero) {
      auto x = Read<decltype(zero)>(self);
      std::stable_sort(x.begin(), x.end(), [](auto a, auto b) { return Before(a, b, false); });
      const bool nan = x.back() != x.back();
      Write(valuesOut, std::vector<decltype(zero)>{nan ? x.back() : x[LowerMedian(self.numel())]});
    });
  };
}

// ---- counting
ACLNN_OP(Bincount, (Tensor self, Maybe weights, int64_t minlength, Out out), "ops-math/math/bincount") {
  Takes(self, kInts);
  HasRank(self, 1, 1);
  SameShape(self, weights);
  return [=] {
    const auto at = Wholes(self);
    const auto weight = weights ? Reals(weights) : std::vector<double>(at.size(), 1);
    std::vector<double> r(static_cast<size_t>(out.numel()));
    for (size_t i = 0; i < at.size(); ++i) {
      if (at[i] < 0 || at[i] >= out.numel()) OutOfRange("the number", at[i], std::max(minlength, out.numel()));
      r[at[i]] += weight[i];
    }
    Write(out, r);
  };
}
ACLNN_OP(Histc, (Tensor self, int64_t bins, Scalar min, Scalar max, Out out), "ops-math/math/histogram_v2") {
  Takes(self, kInts | F16 | F32);
  Require(bins > 0, "bins is positive");
  Require(min.real <= max.real, "min is not above max");
  HasShape(out, {bins});
  return [=] {
    const auto x = Reals(self);
    double low = min.real, high = max.real;
    if (low == high && !x.empty()) {
      low = *std::min_element(x.begin(), x.end());
      high = *std::max_element(x.begin(), x.end());
    }
    if (low == high) {
      low -= 1;
      high += 1;
    }
    std::vector<double> r(static_cast<size_t>(bins));
    for (const double v : x) {
      if (!(v >= low && v <= high)) continue;
      ++r[std::min<int64_t>(bins - 1, static_cast<int64_t>((v - low) / (high - low) * static_cast<double>(bins)))];
    }
    Write(out, r);
  };
}
ACLNN_OP(SearchSorted, (Tensor sortedSequence, Tensor self, bool outInt32, bool right, Maybe sorter, Out out),
         "ops-math/math/search_sorted") {
  Takes(sortedSequence, kInts | F16 | F32 | F64);
  Takes(sorter, I64);
  Takes(out, outInt32 ? I32 : I64);
  SameShape(self, out);
  return [=] {
    const int64_t n = sortedSequence.shape.back();
    const bool shared = sortedSequence.rank() == 1;
    const int64_t each = shared ? self.numel() : self.shape.back();
    const auto v = Reals(self);
    auto edges = Reals(sortedSequence);
    if (sorter) {
      const auto order = Wholes(sorter);
      const auto unsorted = edges;
      for (size_t i = 0; i < edges.size(); ++i) edges[i] = unsorted[i / n * n + order[i]];
    }
    std::vector<int64_t> r(v.size());
    for (size_t i = 0; i < v.size(); ++i) {
      const auto begin = edges.begin() + (shared ? 0 : static_cast<int64_t>(i) / each * n), end = begin + n;
      r[i] = (right ? std::upper_bound(begin, end, v[i]) : std::lower_bound(begin, end, v[i])) - begin;
    }
    Write(out, r);
  };
}

// ---- unique elements. The shape of the result depends on the data.
namespace {
void WriteFirst(const Tensor &out, const std::vector<int64_t> &values, const Shape &shape) {
  if (!out) return;
  Tensor part = out;
  part.shape = shape;
  part.stride = RowMajor(shape);
  Write(part, values);
  SetShape(out, shape);
}
Task UniqueInto(const Tensor &self, bool consecutive, bool inverse, bool counts, const Tensor &value_out,
                const Tensor &inverse_out, const Tensor &counts_out) {
  Takes(self, kAll | U16 | U32 | U64);
  SameType(self, value_out);
  return [=] {
    Computed(self.floating(), [&](auto zero) {
      using C = decltype(zero);
      const auto x = Read<C>(self);
      std::vector<int64_t> order(x.size()), place(x.size()), times;
      std::iota(order.begin(), order.end(), 0);
      if (!consecutive) {
        std::stable_sort(order.begin(), order.end(), [&](int64_t p, int64_t q) { return Before(x[p], x[q], false); });
      }
      std::vector<C> values;
      for (const int64_t i : order) {
        if (values.empty() || !(values.back() == x[i])) {
          values.push_back(x[i]);
          times.push_back(0);
        }
        place[i] = static_cast<int64_t>(values.size()) - 1;
        ++times.back();
      }
      const Shape shape = {static_cast<int64_t>(values.size())};
      Tensor part = value_out;
      part.shape = shape;
      part.stride = {1};
      Write(part, values);
      SetShape(value_out, shape);
      if (inverse) WriteFirst(inverse_out, place, self.shape);
      if (counts) WriteFirst(counts_out, times, shape);
    });
  };
}
}  // namespace
ACLNN_OP(Unique2,
         (Tensor self, bool sorted, bool returnInverse, bool returnCounts, Out valueOut, MaybeOut inverseOut,
          MaybeOut countsOut),
         "ops-nn/index/unique_consecutive") {
  (void)sorted;  // it is always sorted here
  return UniqueInto(self, false, returnInverse || returnCounts, returnCounts, valueOut, inverseOut, countsOut);
}
namespace {
// Unique slices across an axis: in sorted order, or where a slice differs from the one before.
Task UniqueSlices(const Tensor &self, int64_t dim, bool consecutive, bool inverse, bool counts, const Tensor &value_out,
                  const Tensor &inverse_out, const Tensor &counts_out) {
  Takes(self, kAll | U16 | U32 | U64);
  SameType(self, value_out);
  HasRank(self, 1, 8);
  const int64_t axis = Axis(dim, self.rank());
  return [=] {
    Computed(self.floating(), [&](auto zero) {
      using C = decltype(zero);
      const auto x = Read<C>(self);
      const Around around(self.shape, axis);
      const int64_t each = around.outer * around.inner;
      auto at = [&](int64_t slice, int64_t k) {
        return x[(k / around.inner * around.along + slice) * around.inner + k % around.inner];
      };
      auto before = [&](int64_t p, int64_t q) {
        for (int64_t k = 0; k < each; ++k) {
          if (Before(at(p, k), at(q, k), false)) return true;
          if (Before(at(q, k), at(p, k), false)) return false;
        }
        return false;
      };
      auto differs = [&](int64_t p, int64_t q) {
        for (int64_t k = 0; k < each; ++k) {
          if (!(at(p, k) == at(q, k))) return true;
        }
        return false;
      };
      std::vector<int64_t> order(static_cast<size_t>(around.along)), place(order.size()), first, times;
      std::iota(order.begin(), order.end(), 0);
      if (!consecutive) std::stable_sort(order.begin(), order.end(), before);
      for (size_t i = 0; i < order.size(); ++i) {
        if (i == 0 || differs(order[i - 1], order[i])) {
          first.push_back(order[i]);
          times.push_back(0);
        }
        place[order[i]] = static_cast<int64_t>(first.size()) - 1;
        ++times.back();
      }
      const int64_t kept = static_cast<int64_t>(first.size());
      Tensor part = value_out;
      part.shape = self.shape;
      part.shape[axis] = kept;
      part.stride = RowMajor(part.shape);
      std::vector<C> values(static_cast<size_t>(part.numel()));
      for (int64_t r = 0; r < kept; ++r) {
        for (int64_t k = 0; k < each; ++k) {
          values[(k / around.inner * kept + r) * around.inner + k % around.inner] = at(first[r], k);
        }
      }
      Write(part, values);
      SetShape(value_out, part.shape);
      if (inverse) WriteFirst(inverse_out, place, {around.along});
      if (counts) WriteFirst(counts_out, times, {kept});
    });
  };
}
}  // namespace
ACLNN_OP(UniqueConsecutive,
         (Tensor self, bool returnInverse, bool returnCounts, int64_t dim, Out valueOut, MaybeOut inverseOut,
          MaybeOut countsOut),
         "ops-nn/index/unique_consecutive") {
  constexpr int64_t kFlattened = 1000;  // what the page names for "no axis"
  Takes(inverseOut, kIndices);
  SameType(inverseOut, countsOut);
  if (dim == kFlattened || self.rank() == 0) {
    return UniqueInto(self, true, returnInverse, returnCounts, valueOut, inverseOut, countsOut);
  }
  return UniqueSlices(self, dim, true, returnInverse, returnCounts, valueOut, inverseOut, countsOut);
}
ACLNN_OP(UniqueDim,
         (Tensor self, bool sorted, bool returnInverse, int64_t dim, Out valueOut, Out inverseOut, Out countsOut),
         "ops-nn/index/unique_with_counts_ext2") {
  (void)sorted;  // it is always sorted here
  Takes(inverseOut, I64);
  Takes(countsOut, I64);
  return UniqueSlices(self, dim, false, returnInverse, true, valueOut, inverseOut, countsOut);
}

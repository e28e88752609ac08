// Reductions over axes, scans, and the places of extremes.
#include <cmath>
#include <limits>

#include "values.h"

using namespace sim;

namespace {
// Which elements of a tensor fall together when axes are reduced.
struct Groups {
  Shape step;  // for each axis the step in the result, 0 along reduced axes
  int64_t results = 1, members = 1;
  Shape kept;  // the shape of the result without and with the reduced axes
  Shape whole;

  Groups(const Tensor &self, const std::vector<int64_t> &dims) : step(self.shape.size(), 0), whole(self.shape) {
    std::vector<bool> gone(self.shape.size(), dims.empty());
    for (const int64_t dim : dims) {
      const int64_t axis = Axis(dim, self.rank());
      if (self.rank() == 0) continue;
      if (gone[axis]) Refuse("the axis %lld is named twice", (long long)axis);
      gone[axis] = true;
    }
    for (int64_t i = self.rank(); i-- > 0;) {
      if (gone[i]) {
        members *= self.shape[i];
        whole[i] = 1;
      } else {
        step[i] = results;
        results *= self.shape[i];
        kept.insert(kept.begin(), self.shape[i]);
      }
    }
  }
  void Fits(const Tensor &out, bool keep) const { HasShape(out, keep ? whole : kept); }

  // f(index of the result, value) for all elements in row-major order.
  template <class C, class F>
  void Visit(const Tensor &self, F f) const {
    const auto x = Read<C>(self);
    const C *p = x.data();
    Rows(self.shape, step, [&](int64_t count, int64_t base, int64_t by) {
      for (int64_t i = 0; i < count; ++i) f(base + i * by, *p++);
    });
  }
};

// f(accumulator, value) for each element, then finish(accumulator).
template <class C, class F, class G>
Task Reduce(const Tensor &self, const std::vector<int64_t> &dims, bool keep, const Tensor &out, C start, F f,
            G finish) {
  const Groups groups(self, dims);
  groups.Fits(out, keep);
  return [=] {
    std::vector<C> r(static_cast<size_t>(groups.results), start);
    groups.Visit<C>(self, [&](int64_t i, C v) { r[i] = f(r[i], v); });
    for (auto &v : r) v = static_cast<C>(finish(v, groups.members));
    Write(out, r);
  };
}
constexpr auto kSame = [](auto v, int64_t) { return v; };

Task SumOver(const Tensor &self, const std::vector<int64_t> &dims, bool keep, const Tensor &out) {
  if (self.floating() || out.floating()) {
    return Reduce<double>(self, dims, keep, out, 0, [](double s, double v) { return s + v; }, kSame);
  }
  return Reduce<int64_t>(self, dims, keep, out, 0, [](int64_t s, int64_t v) { return s + v; }, kSame);
}
Task ProductOver(const Tensor &self, const std::vector<int64_t> &dims, bool keep, const Tensor &out) {
  if (self.floating() || out.floating()) {
    return Reduce<double>(self, dims, keep, out, 1, [](double s, double v) { return s * v; }, kSame);
  }
  return Reduce<int64_t>(self, dims, keep, out, 1, [](int64_t s, int64_t v) { return s * v; }, kSame);
}
template <bool kLargest>
Task Extreme(const Tensor &self, const std::vector<int64_t> &dims, bool keep, const Tensor &out) {
  Takes(self, kAll);
  SameType(self, out);
  if (Groups(self, dims).members == 0) Refuse("no element to choose from along the reduced axes");
  auto better = [](auto s, auto v) { return v != v || (s == s && (kLargest ? v > s : v < s)) ? v : s; };
  if (self.floating()) { return Reduce<double>(self, dims, keep, out, kLargest ? -INFINITY : INFINITY, better, kSame); }
  using Limits = std::numeric_limits<int64_t>;
  return Reduce<int64_t>(self, dims, keep, out, kLargest ? Limits::min() : Limits::max(), better, kSame);
}
Task VarianceOver(const Tensor &self, const std::vector<int64_t> &dims, double correction, bool keep,
                  const Tensor &variance, const Tensor &mean_out, bool root) {
  Takes(self, kHalves);
  const Groups groups(self, dims);
  groups.Fits(variance, keep);
  return [=] {
    std::vector<double> mean(static_cast<size_t>(groups.results)), square(mean);
    const double members = static_cast<double>(groups.members);
    groups.Visit<double>(self, [&](int64_t i, double v) { mean[i] += v / members; });
    groups.Visit<double>(self, [&](int64_t i, double v) { square[i] += (v - mean[i]) * (v - mean[i]); });
    for (auto &v : square) {
      v /= std::max(0.0, members - correction);
      if (root) v = std::sqrt(v);
    }
    Write(variance, square);
    Write(mean_out, mean);
  };
}
Task NormOver(const Tensor &self, double p, const std::vector<int64_t> &dims, bool keep, const Tensor &out) {
  Takes(self, kHalves);
  Takes(out, kHalves);
  auto add = [p](double s, double v) {
    v = std::fabs(v);
    if (p == INFINITY) return std::max(s, v);
    if (p == -INFINITY) return std::min(s, v);
    return p == 0 ? s + (v != 0) : p == 2 ? s + v * v : s + std::pow(v, p);
  };
  auto root = [p](double s, int64_t) {
    return std::isinf(p) || p == 0 ? s : p == 2 ? std::sqrt(s) : std::pow(s, 1 / p);
  };
  return Reduce<double>(self, dims, keep, out, p == -INFINITY ? INFINITY : 0, add, root);
}
constexpr const char *kMax = "ops-math/math/reduce_max", *kMin = "ops-math/math/reduce_min";
constexpr const char *kMean = "ops-math/math/reduce_mean", *kProd = "ops-math/math/reduce_prod";
constexpr const char *kStd = "ops-math/math/reduce_std_v2", *kVar = "ops-math/math/reduce_var";
}  // namespace

// ---- sums, means, products
ACLNN_OP(ReduceSum, (Tensor self, Ints dims, bool keepDims, int dtype, Out out), "ops-math/math/reduce_sum") {
  Takes(self, kAll);
  Require(dtype == out.type, "dtype is the type of out");
  return SumOver(self, dims, keepDims, out);
}
ACLNN_OP(ReduceNansum, (Tensor self, Ints dim, bool keepDim, int dtype, Out out), "ops-math/math/reduce_nansum") {
  Takes(self, kHalves | kInts | B);
  Require(dtype == out.type, "dtype is the type of out");
  return Reduce<double>(self, dim, keepDim, out, 0, [](double s, double v) { return v == v ? s + v : s; }, kSame);
}
namespace {
Task MeanOver(const Tensor &self, const std::vector<int64_t> &dims, bool keep, const Tensor &out) {
  Takes(self, kAll);
  if (!out.floating()) Refuse("'out' is %s, and a mean is floating", NameOf(out.type).c_str());
  return Reduce<double>(
      self, dims, keep, out, 0, [](double s, double v) { return s + v; },
      [](double s, int64_t n) { return s / static_cast<double>(n); });
}
}  // namespace
ACLNN_OP(Mean, (Tensor self, Ints dim, bool keepDim, int dtype, Out out), kMean) {
  Require(dtype == out.type, "dtype is the type of out");
  return MeanOver(self, dim, keepDim, out);
}
ACLNN_OP(MeanV2, (Tensor self, Ints dim, bool keepDim, bool noopWithEmptyAxes, Out out), kMean) {
  (void)noopWithEmptyAxes;
  return MeanOver(self, dim, keepDim, out);
}
ACLNN_OP(Prod, (Tensor self, int dtype, Out out), kProd) {
  Takes(self, kAll);
  Require(dtype == out.type, "dtype is the type of out");
  return ProductOver(self, {}, false, out);
}
ACLNN_OP(ProdDim, (Tensor self, int64_t dim, bool keepDim, int dtype, Out out), kProd) {
  Takes(self, kAll);
  Require(dtype == out.type, "dtype is the type of out");
  return ProductOver(self, {dim}, keepDim, out);
}
ACLNN_OP(LogSumExp, (Tensor self, Ints dim, bool keepDim, Out out), "ops-math/math/reduce_log_sum_exp") {
  Takes(self, kHalves | kInts | B);
  Takes(out, kHalves);
  const Groups groups(self, dim);
  groups.Fits(out, keepDim);
  return [=] {
    std::vector<double> top(static_cast<size_t>(groups.results), -INFINITY), sum(top.size());
    groups.Visit<double>(self, [&](int64_t i, double v) { top[i] = std::max(top[i], v); });
    for (auto &v : top) v = std::isinf(v) ? 0 : v;
    groups.Visit<double>(self, [&](int64_t i, double v) { sum[i] += std::exp(v - top[i]); });
    for (size_t i = 0; i < sum.size(); ++i) sum[i] = std::log(sum[i]) + top[i];
    Write(out, sum);
  };
}

// ---- truth
ACLNN_OP(All, (Tensor self, Ints dim, bool keepdim, Out out), "ops-math/math/reduce_all") {
  Takes(self, kAll);
  Takes(out, B | U8);
  return Reduce<double>(self, dim, keepdim, out, 1, [](double s, double v) { return double(s != 0 && v != 0); }, kSame);
}
ACLNN_OP(Any, (Tensor self, Ints dim, bool keepdim, Out out), "ops-math/math/reduce_any") {
  Takes(self, kAll);
  Takes(out, B | U8);
  return Reduce<double>(self, dim, keepdim, out, 0, [](double s, double v) { return double(s != 0 || v != 0); }, kSame);
}

// ---- extremes
ACLNN_OP(Max, (Tensor self, Out out), kMax) { return Extreme<true>(self, {}, false, out); }
ACLNN_OP(Min, (Tensor self, Out out), kMin) { return Extreme<false>(self, {}, false, out); }
ACLNN_OP(Amax, (Tensor self, Ints dim, bool keepDim, Out out), kMax) { return Extreme<true>(self, dim, keepDim, out); }
ACLNN_OP(Amin, (Tensor self, Ints dim, bool keepDim, Out out), kMin) { return Extreme<false>(self, dim, keepDim, out); }
namespace {
// Where the extreme of an axis lies: the first place, and not-a-number is the most extreme of all.
template <bool kLargest>
Task ExtremeAt(const Tensor &self, int64_t dim, bool keep, const Tensor &value, const Tensor &index) {
  Takes(self, kAll);
  Takes(index, kIndices);
  SameType(self, value);
  const int64_t axis = Axis(dim, self.rank());
  const Groups groups(self, {dim});
  if (groups.members == 0) Refuse("no element to choose from along the reduced axis");
  groups.Fits(index, keep);
  if (value) groups.Fits(value, keep);
  return [=] {
    Computed(self.floating(), [&](auto zero) {
      using C = decltype(zero);
      const auto x = Read<C>(self);
      const Around around(self.shape, axis);
      std::vector<C> best;
      std::vector<int64_t> where;
      for (int64_t o = 0; o < around.outer; ++o) {
        for (int64_t i = 0; i < around.inner; ++i) {
          auto at = [&](int64_t k) { return x[(o * around.along + k) * around.inner + i]; };
          int64_t place = 0;
          for (int64_t k = 1; k < around.along; ++k) {
            const C v = at(k), b = at(place);
            if (b == b && (v != v || (kLargest ? v > b : v < b))) place = k;
          }
          where.push_back(place);
          best.push_back(at(place));
        }
      }
      Write(value, best);
      Write(index, where);
    });
  };
}
}  // namespace
ACLNN_OP(MaxDim, (Tensor self, int64_t dim, bool keepdim, Out out, Out indices), "ops-math/math/arg_max_with_value") {
  return ExtremeAt<true>(self, dim, keepdim, out, indices);
}
ACLNN_OP(MinDim, (Tensor self, int64_t dim, bool keepdim, Out out, Out indices), "ops-math/math/arg_min_with_value") {
  return ExtremeAt<false>(self, dim, keepdim, out, indices);
}
ACLNN_OP(ArgMax, (Tensor self, int64_t dim, bool keepdim, Out out), "ops-math/math/arg_max_v2") {
  Takes(self, kReals);
  return ExtremeAt<true>(self, dim, keepdim, Maybe{}, out);
}
ACLNN_OP(ArgMin, (Tensor self, int64_t dim, bool keepdim, Out out), "ops-math/math/arg_min") {
  Takes(self, kReals);
  return ExtremeAt<false>(self, dim, keepdim, Maybe{}, out);
}

// ---- variances and norms
ACLNN_OP(Std, (Tensor self, MaybeInts dim, int64_t correction, bool keepdim, Out out), kStd) {
  return VarianceOver(self, dim, static_cast<double>(correction), keepdim, out, Maybe{}, true);
}
ACLNN_OP(Var, (Tensor self, MaybeInts dim, bool unbiased, bool keepdim, Out out), kVar) {
  return VarianceOver(self, dim, unbiased ? 1 : 0, keepdim, out, Maybe{}, false);
}
ACLNN_OP(VarCorrection, (Tensor self, MaybeInts dim, int64_t correction, bool keepdim, Out out), kVar) {
  return VarianceOver(self, dim, static_cast<double>(correction), keepdim, out, Maybe{}, false);
}
ACLNN_OP(VarMean, (Tensor self, MaybeInts dim, int64_t correction, bool keepdim, Out varOut, Out meanOut), kVar) {
  return VarianceOver(self, dim, static_cast<double>(correction), keepdim, varOut, meanOut, false);
}
ACLNN_OP(StdMeanCorrection, (Tensor self, MaybeInts dim, int64_t correction, bool keepdim, Out stdOut, Out meanOut),
         kStd) {
  return VarianceOver(self, dim, static_cast<double>(correction), keepdim, stdOut, meanOut, true);
}
ACLNN_OP(Norm, (Tensor self, MaybeScalar pScalar, Ints dim, bool keepdim, Out out), "ops-nn/norm/lp_norm_v2") {
  return NormOver(self, pScalar ? pScalar.real : 2, dim, keepdim, out);
}
ACLNN_OP(LinalgVectorNorm, (Tensor self, Scalar ord, MaybeInts dims, bool keepDims, int dtype, Out out),
         "ops-nn/norm/lp_norm_v2") {
  Require(dtype == out.type, "dtype is the type of out");
  return NormOver(self, ord.real, dims, keepDims, out);
}

// ---- scans along an axis
namespace {
template <class F>
Task Scan(const Tensor &self, int64_t dim, const Tensor &out, F f) {
  SameShape(self, out);
  const int64_t axis = Axis(dim, self.rank());
  return [=] {
    Computed(self.floating() || out.floating(), [&](auto zero) {
      auto x = Read<decltype(zero)>(self);
      const Around around(self.shape, axis);
      for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
        if (i / around.inner % around.along != 0) x[i] = f(x[i - around.inner], x[i]);
      }
      Write(out, x);
    });
  };
}
template <bool kLargest>
Task ScanExtreme(const Tensor &self, int64_t dim, const Tensor &value, const Tensor &index) {
  Takes(self, kAll);
  Takes(index, kIndices);
  SameType(self, value);
  SameShape(self, value);
  SameShape(self, index);
  const int64_t axis = Axis(dim, self.rank());
  return [=] {
    Computed(self.floating(), [&](auto zero) {
      auto x = Read<decltype(zero)>(self);
      std::vector<int64_t> where(x.size());
      const Around around(self.shape, axis);
      for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
        const int64_t place = i / around.inner % around.along;
        where[i] = place;
        if (place == 0) continue;
        const auto before = x[i - around.inner];
        const bool stays = before != before ? x[i] == x[i] : kLargest ? x[i] < before : x[i] > before;
        if (stays) {  // of equal values the later place is given
          x[i] = before;
          where[i] = where[i - around.inner];
        }
      }
      Write(value, x);
      Write(index, where);
    });
  };
}
}  // namespace
ACLNN_OP(Cumsum, (Tensor self, int64_t dim, int dtype, Out out), "ops-math/math/cumsum") {
  Takes(self, kReals | B);
  Require(dtype == out.type, "dtype is the type of out");
  return Scan(self, dim, out, [](auto s, auto v) { return s + v; });
}
ACLNN_OP(Cumprod, (Tensor input, Scalar dim, int dtype, Out out), "ops-math/math/cumprod") {
  Takes(input, kReals);
  Require(dtype == out.type, "dtype is the type of out");
  return Scan(input, dim.whole, out, [](auto s, auto v) { return s * v; });
}
ACLNN_OP(Cummax, (Tensor self, int64_t dim, Out valuesOut, Out indicesOut), "ops-math/math/cummax") {
  return ScanExtreme<true>(self, dim, valuesOut, indicesOut);
}
ACLNN_OP(Cummin, (Tensor self, int64_t dim, Out valuesOut, Out indicesOut), "ops-math/math/cummin") {
  return ScanExtreme<false>(self, dim, valuesOut, indicesOut);
}

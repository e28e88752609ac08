// Losses of differences, and the margin loss of several classes. MindSpore has no operator for them.
#include "pointwise.h"
#include "rows.h"
#include "vec_functions.h"

namespace msa {
namespace {

// The difference, but at most `limit` away from zero. A NaN stays one.
template <class C>
inline C clipped(C difference, C limit) {
  return difference > limit ? limit : difference < -limit ? -limit : difference;
}

// Adds the sum of z = 1 - x[target] + x[other] over the other classes with z > 0 to `total`, and `unit` to the slopes
// of these classes. Returns their number. The values of targets are minus infinity here, so that they do not count.
// Several partial sums let the compiler use vectors.
template <class C>
C add_gaps(const C *others, int64_t classes, C own, C unit, C *slopes, double *total) {
  constexpr int64_t kLanes = 16;
  C sums[kLanes] = {}, counts[kLanes] = {};
  const C base = C(1) - own;
  auto one = [&](int64_t k, int64_t lane) {
    const C z = base + others[k];
    const bool counted = z > C(0);
    sums[lane] += counted ? z : C(0);
    counts[lane] += counted ? C(1) : C(0);
    slopes[k] += counted ? unit : C(0);
  };
  int64_t k = 0;
  for (; k + kLanes <= classes; k += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane) one(k + lane, lane);
  for (; k < classes; ++k) one(k, k % kLanes);
  C count = 0;
  for (int64_t lane = 0; lane < kLanes; ++lane) *total += sums[lane], count += counts[lane];
  return count;
}

template <class T>
void multilabel_margin(Call &c) {
  using C = compute_t<T>;
  const Tensor x = c.contiguous(c.in(0)), labels = c.cast(c.in(1), DType::I64);
  const int64_t rows = x.size(0), classes = x.size(1);
  const int64_t *all_labels = labels.ptr<int64_t>();
  for (int64_t i = 0; i < labels.numel; ++i)
    check(all_labels[i] >= -1 && all_labels[i] < classes, "argument target is out of range");
  const Tensor loss = c.out(0, x.dtype, Dims{rows}), slope = c.out(1, x.dtype, x.shape());
  const C unit = C(1) / static_cast<C>(std::max<int64_t>(classes, 1));
  parallel_for(
      rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, classes * classes)), [&](int64_t begin, int64_t end) {
        std::vector<C> values(classes), others(classes), slopes(classes);
        for (int64_t row = begin; row < end; ++row) {
          const T *px = x.ptr<T>() + row * classes;
          const int64_t *p = all_labels + row * classes;
          int64_t targets = 0;
          std::fill(slopes.begin(), slopes.end(), C(0));
          for (int64_t k = 0; k < classes; ++k) values[k] = others[k] = convert<C>(px[k]);
          while (targets < classes && p[targets] >= 0) others[p[targets++]] = -std::numeric_limits<C>::infinity();
          double total = 0;
          for (int64_t i = 0; i < targets; ++i)
            slopes[p[i]] -= unit * add_gaps(others.data(), classes, values[p[i]], unit, slopes.data(), &total);
          loss.ptr<T>()[row] = convert<T>(static_cast<C>(total / static_cast<double>(std::max<int64_t>(classes, 1))));
          for (int64_t k = 0; k < classes; ++k) slope.ptr<T>()[row * classes + k] = convert<T>(slopes[k]);
        }
      });
}

// The operands of the margin loss with one target for each row, which have the same positions in both kernels, from
// `first` on: x [rows, classes], targets [rows], p (1 or 2), margin, weight [classes]?
template <class T>
struct MultiMargin {
  using C = compute_t<T>;
  Tensor x, targets;
  bool squares;
  C margin, share;  // of a class in the mean
  const C *weight;

  MultiMargin(Call &c, int first)
      : x(c.contiguous(c.in(first))),
        targets(c.cast(c.in(first + 1), DType::I64)),
        squares(c.number(first + 2) == 2),
        margin(static_cast<C>(c.number(first + 3))),
        share(C(1) / static_cast<C>(std::max<int64_t>(x.size(1), 1))),
        weight(rows::parameter<C>(c, first + 4)) {
    check(!weight || c.in(first + 4).numel == x.size(1), "inconsistent weight size, expected ", x.size(1), " but got ",
          c.in(first + 4).shape());
    for (int64_t i = 0; i < targets.numel && !shape_only(); ++i)
      check(targets.ptr<int64_t>()[i] >= 0 && targets.ptr<int64_t>()[i] < x.size(1), "target out of range");
  }
  // Calls f(row, its elements, its target, the factor of its sum), with the rows in parallel.
  template <class F>
  void each_row(F f) const {
    const int64_t n = x.size(1);
    parallel_for(x.size(0), std::max<int64_t>(1, kGrain / std::max<int64_t>(1, n)), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t own = targets.ptr<int64_t>()[r];
        f(r, x.ptr<T>() + r * n, own, weight ? weight[own] * share : share);
      }
    });
  }
  // The sum of term(i) over the classes i other than `own`.
  template <class F>
  C sum_of_others(int64_t own, F term) const {
    return rows::sum<C>(own, term) + rows::sum<C>(x.size(1) - own - 1, [=](int64_t i) { return term(own + 1 + i); });
  }
};

template <class T>
void multi_margin(Call &c) {
  using C = compute_t<T>;
  const MultiMargin<T> m(c, 0);
  const Tensor loss = c.out(0, m.x.dtype, Dims{m.x.size(0)});
  m.each_row([&](int64_t r, const T *x, int64_t own, C factor) {
    const C base = m.margin - convert<C>(x[own]);
    const bool squares = m.squares;
    const C sum = m.sum_of_others(own, [=](int64_t i) {
      const C z = base + convert<C>(x[i]), term = squares ? z * z : z;
      return z > C(0) ? term : C(0);
    });
    loss.ptr<T>()[r] = convert<T>(sum * factor);
  });
}

template <class T>
void multi_margin_grad(Call &c) {
  using C = compute_t<T>;
  const MultiMargin<T> m(c, 1);
  const Tensor g = c.cast(c.in(0), m.x.dtype), dx = c.out_like(0, m.x);
  const int64_t n = m.x.size(1);
  m.each_row([&](int64_t r, const T *x, int64_t own, C factor) {
    const C base = m.margin - convert<C>(x[own]), unit = convert<C>(g.ptr<T>()[r]) * factor;
    const bool squares = m.squares;
    auto slope = [=](int64_t i) {
      const C z = base + convert<C>(x[i]), term = squares ? C(2) * z * unit : unit;
      return z > C(0) ? term : C(0);
    };
    T *to = dx.ptr<T>() + r * n;
    for (int64_t i = 0; i < n; ++i) to[i] = convert<T>(slope(i));
    to[own] = convert<T>(-m.sum_of_others(own, slope));
  });
}

}  // namespace

// x, targets, p, margin, weight? -> the loss of each row, max(0, margin - x[target] + x[i])^p summed over the classes i
// other than the target, times the weight of the target, divided by the number of classes
MSA_KERNEL(MultiMarginLoss) { MSA_SWITCH_FLOAT(c.in(0).dtype, "multi_margin_loss_cpu_kernel", (multi_margin<T>(c))); }
// gradient of each row, x, targets, p, margin, weight? -> gradient of x
MSA_KERNEL(MultiMarginLossGrad) {
  MSA_SWITCH_FLOAT(c.in(1).dtype, "multi_margin_loss_backward_cpu_kernel", (multi_margin_grad<T>(c)));
}

// x, y -> -(y log(x) + (1 - y) log(1 - x)) for probabilities x. As in PyTorch, the logarithms are at least -100, so
// that a wrong certain prediction costs 100 instead of infinity.
MSA_KERNEL(BinaryCrossEntropyEach) {
  const Tensor &x = c.in(0), &y = c.in(1);
  const Tensor o = c.out_pointwise(0, x.dtype, {&x, &y});
  MSA_COMPUTE_FLOAT(x.dtype, "binary_cross_entropy", {
    binary<T, T, T>(o, x, y, [](T p, T target) {
      const T absent = vec::log1p(-p), present = vec::log(p);
      return (target - T(1)) * (absent < T(-100) ? T(-100) : absent) - target * (present < T(-100) ? T(-100) : present);
    });
  });
}

// x, y, limit, scale -> c (d - c / 2) / scale for d = x - y, and c = d where |d| is at most the limit, else the limit
// with the sign of d. This is the Huber loss with the scale 1, and the smooth L1 loss with the limit as scale.
MSA_KERNEL(ClippedLoss) {
  const Tensor &x = c.in(0), &y = c.in(1);
  const Tensor o = c.out_pointwise(0, x.dtype, {&x, &y});
  MSA_SWITCH_FLOAT(x.dtype, "huber_cpu", {
    using C = compute_t<T>;
    const C limit = static_cast<C>(c.number(2)), scale = static_cast<C>(c.number(3));
    binary<C, C, C>(o, x, y, [=](C a, C b) {
      const C d = a - b, near = clipped(d, limit);
      return near / scale * (d - C(0.5) * near);
    });
  });
}

// gradient, x, y, limit, factor -> the gradient times c and the factor
MSA_KERNEL(ClippedLossGrad) {
  const Tensor &g = c.in(0), &x = c.in(1), &y = c.in(2);
  const Tensor o = c.out_pointwise(0, x.dtype, {&x, &y});
  MSA_SWITCH_FLOAT(x.dtype, "huber_backward_cpu", {
    using C = compute_t<T>;
    const C limit = static_cast<C>(c.number(3)), factor = static_cast<C>(c.number(4));
    ternary<C, C, C, C>(o, g, x, y, [=](C slope, C a, C b) { return clipped(a - b, limit) * factor * slope; });
  });
}

// x [rows, classes], labels [rows, classes] (int64, the targets of a row before the first -1) -> the loss of each row,
// and its gradient, which does not depend on the size of the gaps
MSA_KERNEL(MultilabelMarginLoss) {
  MSA_SWITCH_FLOAT(c.in(0).dtype, "multilabel_margin_loss_forward_out_frame", (multilabel_margin<T>(c)));
}

}  // namespace msa

// Losses of differences, and the margin loss of several classes. MindSpore has no operator for them.
#include "pointwise.h"
#include "rows.h"

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

}  // namespace

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

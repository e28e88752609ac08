// Negative log likelihood and the fused cross entropy of class indices, with gradients.
#include "rows.h"

namespace msa {
namespace {

enum Reduction : int64_t { kSum = 0, kMean = 1, kNone = 2 };  // MindSpore's numbers

// Scores of shape [n, classes, spatial] with targets of shape [n, spatial]. A vector of scores is one sample.
struct Problem {
  int64_t n = 1, classes = 1, spatial = 1;
  Dims target_shape;
  explicit Problem(const Tensor &x) {
    classes = x.ndim == 0 ? 1 : x.ndim == 1 ? x.size(0) : x.size(1);
    if (x.ndim > 1) target_shape.push_back(n = x.size(0));
    for (int d = 2; d < x.ndim; ++d) {
      target_shape.push_back(x.size(d));
      spatial *= x.size(d);
    }
  }
  int64_t samples() const { return n * spatial; }
};

// Returns the targets as int64, after checking that each is a class or is ignored.
const int64_t *targets(Call &c, const Tensor &t, const Problem &p, int64_t ignore) {
  const Tensor wide = c.cast(t, DType::I64);
  const int64_t *r = wide.ptr<int64_t>();
  check(wide.numel == p.samples(), "size mismatch (got input: [", p.n, ", ", p.classes, "], target: ", t.shape(), ")");
  for (int64_t i = 0; i < wide.numel; ++i)
    if (r[i] != ignore && (r[i] < 0 || r[i] >= p.classes))
      throw IndexError(text("Target ", r[i], " is out of bounds."));
  return r;
}

template <class C>
C weight_of(const C *w, int64_t target, int64_t ignore) {
  if (target == ignore) return C(0);
  return w ? w[target] : C(1);
}

// Reduces `per_sample`, which is weighted already. A mean over nothing is NaN, as in PyTorch.
template <class T, class C>
void reduce_loss(Call &c, DType dtype, const Problem &p, int64_t reduction, const C *per_sample, C total) {
  if (reduction == kNone) {
    Tensor o = c.out(0, dtype, p.target_shape);
    for (int64_t i = 0; i < p.samples(); ++i) o.ptr<T>()[i] = convert<T>(per_sample[i]);
    return;
  }
  C sum = rows::sum<C>(p.samples(), [=](int64_t i) { return per_sample[i]; });
  if (reduction == kMean) sum /= total;
  *c.out(0, dtype, Dims{}).ptr<T>() = convert<T>(sum);
}

template <class C>
C total_weight(const Problem &p, const int64_t *t, const C *w, int64_t ignore) {
  return rows::sum<C>(p.samples(), [=](int64_t i) { return weight_of(w, t[i], ignore); });
}

// The gradient of the loss of one sample: an element of grad without reduction, else the gradient of the sum or mean.
template <class C>
struct SampleGrad {
  const C *grad;
  int64_t reduction;
  C total;
  C operator()(int64_t i) const {
    return reduction == kNone ? grad[i] : reduction == kMean ? grad[0] / total : grad[0];
  }
};

template <class T>
void nll(Call &c) {  // input, target, weight?, reduction, ignore_index -> loss, total_weight
  using C = compute_t<T>;
  const Problem p(c.in(0));
  const int64_t reduction = c.integer(3), ignore = c.integer(4);
  const int64_t *t = targets(c, c.in(1), p, ignore);
  const Tensor x = c.contiguous(c.in(0));
  const T *px = x.ptr<T>();
  const C *w = rows::parameter<C>(c, 2);
  rows::Buffer<C> loss(p.samples());
  for (int64_t i = 0; i < p.samples(); ++i) {
    const int64_t at = (i / p.spatial * p.classes + t[i]) * p.spatial + i % p.spatial;
    loss[i] = t[i] == ignore ? C(0) : -convert<C>(px[at]) * weight_of(w, t[i], ignore);
  }
  const C total = total_weight(p, t, w, ignore);
  reduce_loss<T, C>(c, x.dtype, p, reduction, loss.get(), total);
  *c.out(1, x.dtype, Dims{}).template ptr<T>() = convert<T>(reduction == kNone ? C(0) : total);
}

template <class T>
void nll_grad(Call &c, int input, int grad, int target, int weight, int reduction_at, int ignore_at) {
  using C = compute_t<T>;
  const Tensor &x = c.in(input);
  const Problem p(x);
  const int64_t reduction = c.integer(reduction_at), ignore = c.integer(ignore_at);
  const int64_t *t = targets(c, c.in(target), p, ignore);
  const C *w = rows::parameter<C>(c, weight);
  const SampleGrad<C> g{rows::parameter<C>(c, grad), reduction, total_weight(p, t, w, ignore)};
  Tensor o = c.out(0, x.dtype, x.shape());
  fill_zero(o);
  for (int64_t i = 0; i < p.samples(); ++i) {
    if (t[i] == ignore) continue;
    o.ptr<T>()[(i / p.spatial * p.classes + t[i]) * p.spatial + i % p.spatial] =
        convert<T>(-g(i) * weight_of(w, t[i], ignore));
  }
}

// input [n, classes], target, weight?, reduction, ignore_index, label_smoothing, (z loss) -> loss, log_prob
template <class T>
void cross_entropy(Call &c) {
  using C = compute_t<T>;
  const Problem p(c.in(0));
  check(c.in(0).ndim == 2, "CrossEntropyLoss expects an input of two dims, but got ", c.in(0).shape());
  const int64_t reduction = c.integer(3), ignore = c.integer(4), k = p.classes;
  const C smoothing = static_cast<C>(c.number(5));
  const int64_t *t = targets(c, c.in(1), p, ignore);
  const Tensor x = c.contiguous(c.in(0)), lp = c.out(1, x.dtype, x.shape());
  const C *w = rows::parameter<C>(c, 2);
  const T *px = x.ptr<T>();
  T *pl = lp.ptr<T>();
  rows::Buffer<C> loss(p.n);
  parallel_for(p.n, rows::grain_for(k), [&](int64_t begin, int64_t end) {
    rows::Buffer<C> buffer(k);
    for (int64_t r = begin; r < end; ++r) {
      const C *v = rows::widen<T>(px + r * k, buffer.get(), k);
      const C top = rows::max<C>(k, [=](int64_t i) { return v[i]; });
      if constexpr (!std::is_same_v<T, C>)
        if (smoothing == C(0)) {  // log_softmax and then nll_loss, each rounded like the single operator
          const C sum = convert<C>(convert<T>(rows::exp_sum(v, k, top))), log = convert<C>(convert<T>(std::log(sum)));
          rows::store(pl + r * k, buffer.get(), k, [=](int64_t i) { return v[i] - top - log; });
          loss[r] = t[r] == ignore ? C(0) : -convert<C>(pl[r * k + t[r]]) * weight_of(w, t[r], ignore);
          continue;
        }
      const C shift = top + std::log(rows::exp_sum(v, k, top));
      for (int64_t i = 0; i < k; ++i) pl[r * k + i] = convert<T>(v[i] - shift);
      if (t[r] == ignore) {
        loss[r] = 0;
        continue;
      }
      loss[r] = (C(1) - smoothing) * (shift - v[t[r]]) * weight_of(w, t[r], ignore);
      if (smoothing > C(0))
        loss[r] += smoothing / static_cast<C>(k) *
                   rows::sum<C>(k, [=](int64_t i) { return (shift - v[i]) * (w ? w[i] : C(1)); });
    }
  });
  reduce_loss<T, C>(c, x.dtype, p, reduction, loss.get(), total_weight(p, t, w, ignore));
}

// grad, log_prob, target, weight?, grad_zloss?, lse?, reduction, ignore_index, label_smoothing
template <class T>
void cross_entropy_grad(Call &c) {
  using C = compute_t<T>;
  const Problem p(c.in(1));
  const int64_t reduction = c.integer(6), ignore = c.integer(7), k = p.classes;
  const C smoothing = static_cast<C>(c.number(8));
  const int64_t *t = targets(c, c.in(2), p, ignore);
  const Tensor lp = c.contiguous(c.in(1)), o = c.out_like(0, lp);
  const C *w = rows::parameter<C>(c, 3);
  const SampleGrad<C> g{rows::parameter<C>(c, 0), reduction, total_weight(p, t, w, ignore)};
  const C spread = smoothing / static_cast<C>(k);
  const C weights = w ? rows::sum<C>(k, [=](int64_t i) { return w[i]; }) : static_cast<C>(k);
  const T *pl = lp.ptr<T>();
  T *po = o.ptr<T>();
  parallel_for(p.n, rows::grain_for(k), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      T *to = po + r * k;
      const T *from = pl + r * k;
      if (t[r] == ignore) {
        std::fill(to, to + k, T(0));
        continue;
      }
      if constexpr (!std::is_same_v<T, C>)
        if (smoothing == C(0)) {
          const C d = convert<C>(convert<T>(-convert<C>(convert<T>(g(r))) * weight_of(w, t[r], ignore)));
          for (int64_t i = 0; i < k; ++i)
            to[i] = convert<T>((i == t[r] ? d : C(0)) - vec::exp(convert<C>(from[i])) * d);
          continue;
        }
      const C scale = g(r), own = (C(1) - smoothing) * weight_of(w, t[r], ignore);
      const C all = own + (smoothing > C(0) ? spread * weights : C(0));
      if (smoothing > C(0) && w)
        for (int64_t i = 0; i < k; ++i)
          to[i] = convert<T>(scale * (vec::exp(convert<C>(from[i])) * all - spread * w[i]));
      else {
        const C even = smoothing > C(0) ? spread : C(0);
        for (int64_t i = 0; i < k; ++i) to[i] = convert<T>(scale * (vec::exp(convert<C>(from[i])) * all - even));
      }
      const C even = smoothing > C(0) ? spread * (w ? w[t[r]] : C(1)) : C(0);
      to[t[r]] = convert<T>(scale * (vec::exp(convert<C>(from[t[r]])) * all - even - own));
    }
  });
}

}  // namespace

MSA_KERNEL(NLLLoss) { MSA_SWITCH_FLOAT(c.in(0).dtype, "nll_loss_out_frame", (nll<T>(c))); }
MSA_KERNEL(NLLLoss2d) { MSA_SWITCH_FLOAT(c.in(0).dtype, "nll_loss2d_forward_out_frame", (nll<T>(c))); }
MSA_KERNEL(NLLLossGrad) {  // input, grad, target, weight, total_weight, reduction, ignore_index
  MSA_SWITCH_FLOAT(c.in(0).dtype, "nll_loss_backward_out_frame", (nll_grad<T>(c, 0, 1, 2, 3, 5, 6)));
}
MSA_KERNEL(NLLLoss2dGrad) {  // grad, input, target, weight, reduction, ignore_index, total_weight
  MSA_SWITCH_FLOAT(c.in(1).dtype, "nll_loss2d_backward_out_frame", (nll_grad<T>(c, 1, 0, 2, 3, 4, 5)));
}
MSA_KERNEL(CrossEntropyLoss) { MSA_SWITCH_FLOAT(c.in(0).dtype, "cross_entropy", (cross_entropy<T>(c))); }
MSA_KERNEL(CrossEntropyLossGrad) {
  MSA_SWITCH_FLOAT(c.in(1).dtype, "cross_entropy_backward", (cross_entropy_grad<T>(c)));
}

}  // namespace msa

// Connectionist temporal classification: the probability of a target over all alignments, and its gradient. The
// recursions are those of Graves et al. 2006, in logarithms. MindSpore has no operator with these operands.
#include <cmath>
#include <limits>

#include "loops.h"
#include "vec_math.h"

namespace msa {
namespace {

template <class T>
constexpr T kNever = -std::numeric_limits<T>::infinity();  // the logarithm of the probability zero

// log(exp(a) + exp(b) + exp(c)). The largest term is 1 after the shift, so it needs no exponential. NaN stays NaN.
template <class T>
MSA_INLINE T log_sum(T a, T b, T c) {
  const T high = a < b ? b : a, low = a < b ? a : b, top = high < c ? c : high, middle = high < c ? high : c;
  const T shift = top == kNever<T> ? T(0) : top;
  return vec::log(T(1) + vec::exp(low - shift) + vec::exp(middle - shift)) + top;
}

// One sequence of a batch. The states of a target are its labels with blanks before, between and behind them.
template <class T>
struct Sequence {
  const T *scores;        // log probabilities of the first step
  const int64_t *labels;  // of the states
  int64_t row;            // elements from one step to the next
  int64_t steps, states, classes;

  void emit(int64_t step, T *to) const {
    for (int64_t s = 0; s < states; ++s) to[s] = scores[step * row + labels[s]];
  }
  // 0 where a label may follow the label before it without the blank between them, else minus infinity
  std::vector<T> skips() const {
    std::vector<T> cost(states + 2, kNever<T>);
    for (int64_t s = 3; s < states; s += 2) cost[s] = labels[s] == labels[s - 2] ? kNever<T> : T(0);
    return cost;
  }
};

// Fills `alpha`, whose rows have `width` elements, with the log probabilities of the states at each step, from the
// first step to it. Returns the log probability of the target.
template <class T>
T run_forward(const Sequence<T> &q, T *alpha, int64_t width) {
  const int64_t n = q.states;
  if (q.steps == 0) return n == 1 ? T(0) : kNever<T>;
  const std::vector<T> skip = q.skips();
  // two more states, which are never reached, in front of the first one
  std::vector<T> before(n + 2, kNever<T>), emitted(n);
  for (int64_t t = 0; t < q.steps; ++t) {
    T *to = alpha + t * width;
    q.emit(t, emitted.data());
    const T *p = before.data(), *e = emitted.data(), *cost = skip.data();
    if (t == 0) {
      std::fill_n(to, n, kNever<T>);
      std::copy_n(e, std::min<int64_t>(n, 2), to);
    } else {
      for (int64_t s = 0; s < n; ++s) to[s] = log_sum(p[s + 2], p[s + 1], p[s] + cost[s]) + e[s];
    }
    std::copy_n(to, n, before.data() + 2);
  }
  const T *end = before.data() + 2 + n;
  return log_sum(end[-1], n > 1 ? end[-2] : kNever<T>, kNever<T>);
}

// Writes the gradient of the loss with respect to the scores before log_softmax, as PyTorch does: the probabilities of
// the classes, less those of the states with their labels. `grad` has rows like the scores.
template <class T>
void run_backward(const Sequence<T> &q, const T *alpha, int64_t width, T loss, T factor, T *grad) {
  const int64_t n = q.states;
  const std::vector<T> skip = q.skips();
  std::vector<T> after(n + 2, kNever<T>), beta(n), emitted(n), found(q.classes);
  for (int64_t t = q.steps - 1; t >= 0; --t) {
    q.emit(t, emitted.data());
    const T *a = alpha + t * width, *p = after.data(), *e = emitted.data(), *cost = skip.data() + 2;
    T *b = beta.data(), *total = found.data();
    if (t == q.steps - 1) {
      std::fill_n(b, n, kNever<T>);
      for (int64_t s = std::max<int64_t>(0, n - 2); s < n; ++s) b[s] = e[s];
    } else {
      for (int64_t s = 0; s < n; ++s) b[s] = log_sum(p[s], p[s + 1], p[s + 2] + cost[s]) + e[s];
    }
    std::copy_n(b, n, after.data());
    // The probability of a state at this step. Both directions count what it emits.
    for (int64_t s = 0; s < n; ++s) b[s] = vec::exp(a[s] + b[s] - e[s] + loss);
    std::fill_n(total, q.classes, T(0));
    for (int64_t s = 0; s < n; ++s) total[q.labels[s]] += b[s];
    const T *score = q.scores + t * q.row;
    T *to = grad + t * q.row;
    // As in PyTorch, a class with the log probability minus infinity has no gradient: it is NaN.
    for (int64_t k = 0; k < q.classes; ++k) to[k] = (vec::exp(score[k]) - (total[k] + (score[k] - score[k]))) * factor;
  }
}

// Checks what the loops rely on, and calls f(index, sequence) for each sequence of the batch.
template <class T, class F>
void for_sequences(const Tensor &scores, const Tensor &labels, const Tensor &steps, const Tensor &lengths, F f) {
  const int64_t time = scores.size(0), batch = scores.size(1), classes = scores.size(2), width = labels.size(1);
  check(labels.size(0) == batch && steps.numel == batch && lengths.numel == batch,
        "ctc_loss: labels and lengths must be given for each of the ", batch, " sequences");
  for (int64_t i = 0; i < batch; ++i) {
    const int64_t t = steps.ptr<int64_t>()[i], s = lengths.ptr<int64_t>()[i];
    check(t >= 0 && t <= time, "Expected input_lengths to have value at most ", time, ", but got value ", t);
    check(s >= 0 && 2 * s + 1 <= width, "ctc_loss: the target length ", s, " is not between 0 and ", (width - 1) / 2);
  }
  for (int64_t i = 0; i < labels.numel; ++i) {
    const int64_t label = labels.ptr<int64_t>()[i];
    check(label >= 0 && label < classes, "index ", label, " is out of bounds for dimension 2 with size ", classes);
  }
  parallel_for(batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      f(i, Sequence<T>{scores.ptr<T>() + i * classes, labels.ptr<int64_t>() + i * width, batch * classes,
                       steps.ptr<int64_t>()[i], 2 * lengths.ptr<int64_t>()[i] + 1, classes});
  });
}

template <class T>
void loss_of(Call &c) {
  const Tensor scores = c.contiguous(c.in(0)), labels = c.contiguous(c.in(1));
  const Tensor steps = c.contiguous(c.in(2)), lengths = c.contiguous(c.in(3));
  const int64_t time = scores.size(0), batch = scores.size(1), width = labels.size(1);
  const Tensor loss = c.out(0, scores.dtype, Dims{batch}), alpha = c.out(1, scores.dtype, Dims{batch, time, width});
  for_sequences<T>(scores, labels, steps, lengths, [&](int64_t i, const Sequence<T> &q) {
    loss.ptr<T>()[i] = -run_forward(q, alpha.ptr<T>() + i * time * width, width);
  });
}

template <class T>
void grad_of(Call &c) {
  const Tensor given = c.contiguous(c.in(0)), scores = c.contiguous(c.in(1)), labels = c.contiguous(c.in(2));
  const Tensor steps = c.contiguous(c.in(3)), lengths = c.contiguous(c.in(4)), loss = c.contiguous(c.in(5)),
               alpha = c.contiguous(c.in(6));
  const bool zero_infinity = c.flag(7);
  const int64_t time = scores.size(0), classes = scores.size(2), width = labels.size(1);
  const Tensor grad = c.out_like(0, scores);
  for_sequences<T>(scores, labels, steps, lengths, [&](int64_t i, const Sequence<T> &q) {
    T *to = grad.ptr<T>() + i * classes;
    const T own = loss.ptr<T>()[i];
    const bool known = std::isfinite(own), zero = own == -kNever<T> && zero_infinity;
    // An impossible target has no gradient: it is NaN, unless zero was asked for.
    if (known) run_backward(q, alpha.ptr<T>() + i * time * width, width, own, given.ptr<T>()[i], to);
    for (int64_t t = known ? q.steps : 0; t < time; ++t)
      std::fill_n(to + t * q.row, classes, zero || t >= q.steps ? T(0) : std::numeric_limits<T>::quiet_NaN());
  });
}

}  // namespace

// log probabilities [steps, batch, classes], labels of the states [batch, 2 * longest target + 1] (int64), input
// lengths and target lengths [batch] (int64) -> the loss of each sequence, and what the gradient reads
MSA_KERNEL(CtcLoss) {
  needs_values("ctc_loss");
  if (c.in(0).dtype == DType::F64) return loss_of<double>(c);
  check(c.in(0).dtype == DType::F32, "ctc_loss: not implemented for ", c.in(0).dtype);
  loss_of<float>(c);
}

// gradient [batch], the four operands and both results of CtcLoss, zero_infinity -> the gradient
MSA_KERNEL(CtcLossGrad) {
  if (c.in(1).dtype == DType::F64) return grad_of<double>(c);
  grad_of<float>(c);
}

}  // namespace msa

// Scaled dot product attention in tiles. Only the scores of one block of queries and one block of keys exist at a
// time, so memory is linear in the sequence length. Several query heads may share a key head (grouped queries).
#include "gemm.h"
#include "rows.h"

namespace msa {
namespace {

constexpr int64_t kMostQueries = 192, kKeys = 256;  // of one block

// Operands: 0 query [b, h, l, e], 1 key [b, hk, s, e], 2 value [b, hk, s, ev], 3 mask? broadcast to [b, h, l, s]
// (bool: true keeps; else added to the scores), 4 is_causal, 5 scale.
struct Problem {
  Tensor q, k, v, mask;
  bool masked = false, causal;
  double scale;
  int64_t batch, heads, kv_heads, l, s, e, ev, group;
  int64_t queries;  // of one block: more of them for long sequences, because each block reads all keys
  explicit Problem(Call &c) : q(c.in(0)), k(c.in(1)), v(c.in(2)), causal(c.flag(4)), scale(c.number(5)) {
    check(q.ndim == 4 && k.ndim == 4 && v.ndim == 4, "scaled_dot_product_attention: expected four dims");
    batch = q.size(0), heads = q.size(1), l = q.size(2), e = q.size(3);
    kv_heads = k.size(1), s = k.size(2), ev = v.size(3);
    check(kv_heads > 0 && heads % kv_heads == 0,
          "Number of heads in key and value must divide the number of heads in query");
    group = heads / kv_heads;
    queries = l >= 2 * kMostQueries ? kMostQueries : kMostQueries / 2;
    if (c.has(3)) {
      masked = true;
      mask = expand(c.in(3), {batch, heads, l, s});
    }
  }
  int64_t keys_seen(int64_t first_query, int64_t queries) const {
    return causal ? std::min(s, first_query + queries) : s;
  }
};

// The rows of one head from `first` on, as a matrix.
template <class T>
Matrix block(const Tensor &t, int64_t b, int64_t h, int64_t first) {
  return {t.ptr<T>() + b * t.strides[0] + h * t.strides[1] + first * t.strides[2], t.strides[2], t.strides[3]};
}
Matrix transposed(const Matrix &m) { return {m.data, m.cs, m.rs}; }

// exp(x) for a score less the largest one, or less the log of the sum. Below 1e-38 it is zero, as in PyTorch's kernel.
inline float weight(float x) {
  const float e = vec::exp_negative(x < -87.f ? -87.f : x);
  return x >= -87.f ? e : x < -87.f ? 0.f : x;  // NaN stays NaN
}
inline double weight(double x) { return vec::exp(x); }

// The weights of a block as a matrix of the element type, as PyTorch multiplies them. `rounded` has room for them if
// that is another type than the compute type, in which they are.
template <class T>
Matrix weights(const compute_t<T> *from, [[maybe_unused]] T *rounded, [[maybe_unused]] int64_t nq,
               [[maybe_unused]] int64_t nk) {
  if constexpr (std::is_same_v<T, compute_t<T>>)
    return {from, kKeys, 1};
  else {
    for (int64_t i = 0; i < nq; ++i) {
      const float *row = from + i * kKeys;
      T *to = rounded + i * kKeys;
      if constexpr (std::is_same_v<T, Half>)
        narrow_half(to, row, nk);
      else
        for (int64_t j = 0; j < nk; ++j) to[j] = convert<T>(row[j]);
    }
    return {rounded, kKeys, 1};
  }
}

template <class C, class M>
void add_mask(const Tensor &mask, int64_t b, int64_t h, int64_t q0, int64_t nq, int64_t k0, int64_t nk, C *scores) {
  const M *p = mask.ptr<M>() + b * mask.strides[0] + h * mask.strides[1];
  const int64_t step = mask.strides[3];
  for (int64_t i = 0; i < nq; ++i) {
    const M *row = p + (q0 + i) * mask.strides[2] + k0 * step;
    for (int64_t j = 0; j < nk; ++j) {
      C &at = scores[i * kKeys + j];
      if constexpr (std::is_same_v<M, bool>)
        at = element<M>(row + j * step) ? at : -std::numeric_limits<C>::infinity();
      else
        at += convert<C>(row[j * step]);
    }
  }
}

// scores[i][j] = scale q_i k_j + mask, rows kKeys apart
template <class T>
void make_scores(const Problem &p, int64_t b, int64_t h, int64_t q0, int64_t nq, const Matrix &q, int64_t k0,
                 int64_t nk, const Matrix &k, compute_t<T> *scores) {
  using C = compute_t<T>;
  gemm_of_blocks<T>(nq, nk, p.e, static_cast<C>(p.scale), q, transposed(k), 0, scores, kKeys);
  if (p.masked) {
    if (p.mask.dtype == DType::Bool)
      add_mask<C, bool>(p.mask, b, h, q0, nq, k0, nk, scores);
    else if (p.mask.dtype == DType::F32)
      add_mask<C, float>(p.mask, b, h, q0, nq, k0, nk, scores);
    else
      add_mask<C, T>(p.mask, b, h, q0, nq, k0, nk, scores);
  }
  if (p.causal)
    for (int64_t i = 0; i < nq; ++i)
      for (int64_t j = std::max<int64_t>(0, q0 + i + 1 - k0); j < nk; ++j)
        scores[i * kKeys + j] = -std::numeric_limits<C>::infinity();
}

template <class T>
void forward_block(const Problem &p, int64_t b, int64_t h, int64_t q0, const Tensor &out, const Tensor &lse) {
  using C = compute_t<T>;
  const int64_t nq = std::min(p.queries, p.l - q0), kv = h / p.group, seen = p.keys_seen(q0, nq);
  rows::Buffer<C> scores(nq * kKeys), acc(nq * p.ev);
  rows::Buffer<T> rounded(std::is_same_v<T, C> ? 1 : nq * kKeys);
  const Matrix q = block<T>(p.q, b, h, q0);
  C top[kMostQueries], total[kMostQueries] = {};
  std::fill(top, top + nq, -std::numeric_limits<C>::infinity());
  std::fill(acc.get(), acc.get() + nq * p.ev, C(0));
  for (int64_t k0 = 0; k0 < seen; k0 += kKeys) {
    const int64_t nk = std::min(kKeys, seen - k0);
    make_scores<T>(p, b, h, q0, nq, q, k0, nk, block<T>(p.k, b, kv, k0), scores);
    for (int64_t i = 0; i < nq; ++i) {
      C *row = scores + i * kKeys;
      const C high = std::max(top[i], rows::max<C>(nk, [=](int64_t j) { return row[j]; }));
      if (std::isinf(high) && high < 0) {  // no key has been kept so far; rows::max does not see NaN
        total[i] += rows::store_sum(row, nk, [=](int64_t j) { return std::isnan(row[j]) ? row[j] : C(0); });
        continue;
      }
      const C fade = std::exp(top[i] - high);
      total[i] = total[i] * fade + rows::store_sum(row, nk, [=](int64_t j) { return weight(row[j] - high); });
      if (fade != C(1))
        for (int64_t j = 0; j < p.ev; ++j) acc[i * p.ev + j] *= fade;
      top[i] = high;
    }
    gemm_of_blocks<T>(nq, p.ev, nk, 1, weights<T>(scores, rounded, nq, nk), block<T>(p.v, b, kv, k0), 1, acc.get(),
                      p.ev);
  }
  T *to = out.ptr<T>() + b * out.strides[0] + h * out.strides[1] + q0 * out.strides[2];
  for (int64_t i = 0; i < nq; ++i) {
    const C scale = total[i] == C(0) ? C(0) : C(1) / total[i];  // a query that attends to no key gives zeros
    for (int64_t j = 0; j < p.ev; ++j) to[i * out.strides[2] + j] = convert<T>(acc[i * p.ev + j] * scale);
    lse.ptr<C>()[(b * p.heads + h) * p.l + q0 + i] = total[i] == C(0) ? C(0) : top[i] + std::log(total[i]);
  }
}

// Creates a result with the layout of `like`: if the operand has the heads inside of the sequence in memory, so does
// the result.
Tensor out_heads(Call &c, int index, const Tensor &like, int64_t last) {
  const int64_t b = like.size(0), h = like.size(1), l = like.size(2);
  const Dims sizes{b, h, l, last};
  if (like.strides[1] >= like.strides[2]) return c.out(index, like.dtype, sizes);
  const int64_t strides[] = {l * h * last, last, h * last, 1};
  return c.out(index, like.dtype, sizes.data(), 4, strides);
}

template <class T>
void forward(Call &c) {
  const Problem p(c);
  const Tensor out = out_heads(c, 0, p.q, p.ev),
               lse = c.out(1, dtype_of<compute_t<T>>::value, Dims{p.batch, p.heads, p.l});
  const int64_t blocks = (p.l + p.queries - 1) / p.queries;
  parallel_for(p.batch * p.heads * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end;
         ++i)  // a head's blocks are neighbours: each thread gets long and short causal ones
      forward_block<T>(p, i / blocks / p.heads, i / blocks % p.heads, i % blocks * p.queries, out, lse);
  });
}

// Gradients of one key head: sums over the query heads and query blocks that use it.
template <class T>
struct BackwardHead {
  using C = compute_t<T>;
  const Problem &p;
  const Tensor &grad, &out, &lse;
  C *dq, *dk, *dv;  // contiguous: dq [group, l, e], dk [s, e], dv [s, ev]; zero at the start
  rows::Buffer<C> prob{p.queries * kKeys}, slope{p.queries * kKeys};
  rows::Buffer<T> rounded{std::is_same_v<T, C> ? 1 : p.queries * kKeys};
  BackwardHead(const Problem &problem, const Tensor &g, const Tensor &o, const Tensor &l, C *q, C *k, C *v)
      : p(problem), grad(g), out(o), lse(l), dq(q), dk(k), dv(v) {}

  void run(int64_t b, int64_t kv) {
    for (int64_t h = 0; h < p.group; ++h)
      for (int64_t q0 = 0; q0 < p.l; q0 += p.queries) queries(b, kv, h, q0);
  }
  void queries(int64_t b, int64_t kv, int64_t in_group, int64_t q0) {
    const int64_t h = kv * p.group + in_group, nq = std::min(p.queries, p.l - q0), seen = p.keys_seen(q0, nq);
    const Matrix q = block<T>(p.q, b, h, q0), g = block<T>(grad, b, h, q0);
    const C *lse_row = lse.ptr<C>() + (b * p.heads + h) * p.l + q0;
    const C scale = static_cast<C>(p.scale);
    C mean[kMostQueries];  // sum_j grad_ij out_ij
    const T *po = out.ptr<T>() + b * out.strides[0] + h * out.strides[1] + q0 * out.strides[2];
    const T *pg = static_cast<const T *>(g.data);
    for (int64_t i = 0; i < nq; ++i) {
      C sum = 0;
      for (int64_t j = 0; j < p.ev; ++j)
        sum += convert<C>(pg[i * g.rs + j * g.cs]) * convert<C>(po[i * out.strides[2] + j * out.strides[3]]);
      mean[i] = sum;
    }
    for (int64_t k0 = 0; k0 < seen; k0 += kKeys) {
      const int64_t nk = std::min(kKeys, seen - k0);
      const Matrix k = block<T>(p.k, b, kv, k0), v = block<T>(p.v, b, kv, k0);
      make_scores<T>(p, b, h, q0, nq, q, k0, nk, k, prob);
      gemm_of_blocks<T>(nq, nk, p.ev, 1, g, transposed(v), 0, slope, kKeys);
      for (int64_t i = 0; i < nq; ++i) {
        C *x = prob + i * kKeys, *y = slope + i * kKeys;
        const C shift = lse_row[i], m = mean[i];
        for (int64_t j = 0; j < nk; ++j) {
          x[j] = weight(x[j] - shift);
          y[j] = x[j] * (y[j] - m);
        }
      }
      const Matrix pm = weights<T>(prob, rounded, nq, nk);
      gemm_of_blocks<T>(nk, p.ev, nq, 1, transposed(pm), g, 1, dv + k0 * p.ev, p.ev);
      const Matrix sm = weights<T>(slope, rounded, nq, nk);
      gemm_of_blocks<T>(nk, p.e, nq, scale, transposed(sm), q, 1, dk + k0 * p.e, p.e);
      gemm_of_blocks<T>(nq, p.e, nk, scale, sm, k, 1, dq + (in_group * p.l + q0) * p.e, p.e);
    }
  }
};

template <class T>
void store(const Tensor &to, int64_t b, int64_t h, const compute_t<T> *from) {
  T *p = to.ptr<T>() + b * to.strides[0] + h * to.strides[1];
  for (int64_t i = 0; i < to.sizes[2]; ++i)
    for (int64_t j = 0; j < to.sizes[3]; ++j) p[i * to.strides[2] + j] = convert<T>(from[i * to.sizes[3] + j]);
}

// The operands of the forward kernel, then 6 the gradient of the output, 7 the output, 8 the log-sum-exp.
template <class T>
void backward(Call &c) {
  using C = compute_t<T>;
  const Problem p(c);
  const Tensor grad = c.in(6).dtype == p.q.dtype ? c.in(6) : c.cast(c.in(6), p.q.dtype), &out = c.in(7);
  const Tensor lse = c.contiguous(c.in(8));
  const Tensor dq = out_heads(c, 0, p.q, p.e), dk = out_heads(c, 1, p.k, p.e), dv = out_heads(c, 2, p.v, p.ev);
  parallel_for(p.batch * p.kv_heads, 1, [&](int64_t begin, int64_t end) {
    const int64_t nq = p.group * p.l * p.e, nk = p.s * p.e, nv = p.s * p.ev;
    rows::Buffer<C> sums(nq + nk + nv);
    C *q = sums, *k = q + nq, *v = k + nk;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / p.kv_heads, kv = i % p.kv_heads;
      std::fill(q, q + nq + nk + nv, C(0));
      BackwardHead<T>(p, grad, out, lse, q, k, v).run(b, kv);
      for (int64_t h = 0; h < p.group; ++h) store<T>(dq, b, kv * p.group + h, q + h * p.l * p.e);
      store<T>(dk, b, kv, k);
      store<T>(dv, b, kv, v);
    }
  });
}

}  // namespace

MSA_KERNEL(ScaledDotProductAttention) { MSA_SWITCH_FLOAT(c.in(0).dtype, "flash_attention", (forward<T>(c))); }
MSA_KERNEL(ScaledDotProductAttentionGrad) {
  MSA_SWITCH_FLOAT(c.in(0).dtype, "flash_attention_backward", (backward<T>(c)));
}

}  // namespace msa

// The loops of reductions, once per accumulator type and step.
#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "reduce.h"

namespace msa {
namespace {

constexpr int64_t kRun = 2048, kBuffer = 2048, kPiece = 32768, kTile = 512;

#ifdef __AVX512F__
constexpr int kVector = 64, kVectors = 4;
#else
constexpr int kVector = 32, kVectors = 8;  // the compiler splits vectors that are wider than this
#endif

template <class Acc>
struct part_of {
  using type = Acc;
};
template <class R>
struct part_of<std::complex<R>> {
  using type = R;
};

// Reduces p[0..n) with kVectors independent vectors.
template <class Acc, class Step>
Acc fold_contiguous(const Acc *p, int64_t n, Acc identity) {
  const Step step;
  int64_t i = 0;
  Acc a = identity;
  // A complex sum has its real and its imaginary parts in alternating lanes.
  if constexpr (std::is_arithmetic_v<Acc> || (is_complex_v<Acc> && std::is_same_v<Step, SumStep>)) {
    using Part = typename part_of<Acc>::type;
    typedef Part Loose __attribute__((vector_size(kVector), aligned(alignof(Part)), may_alias));
    typedef Part Vector __attribute__((vector_size(kVector)));
    constexpr int kParts = sizeof(Acc) / sizeof(Part), L = kVector / sizeof(Part), kStep = L / kParts * kVectors;
    if (n >= kStep) {
      const Loose *v = reinterpret_cast<const Loose *>(p);
      Vector acc[kVectors];
#pragma GCC unroll 8
      for (int k = 0; k < kVectors; ++k) {
        const Vector b = v[k];
        acc[k] = step.of(b);
      }
      for (i = kStep; i + kStep <= n; i += kStep) {
        v += kVectors;
#pragma GCC unroll 8
        for (int k = 0; k < kVectors; ++k) {
          const Vector b = v[k];
          step(acc[k], step.of(b));
        }
      }
      for (int w = kVectors / 2; w > 0; w /= 2)
        for (int k = 0; k < w; ++k) step(acc[k], acc[k + w]);
      Part lane[L];
      std::memcpy(lane, &acc[0], sizeof lane);
      for (int w = L / 2; w >= kParts; w /= 2)
        for (int l = 0; l < w; ++l) step(lane[l], lane[l + w]);
      std::memcpy(&a, lane, sizeof a);
    }
  }
  for (; i < n; ++i) step(a, step.of(p[i]));
  return a;
}

// The largest or smallest float. The vector instructions return their second operand if one is NaN, so NaN is
// searched for separately, two vectors at a time.
#ifdef __AVX2__
template <bool kMax>
float fold_extreme(const float *p, int64_t n, float identity) {
  auto pick = [](__m256 v, __m256 best) { return kMax ? _mm256_max_ps(v, best) : _mm256_min_ps(v, best); };
  __m256 best[4], odd = _mm256_setzero_ps();
  for (auto &b : best) b = _mm256_set1_ps(identity);
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    const __m256 a = _mm256_loadu_ps(p + i), b = _mm256_loadu_ps(p + i + 8), c = _mm256_loadu_ps(p + i + 16),
                 d = _mm256_loadu_ps(p + i + 24);
    best[0] = pick(a, best[0]);
    best[1] = pick(b, best[1]);
    best[2] = pick(c, best[2]);
    best[3] = pick(d, best[3]);
    odd = _mm256_or_ps(odd, _mm256_or_ps(_mm256_cmp_ps(a, b, _CMP_UNORD_Q), _mm256_cmp_ps(c, d, _CMP_UNORD_Q)));
  }
  if (_mm256_movemask_ps(odd)) return std::numeric_limits<float>::quiet_NaN();
  float lane[8], top = identity;
  _mm256_storeu_ps(lane, pick(pick(best[0], best[1]), pick(best[2], best[3])));
  for (float v : lane) top = (kMax ? v > top : v < top) ? v : top;
  for (; i < n; ++i) std::conditional_t<kMax, MaxStep, MinStep>()(top, p[i]);
  return top;
}
template <>
float fold_contiguous<float, MaxStep>(const float *p, int64_t n, float identity) {
  return fold_extreme<true>(p, n, identity);
}
template <>
float fold_contiguous<float, MinStep>(const float *p, int64_t n, float identity) {
  return fold_extreme<false>(p, n, identity);
}
#endif

template <class Acc, class Step>
void fold_run(const char *p, int64_t n, int64_t stride, wide_t<Acc> &total, Acc identity, Load<Acc> load) {
  const Step step;
  if (!load && stride == sizeof(Acc)) {
    for (int64_t i = 0; i < n; i += kRun)
      step(total, static_cast<wide_t<Acc>>(fold_contiguous<Acc, Step>(reinterpret_cast<const Acc *>(p) + i,
                                                                      std::min(kRun, n - i), identity)));
    return;
  }
  Acc buffer[kBuffer];
  for (int64_t i = 0; i < n; i += kBuffer) {
    const int64_t m = std::min(kBuffer, n - i);
    const char *q = p + i * stride;
    if (load)
      load(buffer, q, stride, m);
    else
      for (int64_t j = 0; j < m; ++j) buffer[j] = *reinterpret_cast<const Acc *>(q + j * stride);
    step(total, static_cast<wide_t<Acc>>(fold_contiguous<Acc, Step>(buffer, m, identity)));
  }
}

// Calls f(byte offset, n) for runs of the positions [begin, end) of the reduced dims. The elements of a run are rin[0]
// bytes apart.
template <class F>
void reduced_runs(const ReducePlan &p, int64_t begin, int64_t end, F f) {
  const int64_t inner = p.rsize[0];
  int64_t idx[kMaxDims], rest = begin / inner, first = begin % inner, offset = 0;
  for (int d = 1; d < p.nreduced; ++d) {
    idx[d] = rest % p.rsize[d];
    rest /= p.rsize[d];
    offset += idx[d] * p.rin[d];
  }
  for (int64_t left = end - begin; left > 0;) {
    const int64_t n = std::min(left, inner - first);
    f(offset + first * p.rin[0], n);
    left -= n;
    first = 0;
    for (int d = 1; d < p.nreduced; ++d) {
      offset += p.rin[d];
      if (++idx[d] < p.rsize[d]) break;
      offset -= p.rin[d] * p.rsize[d];
      idx[d] = 0;
    }
  }
}

// The offsets in the operand and in the result of the kept position `flat`, which counts over the kept dims from `from`
// on.
void kept_offsets(const ReducePlan &p, int64_t flat, int from, int64_t *in, int64_t *out) {
  *in = *out = 0;
  for (int d = from; d < p.nkept; ++d) {
    const int64_t i = flat % p.ksize[d];
    flat /= p.ksize[d];
    *in += i * p.kin[d];
    *out += i * p.kout[d];
  }
}

// For reductions whose innermost dim is reduced.
template <class Acc, class Step>
void reduce_inner(const ReducePlan &p, const char *in, wide_t<Acc> *out, Acc identity, Load<Acc> load) {
  using Wide = wide_t<Acc>;
  auto range = [&](const char *base, int64_t b, int64_t e) {
    Wide total = static_cast<Wide>(identity);
    reduced_runs(p, b, e, [&](int64_t offset, int64_t n) {
      fold_run<Acc, Step>(base + offset, n, p.rin[0], total, identity, load);
    });
    return total;
  };
  const int64_t pieces = p.outputs <= 8 ? std::max<int64_t>(1, p.reduced / kPiece) : 1;
  std::vector<Wide> partial(pieces > 1 ? p.outputs * pieces : 0);
  parallel_for(p.outputs * pieces, std::max<int64_t>(1, kPiece / std::max<int64_t>(1, p.reduced / pieces)),
               [&](int64_t b, int64_t e) {
                 for (int64_t t = b; t < e; ++t) {
                   int64_t at, to;
                   const int64_t k = t % pieces;
                   kept_offsets(p, t / pieces, 0, &at, &to);
                   (pieces > 1 ? partial[t] : out[to]) =
                       range(in + at, p.reduced * k / pieces, p.reduced * (k + 1) / pieces);
                 }
               });
  if (pieces == 1) return;
  for (int64_t o = 0; o < p.outputs; ++o) {
    int64_t at, to;
    kept_offsets(p, o, 0, &at, &to);
    out[to] = partial[o * pieces];
    for (int64_t k = 1; k < pieces; ++k) Step()(out[to], partial[o * pieces + k]);
  }
}

template <class Acc, class Step>
void fold_rows(Acc *__restrict acc, const Acc *a, const Acc *b, const Acc *c, const Acc *d, int64_t w) {
  const Step step;
  for (int64_t j = 0; j < w; ++j) {
    Acc x = step.of(a[j]), y = step.of(c[j]);
    step(x, step.of(b[j])), step(y, step.of(d[j])), step(x, y), step(acc[j], x);
  }
}

// Reduces w neighbouring columns, the first one at `base`, over the reduced positions [b, e), and writes wide[0..w).
template <class Acc, class Step>
void fold_columns(const ReducePlan &p, const char *base, int64_t w, int64_t b, int64_t e, wide_t<Acc> *wide,
                  Acc identity, Load<Acc> load) {
  using Wide = wide_t<Acc>;
  const Step step;
  Acc acc[kTile], buffer[kTile];
  for (int64_t j = 0; j < w; ++j) wide[j] = static_cast<Wide>(identity), acc[j] = identity;
  int rows = 0;
  auto flush = [&] {
    for (int64_t j = 0; j < w; ++j) step(wide[j], static_cast<Wide>(acc[j])), acc[j] = identity;
    rows = 0;
  };
  reduced_runs(p, b, e, [&](int64_t offset, int64_t n) {
    int64_t r = 0;
    // Four rows in each pass, so that the accumulators are read and written less often
    if (!load && p.kin[0] == sizeof(Acc)) {
      for (; r + 4 <= n; r += 4) {
        const char *q = base + offset + r * p.rin[0];
        fold_rows<Acc, Step>(acc, reinterpret_cast<const Acc *>(q), reinterpret_cast<const Acc *>(q + p.rin[0]),
                             reinterpret_cast<const Acc *>(q + 2 * p.rin[0]),
                             reinterpret_cast<const Acc *>(q + 3 * p.rin[0]), w);
        if ((rows += 4) >= 64) flush();
      }
    }
    for (; r < n; ++r) {
      const char *q = base + offset + r * p.rin[0];
      const Acc *row = reinterpret_cast<const Acc *>(q);
      if (load) {
        load(buffer, q, p.kin[0], w);
        row = buffer;
      } else if (p.kin[0] != sizeof(Acc)) {
        for (int64_t j = 0; j < w; ++j) buffer[j] = *reinterpret_cast<const Acc *>(q + j * p.kin[0]);
        row = buffer;
      }
#pragma GCC ivdep
      for (int64_t j = 0; j < w; ++j) step(acc[j], step.of(row[j]));
      if (++rows >= 64) flush();
    }
  });
  if (rows) flush();
}

// For reductions whose innermost dim is kept. kTile neighbouring columns are reduced at the same time.
template <class Acc, class Step>
void reduce_outer(const ReducePlan &p, const char *in, wide_t<Acc> *out, Acc identity, Load<Acc> load) {
  using Wide = wide_t<Acc>;
  const int64_t width = std::min(p.ksize[0], kTile), tiles = (p.ksize[0] + kTile - 1) / kTile,
                outer = p.outputs / p.ksize[0];
  const int64_t pieces =
      tiles * outer <= 8 ? std::max<int64_t>(1, std::min<int64_t>(16, p.reduced * width / kPiece)) : 1;
  std::vector<Wide> partial(pieces > 1 ? pieces * outer * tiles * kTile : 0);
  const int64_t work = std::max<int64_t>(1, p.reduced * width / pieces);
  parallel_for(tiles * outer * pieces, std::max<int64_t>(1, kPiece / work), [&](int64_t b, int64_t e) {
    Wide local[kTile];
    for (int64_t t = b; t < e; ++t) {
      const int64_t k = t % pieces, j0 = t / pieces % tiles * kTile, w = std::min(kTile, p.ksize[0] - j0);
      int64_t at, to;
      kept_offsets(p, t / pieces / tiles, 1, &at, &to);
      Wide *wide = pieces > 1 ? &partial[t * kTile] : local;
      fold_columns<Acc, Step>(p, in + at + j0 * p.kin[0], w, p.reduced * k / pieces, p.reduced * (k + 1) / pieces, wide,
                              identity, load);
      if (pieces == 1)
        for (int64_t j = 0; j < w; ++j) out[to + (j0 + j) * p.kout[0]] = wide[j];
    }
  });
  if (pieces == 1) return;
  for (int64_t t = 0; t < tiles * outer; ++t) {
    int64_t at, to;
    kept_offsets(p, t / tiles, 1, &at, &to);
    const int64_t j0 = t % tiles * kTile, w = std::min(kTile, p.ksize[0] - j0);
    for (int64_t j = 0; j < w; ++j) {
      Wide total = partial[t * pieces * kTile + j];
      for (int64_t k = 1; k < pieces; ++k) Step()(total, partial[(t * pieces + k) * kTile + j]);
      out[to + (j0 + j) * p.kout[0]] = total;
    }
  }
}

// total[r] for rows of N elements that follow one another, or of `length` elements if N is 0.
template <class Acc, class Step, int N>
void fold_short_rows(const Acc *a, int64_t length, int64_t rows, Acc identity, Acc *__restrict total) {
  const Step step;
  const int64_t n = N ? N : length;
  if constexpr (N == 0 && (std::is_same_v<Step, MaxStep> || std::is_same_v<Step, MinStep>)) {
    // side by side, because a branch on an element could not be predicted
    std::fill_n(total, rows, identity);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t r = 0; r < rows; ++r) step(total[r], step.of(a[r * n + i]));
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    Acc x = identity;
    for (int64_t i = 0; i < n; ++i) step(x, step.of(a[r * n + i]));
    total[r] = x;
  }
}

// For reductions of short rows that follow one another. Their elements are converted together.
template <class Acc, class Step, class Out>
void reduce_rows(const ReducePlan &p, const char *in, Out *out, Acc identity, Load<Acc> load) {
  constexpr int64_t kRows = 256, kElements = 2048;
  const int64_t n = p.rsize[0], rows = p.ksize[0], most = std::min(kRows, kElements / n);
  const int64_t tiles = (rows + most - 1) / most;
  const auto fold = n == 2   ? fold_short_rows<Acc, Step, 2>
                    : n == 3 ? fold_short_rows<Acc, Step, 3>
                    : n == 4 ? fold_short_rows<Acc, Step, 4>
                             : fold_short_rows<Acc, Step, 0>;
  parallel_for(p.outputs / rows * tiles, std::max<int64_t>(1, kPiece / (most * n)), [&](int64_t begin, int64_t end) {
    Acc buffer[kElements], total[kRows];
    for (int64_t t = begin; t < end; ++t) {
      const int64_t first = t % tiles * most, m = std::min(most, rows - first);
      int64_t at, to;
      kept_offsets(p, t / tiles, 1, &at, &to);
      const char *q = in + at + first * p.kin[0];
      const Acc *a = reinterpret_cast<const Acc *>(q);
      if (load) {
        load(buffer, q, p.rin[0], m * n);
        a = buffer;
      }
      fold(a, n, m, identity, total);
      for (int64_t r = 0; r < m; ++r) out[to + (first + r) * p.kout[0]] = static_cast<Out>(total[r]);
    }
  });
}

bool short_rows(const ReducePlan &p, int64_t item) {
  return p.nreduced == 1 && p.rsize[0] > 1 && p.rsize[0] < kShortRow && p.ksize[0] >= kShortRows && p.rin[0] == item &&
         p.kin[0] == p.rsize[0] * item;
}

}  // namespace

bool has_short_rows(const Tensor &in, const std::vector<bool> &mask) {
  // most calls have longer rows, and need no plan to find out
  const int64_t n = reduced_count(in, mask);
  return n > 1 && n < kShortRow && in.numel >= n * kShortRows &&
         short_rows(plan_reduction(in, mask), item_size(in.dtype));
}

template <class Acc, class Step>
void reduce_short(const Tensor &in, const std::vector<bool> &mask, Acc *out, Acc identity, Load<Acc> load) {
  reduce_rows<Acc, Step>(plan_reduction(in, mask), static_cast<const char *>(in.data), out, identity, load);
}

template <class Acc, class Step>
void reduce_core(const Tensor &in, const std::vector<bool> &mask, wide_t<Acc> *out, Acc identity, Load<Acc> load) {
  const ReducePlan p = plan_reduction(in, mask);
  if (p.outputs == 0) return;
  if (p.reduced == 0) {
    for (int64_t i = 0; i < p.outputs; ++i) out[i] = static_cast<wide_t<Acc>>(identity);
    return;
  }
  if (short_rows(p, item_size(in.dtype)))
    return reduce_rows<Acc, Step>(p, static_cast<const char *>(in.data), out, identity, load);
  const bool columns = p.ksize[0] >= 4 && std::abs(p.kin[0]) < std::abs(p.rin[0]) && p.reduced > 1;
  (columns ? reduce_outer<Acc, Step> : reduce_inner<Acc, Step>)(p, static_cast<const char *>(in.data), out, identity,
                                                                load);
}

#define MSA_CORE(A, S) \
  template void reduce_core<A, S>(const Tensor &, const std::vector<bool> &, wide_t<A> *, A, Load<A>);
#define MSA_FLOAT_CORE(S) \
  MSA_CORE(float, S)      \
  template void reduce_short<float, S>(const Tensor &, const std::vector<bool> &, float *, float, Load<float>);
MSA_FLOAT_CORE(SumStep)
MSA_CORE(double, SumStep)
MSA_CORE(int64_t, SumStep)
MSA_CORE(c64, SumStep)
MSA_CORE(c128, SumStep)
MSA_FLOAT_CORE(NumberSumStep)
MSA_CORE(double, NumberSumStep)
MSA_CORE(int64_t, NumberSumStep)
MSA_CORE(c128, NumberSumStep)
MSA_FLOAT_CORE(SquareSumStep)
MSA_CORE(double, SquareSumStep)
MSA_FLOAT_CORE(ProdStep)
MSA_CORE(double, ProdStep)
MSA_CORE(int64_t, ProdStep)
MSA_CORE(c128, ProdStep)
MSA_FLOAT_CORE(MaxStep)
MSA_CORE(double, MaxStep)
MSA_CORE(int64_t, MaxStep)
MSA_FLOAT_CORE(MinStep)
MSA_CORE(double, MinStep)
MSA_CORE(int64_t, MinStep)

}  // namespace msa

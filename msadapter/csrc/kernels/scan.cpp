// Cumulative sums, products and extrema along a dim.
#include "reduce.h"

namespace msa {
namespace {

// A contiguous operand as [outer][n][inner]. There is one scan for each (outer, inner), and neighbouring inner ones are
// computed together.
struct Lines {
  int64_t outer = 1, n = 1, inner = 1;
};

Lines lines_of(const Tensor &x, int64_t dim) {
  Lines l;
  if (x.ndim) l.n = x.sizes[dim];
  for (int d = 0; d < x.ndim; ++d) (d < dim ? l.outer : d > dim ? l.inner : l.n) *= d == dim ? 1 : x.sizes[d];
  return l;
}

constexpr int64_t kTile = 128;

// Calls f(first, count) for groups of `count` neighbouring columns. `first` is the offset of the first element.
template <class F>
void each_tile(const Lines &l, F f) {
  const int64_t tiles = (l.inner + kTile - 1) / kTile, width = std::min(l.inner, kTile);
  parallel_for(l.outer * tiles, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, l.n * width)),
               [&](int64_t b, int64_t e) {
                 for (int64_t t = b; t < e; ++t) {
                   const int64_t j = t % tiles * kTile;
                   f(t / tiles * l.n * l.inner + j, std::min(kTile, l.inner - j));
                 }
               });
}

// Scans rows of contiguous elements, four rows at a time, so that the processor overlaps the additions of different
// rows.
template <class T, class Wide, class Step>
void running_rows(const T *p, T *q, const Lines &l, Wide start, Step step) {
  constexpr int R = 4;
  parallel_for((l.outer + R - 1) / R, std::max<int64_t>(1, kGrain / (l.n * R)), [&](int64_t b, int64_t e) {
    for (int64_t g = b; g < e; ++g) {
      const int64_t first = g * R, rows = std::min<int64_t>(R, l.outer - first);
      const T *in = p + first * l.n;
      T *out = q + first * l.n;
      if (rows == R) {
        Wide acc[R] = {start, start, start, start};
        for (int64_t i = 0; i < l.n; ++i)
          for (int k = 0; k < R; ++k) {
            step(acc[k], convert<Wide>(in[k * l.n + i]));
            out[k * l.n + i] = convert<T>(acc[k]);
          }
        continue;
      }
      for (int64_t k = 0; k < rows; ++k) {
        Wide acc = start;
        for (int64_t i = 0; i < l.n; ++i) {
          step(acc, convert<Wide>(in[k * l.n + i]));
          out[k * l.n + i] = convert<T>(acc);
        }
      }
    }
  });
}

template <class T, class Wide, class Step>
void running(const Tensor &x, const Tensor &o, const Lines &l, Wide start, Step step) {
  const T *p = x.ptr<T>();
  T *q = o.ptr<T>();
  if (l.inner == 1) return running_rows(p, q, l, start, step);
  each_tile(l, [&](int64_t first, int64_t w) {
    Wide acc[kTile];
    for (int64_t j = 0; j < w; ++j) acc[j] = start;
    for (int64_t i = 0; i < l.n; ++i) {
      const int64_t at = first + i * l.inner;
      for (int64_t j = 0; j < w; ++j) {
        step(acc[j], convert<Wide>(p[at + j]));
        q[at + j] = convert<T>(acc[j]);
      }
    }
  });
}

template <class Step>
void scan(Call &c, const char *op, Step step) {  // input, dim, dtype
  const Tensor &x = c.in(0);
  const DType dt = c.has(2) ? c.dtype(2) : is_integral(x.dtype) ? DType::I64 : x.dtype;
  const int64_t dim = wrap_dim(c.integer(1), x.ndim);
  Tensor o = c.out(0, dt, x.shape());
  if (o.numel == 0) return;
  const Tensor v = c.cast(x, dt);
  const Lines l = lines_of(v, dim);
  const int start = Step::start;
  switch (dt) {
    case DType::F32: return running<float, double>(v, o, l, start, step);
    case DType::F64: return running<double, double>(v, o, l, start, step);
    case DType::F16: return running<Half, float>(v, o, l, static_cast<float>(start), step);
    case DType::BF16: return running<BFloat16, float>(v, o, l, static_cast<float>(start), step);
    case DType::C64: return running<c64, c128>(v, o, l, c128(start), step);
    case DType::C128: return running<c128, c128>(v, o, l, c128(start), step);
    default: MSA_SWITCH_INT(dt, op, (running<T, int64_t>(v, o, l, start, step)));
  }
}
MSA_KERNEL(CumsumExt) { scan(c, "cumsum_out_cpu", SumStep()); }
MSA_KERNEL(Cumprod) { scan(c, "cumprod_out_cpu", ProdStep()); }

// Whether v is the new extremum after `best`. The last of equal elements is, and once an element is NaN, the last NaN
// is.
template <bool kMax, class T>
bool is_extreme(T v, T best) {
  const compute_t<T> a = v, b = best;
  return (a != a) | (kMax ? a >= b : a <= b);
}
template <bool kMax, class T>
void take_extreme(T *best, int64_t *where, T v, int64_t i) {
  const bool take = is_extreme<kMax>(v, *best);
  *best = take ? v : *best;
  *where = take ? i : *where;
}

// Rows of contiguous elements. In most rows few elements are new extrema, so blocks without one are found and filled
// first, with vectors.
template <bool kMax, class T>
void extreme_rows(const T *p, T *q, int64_t *k, const Lines &l) {
  constexpr int64_t kBlock = 32;
  parallel_for(l.outer, std::max<int64_t>(1, kGrain / l.n), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T *in = p + row * l.n;
      T *out = q + row * l.n, best = element<T>(in);
      int64_t *place = k + row * l.n, where = 0;
      for (int64_t i = 0; i < l.n; i += kBlock) {
        const int64_t n = std::min(kBlock, l.n - i);
        int any = n < kBlock;
        if (!any)
          for (int64_t j = 0; j < kBlock; ++j) any |= is_extreme<kMax>(element<T>(in + i + j), best);
        if (!any) {
          std::fill_n(out + i, kBlock, best);
          std::fill_n(place + i, kBlock, where);
          continue;
        }
        for (int64_t j = i; j < i + n; ++j) {
          if (is_extreme<kMax>(element<T>(in + j), best)) best = element<T>(in + j), where = j;
          out[j] = best;
          place[j] = where;
        }
      }
    }
  });
}

template <bool kMax, class T>
void extreme_columns(const T *p, T *q, int64_t *k, const Lines &l) {
  each_tile(l, [&](int64_t first, int64_t w) {
    T best[kTile];
    int64_t where[kTile];
    for (int64_t j = 0; j < w; ++j) best[j] = element<T>(p + first + j), where[j] = 0;
    for (int64_t i = 0; i < l.n; ++i) {
      const int64_t at = first + i * l.inner;
      for (int64_t j = 0; j < w; ++j) {
        take_extreme<kMax, T>(best + j, where + j, element<T>(p + at + j), i);
        q[at + j] = best[j];
        k[at + j] = where[j];
      }
    }
  });
}

template <bool kMax>
void running_extreme(Call &c) {  // input, dim -> values, indices
  const Tensor &x = c.in(0);
  const int64_t dim = wrap_dim(c.integer(1), x.ndim);
  Tensor o = c.out(0, x.dtype, x.shape()), at_out = c.out(1, DType::I64, x.shape());
  if (o.numel == 0) return;
  const Tensor v = c.contiguous(x);
  const Lines l = lines_of(v, dim);
  MSA_SWITCH_REAL_BOOL(x.dtype, kMax ? "cummax_cpu" : "cummin_cpu", ({
                         const auto f = l.inner == 1 ? extreme_rows<kMax, T> : extreme_columns<kMax, T>;
                         f(v.ptr<T>(), o.ptr<T>(), at_out.ptr<int64_t>(), l);
                       }));
}
MSA_KERNEL(Cummax) { running_extreme<true>(c); }
MSA_KERNEL(CumminExt) { running_extreme<false>(c); }

struct LogAdd {
  template <class A>
  void operator()(A &a, const A &b) const {
    if constexpr (is_complex_v<A>) {
      const bool larger = a.real() >= b.real();
      const A hi = larger ? a : b, lo = larger ? b : a;
      if (std::isinf(hi.real()) && hi.real() < 0) return;
      a = hi + std::log(A(1) + std::exp(lo - hi));
    } else {
      if (std::isnan(a) || std::isnan(b)) {
        a = std::numeric_limits<A>::quiet_NaN();
        return;
      }
      const A hi = std::max(a, b), lo = std::min(a, b);
      a = std::isinf(hi) && hi == lo ? hi : hi + std::log1p(std::exp(lo - hi));
    }
  }
};
MSA_KERNEL(LogCumsumExp) {  // input, dim
  const Tensor &x = c.in(0);
  const int64_t dim = wrap_dim(c.integer(1), x.ndim);
  Tensor o = c.out(0, x.dtype, x.shape());
  if (o.numel == 0) return;
  const Tensor v = c.contiguous(x);
  const Lines l = lines_of(v, dim);
  const double low = -std::numeric_limits<double>::infinity();
  switch (x.dtype) {
    case DType::F32: return running<float, double>(v, o, l, low, LogAdd());
    case DType::F64: return running<double, double>(v, o, l, low, LogAdd());
    case DType::F16: return running<Half, double>(v, o, l, low, LogAdd());
    case DType::BF16: return running<BFloat16, double>(v, o, l, low, LogAdd());
    case DType::C64: return running<c64, c128>(v, o, l, c128(low), LogAdd());
    case DType::C128: return running<c128, c128>(v, o, l, c128(low), LogAdd());
    default: unsupported("logcumsumexp_out_cpu", x.dtype);
  }
}

}  // namespace
}  // namespace msa

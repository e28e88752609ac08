// softmax and log_softmax along one dim with their gradients.
#include "rows.h"
#include "stepwise.h"

namespace msa {
namespace {

constexpr int kColumns = 64;  // columns handled together when the dim is not the last

template <bool Log, class T>
void row(const T *x, T *y, int64_t n, compute_t<T> *buffer) {
  using C = compute_t<T>;
  const C *v = rows::widen<T>(x, buffer, n);
  const C top = rows::max<C>(n, [=](int64_t i) { return v[i]; });
  if constexpr (Log) {
    // 16-bit rows round the sum and its logarithm to their own type, as in PyTorch
    const C total = convert<C>(convert<T>(rows::exp_sum(v, n, top)));
    const C shift = convert<C>(convert<T>(std::log(total)));
    // the largest element first: a sum of both would lose the logarithm's digits beside a large element
    rows::store(y, buffer, n, [=](int64_t i) { return v[i] - top - shift; });
  } else {
    C *e;
    if constexpr (std::is_same_v<T, C>)
      e = y;
    else
      e = buffer;
    const C scale = C(1) / rows::exp_sum(v, e, n, top);
    rows::store(y, buffer, n, [=](int64_t i) { return e[i] * scale; });
  }
}

// ---- rows of fewer than kShortRow elements. kColumns of them are transposed, so that a vector has elements of
// different rows, and computed as row() and row_grad() do it.
constexpr int64_t kShortRow = 32;

template <class T>
void transpose_rows(const T *x, int64_t n, int64_t rows, compute_t<T> *tile) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < n; ++i) tile[i * kColumns + r] = convert<compute_t<T>>(x[r * n + i]);
}
template <class T>
void transpose_back(const compute_t<T> *tile, int64_t n, int64_t rows, T *y) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < n; ++i) y[r * n + i] = convert<T>(tile[i * kColumns + r]);
}

template <bool Log, class T>
void short_rows(const T *x, T *y, int64_t n, int64_t rows, compute_t<T> *tile) {
  using C = compute_t<T>;
  C top[kColumns], total[kColumns] = {};
  transpose_rows(x, n, rows, tile);
  std::fill(top, top + kColumns, -std::numeric_limits<C>::infinity());
  for (int64_t i = 0; i < n; ++i)
    for (int64_t r = 0; r < rows; ++r) {
      const C v = tile[i * kColumns + r];
      top[r] = v > top[r] ? v : top[r];
    }
  for (int64_t i = 0; i < n; ++i)
    for (int64_t r = 0; r < rows; ++r) {
      const C e = vec::exp(tile[i * kColumns + r] - top[r]);
      total[r] += e;
      if (!Log) tile[i * kColumns + r] = e;
    }
  if (Log) {
    for (int64_t r = 0; r < rows; ++r) total[r] = convert<C>(convert<T>(total[r]));
    for (int64_t r = 0; r < rows; ++r) total[r] = vec::log(total[r]);
    for (int64_t r = 0; r < rows; ++r) total[r] = convert<C>(convert<T>(total[r]));
  } else {
    for (int64_t r = 0; r < rows; ++r) total[r] = C(1) / total[r];
  }
  for (int64_t i = 0; i < n; ++i)
    for (int64_t r = 0; r < rows; ++r) {
      C &v = tile[i * kColumns + r];
      v = Log ? v - top[r] - total[r] : v * total[r];
    }
  transpose_back(tile, n, rows, y);
}

// `tile` has room for three times n * kColumns numbers.
template <bool Log, class T>
void short_rows_grad(const T *y, const T *g, T *dx, int64_t n, int64_t rows, compute_t<T> *tile) {
  using C = compute_t<T>;
  C *const results = tile, *const grads = tile + n * kColumns, *const sums = grads + n * kColumns;
  transpose_rows(y, n, rows, results);
  transpose_rows(g, n, rows, grads);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = i * kColumns + r;
      sums[at] = Log ? grads[at] : grads[at] * results[at];
    }
  for (int64_t half = kShortRow / 2; half > 0; half /= 2)  // in the order of rows::sum()
    for (int64_t i = 0; i < half && i + half < n; ++i)
      for (int64_t r = 0; r < rows; ++r) sums[i * kColumns + r] += sums[(i + half) * kColumns + r];
  for (int64_t i = 0; i < n; ++i)
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = i * kColumns + r;
      results[at] = Log ? grads[at] - vec::exp(results[at]) * sums[r] : results[at] * (grads[at] - sums[r]);
    }
  transpose_back(results, n, rows, dx);
}

// Columns from `rounded` on round the exponentials to 16 bits. PyTorch's scalar loop, which handles these columns,
// does so.
template <bool Log, class T>
void column_block(const T *x, T *y, int64_t n, int64_t step, int64_t width, int64_t rounded) {
  using C = compute_t<T>;
  C top[kColumns], total[kColumns] = {};
  std::fill(top, top + kColumns, -std::numeric_limits<C>::infinity());
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < width; ++j) {
      const C v = convert<C>(x[i * step + j]);
      top[j] = v > top[j] ? v : top[j];
    }
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < width; ++j) total[j] += vec::exp(convert<C>(x[i * step + j]) - top[j]);
  for (int64_t j = 0; j < width; ++j) total[j] = Log ? std::log(total[j]) : C(1) / total[j];
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < width; ++j) {
      const C v = convert<C>(x[i * step + j]);
      y[i * step + j] = convert<T>(Log ? v - top[j] - total[j] : vec::exp(v - top[j]) * total[j]);
    }
  if constexpr (!Log && !std::is_same_v<T, C>)
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = std::max<int64_t>(0, rounded); j < width; ++j)
        y[i * step + j] = convert<T>(convert<C>(convert<T>(vec::exp(convert<C>(x[i * step + j]) - top[j]))) * total[j]);
}

// For y = softmax(x), dx = y (g - sum(g y)). For y = log_softmax(x), dx = g - exp(y) sum(g).
template <bool Log, class T>
void row_grad(const T *y, const T *g, T *dx, int64_t n) {
  using C = compute_t<T>;
  if constexpr (Log) {
    const C s = rows::sum<C>(n, [=](int64_t i) { return convert<C>(g[i]); });
    for (int64_t i = 0; i < n; ++i) dx[i] = convert<T>(convert<C>(g[i]) - vec::exp(convert<C>(y[i])) * s);
  } else {
    const C s = rows::sum<C>(n, [=](int64_t i) { return convert<C>(g[i]) * convert<C>(y[i]); });
    for (int64_t i = 0; i < n; ++i) dx[i] = convert<T>(convert<C>(y[i]) * (convert<C>(g[i]) - s));
  }
}

template <bool Log, class T>
void column_block_grad(const T *y, const T *g, T *dx, int64_t n, int64_t step, int64_t width) {
  using C = compute_t<T>;
  C total[kColumns] = {};
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < width; ++j)
      total[j] += convert<C>(g[i * step + j]) * (Log ? C(1) : convert<C>(y[i * step + j]));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < width; ++j) {
      const C gi = convert<C>(g[i * step + j]), yi = convert<C>(y[i * step + j]);
      dx[i * step + j] = convert<T>(Log ? gi - vec::exp(yi) * total[j] : yi * (gi - total[j]));
    }
}

// Calls on_columns(offset, width) for blocks of neighbouring columns if the dim is not the last one. If it is, calls
// on_row(offset, buffer) for every row, or on_short(offset, rows, buffer) for several short ones.
template <class C, class R, class S, class K>
void walk(const rows::Split &s, R on_row, S on_short, K on_columns) {
  if (s.n == 0) return;
  if (s.inner == 1 && s.n < kShortRow && s.outer >= kShortRow) {
    parallel_for(s.outer, rows::grain_for(s.n), [&](int64_t begin, int64_t end) {
      rows::Buffer<C> buffer(3 * s.n * kColumns);
      for (int64_t i = begin; i < end; i += kColumns)
        on_short(i * s.n, std::min<int64_t>(kColumns, end - i), buffer.get());
    });
    return;
  }
  if (s.inner == 1) {
    parallel_for(s.outer, rows::grain_for(s.n), [&](int64_t begin, int64_t end) {
      rows::Buffer<C> buffer(s.n);
      for (int64_t i = begin; i < end; ++i) on_row(i * s.n, buffer.get());
    });
    return;
  }
  const int64_t blocks = (s.inner + kColumns - 1) / kColumns;
  parallel_for(s.outer * blocks, rows::grain_for(s.n * kColumns), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b % blocks * kColumns;
      on_columns(b / blocks * s.n * s.inner + first, std::min<int64_t>(kColumns, s.inner - first));
    }
  });
}

template <bool Log>
void forward(Call &c, int64_t dim, const char *name) {
  const Tensor &in = c.in(0);
  const rows::Split s(in, wrap_dim(dim, in.ndim));
  const Tensor x = c.contiguous(in), o = c.out_like(0, x);
  MSA_SWITCH_FLOAT(x.dtype, name, ({
                     const T *from = x.ptr<T>();
                     T *to = o.ptr<T>();
                     walk<compute_t<T>>(
                         s, [&](int64_t at, compute_t<T> *buffer) { row<Log, T>(from + at, to + at, s.n, buffer); },
                         [&](int64_t at, int64_t rows, compute_t<T> *buffer) {
                           short_rows<Log, T>(from + at, to + at, s.n, rows, buffer);
                         },
                         [&](int64_t at, int64_t width) {
                           const int64_t scalar = s.inner - s.inner % (kVectorBytes / 2);
                           column_block<Log, T>(from + at, to + at, s.n, s.inner, width, scalar - at % s.inner);
                         });
                   }));
}

template <bool Log>
void backward(Call &c, const Tensor &result, const Tensor &grad, int64_t dim, const char *name) {
  const rows::Split s(result, wrap_dim(dim, result.ndim));
  const Tensor y = c.contiguous(result), g = c.contiguous(c.cast(grad, result.dtype)), o = c.out_like(0, y);
  MSA_SWITCH_FLOAT(y.dtype, name, ({
                     const T *py = y.ptr<T>();
                     const T *pg = g.ptr<T>();
                     T *to = o.ptr<T>();
                     walk<compute_t<T>>(
                         s, [&](int64_t at, compute_t<T> *) { row_grad<Log, T>(py + at, pg + at, to + at, s.n); },
                         [&](int64_t at, int64_t rows, compute_t<T> *buffer) {
                           short_rows_grad<Log, T>(py + at, pg + at, to + at, s.n, rows, buffer);
                         },
                         [&](int64_t at, int64_t width) {
                           column_block_grad<Log, T>(py + at, pg + at, to + at, s.n, s.inner, width);
                         });
                   }));
}

}  // namespace

MSA_KERNEL(Softmax) {  // input, axis (tuple of one)
  forward<false>(c, c.args[1].kind == Arg::kInts ? c.ints(1)[0] : c.integer(1), "softmax_lastdim_kernel_impl");
}
MSA_KERNEL(LogSoftmax) {  // input, axis
  forward<true>(c, c.integer(1), "log_softmax_lastdim_kernel_impl");
}
MSA_KERNEL(LogSoftmaxExt) {  // input, dim?, dtype? (the caller has cast)
  const int nd = c.in(0).ndim;
  forward<true>(c, c.has(1) ? c.integer(1) : (nd == 0 || nd == 1 || nd == 3 ? 0 : 1),
                "log_softmax_lastdim_kernel_impl");
}
MSA_KERNEL(SoftmaxBackward) {
  backward<false>(c, c.in(1), c.in(0), c.integer(2), "softmax_backward");
}  // grad, result, dim
MSA_KERNEL(LogSoftmaxGrad) {
  backward<true>(c, c.in(0), c.in(1), c.integer(2), "log_softmax_backward");
}  // result, grad, dim

}  // namespace msa

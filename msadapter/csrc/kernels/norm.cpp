// Normalisation over the last dims: layer_norm and rms_norm, with gradients.
#include "rows.h"

namespace msa {
namespace {

struct Shape {
  int64_t outer = 1, n = 1;
  Dims stats;  // the shape of the input, with ones in the normalised dims
};

Shape split_shape(const Tensor &x, const Dims &normalized) {
  const int k = static_cast<int>(normalized.size());
  bool fits = k >= 1 && x.ndim >= k;
  for (int d = 0; fits && d < k; ++d) fits = x.sizes[x.ndim - k + d] == normalized[d];
  if (!fits) {
    check(k >= 1,
          "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
          "normalized_shape = []");
    std::string expected = "[*";
    for (int64_t s : normalized) expected += ", " + std::to_string(s);
    fail("Given normalized_shape=", normalized, ", expected input with shape ", expected, "], but got input of size",
         x.shape());
  }
  Shape s;
  s.stats = x.shape();
  for (int d = 0; d < x.ndim; ++d) {
    if (d < x.ndim - k)
      s.outer *= x.sizes[d];
    else {
      s.n *= x.sizes[d];
      s.stats[d] = 1;
    }
  }
  return s;
}

template <class T>
DType compute_dtype() {
  return dtype_of<compute_t<T>>::value;
}

template <class T, bool Rms>
void forward_rows(const Shape &s, const T *x, const compute_t<T> *w, const compute_t<T> *b, double eps, T *y,
                  compute_t<T> *mean, compute_t<T> *rstd) {
  using C = compute_t<T>;
  const int64_t n = s.n;
  parallel_for(s.outer, rows::grain_for(n), [&](int64_t begin, int64_t end) {
    rows::Buffer<C> buffer(n);
    for (int64_t r = begin; r < end; ++r) {
      const C *v = rows::widen<T>(x + r * n, buffer.get(), n);
      const C m = Rms ? C(0) : rows::sum<C>(n, [=](int64_t i) { return v[i]; }) / static_cast<C>(n);
      const C var = rows::sum<C>(n, [=](int64_t i) { return (v[i] - m) * (v[i] - m); }) / static_cast<C>(n);
      const C scale = C(1) / std::sqrt(var + static_cast<C>(eps));
      if (!Rms) mean[r] = m;
      rstd[r] = scale;
      T *o = y + r * n;
      C *sums = buffer;
      if (w && b)
        rows::store(o, sums, n, [=](int64_t i) { return (v[i] - m) * scale * w[i] + b[i]; });
      else if (w)
        rows::store(o, sums, n, [=](int64_t i) { return (v[i] - m) * scale * w[i]; });
      else if (b)
        rows::store(o, sums, n, [=](int64_t i) { return (v[i] - m) * scale + b[i]; });
      else
        rows::store(o, sums, n, [=](int64_t i) { return (v[i] - m) * scale; });
    }
  });
}

// dx = rstd (dy w - mean(dy w) - xhat mean(dy w xhat)); the middle term is absent for rms_norm.
template <class T, bool Rms>
void input_grad_rows(const Shape &s, const T *dy, const T *x, const compute_t<T> *mean, const compute_t<T> *rstd,
                     const compute_t<T> *w, T *dx) {
  using C = compute_t<T>;
  const int64_t n = s.n;
  parallel_for(s.outer, rows::grain_for(2 * n), [&](int64_t begin, int64_t end) {
    rows::Buffer<C> xs(n), gs(n);
    for (int64_t r = begin; r < end; ++r) {
      const C m = Rms ? C(0) : mean[r], scale = rstd[r];
      C *xhat = xs, *g = gs;
      const C *v = rows::widen<T>(x + r * n, xhat, n), *d = rows::widen<T>(dy + r * n, g, n);
      for (int64_t i = 0; i < n; ++i) {
        xhat[i] = (v[i] - m) * scale;
        g[i] = d[i];
      }
      if (w)
        for (int64_t i = 0; i < n; ++i) g[i] *= w[i];
      const C a = Rms ? C(0) : rows::sum<C>(n, [=](int64_t i) { return g[i]; }) / static_cast<C>(n);
      const C b = rows::sum<C>(n, [=](int64_t i) { return g[i] * xhat[i]; }) / static_cast<C>(n);
      T *o = dx + r * n;
      rows::store(o, g, n, [=](int64_t i) { return (g[i] - a - xhat[i] * b) * scale; });
    }
  });
}

// dw is the sum of dy xhat over the rows, and db is the sum of dy. Partial sums of a fixed number of blocks of rows are
// added, so that the result does not depend on the number of threads.
template <class T, bool Rms>
void parameter_grad(const Shape &s, const T *dy, const T *x, const compute_t<T> *mean, const compute_t<T> *rstd,
                    compute_t<T> *dw, compute_t<T> *db) {
  using C = compute_t<T>;
  const int64_t n = s.n, blocks = std::clamp<int64_t>(s.outer / 16, 1, 32), step = (s.outer + blocks - 1) / blocks;
  rows::Buffer<C> partial(blocks * 2 * n);
  std::fill(partial.get(), partial.get() + blocks * 2 * n, C(0));
  parallel_for(blocks, rows::grain_for(step * n), [&](int64_t begin, int64_t end) {
    for (int64_t blk = begin; blk < end; ++blk) {
      C *pw = partial + blk * 2 * n, *pb = pw + n;
      for (int64_t r = blk * step; r < std::min(s.outer, (blk + 1) * step); ++r) {
        const C m = Rms ? C(0) : mean[r], scale = rstd[r];
        const T *g = dy + r * n, *v = x + r * n;
        // Computed as x * rstd - mean * rstd, like PyTorch: with a large rstd, the rounding of the second product is
        // visible.
        const C shift = -m * scale;
        for (int64_t i = 0; i < n; ++i) pw[i] += convert<C>(g[i]) * (convert<C>(v[i]) * scale + shift);
        if (db)
          for (int64_t i = 0; i < n; ++i) pb[i] += convert<C>(g[i]);
      }
    }
  });
  for (int64_t i = 0; i < n; ++i) {
    C a = 0, b = 0;
    for (int64_t blk = 0; blk < blocks; ++blk) {
      a += partial[blk * 2 * n + i];
      b += partial[blk * 2 * n + n + i];
    }
    if (dw) dw[i] = a;
    if (db) db[i] = b;
  }
}

// The same for 16-bit parameters. As in PyTorch on a CPU, each thread sums its rows in the type of the parameters and
// rounds at every row. The result therefore depends on the number of threads, as it does in PyTorch.
template <class T>
void rounded_parameter_grad(const Shape &s, const T *dy, const T *x, const compute_t<T> *mean, const compute_t<T> *rstd,
                            compute_t<T> *dw, compute_t<T> *db) {
  using C = compute_t<T>;
  const int64_t n = s.n, threads = num_threads(), step = (s.outer + threads - 1) / threads;
  rows::Buffer<T> partial(threads * 2 * n);
  std::fill(partial.get(), partial.get() + threads * 2 * n, convert<T>(C(0)));
  parallel_for(threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      T *pw = partial + part * 2 * n, *pb = pw + n;
      for (int64_t r = part * step; r < std::min(s.outer, (part + 1) * step); ++r) {
        const T *g = dy + r * n, *v = x + r * n;
        const C scale = rstd[r], shift = -mean[r] * scale;
        for (int64_t i = 0; i < n; ++i) {
          const C gi = convert<C>(g[i]);
          pw[i] = convert<T>(convert<C>(pw[i]) + gi * (convert<C>(v[i]) * scale + shift));
          pb[i] = convert<T>(convert<C>(pb[i]) + gi);
        }
      }
    }
  });
  for (int64_t i = 0; i < n; ++i) {
    T a = convert<T>(C(0)), b = a;
    for (int64_t part = 0; part < threads; ++part) {
      a = convert<T>(convert<C>(a) + convert<C>(partial[part * 2 * n + i]));
      b = convert<T>(convert<C>(b) + convert<C>(partial[part * 2 * n + n + i]));
    }
    dw[i] = convert<C>(a);
    db[i] = convert<C>(b);
  }
}

// Creates result `index` with the shape and type of a parameter, from sums in the compute type.
template <class C>
void store_parameter(Call &c, int index, const Tensor &like, const C *sums) {
  Tensor o = c.out(index, like.dtype, like.shape());
  copy_into(o, contiguous_tensor(const_cast<C *>(sums), dtype_of<C>::value, like.shape()));
}

template <class T>
void layer_norm(Call &c) {
  using C = compute_t<T>;
  const Tensor &in = c.in(0);
  const Shape s = split_shape(in, c.ints(1));
  const Tensor x = c.contiguous(in), y = c.out_like(0, x);
  // The statistics have the type of the parameters. With 16-bit parameters they are rounded, as in PyTorch.
  const DType stats = c.has(2) ? c.in(2).dtype : in.dtype;
  const rows::Stats<C> mean(c, 1, stats, s.stats), rstd(c, 2, stats, s.stats);
  forward_rows<T, false>(s, x.ptr<T>(), rows::parameter<C>(c, 2), rows::parameter<C>(c, 3), c.number(4), y.ptr<T>(),
                         mean.data(), rstd.data());
  mean.finish();
  rstd.finish();
}

template <class T>
void layer_norm_grad(Call &c) {
  using C = compute_t<T>;
  const Shape s = split_shape(c.in(1), c.ints(2));
  const Tensor x = c.contiguous(c.in(1)), dy = c.cast(c.in(0), x.dtype);
  const C *mean = rows::parameter<C>(c, 3), *rstd = rows::parameter<C>(c, 4), *w = rows::parameter<C>(c, 5);
  const Dims mask = c.has(7) ? c.ints(7) : Dims{1, c.has(5), c.has(6)};
  if (mask[0]) input_grad_rows<T, false>(s, dy.ptr<T>(), x.ptr<T>(), mean, rstd, w, c.out_like(0, x).template ptr<T>());
  if (!mask[1] && !mask[2]) return;
  rows::Buffer<C> dw(s.n), db(s.n);
  const bool rounded = !std::is_same_v<T, C> && c.in(mask[1] ? 5 : 6).dtype == x.dtype;
  if (rounded)
    rounded_parameter_grad<T>(s, dy.ptr<T>(), x.ptr<T>(), mean, rstd, dw, db);
  else
    parameter_grad<T, false>(s, dy.ptr<T>(), x.ptr<T>(), mean, rstd, dw, mask[2] ? db.get() : nullptr);
  if (mask[1]) store_parameter<C>(c, 1, c.in(5), dw);
  if (mask[2]) store_parameter<C>(c, 2, c.in(6), db);
}

// The normalised dims of rms_norm are those of gamma. Without gamma it is the last dim.
Dims rms_shape(const Tensor &x, Call &c, int gamma) { return c.has(gamma) ? c.in(gamma).shape() : Dims{x.size(-1)}; }

template <class T>
void rms_norm(Call &c, const Dims &normalized, int gamma, double eps) {
  using C = compute_t<T>;
  const Shape s = split_shape(c.in(0), normalized);
  const Tensor x = c.contiguous(c.in(0)), y = c.out_like(0, x), rstd = c.out(1, compute_dtype<T>(), s.stats);
  forward_rows<T, true>(s, x.ptr<T>(), rows::parameter<C>(c, gamma), nullptr, eps, y.ptr<T>(), nullptr, rstd.ptr<C>());
}

template <class T>
void rms_norm_grad(Call &c, const Dims &normalized, int gamma) {
  using C = compute_t<T>;
  const Shape s = split_shape(c.in(1), normalized);
  const Tensor x = c.contiguous(c.in(1)), dy = c.cast(c.in(0), x.dtype);
  const C *rstd = rows::parameter<C>(c, 2), *w = rows::parameter<C>(c, gamma);
  input_grad_rows<T, true>(s, dy.ptr<T>(), x.ptr<T>(), nullptr, rstd, w, c.out_like(0, x).template ptr<T>());
  if (!w) return;
  rows::Buffer<C> dw(s.n);
  parameter_grad<T, true>(s, dy.ptr<T>(), x.ptr<T>(), nullptr, rstd, dw, nullptr);
  store_parameter<C>(c, 1, c.in(gamma), dw);
}

}  // namespace

MSA_KERNEL(LayerNormExt) {  // input, normalized_shape, weight?, bias?, eps -> output, mean, rstd
  MSA_SWITCH_FLOAT(c.in(0).dtype, "LayerNormKernelImpl", (layer_norm<T>(c)));
}
MSA_KERNEL(
    LayerNormGradExt) {  // dy, x, normalized_shape, mean, rstd, weight?, bias?, output_mask -> dx, dweight, dbias
  MSA_SWITCH_FLOAT(c.in(1).dtype, "LayerNormBackwardKernelImpl", (layer_norm_grad<T>(c)));
}
MSA_KERNEL(RmsNorm) {  // x, gamma, eps -> y, rstd
  MSA_SWITCH_FLOAT(c.in(0).dtype, "rms_norm", (rms_norm<T>(c, rms_shape(c.in(0), c, 1), 1, c.number(2))));
}
MSA_KERNEL(RmsNormGrad) {  // dy, x, rstd, gamma -> dx, dgamma
  MSA_SWITCH_FLOAT(c.in(1).dtype, "rms_norm_backward", (rms_norm_grad<T>(c, rms_shape(c.in(1), c, 3), 3)));
}

}  // namespace msa

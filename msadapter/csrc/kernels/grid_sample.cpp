// Sampling of an image at the positions of a grid, with gradients to image and grid. Every position gives, per spatial
// dim, a few source indices with weights and with the slopes of these weights.
#include <cmath>

#include "conv.h"

namespace msa {
namespace {

enum Interpolation : int64_t { kBilinear = 0, kNearest = 1, kBicubic = 2 };
enum Padding : int64_t { kZeros = 0, kBorder = 1, kReflection = 2 };

template <class C> struct Taps {
  int count = 0;
  int64_t index[4];
  C weight[4], slope[4];
};

// x mirrored into [low / 2, high / 2]; the sign of the slope goes to *slope.
template <class C> C mirrored(C x, int64_t low, int64_t high, C *slope) {
  if (low == high) {
    *slope = 0;
    return 0;
  }
  const C begin = static_cast<C>(low) / 2, span = static_cast<C>(high - low) / 2;
  x -= begin;
  C sign = 1;
  if (x < 0) {
    x = -x;
    sign = -1;
  }
  const C extra = std::fmod(x, span);
  const bool even = static_cast<int64_t>(std::floor(x / span)) % 2 == 0;
  *slope *= even ? sign : -sign;
  return even ? extra + begin : span - extra + begin;
}
template <class C> C bounded(C x, int64_t size, int64_t padding, bool corners, C *slope) {
  if (padding == kReflection) x = corners ? mirrored<C>(x, 0, 2 * (size - 1), slope) : mirrored<C>(x, -1, 2 * size - 1, slope);
  if (padding != kZeros) {
    const C last = static_cast<C>(size - 1);
    if (!(x > 0)) {
      if (x < 0 || x != x || padding == kBorder) *slope = 0;
      x = 0;
    } else if (x >= last) {
      if (x > last || padding == kBorder) *slope = 0;
      x = last;
    }
  }
  return x;
}

template <class C> void cubic_weights(C f, C *w, C *s) {
  const C a = C(-0.75);
  for (int k = 0; k < 4; ++k) {
    const C signed_distance = f - static_cast<C>(k - 1), d = std::abs(signed_distance), sign = signed_distance < 0 ? C(-1) : C(1);
    if (k == 1 || k == 2) {
      w[k] = ((a + 2) * d - (a + 3)) * d * d + 1;
      s[k] = (3 * (a + 2) * d - 2 * (a + 3)) * d * sign;
    } else {
      w[k] = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
      s[k] = ((3 * a * d - 10 * a) * d + 8 * a) * sign;
    }
  }
}

template <class C> Taps<C> taps_of(C at, int64_t size, int64_t mode, int64_t padding, bool corners) {
  Taps<C> t;
  C slope = corners ? static_cast<C>(size - 1) / 2 : static_cast<C>(size) / 2;
  C x = corners ? (at + 1) / 2 * static_cast<C>(size - 1) : ((at + 1) * static_cast<C>(size) - 1) / 2;
  auto put = [&](int64_t i, C w, C s) {
    if (i < 0 || i >= size) return;
    t.index[t.count] = i;
    t.weight[t.count] = w;
    t.slope[t.count++] = s;
  };
  if (mode == kBicubic) {
    const C low = std::floor(x);
    C w[4], s[4];
    cubic_weights<C>(x - low, w, s);
    for (int k = 0; k < 4; ++k) {
      C unused = 1;
      const C where = bounded<C>(low - 1 + static_cast<C>(k), size, padding, corners, &unused);
      put(static_cast<int64_t>(where), w[k], s[k] * slope);
    }
    return t;
  }
  x = bounded<C>(x, size, padding, corners, &slope);
  if (!(std::abs(x) < C(1e15))) return t;  // infinite or NaN: outside of everything
  if (mode == kNearest) {
    put(static_cast<int64_t>(std::nearbyint(x)), 1, 0);
    return t;
  }
  const int64_t i = static_cast<int64_t>(std::floor(x));
  const C f = x - static_cast<C>(i);
  put(i, 1 - f, -slope);
  put(i + 1, f, slope);
  return t;
}

struct Sampler {
  int spatial;
  int64_t n, channels, size[3] = {1, 1, 1}, positions = 1, pixels = 1, mode, padding;
  bool corners;
  Sampler(const Tensor &x, const Tensor &grid, int64_t m, int64_t p, bool align) : spatial(x.ndim - 2), mode(m), padding(p), corners(align) {
    check(spatial >= 2 && spatial <= 3 && grid.ndim == x.ndim, "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, "
          "but got input with sizes ", x.shape(), " and grid with sizes ", grid.shape());
    check(x.size(0) == grid.size(0), "grid_sampler(): expected grid and input to have same batch size, but got input with sizes ", x.shape(),
          " and grid with sizes ", grid.shape());
    check(grid.size(-1) == spatial, "grid_sampler(): expected grid to have size ", spatial, " in last dimension, but got grid with sizes ", grid.shape());
    n = x.size(0);
    channels = x.size(1);
    for (int d = 0; d < spatial; ++d) {
      size[3 - spatial + d] = x.size(d + 2);
      check(x.size(d + 2) > 0, "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes ", x.shape(),
            " with dimension ", d + 2, " being empty");
      pixels *= x.size(d + 2);
      positions *= grid.size(d + 1);
    }
  }
  template <class T, class C> void taps(const T *at, Taps<C> *t) const {
    for (int d = 0; d < 3; ++d) {
      const int coordinate = 2 - d;  // the grid gives x, y, z: the last dim first
      if (coordinate < spatial) t[d] = taps_of<C>(convert<C>(at[coordinate]), size[d], mode, padding, corners);
      else {
        t[d].count = 1;
        t[d].index[0] = 0;
        t[d].weight[0] = 1;
        t[d].slope[0] = 0;
      }
    }
  }
  // f(pixel, weights of the three dims, slopes)
  template <class C, class F> void each(const Taps<C> *t, F f) const {
    for (int i = 0; i < t[0].count; ++i)
      for (int j = 0; j < t[1].count; ++j)
        for (int k = 0; k < t[2].count; ++k)
          f((t[0].index[i] * size[1] + t[1].index[j]) * size[2] + t[2].index[k], t[0].weight[i], t[1].weight[j], t[2].weight[k],
            t[0].slope[i], t[1].slope[j], t[2].slope[k]);
  }
};

template <class T> void sample(const Sampler &s, const T *x, const T *grid, T *y) {
  using C = compute_t<T>;
  parallel_for(s.n * s.positions, 512, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / s.positions, at = i % s.positions;
      Taps<C> t[3];
      s.taps<T, C>(grid + i * s.spatial, t);
      for (int64_t c = 0; c < s.channels; ++c) {
        const T *plane = x + (image * s.channels + c) * s.pixels;
        C sum = 0;
        s.each<C>(t, [&](int64_t p, C a, C b, C d, C, C, C) { sum += a * b * d * convert<C>(plane[p]); });
        y[(image * s.channels + c) * s.positions + at] = convert<T>(sum);
      }
    }
  });
}

template <class T> void sample_grad(const Sampler &s, const T *g, const T *x, const T *grid, T *dx, T *dgrid) {
  using C = compute_t<T>;
  parallel_for(s.n, 1, [&](int64_t begin, int64_t end) {
    std::vector<C> sums(dx ? s.channels * s.pixels : 0);
    for (int64_t image = begin; image < end; ++image) {
      std::fill(sums.begin(), sums.end(), C(0));
      for (int64_t at = 0; at < s.positions; ++at) {
        const int64_t i = image * s.positions + at;
        Taps<C> t[3];
        s.taps<T, C>(grid + i * s.spatial, t);
        C slope[3] = {0, 0, 0};
        for (int64_t c = 0; c < s.channels; ++c) {
          const C gi = convert<C>(g[(image * s.channels + c) * s.positions + at]);
          const T *plane = x + (image * s.channels + c) * s.pixels;
          s.each<C>(t, [&](int64_t p, C a, C b, C d, C sa, C sb, C sd) {
            if (dx) sums[c * s.pixels + p] += gi * a * b * d;
            const C v = gi * convert<C>(plane[p]);
            slope[0] += v * sa * b * d;
            slope[1] += v * a * sb * d;
            slope[2] += v * a * b * sd;
          });
        }
        if (dgrid) for (int k = 0; k < s.spatial; ++k) dgrid[i * s.spatial + k] = convert<T>(slope[2 - k]);
      }
      if (dx) for (int64_t j = 0; j < s.channels * s.pixels; ++j) dx[image * s.channels * s.pixels + j] = convert<T>(sums[j]);
    }
  });
}

void forward(Call &c) {  // input, grid, interpolation, padding, align_corners
  const Tensor x = c.contiguous(c.in(0)), grid = c.contiguous(c.in(1));
  check(x.dtype == grid.dtype, "grid_sampler(): expected input and grid to have same dtype, but input has ", x.dtype, " and grid has ", grid.dtype);
  const Sampler s(x, grid, c.integer(2), c.integer(3), c.flag(4));
  Dims shape{s.n, s.channels};
  for (int d = 0; d < s.spatial; ++d) shape.push_back(grid.size(d + 1));
  const Tensor o = c.out(0, x.dtype, shape);
  MSA_SWITCH_FLOAT(x.dtype, "grid_sampler_2d_cpu_kernel_impl", (sample<T>(s, x.ptr<T>(), grid.ptr<T>(), o.ptr<T>())));
}
void backward(Call &c) {  // grad, input, grid, interpolation, padding, align_corners, output_mask
  const Tensor g = c.contiguous(c.in(0)), x = c.contiguous(c.in(1)), grid = c.contiguous(c.in(2));
  const Sampler s(x, grid, c.integer(3), c.integer(4), c.flag(5));
  const Dims &mask = c.ints(6);
  void *dx = mask[0] ? c.out_like(0, x).data : nullptr, *dgrid = mask[1] ? c.out_like(1, grid).data : nullptr;
  MSA_SWITCH_FLOAT(x.dtype, "grid_sampler_2d_backward", (sample_grad<T>(s, g.ptr<T>(), x.ptr<T>(), grid.ptr<T>(), static_cast<T *>(dx), static_cast<T *>(dgrid))));
}

}  // namespace

MSA_KERNEL(GridSampler2D) { forward(c); }
MSA_KERNEL(GridSampler3D) { forward(c); }
MSA_KERNEL(GridSampler2DGrad) { backward(c); }
MSA_KERNEL(GridSampler3DGrad) { backward(c); }

}  // namespace msa

// Sampling of an image at the positions of a grid, with gradients of image and grid. For each spatial dim, a position
// has a few source indices with weights, and the derivatives ("slopes") of these weights. 16-bit types round after
// every step, so the order of the steps is that of PyTorch's kernels: images in blocks of one vector, volumes
// position by position.
#pragma GCC optimize("fp-contract=off")
#include <cmath>

#include "conv.h"
#include "stepwise.h"

namespace msa {
namespace {

enum Interpolation : int64_t { kBilinear = 0, kNearest = 1, kBicubic = 2 };
enum Padding : int64_t { kZeros = 0, kBorder = 1, kReflection = 2 };

// What one position uses of one spatial dim. An index of -1 is outside.
template <class S>
struct Taps {
  int count = 1;
  int64_t index[4] = {0};
  S weight[4], slope[4], scale;
};

template <class S>
S floor_of(S x) {
  return S(std::floor(plain(x)));
}

// x reflected into [low / 2, high / 2], with the sign of the derivative. As in PyTorch, images and volumes compute it
// differently, which changes results if every step rounds.
template <class S>
S mirrored(S x, int64_t low, int64_t high, bool plane, S *slope) {
  if (low == high) {
    *slope = S(0);
    return S(0);
  }
  const S begin = S(low) / S(2), span = S(high - low) / S(2);
  x = x - begin;
  bool flip = x < S(0);
  if (flip) x = -x;
  S inside;
  if (plane) {
    const S twice = S(high - low), extra = x - S(std::trunc(plain(x / twice))) * twice, back = twice - extra;
    inside = extra > back ? back : extra;
    flip = flip != (extra > back);
  } else {
    const S extra = S(std::fmod(plain(x), plain(span)));
    const bool odd = static_cast<int64_t>(std::floor(plain(x / span))) % 2 != 0;
    inside = odd ? span - extra : extra;
    flip = flip != odd;
  }
  if (flip) *slope = -*slope;
  return inside + begin;
}
template <class S>
S bounded(S x, int64_t size, int64_t padding, bool corners, bool plane, S *slope) {
  if (padding == kReflection)
    x = corners ? mirrored<S>(x, 0, 2 * (size - 1), plane, slope) : mirrored<S>(x, -1, 2 * size - 1, plane, slope);
  if (padding == kZeros) return x;
  const S last = S(size - 1);
  if (!(x > S(0))) {
    *slope = S(0);  // the border counts as outside
    return S(0);
  }
  if (x >= last) {
    *slope = S(0);
    return last;
  }
  return x;
}

template <class S>
void cubic_weights(S f, S *w, S *s) {
  const S a = S(-0.75), b = a + S(2), c = a + S(3);
  const S far[2] = {f + S(1), S(2) - f}, near[2] = {f, S(1) - f};
  for (int k = 0; k < 2; ++k) {
    const S x = far[k], y = near[k];
    w[3 * k] = ((a * x - S(5) * a) * x + S(8) * a) * x - S(4) * a;
    w[1 + k] = (b * y - c) * y * y + S(1);
  }
  // slopes, written as PyTorch does: towards smaller distances on the left of the position
  const S l = S(-1) - f, m = S(0) - f, n = S(1) - f, r = S(2) - f;
  s[0] = (S(-3) * a * l - S(10) * a) * l - S(8) * a;
  s[1] = (S(-3) * b * m - S(2) * c) * m;
  s[2] = (S(3) * b * n - S(2) * c) * n;
  s[3] = (S(3) * a * r - S(10) * a) * r + S(8) * a;
}

template <class S>
int64_t inside(S x, int64_t size) {
  const auto v = plain(x);
  return v >= 0 && v < static_cast<decltype(v)>(size) ? static_cast<int64_t>(v) : -1;
}

struct Sampler {
  int spatial;
  bool plane, corners;
  int64_t n, channels, size[3] = {1, 1, 1}, positions = 1, pixels = 1, mode, padding;
  Sampler(const Tensor &x, const Tensor &grid, int64_t m, int64_t p, bool align)
      : spatial(x.ndim - 2), plane(spatial == 2), corners(align), mode(m), padding(p) {
    check(x.ndim && grid.ndim && x.size(0) == grid.size(0),
          "grid_sampler(): expected grid and input to have same batch size, but got input with sizes ", x.shape(),
          " and grid with sizes ", grid.shape());
    check(grid.size(-1) == spatial, "grid_sampler(): expected grid to have size ", spatial,
          " in last dimension, but got grid with sizes ", grid.shape());
    check(spatial >= 2 && spatial <= 3 && grid.ndim == x.ndim,
          "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, "
          "but got input with sizes ",
          x.shape(), " and grid with sizes ", grid.shape());
    n = x.size(0);
    channels = x.size(1);
    for (int d = 0; d < spatial; ++d) {
      size[3 - spatial + d] = x.size(d + 2);
      check(x.size(d + 2) > 0,
            "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes ", x.shape(),
            " with dimension ", d + 2, " being empty");
      pixels *= x.size(d + 2);
      positions *= grid.size(d + 1);
    }
  }

  template <class S>
  Taps<S> taps(S at, int64_t extent) const {
    Taps<S> t;
    S x;
    t.scale = S(corners ? extent - 1 : extent) / S(2);
    if (plane)
      x = corners ? (at + S(1)) * t.scale : (at + S(1)) * t.scale - S(0.5);
    else
      x = corners ? (at + S(1)) / S(2) * S(extent - 1) : ((at + S(1)) * S(extent) - S(1)) / S(2);
    if (mode == kBicubic) {
      const S low = floor_of(x);
      t.count = 4;
      cubic_weights<S>(x - low, t.weight, t.slope);
      for (int k = 0; k < 4; ++k) {
        S unused = S(1);
        t.index[k] = inside(bounded<S>(low + S(k - 1), extent, padding, corners, plane, &unused), extent);
      }
      return t;
    }
    x = bounded<S>(x, extent, padding, corners, plane, &t.scale);
    if (mode == kNearest) {
      t.index[0] = inside(S(std::nearbyint(plain(x))), extent);
      t.weight[0] = S(1);
      t.slope[0] = S(0);
      return t;
    }
    const S low = floor_of(x);
    t.count = 2;
    t.weight[1] = x - low;
    t.weight[0] = plane ? S(1) - t.weight[1] : low + S(1) - x;
    t.slope[0] = S(-1);
    t.slope[1] = S(1);
    for (int k = 0; k < 2; ++k) t.index[k] = inside(low + S(k), extent);
    return t;
  }
  template <class S, class T>
  void taps_at(const T *at, Taps<S> *t) const {
    for (int d = 3 - spatial; d < 3; ++d)
      t[d] = taps<S>(S(at[2 - d]), size[d]);  // the grid holds x, y, z, which is the last dim first
  }
  int64_t pixel(int64_t a, int64_t b, int64_t c) const {
    return a < 0 || b < 0 || c < 0 ? -1 : (a * size[1] + b) * size[2] + c;
  }
};

// The value of one channel at a position of an image.
template <class S, class T>
S plane_value(const Sampler &s, const T *image, const Taps<S> &y, const Taps<S> &x) {
  auto value = [&](int j, int k) {
    const int64_t p = s.pixel(0, y.index[j], x.index[k]);
    return p < 0 ? S(0) : S(image[p]);
  };
  if (s.mode == kNearest) return value(0, 0);
  S sum = S(0);
  if (s.mode == kBilinear) {
    sum = value(0, 0) * (y.weight[0] * x.weight[0]);
    sum += value(0, 1) * (y.weight[0] * x.weight[1]);
    sum += value(1, 0) * (y.weight[1] * x.weight[0]);
    sum += value(1, 1) * (y.weight[1] * x.weight[1]);
    return sum;
  }
  for (int j = 0; j < 4; ++j) {
    S row = x.weight[0] * value(j, 0);
    for (int k = 1; k < 4; ++k) row += x.weight[k] * value(j, k);
    sum = j == 0 ? y.weight[0] * row : sum + y.weight[j] * row;
  }
  return sum;
}
// The same for a volume, where pixels outside are skipped.
template <class S, class T>
S volume_value(const Sampler &s, const T *image, const Taps<S> *t) {
  S sum = S(0);
  for (int i = 0; i < t[0].count; ++i)
    for (int j = 0; j < t[1].count; ++j)
      for (int k = 0; k < t[2].count; ++k) {
        const int64_t p = s.pixel(t[0].index[i], t[1].index[j], t[2].index[k]);
        if (p < 0) continue;
        if (s.mode == kNearest) return S(image[p]);
        sum += S(image[p]) * (t[2].weight[k] * t[1].weight[j] * t[0].weight[i]);
      }
  return sum;
}

// What N positions of an image use of its two dims, x first: [dim][tap][position].
template <class T, int N>
struct PlaneTaps {
  T weight[2][2][N], scale[2][N];
  int32_t index[2][2][N];  // -1 outside
};

// The same numbers as Sampler::taps() for bilinear samples, with vectors where positions outside of the image count as
// zeros. `grid` has n positions, and the others are left out.
template <class T, int N>
void plane_taps(const Sampler &s, const T *grid, int n, PlaneTaps<T, N> *taps) {
  for (int axis = 0; axis < 2; ++axis) {
    const int64_t extent = s.size[2 - axis];
    T(*weight)[N] = taps->weight[axis];
    int32_t (*index)[N] = taps->index[axis];
    if (s.padding != kZeros) {
      for (int b = 0; b < n; ++b) {
        const Taps<T> t = s.taps<T>(grid[2 * b + axis], extent);
        for (int k = 0; k < 2; ++k) weight[k][b] = t.weight[k], index[k][b] = static_cast<int32_t>(t.index[k]);
        taps->scale[axis][b] = t.scale;
      }
      continue;
    }
    const T scale = T(s.corners ? extent - 1 : extent) / T(2), half = s.corners ? T(0) : T(0.5), size = T(extent);
    for (int b = 0; b < n; ++b) {
      const T x = (grid[2 * b + axis] + T(1)) * scale - half, low = std::floor(x), high = low + T(1);
      weight[1][b] = x - low;
      weight[0][b] = T(1) - weight[1][b];
      index[0][b] = static_cast<int32_t>((low >= T(0)) & (low < size) ? low : T(-1));
      index[1][b] = static_cast<int32_t>((high >= T(0)) & (high < size) ? high : T(-1));
      taps->scale[axis][b] = scale;
    }
  }
}

// The pixels at the four corners of n positions, and zero outside. The loads have a loop of their own, so that the
// compiler uses vectors for what is computed from them.
template <class T, int N>
inline void read_corners(const T *pixels, const int32_t (&at)[4][N], int n, T (&value)[4][N]) {
  for (int corner = 0; corner < 4; ++corner)
    for (int i = 0; i < n; ++i) {
      const int32_t k = at[corner][i];
      const T v = pixels[k < 0 ? 0 : k];
      value[corner][i] = k < 0 ? T(0) : v;
    }
}

// Bilinear samples of an image in float or double, in blocks of positions: first what each position uses, and then one
// channel after the other, which the compiler vectorises. The steps are those of plane_value().
template <class T>
void sample_bilinear(const Sampler &s, const T *x, const T *grid, T *y) {
  constexpr int64_t kBlock = 64;
  const int64_t blocks = (s.positions + kBlock - 1) / kBlock;
  parallel_for(s.n * blocks, 8, [&](int64_t begin, int64_t end) {
    PlaneTaps<T, kBlock> taps;
    int32_t at[4][kBlock];  // -1 outside
    T weight[4][kBlock], value[4][kBlock];
    for (int64_t block = begin; block < end; ++block) {
      const int64_t image = block / blocks, first = block % blocks * kBlock, n = std::min(kBlock, s.positions - first);
      plane_taps(s, grid + (image * s.positions + first) * 2, static_cast<int>(n), &taps);
      const int32_t width = static_cast<int32_t>(s.size[2]);
      for (int corner = 0; corner < 4; ++corner)
        for (int64_t i = 0; i < n; ++i) {
          const int32_t row = taps.index[1][corner / 2][i], column = taps.index[0][corner % 2][i];
          at[corner][i] = (row < 0) | (column < 0) ? -1 : row * width + column;
          weight[corner][i] = taps.weight[1][corner / 2][i] * taps.weight[0][corner % 2][i];
        }
      for (int64_t c = 0; c < s.channels; ++c) {
        const T *from = x + (image * s.channels + c) * s.pixels;
        T *__restrict to = y + (image * s.channels + c) * s.positions + first;
        read_corners(from, at, static_cast<int>(n), value);
        for (int64_t i = 0; i < n; ++i)
          to[i] = value[0][i] * weight[0][i] + value[1][i] * weight[1][i] + value[2][i] * weight[2][i] +
                  value[3][i] * weight[3][i];
      }
    }
  });
}

template <class T>
void sample(const Sampler &s, const T *x, const T *grid, T *y) {
  using S = stepwise_t<T>;
  if constexpr (std::is_same_v<T, S>)
    if (s.plane && s.mode == kBilinear && s.pixels < INT32_MAX) return sample_bilinear(s, x, grid, y);
  parallel_for(s.n * s.positions, 512, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / s.positions, at = i % s.positions;
      Taps<S> t[3];
      s.taps_at<S, T>(grid + i * s.spatial, t);
      for (int64_t c = 0; c < s.channels; ++c) {
        const T *from = x + (image * s.channels + c) * s.pixels;
        const S v = s.plane ? plane_value<S, T>(s, from, t[1], t[2]) : volume_value<S, T>(s, from, t);
        y[(image * s.channels + c) * s.positions + at] = static_cast<T>(v);
      }
    }
  });
}

// Adds the contribution of the output gradient g at one position to the pixel (i, j, k) of dx.
template <class S>
void add_pixel(const Sampler &s, const Taps<S> *t, int i, int j, int k, S g, S *dx) {
  const int64_t p = s.pixel(s.plane ? 0 : t[0].index[i], t[1].index[j], t[2].index[k]);
  if (p < 0) return;
  if (s.mode == kNearest)
    dx[p] += g;
  else if (s.mode == kBicubic)
    dx[p] += g * t[2].weight[k] * t[1].weight[j];
  else if (s.plane)
    dx[p] += t[1].weight[j] * t[2].weight[k] * g;
  else
    dx[p] += t[2].weight[k] * t[1].weight[j] * t[0].weight[i] * g;
}

// Adds the contribution of one channel with output gradient g to slope[z, y, x].
template <class S, class T>
void plane_slope(const Sampler &s, const T *image, const Taps<S> &y, const Taps<S> &x, S g, S *slope) {
  auto value = [&](int j, int k) {
    const int64_t p = s.pixel(0, y.index[j], x.index[k]);
    return p < 0 ? S(0) : S(image[p]);
  };
  if (s.mode == kBilinear) {
    const S nw = value(0, 0), ne = value(0, 1), sw = value(1, 0), se = value(1, 1);
    slope[2] += ((ne - nw) * y.weight[0] + (se - sw) * y.weight[1]) * g;
    slope[1] += ((sw - nw) * x.weight[0] + (se - ne) * x.weight[1]) * g;
    return;
  }
  for (int k = 0; k < 4; ++k)
    for (int j = 0; j < 4; ++j) {
      const S v = value(j, k) * g;
      slope[2] -= v * x.slope[k] * y.weight[j];
      slope[1] -= v * y.slope[j] * x.weight[k];
    }
}
template <class S, class T>
void volume_slope(const Sampler &s, const T *image, const Taps<S> *t, S g, S *slope) {
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      for (int k = 0; k < 2; ++k) {
        const int64_t p = s.pixel(t[0].index[i], t[1].index[j], t[2].index[k]);
        if (p < 0) continue;
        const S v = S(image[p]), z = t[0].weight[i], y = t[1].weight[j], x = t[2].weight[k];
        slope[2] += t[2].slope[k] * (v * y * z * g);
        slope[1] += t[1].slope[j] * (v * x * z * g);
        slope[0] += t[0].slope[i] * (v * x * y * g);
      }
}

// The gradients of sample_bilinear(), in blocks of one vector of positions. The sums are made in the order of
// sample_grad(). Positions after the last one count as outside.
template <class T>
void bilinear_grad(const Sampler &s, const T *g, const T *x, const T *grid, T *dx, T *dgrid) {
  constexpr int kVector = kVectorBytes / static_cast<int>(sizeof(T));
  parallel_for(s.n, 1, [&](int64_t begin, int64_t end) {
    PlaneTaps<T, kVector> taps{};
    T(&wx)[2][kVector] = taps.weight[0], (&wy)[2][kVector] = taps.weight[1];
    int32_t at[4][kVector];  // -1 outside
    T weight[4][kVector], value[4][kVector], slope[2][kVector], gs[kVector];
    for (int64_t image = begin; image < end; ++image) {
      const int64_t plane = image * s.channels;
      if (dx) std::fill_n(dx + plane * s.pixels, s.channels * s.pixels, T(0));
      for (int64_t from = 0; from < s.positions; from += kVector) {
        const int length = static_cast<int>(std::min<int64_t>(kVector, s.positions - from));
        plane_taps(s, grid + (image * s.positions + from) * 2, length, &taps);
        const int32_t width = static_cast<int32_t>(s.size[2]);
        for (int corner = 0; corner < 4; ++corner)
          for (int b = 0; b < kVector; ++b) {
            const int32_t row = taps.index[1][corner / 2][b], column = taps.index[0][corner % 2][b];
            at[corner][b] = (row < 0) | (column < 0) | (b >= length) ? -1 : row * width + column;
            weight[corner][b] = wy[corner / 2][b] * wx[corner % 2][b];
          }
        for (int b = 0; b < kVector; ++b) slope[0][b] = slope[1][b] = gs[b] = T(0);
        for (int64_t c = plane; c < plane + s.channels; ++c) {
          std::copy_n(g + c * s.positions + from, length, gs);
          T *to = dx + c * s.pixels;
          for (int corner = 0; dx && corner < 4; ++corner)
            for (int b = 0; b < length; ++b)
              if (at[corner][b] >= 0) to[at[corner][b]] += weight[corner][b] * gs[b];
          if (!dgrid) continue;
          const T *pixels = x + c * s.pixels;
          read_corners(pixels, at, kVector, value);
          for (int b = 0; b < kVector; ++b) {
            const T nw = value[0][b], ne = value[1][b], sw = value[2][b], se = value[3][b];
            slope[0][b] += ((ne - nw) * wy[0][b] + (se - sw) * wy[1][b]) * gs[b];
            slope[1][b] += ((sw - nw) * wx[0][b] + (se - ne) * wx[1][b]) * gs[b];
          }
        }
        for (int b = 0; dgrid && b < length; ++b)
          for (int k = 0; k < 2; ++k) dgrid[(image * s.positions + from + b) * 2 + k] = slope[k][b] * taps.scale[k][b];
      }
    }
  });
}

template <class T>
void sample_grad(const Sampler &s, const T *g, const T *x, const T *grid, T *dx, T *dgrid) {
  using S = stepwise_t<T>;
  if constexpr (std::is_same_v<T, S>)
    if (s.plane && s.mode == kBilinear && s.pixels < INT32_MAX) return bilinear_grad(s, g, x, grid, dx, dgrid);
  constexpr int kVector = kVectorBytes / static_cast<int>(sizeof(T));
  const int64_t block = s.plane ? kVector : 1;
  parallel_for(s.n, 1, [&](int64_t begin, int64_t end) {
    std::vector<S> sums(dx ? s.channels * s.pixels : 0);
    Taps<S> t[kVector][3];
    for (int64_t image = begin; image < end; ++image) {
      std::fill(sums.begin(), sums.end(), S(0));
      for (int64_t from = 0; from < s.positions; from += block) {
        const int64_t length = std::min(block, s.positions - from), first = image * s.positions + from;
        for (int64_t b = 0; b < length; ++b) s.taps_at<S, T>(grid + (first + b) * s.spatial, t[b]);
        S slope[kVector][3] = {};
        for (int64_t c = 0; c < s.channels; ++c) {
          const T *gi = g + (image * s.channels + c) * s.positions + from,
                  *plane = x + (image * s.channels + c) * s.pixels;
          const int ni = s.plane ? 1 : t[0][0].count, n = t[0][2].count;
          // one corner after the other, for all positions of the block; the cubic kernel takes columns first
          for (int corner = 0; dx && corner < ni * n * n; ++corner) {
            const int i = corner / (n * n), u = corner / n % n, v = corner % n;
            for (int64_t b = 0; b < length; ++b)
              add_pixel<S>(s, t[b], i, s.mode == kBicubic ? v : u, s.mode == kBicubic ? u : v, S(gi[b]),
                           sums.data() + c * s.pixels);
          }
          for (int64_t b = 0; dgrid && s.mode != kNearest && b < length; ++b) {
            if (s.plane)
              plane_slope<S, T>(s, plane, t[b][1], t[b][2], S(gi[b]), slope[b]);
            else
              volume_slope<S, T>(s, plane, t[b], S(gi[b]), slope[b]);
          }
        }
        for (int64_t b = 0; dgrid && b < length; ++b)
          for (int k = 0; k < s.spatial; ++k)
            dgrid[(first + b) * s.spatial + k] =
                s.mode == kNearest ? T(0.f) : static_cast<T>(slope[b][2 - k] * t[b][2 - k].scale);
      }
      if (dx)
        for (int64_t j = 0; j < s.channels * s.pixels; ++j)
          dx[image * s.channels * s.pixels + j] = static_cast<T>(sums[j]);
    }
  });
}

void forward(Call &c) {  // input, grid, interpolation, padding, align_corners
  const Tensor x = c.contiguous(c.in(0)), grid = c.contiguous(c.in(1));
  check(x.dtype == grid.dtype, "grid_sampler(): expected input and grid to have same dtype, but input has ", x.dtype,
        " and grid has ", grid.dtype);
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
  MSA_SWITCH_FLOAT(
      x.dtype, "grid_sampler_2d_backward",
      (sample_grad<T>(s, g.ptr<T>(), x.ptr<T>(), grid.ptr<T>(), static_cast<T *>(dx), static_cast<T *>(dgrid))));
}

}  // namespace

MSA_KERNEL(GridSampler2D) { forward(c); }
MSA_KERNEL(GridSampler3D) { forward(c); }
MSA_KERNEL(GridSampler2DGrad) { backward(c); }
MSA_KERNEL(GridSampler3DGrad) { backward(c); }

}  // namespace msa

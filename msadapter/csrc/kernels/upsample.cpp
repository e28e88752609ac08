// Resizing of the spatial dims. Every output value is a weighted sum of a few source values in each dim. The forward
// pass gathers with these weights, and the gradient uses the same weights in the opposite direction.
#include <cmath>

#include "conv.h"
#include "layout.h"

namespace msa {
namespace {

enum class Mode { kNearest, kNearestExact, kLinear, kCubic };
constexpr int kMaxTaps = 4;

// For one dim: the source index and weight of each tap of each output position.
struct Taps {
  int count = 1;
  std::vector<int64_t> index;
  std::vector<double> weight;
};

double cubic(double distance, double a) {
  distance = std::abs(distance);
  if (distance <= 1) return ((a + 2) * distance - (a + 3)) * distance * distance + 1;
  return ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a;
}

// How the weights are stored. PyTorch's general kernel keeps them in the element type.
using Narrow = double (*)(double);
double same(double w) { return w; }
template <class T>
double narrowed(double w) {
  return T(static_cast<float>(w));
}

// `scale` is the user's factor, or 0 if only sizes were given. Positions are computed in float32 where PyTorch does
// so.
template <class P>
Taps make_taps(Mode mode, int64_t in, int64_t out, bool corners, double scale, Narrow narrow = same) {
  Taps t;
  t.count = mode == Mode::kLinear ? 2 : mode == Mode::kCubic ? 4 : 1;
  const int64_t taps = (Size(out) * t.count).value("the number of weights");
  t.index.resize(taps);
  t.weight.resize(taps);
  P step;
  if (corners && mode >= Mode::kLinear)
    step = out > 1 ? static_cast<P>(in - 1) / static_cast<P>(out - 1) : P(0);
  else
    step = scale > 0 ? static_cast<P>(1.0 / scale) : static_cast<P>(in) / static_cast<P>(out);
  auto put = [&](int64_t o, int k, int64_t i, double w) {
    t.index[o * t.count + k] = std::clamp<int64_t>(i, 0, in - 1);
    t.weight[o * t.count + k] = narrow(w);
  };
  for (int64_t o = 0; o < out; ++o) {
    if (mode == Mode::kNearest || mode == Mode::kNearestExact) {
      const float fs = static_cast<float>(step);
      const int64_t i = in == out ? o
                                  : static_cast<int64_t>(std::floor(
                                        (static_cast<float>(o) + (mode == Mode::kNearestExact ? 0.5f : 0.f)) * fs));
      put(o, 0, std::min(i, in - 1), 1);
      continue;
    }
    P x = corners ? step * static_cast<P>(o) : step * (static_cast<P>(o) + P(0.5)) - P(0.5);
    if (mode == Mode::kLinear) {
      if (x < 0) x = 0;
      const int64_t i = std::min(static_cast<int64_t>(x), in - 1);
      const P f = std::min<P>(std::max<P>(x - static_cast<P>(i), 0), 1);
      put(o, 0, i, 1 - static_cast<P>(narrow(f)));
      put(o, 1, i + (i < in - 1), f);
    } else {
      const int64_t i = static_cast<int64_t>(std::floor(x));
      const P f = std::min<P>(std::max<P>(x - static_cast<P>(i), 0), 1);
      for (int k = 0; k < 4; ++k) put(o, k, i - 1 + k, cubic(static_cast<double>(f) - (k - 1), -0.75));
    }
  }
  return t;
}

struct Resize {
  int spatial;
  int64_t planes, in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  Taps taps[3];
  int64_t pixels() const { return element_count(in, 3); }
  int64_t positions() const { return element_count(out, 3); }
};

// Small or channels-last images use a kernel in PyTorch whose weights stay in float32.
Narrow narrowing(Mode mode, DType dtype, const Resize &r) {
  if (mode < Mode::kLinear || (mode == Mode::kLinear && r.spatial == 2 && r.out[1] + r.out[2] <= 128)) return same;
  return dtype == DType::F16 ? narrowed<Half> : dtype == DType::BF16 ? narrowed<BFloat16> : same;
}

// Everything but the weights, which weigh() adds.
Resize make(const Dims &input, const Dims &size) {
  Resize r;
  r.spatial = static_cast<int>(input.size()) - 2;
  check(r.spatial >= 1 && r.spatial <= 3 && static_cast<int>(size.size()) == r.spatial,
        "It is expected output_size equals to ", r.spatial, ", but got size ", static_cast<int64_t>(size.size()));
  r.planes = element_count({input[0], input[1]});
  for (int d = 0; d < r.spatial; ++d) {
    const int s = 3 - r.spatial + d;
    r.in[s] = input[d + 2];
    r.out[s] = size[d];
    check(r.in[s] > 0 && r.out[s] > 0, "Input and output sizes should be greater than 0, but got input (", r.in[s],
          ") and output (", r.out[s], ")");
  }
  return r;
}

// Adds the weights. This is done when the result has its memory: a size that is too large is an error before memory is
// taken for weights.
void weigh(Resize &r, Mode mode, DType dtype, const std::vector<double> &scales, bool corners, bool gradient) {
  for (int s = 0; s < 3; ++s) {
    const int d = s - (3 - r.spatial);
    const double scale = d >= 0 && d < static_cast<int>(scales.size()) ? scales[d] : 0;
    if (d < 0)
      r.taps[s] = make_taps<double>(Mode::kNearest, 1, 1, false, 0);
    else if (dtype == DType::F64)
      r.taps[s] = make_taps<double>(mode, r.in[s], r.out[s], corners, scale);
    else
      r.taps[s] =
          make_taps<float>(mode, r.in[s], r.out[s], corners, scale, gradient ? same : narrowing(mode, dtype, r));
  }
}

std::vector<double> scales_of(Call &c, int i) {
  if (!c.has(i)) return {};
  if (c.args[i].kind == Arg::kFloats) return c.floats(i);
  return std::vector<double>(c.ints(i).begin(), c.ints(i).end());
}

// The nearest pixels, without arithmetic. An output row that has the same source as the row before is copied from it.
template <class T>
void gather_nearest(const Resize &r, const T *x, T *y) {
  const int64_t width = r.out[2];
  const std::vector<int32_t> index(r.taps[2].index.begin(), r.taps[2].index.end());
  parallel_for(r.planes, std::max<int64_t>(1, 8192 / r.positions()), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      T *to = y + p * r.positions();
      for (int64_t a = 0; a < r.out[0]; ++a)
        for (int64_t b = 0; b < r.out[1]; ++b, to += width) {
          if (b > 0 && r.taps[1].index[b] == r.taps[1].index[b - 1]) {
            std::copy_n(to - width, width, to);
            continue;
          }
          const T *from = x + p * r.pixels() + (r.taps[0].index[a] * r.in[1] + r.taps[1].index[b]) * r.in[2];
          const int32_t *at = index.data();
          for (int64_t o = 0; o < width; ++o) to[o] = from[at[o]];
        }
    }
  });
}
// Adds each gradient to the pixel that gather_nearest() copies, in the order of the outputs.
template <class T>
void scatter_nearest(const Resize &r, const T *g, T *dx) {
  using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const int64_t *at = r.taps[2].index.data();
  parallel_for(r.planes, std::max<int64_t>(1, 8192 / r.positions()), [&](int64_t begin, int64_t end) {
    std::vector<C> sums(r.pixels());
    for (int64_t p = begin; p < end; ++p) {
      std::fill(sums.begin(), sums.end(), C(0));
      const T *from = g + p * r.positions();
      for (int64_t a = 0; a < r.out[0]; ++a)
        for (int64_t b = 0; b < r.out[1]; ++b, from += r.out[2]) {
          C *line = sums.data() + (r.taps[0].index[a] * r.in[1] + r.taps[1].index[b]) * r.in[2];
          for (int64_t o = 0; o < r.out[2]; ++o) line[at[o]] += convert<C>(from[o]);
        }
      for (int64_t i = 0; i < r.pixels(); ++i) dx[p * r.pixels() + i] = convert<T>(sums[i]);
    }
  });
}

template <class T>
void gather(const Resize &r, const T *x, T *y) {
  using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const Taps *t = r.taps;
  parallel_for(r.planes, std::max<int64_t>(1, 8192 / r.positions()), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const T *from = x + p * r.pixels();
      T *to = y + p * r.positions();
      for (int64_t a = 0; a < r.out[0]; ++a)
        for (int64_t b = 0; b < r.out[1]; ++b)
          for (int64_t c = 0; c < r.out[2]; ++c, ++to) {
            C sum = 0;
            for (int64_t i = a * t[0].count; i < (a + 1) * t[0].count; ++i) {
              C plane = 0;
              for (int64_t j = b * t[1].count; j < (b + 1) * t[1].count; ++j) {
                const T *line = from + (t[0].index[i] * r.in[1] + t[1].index[j]) * r.in[2];
                C row = 0;
                for (int64_t k = c * t[2].count; k < (c + 1) * t[2].count; ++k)
                  row += convert<C>(line[t[2].index[k]]) * static_cast<C>(t[2].weight[k]);
                plane += row * static_cast<C>(t[1].weight[j]);
              }
              sum += plane * static_cast<C>(t[0].weight[i]);
            }
            if constexpr (std::is_integral_v<T>)
              *to = static_cast<T>(std::clamp<C>(std::nearbyint(sum), 0, 255));
            else
              *to = convert<T>(sum);
          }
    }
  });
}

// The same for signals and images. Every source row is resized once, then rows are combined. The order of the sums is
// that of gather().
template <class T>
void gather_lines(const Resize &r, const T *x, T *y) {
  using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const Taps &down = r.taps[1], &along = r.taps[2];
  const int64_t width = r.out[2];
  std::vector<int32_t> index(along.count * width);  // tap by tap
  std::vector<C> weight(along.count * width);
  for (int64_t o = 0; o < width; ++o)
    for (int k = 0; k < along.count; ++k) {
      index[k * width + o] = static_cast<int32_t>(along.index[o * along.count + k]);
      weight[k * width + o] = static_cast<C>(along.weight[o * along.count + k]);
    }
  parallel_for(r.planes, std::max<int64_t>(1, 8192 / r.positions()), [&](int64_t begin, int64_t end) {
    std::vector<C> lines(r.in[1] * width), sum(width);
    std::vector<uint8_t> made(r.in[1]);
    for (int64_t p = begin; p < end; ++p) {
      std::fill(made.begin(), made.end(), 0);
      for (int64_t b = 0; b < r.out[1]; ++b) {
        for (int64_t j = b * down.count; j < (b + 1) * down.count; ++j) {
          C *line = lines.data() + down.index[j] * width;
          if (!made[down.index[j]]) {
            const T *from = x + p * r.pixels() + down.index[j] * r.in[2];
            for (int64_t o = 0; o < width; ++o) line[o] = convert<C>(from[index[o]]) * weight[o];
            for (int k = 1; k < along.count; ++k)
              for (int64_t o = 0; o < width; ++o)
                line[o] += convert<C>(from[index[k * width + o]]) * weight[k * width + o];
            made[down.index[j]] = 1;
          }
          const C w = static_cast<C>(down.weight[j]);
          if (j == b * down.count)
            for (int64_t o = 0; o < width; ++o) sum[o] = line[o] * w;
          else
            for (int64_t o = 0; o < width; ++o) sum[o] += line[o] * w;
        }
        T *to = y + p * r.positions() + b * width;
        for (int64_t o = 0; o < width; ++o) {
          if constexpr (std::is_integral_v<T>)
            to[o] = static_cast<T>(std::clamp<C>(std::nearbyint(sum[o]), 0, 255));
          else
            to[o] = convert<T>(sum[o]);
        }
      }
    }
  });
}

// 8-bit images are resized one dim at a time, the last one first, in fixed-point arithmetic. The weights are 16-bit
// integers, and every pass rounds to 8 bits, as in PyTorch and Pillow.
struct FixedTaps {
  Taps taps;  // weights are integers
  int precision = 0;
};
FixedTaps fixed_taps(Mode mode, int64_t in, int64_t out, bool corners, double scale) {
  FixedTaps f{make_taps<double>(mode, in, out, corners, scale)};
  Taps &t = f.taps;
  double largest = 0;
  for (int64_t o = 0; o < out; ++o)  // weights beyond a border are added to that of the pixel there
    for (int k = t.count - 1; k >= 0; --k) {
      const int64_t at = o * t.count + k;
      if (k > 0 && t.index[at] == t.index[at - 1]) {
        t.weight[at - 1] += t.weight[at];
        t.weight[at] = 0;
      }
      largest = std::max(largest, t.weight[at]);
    }
  while (f.precision < 22 && static_cast<int>(0.5 + largest * (1 << (f.precision + 1))) < (1 << 15)) ++f.precision;
  for (double &w : t.weight) w = std::trunc(w * (1 << f.precision) + (w < 0 ? -0.5 : 0.5));
  return f;
}
// Resizes one dim: [lines][in][inner] becomes [lines][out][inner].
void fixed_pass(const FixedTaps &f, int64_t lines, int64_t in, int64_t out, int64_t inner, const uint8_t *x,
                uint8_t *y) {
  const Taps &t = f.taps;
  parallel_for(lines, std::max<int64_t>(1, 8192 / (out * inner)), [&](int64_t begin, int64_t end) {
    for (int64_t l = begin; l < end; ++l)
      for (int64_t o = 0; o < out; ++o)
        for (int64_t i = 0; i < inner; ++i) {
          int sum = 1 << (f.precision - 1);
          for (int64_t k = o * t.count; k < (o + 1) * t.count; ++k)
            sum += static_cast<int>(t.weight[k]) * x[(l * in + t.index[k]) * inner + i];
          y[(l * out + o) * inner + i] = static_cast<uint8_t>(std::clamp(sum >> f.precision, 0, 255));
        }
  });
}
void gather_fixed(Mode mode, const Resize &r, const std::vector<double> &scales, bool corners, const uint8_t *x,
                  uint8_t *y) {
  auto taps = [&](int s) { return fixed_taps(mode, r.in[s], r.out[s], corners, scales.empty() ? 0 : scales[s - 1]); };
  std::vector<uint8_t> wide(r.planes * r.in[1] * r.out[2]);
  fixed_pass(taps(2), r.planes * r.in[1], r.in[2], r.out[2], 1, x, wide.data());
  fixed_pass(taps(1), r.planes, r.in[1], r.out[1], r.out[2], wide.data(), y);
}

// For one dim: the outputs that read each source position, in their order, with their weights. Those of source position
// i are the entries from start[i] to start[i + 1].
template <class C>
struct Readers {
  std::vector<int64_t> start, output;
  std::vector<C> weight;
};
template <class C>
Readers<C> readers_of(const Taps &t, int64_t in) {
  const int64_t taps = static_cast<int64_t>(t.index.size());
  Readers<C> r{std::vector<int64_t>(in + 1), std::vector<int64_t>(taps), std::vector<C>(taps)};
  for (const int64_t i : t.index) ++r.start[i + 1];
  for (int64_t i = 0; i < in; ++i) r.start[i + 1] += r.start[i];
  std::vector<int64_t> next(r.start.begin(), r.start.end() - 1);
  for (int64_t k = 0; k < taps; ++k) {
    const int64_t at = next[t.index[k]]++;
    r.output[at] = k / t.count;
    r.weight[at] = static_cast<C>(t.weight[k]);
  }
  return r;
}
// The gradient of resizing one dim whose elements are lines of `width` numbers: [out][width] becomes [in][width].
template <class T, class C>
void sum_lines(const Readers<C> &r, int64_t width, const T *g, C *dx) {
  for (size_t i = 0; i + 1 < r.start.size(); ++i, dx += width) {
    std::fill_n(dx, width, C(0));
    for (int64_t k = r.start[i]; k < r.start[i + 1]; ++k) {
      const T *from = g + r.output[k] * width;
      const C w = r.weight[k];
      for (int64_t j = 0; j < width; ++j) dx[j] += convert<C>(from[j]) * w;
    }
  }
}

// The gradient of one dim after the other, the outermost first.
template <class T>
void scatter(const Resize &r, const T *g, T *dx) {
  using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const auto over = readers_of<C>(r.taps[0], r.in[0]), down = readers_of<C>(r.taps[1], r.in[1]),
             along = readers_of<C>(r.taps[2], r.in[2]);
  const int64_t width = r.out[2], area = r.out[1] * width;
  parallel_for(r.planes, std::max<int64_t>(1, 8192 / r.positions()), [&](int64_t begin, int64_t end) {
    std::vector<C> slices(r.spatial == 3 ? r.in[0] * area : 0), lines(r.in[1] * width);
    for (int64_t p = begin; p < end; ++p) {
      const T *from = g + p * r.positions();
      T *to = dx + p * r.pixels();
      if (r.spatial == 3) sum_lines(over, area, from, slices.data());
      for (int64_t a = 0; a < r.in[0]; ++a) {
        if (r.spatial == 3)
          sum_lines(down, width, slices.data() + a * area, lines.data());
        else
          sum_lines(down, width, from, lines.data());
        for (const C *line = lines.data(); line < lines.data() + lines.size(); line += width)
          for (int64_t i = 0; i < r.in[2]; ++i) {
            C sum = 0;
            for (int64_t k = along.start[i]; k < along.start[i + 1]; ++k)
              sum += line[along.output[k]] * along.weight[k];
            *to++ = convert<T>(sum);
          }
      }
    }
  });
}

#define MSA_SWITCH_IMAGE(D, OP, ...) \
  MSA_SWITCH_(D, OP, MSA_CASE(U8, uint8_t, __VA_ARGS__) MSA_CASES_FLOAT_(__VA_ARGS__))

// Operands: input, output_size, scales?, and align_corners for the linear and cubic forms
void forward(Call &c, Mode mode, const char *name) {
  const Tensor x = c.contiguous(c.in(0));
  const std::vector<double> scales = scales_of(c, 2);
  const bool corners = c.has(3) && c.flag(3);
  Resize r = make(x.shape(), c.ints(1));
  Dims shape{x.size(0), x.size(1)};
  shape.insert(shape.end(), c.ints(1).begin(), c.ints(1).end());
  const LaidOut o(c, 0, x.dtype, shape, channels_last(c.in(0)));
  weigh(r, mode, x.dtype, scales, corners, false);
  if (x.dtype == DType::U8 && r.spatial == 2 && mode >= Mode::kLinear) {
    gather_fixed(mode, r, scales, corners, x.ptr<uint8_t>(), o.ptr<uint8_t>());
  } else if (mode <= Mode::kNearestExact && r.in[2] < INT32_MAX) {
    MSA_SWITCH_IMAGE(x.dtype, name, (gather_nearest<T>(r, x.ptr<T>(), o.ptr<T>())));
  } else if (r.spatial < 3) {
    MSA_SWITCH_IMAGE(x.dtype, name, (gather_lines<T>(r, x.ptr<T>(), o.ptr<T>())));
  } else {
    MSA_SWITCH_IMAGE(x.dtype, name, (gather<T>(r, x.ptr<T>(), o.ptr<T>())));
  }
  o.finish();
}
// Operands: grad, input_size, output_size, scales?, and align_corners for the linear and cubic forms
void backward(Call &c, Mode mode, const char *name) {
  const Tensor g = c.contiguous(c.in(0));
  Resize r = make(c.ints(1), c.ints(2));
  const bool keeps = mode != Mode::kCubic && (r.spatial == 2 || mode == Mode::kLinear);
  const LaidOut o(c, 0, g.dtype, c.ints(1), keeps && channels_last(c.in(0)));
  weigh(r, mode, g.dtype, scales_of(c, 3), c.has(4) && c.flag(4), true);
  if (mode <= Mode::kNearestExact) {
    MSA_SWITCH_IMAGE(g.dtype, name, (scatter_nearest<T>(r, g.ptr<T>(), o.ptr<T>())));
  } else {
    MSA_SWITCH_IMAGE(g.dtype, name, (scatter<T>(r, g.ptr<T>(), o.ptr<T>())));
  }
  o.finish();
}

}  // namespace

#define MSA_RESIZE(Name, M, Text)                 \
  MSA_KERNEL(Name) { forward(c, Mode::M, Text); } \
  MSA_KERNEL(Name##Grad) { backward(c, Mode::M, Text "_backward"); }
MSA_RESIZE(UpsampleNearest1D, kNearest, "upsample_nearest1d")
MSA_RESIZE(UpsampleNearest2D, kNearest, "upsample_nearest2d")
MSA_RESIZE(UpsampleNearest3D, kNearest, "upsample_nearest3d")
MSA_RESIZE(UpsampleNearestExact, kNearestExact, "upsample_nearest_exact")
MSA_RESIZE(UpsampleLinear1D, kLinear, "upsample_linear1d")
MSA_RESIZE(UpsampleBilinear2D, kLinear, "upsample_bilinear2d")
MSA_RESIZE(UpsampleTrilinear3D, kLinear, "upsample_trilinear3d")
MSA_RESIZE(UpsampleBicubic2D, kCubic, "upsample_bicubic2d")

}  // namespace msa

// Pooling over the last two or three axes: averages and maxima of windows, with their gradients.
#include <cmath>

#include "image.h"
#include "product.h"

using namespace sim;

namespace {
// Which numbers of an axis a window covers: from, from + step, ... below to. `whole` counts the padding too.
struct Reach {
  int64_t from, to, step, whole;
};
// For each of the three pooled axes (the first is of size 1 in two dimensions) the windows along it.
struct Windows {
  Shape in;  // the sizes of the pooled axes
  std::vector<Reach> along[3];

  int64_t places() const { return static_cast<int64_t>(along[0].size() * along[1].size() * along[2].size()); }
  // Visits all pairs of a window and a number in it, in row-major order: f(place of the window, place of the number).
  template <class F>
  void Visit(F f) const {
    int64_t place = 0;
    for (const Reach &a : along[0]) {
      for (const Reach &b : along[1]) {
        for (const Reach &c : along[2]) {
          for (int64_t i = a.from; i < a.to; i += a.step) {
            for (int64_t j = b.from; j < b.to; j += b.step) {
              for (int64_t k = c.from; k < c.to; k += c.step) f(place, (i * in[1] + j) * in[2] + k);
            }
          }
          ++place;
        }
      }
    }
  }
  // What the sum over each window is divided by to get its average.
  std::vector<double> Divisors(bool count_padding, int64_t fixed) const {
    std::vector<double> all;
    for (const Reach &a : along[0]) {
      for (const Reach &b : along[1]) {
        for (const Reach &c : along[2]) {
          auto size = [&](const Reach &r) { return count_padding ? r.whole : (r.to - r.from + r.step - 1) / r.step; };
          all.push_back(static_cast<double>(fixed != 0 ? fixed : size(a) * size(b) * size(c)));
        }
      }
    }
    return all;
  }
};
Shape Pooled(const Tensor &self, int64_t axes) {
  Shape sizes(self.shape.end() - axes, self.shape.end());
  if (axes == 2) sizes.insert(sizes.begin(), 1);
  return sizes;
}
// A shape whose last axes are replaced by the numbers of windows.
Shape Result(const Tensor &self, int64_t axes, const Windows &windows) {
  Shape shape = self.shape;
  for (int64_t i = 0; i < axes; ++i) {
    shape[shape.size() - axes + i] = static_cast<int64_t>(windows.along[3 - axes + i].size());
  }
  return shape;
}
void IsPooled(const Tensor &self, int64_t axes, Types types) {
  Takes(self, types);
  HasRank(self, axes + 1, axes + 2);
  ChannelsFirst(self);
  for (int64_t i = self.rank() - axes - 1; i < self.rank(); ++i) {
    if (self.shape[i] == 0) Refuse("'%s' is empty along the axis %lld", self.name, (long long)i);
  }
}

// ---- windows of one size
struct Window {
  std::vector<int64_t> kernel, stride, padding, dilation;
  bool ceil;
};
// One number for each axis, from one for all or one for each. An empty stride is the kernel.
std::vector<int64_t> Each(const std::vector<int64_t> &given, int64_t axes, const char *name, int64_t least) {
  if (given.size() != 1 && static_cast<int64_t>(given.size()) != axes) {
    Refuse("'%s' has %zu numbers; it has 1 or %lld", name, given.size(), (long long)axes);
  }
  for (const int64_t one : given) {
    if (one < least) Refuse("'%s' has the number %lld; the least is %lld", name, (long long)one, (long long)least);
  }
  return given.size() == 1 ? std::vector<int64_t>(static_cast<size_t>(axes), given[0]) : given;
}
Windows Slide(const Tensor &self, int64_t axes, const Window &window) {
  const auto kernel = Each(window.kernel, axes, "kernelSize", 1);
  const auto stride = window.stride.empty() ? kernel : Each(window.stride, axes, "stride", 1);
  const auto padding = Each(window.padding, axes, "padding", 0);
  const auto dilation = Each(window.dilation, axes, "dilation", 1);
  Windows windows{Pooled(self, axes), {{{0, 1, 1, 1}}, {}, {}}};
  for (int64_t i = 0; i < axes; ++i) {
    const int64_t axis = 3 - axes + i, size = windows.in[axis], pad = padding[i];
    Require(2 * pad <= kernel[i], "padding is at most half of kernelSize");
    Require(dilation[i] == 1, "dilation is 1");
    const int64_t room = size + 2 * pad - kernel[i] + (window.ceil ? stride[i] - 1 : 0);
    int64_t count = room < 0 ? 0 : room / stride[i] + 1;
    if (window.ceil && (count - 1) * stride[i] >= size + pad) --count;  // no window begins in the padding behind
    if (count < 1) Refuse("the window is larger than the pooled axis %lld", (long long)i);
    windows.along[axis].clear();
    for (int64_t k = 0; k < count; ++k) {
      const int64_t from = k * stride[i] - pad, to = std::min(from + kernel[i], size + pad);
      windows.along[axis].push_back({std::max<int64_t>(from, 0), std::min(to, size), 1, to - from});
    }
  }
  return windows;
}
// ---- windows whose sizes follow from the size of the result
Windows Divide(const Tensor &self, int64_t axes, const std::vector<int64_t> &sizes) {
  if (static_cast<int64_t>(sizes.size()) != axes) Refuse("'outputSize' has %lld numbers", (long long)axes);
  Windows windows{Pooled(self, axes), {{{0, 1, 1, 1}}, {}, {}}};
  for (int64_t i = 0; i < axes; ++i) {
    const int64_t axis = 3 - axes + i, size = windows.in[axis], count = sizes[i];
    if (count < 1) Refuse("'outputSize' has the number %lld; the least is 1", (long long)count);
    windows.along[axis].clear();
    for (int64_t k = 0; k < count; ++k) {
      const int64_t from = k * size / count, to = ((k + 1) * size + count - 1) / count;
      windows.along[axis].push_back({from, to, 1, to - from});
    }
  }
  return windows;
}
Windows DivideLike(const Tensor &self, int64_t axes, const Tensor &gradient) {
  HasRank(gradient, self.rank(), self.rank());
  for (int64_t i = 0; i < self.rank() - axes; ++i) {
    Require(gradient.shape[i] == self.shape[i], "the axes that are not pooled agree");
  }
  return Divide(self, axes, {gradient.shape.end() - axes, gradient.shape.end()});
}

// ---- averages
Task Average(const Tensor &self, int64_t axes, const Windows &windows, const std::vector<double> &divisors,
             const Tensor &out) {
  SameType(self, out);
  HasShape(out, Result(self, axes, windows));
  return [=] {
    const auto x = Reals(self);
    const int64_t size = Count(windows.in), places = windows.places();
    std::vector<double> y(static_cast<size_t>(out.numel()));
    for (int64_t plane = 0; plane < self.numel() / size; ++plane) {
      windows.Visit([&](int64_t p, int64_t i) { y[plane * places + p] += x[plane * size + i]; });
      for (int64_t p = 0; p < places; ++p) y[plane * places + p] /= divisors[p];
    }
    Write(out, y);
  };
}
Task AverageBackward(const Tensor &gradient, const Tensor &self, int64_t axes, const Windows &windows,
                     const std::vector<double> &divisors, const Tensor &out) {
  SameType(self, gradient);
  SameType(self, out);
  SameShape(self, out);
  HasShape(gradient, Result(self, axes, windows));
  return [=] {
    const auto g = Reals(gradient);
    const int64_t size = Count(windows.in), places = windows.places();
    std::vector<double> d(static_cast<size_t>(out.numel()));
    for (int64_t plane = 0; plane < out.numel() / size; ++plane) {
      windows.Visit([&](int64_t p, int64_t i) { d[plane * size + i] += g[plane * places + p] / divisors[p]; });
    }
    Write(out, d);
  };
}
const std::vector<int64_t> kDense = {1};

// ---- maxima. f(plane, place of the window, place of its maximum, the maximum)
template <class F>
void EachMaximum(const Tensor &self, const Windows &windows, F f) {
  const auto x = Reals(self);
  const int64_t size = Count(windows.in), places = windows.places();
  std::vector<int64_t> best(static_cast<size_t>(places));
  for (int64_t plane = 0; plane < self.numel() / size; ++plane) {
    std::fill(best.begin(), best.end(), -1);
    windows.Visit([&](int64_t p, int64_t i) {
      const double v = x[plane * size + i];
      if (best[p] < 0 || v > x[plane * size + best[p]] || std::isnan(v)) best[p] = i;
    });
    for (int64_t p = 0; p < places; ++p) f(plane, p, best[p], x[plane * size + best[p]]);
  }
}
Task Maximum(const Tensor &self, int64_t axes, const Windows &windows, const Tensor &out, const Tensor &indices) {
  SameType(self, out);
  HasShape(out, Result(self, axes, windows));
  HasShape(indices, out.shape);
  return [=] {
    std::vector<double> y;
    std::vector<int64_t> where;
    EachMaximum(self, windows, [&](int64_t, int64_t, int64_t i, double v) {
      y.push_back(v);
      where.push_back(i);
    });
    Write(out, y);
    Write(indices, where);
  };
}
Task MaximumBackward(const Tensor &gradient, const Tensor &self, int64_t axes, const Windows &windows,
                     const Tensor &indices, const Tensor &out) {
  SameType(self, gradient);
  SameType(self, out);
  SameShape(self, out);
  HasShape(gradient, Result(self, axes, windows));
  HasShape(indices, gradient.shape);
  return [=] {
    const auto g = Reals(gradient);
    const auto at = Wholes(indices);
    const int64_t size = Count(windows.in), places = windows.places();
    std::vector<double> d(static_cast<size_t>(out.numel()));
    for (size_t i = 0; i < g.size(); ++i) {
      if (at[i] < 0 || at[i] >= size) OutOfRange("the index", at[i], size);
      d[static_cast<int64_t>(i) / places * size + at[i]] += g[i];
    }
    Write(out, d);
  };
}

// ---- maxima whose places are kept as a mask: one bit for each number of the kernel and each window. How the bits lie
// in a plane of the mask is not documented; forward and backward agree here.
struct Mask {
  std::vector<int64_t> kernel;
  Shape shape;  // of the mask
  int64_t row;  // bytes for each number of the kernel

  Mask(const Tensor &self, const Windows &windows, const std::vector<int64_t> &kernel_size)
      : kernel(Each(kernel_size, 2, "kernelSize", 1)), shape(self.shape) {
    row = ((windows.places() + 15) / 16 + 1) * 32;
    shape[self.rank() - 2] = kernel[0] * kernel[1];
    shape[self.rank() - 1] = row;
  }
  // The bit of a number: which byte of a plane, and which bit of it.
  std::pair<int64_t, int> Bit(int64_t tap, int64_t place) const {
    return {tap * row + place / 8, static_cast<int>(place % 8)};
  }
};
// Which number of the kernel the number `index` of the plane is to the window `place`.
int64_t Tap(const Windows &windows, const Window &window, const Mask &mask, int64_t place, int64_t index) {
  const auto stride = window.stride.empty() ? mask.kernel : Each(window.stride, 2, "stride", 1);
  const auto padding = Each(window.padding, 2, "padding", 0);
  const int64_t columns = static_cast<int64_t>(windows.along[2].size());
  const int64_t row = index / windows.in[2] - (place / columns * stride[0] - padding[0]);
  const int64_t column = index % windows.in[2] - (place % columns * stride[1] - padding[1]);
  return row * mask.kernel[1] + column;
}

constexpr const char *kAverage = "ops-nn/pooling/avg_pool3_d", *kAverageGrad = "ops-nn/pooling/avg_pool3_d_grad";
constexpr const char *kMaximum = "ops-nn/pooling/max_pool3d_with_argmax_v2";
constexpr const char *kMaximumGrad = "ops-nn/pooling/max_pool3d_grad_with_argmax";
constexpr const char *kAdaptiveMaximumGrad = "ops-nn/pooling/adaptive_max_pool3d_grad";
}  // namespace

// ---- averages of windows
ACLNN_OP(AvgPool2d,
         (Tensor self, Ints kernelSize, Ints strides, Ints paddings, bool ceilMode, bool countIncludePad,
          int64_t divisorOverride, int8_t cubeMathType, Out out),
         kAverage) {
  CheckPrecision(cubeMathType);
  IsPooled(self, 2, kHalves);
  const Windows windows = Slide(self, 2, {kernelSize, strides, paddings, kDense, ceilMode});
  return Average(self, 2, windows, windows.Divisors(countIncludePad, divisorOverride), out);
}
ACLNN_OP(AvgPool2dBackward,
         (Tensor gradOutput, Tensor self, Ints kernelSize, Ints stride, Ints padding, bool ceilMode,
          bool countIncludePad, int64_t divisorOverride, int8_t cubeMathType, Out gradInput),
         kAverageGrad) {
  CheckPrecision(cubeMathType);
  IsPooled(self, 2, kHalves);
  const Windows windows = Slide(self, 2, {kernelSize, stride, padding, kDense, ceilMode});
  return AverageBackward(gradOutput, self, 2, windows, windows.Divisors(countIncludePad, divisorOverride), gradInput);
}
ACLNN_OP(AvgPool3d,
         (Tensor self, Ints kernelSize, Ints stride, Ints padding, bool ceilMode, bool countIncludePad,
          int64_t divisorOverride, Out out),
         kAverage) {
  IsPooled(self, 3, kHalves);
  const auto kernel = Each(kernelSize, 3, "kernelSize", 1);
  for (int64_t i = 0; i < 3; ++i) {
    Require(kernel[i] <= self.shape[self.rank() - 3 + i], "kernelSize is not larger than self");
  }
  const Windows windows = Slide(self, 3, {kernelSize, stride, padding, kDense, ceilMode});
  return Average(self, 3, windows, windows.Divisors(countIncludePad, divisorOverride), out);
}
ACLNN_OP(AvgPool3dBackward,
         (Tensor gradOutput, Tensor self, Ints kernelSize, Ints stride, Ints padding, bool ceilMode,
          bool countIncludePad, int64_t divisorOverride, Out output),
         kAverageGrad) {
  IsPooled(self, 3, kHalves);
  const Windows windows = Slide(self, 3, {kernelSize, stride, padding, kDense, ceilMode});
  return AverageBackward(gradOutput, self, 3, windows, windows.Divisors(countIncludePad, divisorOverride), output);
}
ACLNN_OP(AdaptiveAvgPool2d, (Tensor self, Ints outputSize, Out out), "ops-nn/pooling/adaptive_avg_pool2d") {
  IsPooled(self, 2, kHalves);
  const Windows windows = Divide(self, 2, outputSize);
  return Average(self, 2, windows, windows.Divisors(true, 0), out);
}
ACLNN_OP(AdaptiveAvgPool2dBackward, (Tensor gradOutput, Tensor self, Out out),
         "ops-nn/pooling/adaptive_avg_pool2d_grad") {
  IsPooled(self, 2, kHalves);
  const Windows windows = DivideLike(self, 2, gradOutput);
  return AverageBackward(gradOutput, self, 2, windows, windows.Divisors(true, 0), out);
}
ACLNN_OP(AdaptiveAvgPool3d, (Tensor self, Ints outputSize, Out out), "ops-nn/pooling/adaptive_avg_pool3d") {
  IsPooled(self, 3, kHalves);
  const Windows windows = Divide(self, 3, outputSize);
  return Average(self, 3, windows, windows.Divisors(true, 0), out);
}
ACLNN_OP(AdaptiveAvgPool3dBackward, (Tensor gradOutput, Tensor self, Out out),
         "ops-nn/pooling/adaptive_avg_pool3d_grad") {
  IsPooled(self, 3, kHalves);
  const Windows windows = DivideLike(self, 3, gradOutput);
  return AverageBackward(gradOutput, self, 3, windows, windows.Divisors(true, 0), out);
}

// ---- maxima of windows
ACLNN_OP(MaxPool2dWithIndices,
         (Tensor self, Ints kernelSize, Ints stride, Ints padding, Ints dilation, bool ceilMode, Out out, Out indices),
         kMaximum) {
  IsPooled(self, 2, kHalves);
  Takes(indices, kIndices);
  return Maximum(self, 2, Slide(self, 2, {kernelSize, stride, padding, dilation, ceilMode}), out, indices);
}
ACLNN_OP(MaxPool2dWithIndicesBackward,
         (Tensor gradOutput, Tensor self, Tensor indices, Ints kernelSize, Ints stride, Ints padding, Ints dilation,
          bool ceilMode, Out gradInput),
         kMaximumGrad) {
  IsPooled(self, 2, F32);  // the page: other types on later chips than Ascend910B only
  Takes(indices, I32);
  const Windows windows = Slide(self, 2, {kernelSize, stride, padding, dilation, ceilMode});
  return MaximumBackward(gradOutput, self, 2, windows, indices, gradInput);
}
ACLNN_OP(MaxPool3dWithArgmax,
         (Tensor self, Ints kernelSize, Ints stride, Ints padding, Ints dilation, bool ceilMode, Out out, Out indices),
         kMaximum) {
  IsPooled(self, 3, kHalves);
  Takes(indices, I32);
  return Maximum(self, 3, Slide(self, 3, {kernelSize, stride, padding, dilation, ceilMode}), out, indices);
}
ACLNN_OP(MaxPool3dWithArgmaxBackward,
         (Tensor gradOutput, Tensor self, Tensor indices, Ints kernelSize, Ints stride, Ints padding, Ints dilation,
          bool ceilMode, Out gradInput),
         kMaximumGrad) {
  IsPooled(self, 3, kHalves);
  Takes(indices, I32);
  const Windows windows = Slide(self, 3, {kernelSize, stride, padding, dilation, ceilMode});
  return MaximumBackward(gradOutput, self, 3, windows, indices, gradInput);
}
ACLNN_OP(MaxPool2dWithMask,
         (Tensor self, Ints kernelSize, Ints stride, Ints padding, Ints dilation, bool ceilMode, Out out, Out indices),
         kMaximum) {
  IsPooled(self, 2, kHalves);
  Takes(indices, I8);
  const Window window{kernelSize, stride, padding, dilation, ceilMode};
  const Windows windows = Slide(self, 2, window);
  const Mask mask(self, windows, kernelSize);
  SameType(self, out);
  HasShape(out, Result(self, 2, windows));
  HasShape(indices, mask.shape);
  return [=] {
    std::vector<double> y;
    std::vector<int64_t> bytes(static_cast<size_t>(indices.numel()));
    const int64_t plane_bytes = mask.shape[self.rank() - 2] * mask.row;
    EachMaximum(self, windows, [&](int64_t plane, int64_t place, int64_t i, double v) {
      y.push_back(v);
      const auto [byte, bit] = mask.Bit(Tap(windows, window, mask, place, i), place);
      bytes[plane * plane_bytes + byte] |= int64_t(1) << bit;
    });
    Write(out, y);
    Write(indices, bytes);
  };
}
ACLNN_OP(MaxPool2dWithMaskBackward,
         (Tensor gradOutput, Tensor self, Tensor indices, Ints kernelSize, Ints stride, Ints padding, Ints dilation,
          bool ceilMode, Out gradInput),
         kMaximumGrad) {
  IsPooled(self, 2, kHalves);
  Takes(indices, I8);
  const Window window{kernelSize, stride, padding, dilation, ceilMode};
  const Windows windows = Slide(self, 2, window);
  const Mask mask(self, windows, kernelSize);
  SameType(self, gradOutput);
  SameType(self, gradInput);
  SameShape(self, gradInput);
  HasShape(gradOutput, Result(self, 2, windows));
  HasShape(indices, mask.shape);
  return [=] {
    const auto g = Reals(gradOutput);
    const auto bytes = Wholes(indices);
    const int64_t size = Count(windows.in), places = windows.places();
    const int64_t plane_bytes = mask.shape[self.rank() - 2] * mask.row;
    std::vector<double> d(static_cast<size_t>(gradInput.numel()));
    for (int64_t plane = 0; plane < gradInput.numel() / size; ++plane) {
      windows.Visit([&](int64_t p, int64_t i) {
        const auto [byte, bit] = mask.Bit(Tap(windows, window, mask, p, i), p);
        if ((bytes[plane * plane_bytes + byte] >> bit & 1) != 0) d[plane * size + i] += g[plane * places + p];
      });
    }
    Write(gradInput, d);
  };
}
ACLNN_OP(AdaptiveMaxPool2d, (Tensor self, Ints outputSize, Out outputOut, Out indicesOut),
         "ops-nn/pooling/adaptive_max_pool2d") {
  IsPooled(self, 2, kFloats);
  Takes(indicesOut, I64);
  return Maximum(self, 2, Divide(self, 2, outputSize), outputOut, indicesOut);
}
ACLNN_OP(AdaptiveMaxPool2dBackward, (Tensor gradOutput, Tensor self, Tensor indices, Out gradInput),
         kAdaptiveMaximumGrad) {
  IsPooled(self, 2, kHalves);
  Takes(indices, kIndices);
  return MaximumBackward(gradOutput, self, 2, DivideLike(self, 2, gradOutput), indices, gradInput);
}
ACLNN_OP(AdaptiveMaxPool3d, (Tensor self, Ints outputSize, Out outputOut, Out indicesOut),
         "ops-nn/pooling/adaptive_max_pool3d") {
  IsPooled(self, 3, kHalves);
  Takes(indicesOut, I32);
  return Maximum(self, 3, Divide(self, 3, outputSize), outputOut, indicesOut);
}
ACLNN_OP(AdaptiveMaxPool3dBackward, (Tensor gradOutput, Tensor self, Tensor indices, Out gradInput),
         kAdaptiveMaximumGrad) {
  IsPooled(self, 3, kHalves);
  Takes(indices, I32);
  return MaximumBackward(gradOutput, self, 3, DivideLike(self, 3, gradOutput), indices, gradInput);
}

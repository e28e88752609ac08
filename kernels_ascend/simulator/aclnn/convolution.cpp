// Convolutions of one to three spatial axes with their gradients, windows as columns, and distances between rows.
#include <algorithm>
#include <cmath>

#include "product.h"

using namespace sim;

namespace {
constexpr const char *kConvolution = "ops-nn/conv/convolution_forward";
constexpr const char *kConvolutionBackward = "ops-nn/conv/convolution_backward";

struct Convolution {
  std::vector<int64_t> stride, padding, dilation;
  bool transposed;
  int64_t groups;
};
void Check(const Tensor &input, const Tensor &weight, const Convolution &how) {
  Takes(input, kHalves);
  SameType(input, weight);
  HasRank(input, 3, 5);
  HasRank(weight, input.rank(), input.rank());
  const size_t axes = input.shape.size() - 2;
  Require(how.stride.size() == axes && how.padding.size() == axes && how.dilation.size() == axes,
          "stride, padding and dilation have a number for each spatial axis");
  for (size_t i = 0; i < axes; ++i) {
    Require(how.stride[i] > 0 && how.dilation[i] > 0 && how.padding[i] >= 0,
            "stride and dilation are positive, padding is not negative");
  }
  Require(how.groups > 0 && input.shape[1] % how.groups == 0 && weight.shape[0] % how.groups == 0,
          "the channels divide into groups");
  Require(input.shape[1] == (how.transposed ? weight.shape[0] : weight.shape[1] * how.groups),
          "the channels of input and weight agree");
}
// Calls f(element of the result, element of the data, element of the weight) for each product of an ordinary
// convolution. A transposed one is the same with result and data exchanged.
template <class F>
void EachProduct(const Shape &result, const Shape &data, const Shape &weight, const Convolution &how, F f) {
  const size_t axes = result.size() - 2;
  const Shape rs = RowMajor(result), ds = RowMajor(data), ws = RowMajor(weight);
  const Shape window(weight.begin() + 2, weight.end()), places(result.begin() + 2, result.end());
  const int64_t per_group = result[1] / how.groups, channels = weight[1];
  auto unravel = [](int64_t index, const Shape &shape, Shape *at) {
    for (size_t i = shape.size(); i-- > 0;) {
      (*at)[i] = index % shape[i];
      index /= shape[i];
    }
  };
  Shape place(axes), tap(axes);
  for (int64_t p = 0; p < Count(places); ++p) {
    unravel(p, places, &place);
    for (int64_t t = 0; t < Count(window); ++t) {
      unravel(t, window, &tap);
      int64_t r = 0, d = 0, w = 0;
      bool inside = true;
      for (size_t i = 0; i < axes; ++i) {
        const int64_t at = place[i] * how.stride[i] - how.padding[i] + tap[i] * how.dilation[i];
        inside = inside && at >= 0 && at < data[i + 2];
        r += place[i] * rs[i + 2];
        d += at * ds[i + 2];
        w += tap[i] * ws[i + 2];
      }
      if (!inside) continue;
      for (int64_t n = 0; n < result[0]; ++n) {
        for (int64_t o = 0; o < result[1]; ++o) {
          for (int64_t c = 0; c < channels; ++c) {
            f(n * rs[0] + o * rs[1] + r, n * ds[0] + (o / per_group * channels + c) * ds[1] + d,
              o * ws[0] + c * ws[1] + w);
          }
        }
      }
    }
  }
}
}  // namespace

ACLNN_OP(Convolution,
         (Tensor input, Tensor weight, Maybe bias, Ints stride, Ints padding, Ints dilation, bool transposed,
          Ints outputPadding, int64_t groups, Out output, int8_t cubeMathType),
         kConvolution) {
  const Convolution how{stride, padding, dilation, transposed, groups};
  Check(input, weight, how);
  CheckPrecision(cubeMathType);
  Shape shape = {input.shape[0], transposed ? weight.shape[1] * groups : weight.shape[0]};
  for (size_t i = 0; i < stride.size(); ++i) {
    const int64_t size = input.shape[i + 2], window = dilation[i] * (weight.shape[i + 2] - 1) + 1;
    const int64_t more = i < outputPadding.size() ? outputPadding[i] : 0;
    shape.push_back(transposed ? (size - 1) * stride[i] - 2 * padding[i] + window + more
                               : (size + 2 * padding[i] - window) / stride[i] + 1);
  }
  HasShape(output, shape);
  if (bias) HasShape(bias, {shape[1]});
  return [=] {
    const auto x = Reals(input), w = Reals(weight);
    std::vector<double> y(static_cast<size_t>(output.numel()));
    if (transposed) {
      EachProduct(input.shape, output.shape, weight.shape, how,
                  [&](int64_t r, int64_t d, int64_t k) { y[d] += x[r] * w[k]; });
    } else {
      EachProduct(output.shape, input.shape, weight.shape, how,
                  [&](int64_t r, int64_t d, int64_t k) { y[r] += x[d] * w[k]; });
    }
    if (bias) {
      const auto b = Reals(bias);
      const Around around(output.shape, 1);
      for (size_t i = 0; i < y.size(); ++i) y[i] += b[static_cast<int64_t>(i) / around.inner % around.along];
    }
    Write(output, y);
  };
}
ACLNN_OP(ConvolutionBackward,
         (Tensor gradOutput, Tensor input, Tensor weight, MaybeInts biasSizes, Ints stride, Ints padding, Ints dilation,
          bool transposed, Ints outputPadding, int groups, Bools outputMask, int8_t cubeMathType, MaybeOut gradInput,
          MaybeOut gradWeight, MaybeOut gradBias),
         kConvolutionBackward) {
  const Convolution how{stride, padding, dilation, transposed, groups};
  Check(input, weight, how);
  CheckPrecision(cubeMathType);
  Require(outputMask.size() == 3, "outputMask has three entries");
  (void)biasSizes;
  (void)outputPadding;  // the shape of gradOutput says it
  return [=] {
    const auto x = Reals(input), w = Reals(weight), g = Reals(gradOutput);
    std::vector<double> gx(x.size()), gw(w.size()), gb(static_cast<size_t>(gradOutput.shape[1]));
    const Shape &result = transposed ? input.shape : gradOutput.shape,
                &data = transposed ? gradOutput.shape : input.shape;
    EachProduct(result, data, weight.shape, how, [&](int64_t r, int64_t d, int64_t k) {
      const int64_t in = transposed ? r : d, out = transposed ? d : r;
      gx[in] += g[out] * w[k];
      gw[k] += g[out] * x[in];
    });
    const Around around(gradOutput.shape, 1);
    for (size_t i = 0; i < g.size(); ++i) gb[static_cast<int64_t>(i) / around.inner % around.along] += g[i];
    if (outputMask[0]) Write(gradInput, gx);
    if (outputMask[1]) Write(gradWeight, gw);
    if (outputMask[2]) Write(gradBias, gb);
  };
}

// ---- the windows of an image as columns, and the sum of columns to an image
namespace {
struct Columns {
  std::vector<int64_t> kernel, dilation, padding, stride;
  int64_t rows = 0, columns = 0;  // how many windows there are

  void Fit(const Tensor &image) {
    HasRank(image, 3, 4);
    for (const auto *one : {&kernel, &dilation, &padding, &stride}) {
      Require(one->size() == 2, "kernelSize, dilation, padding and stride have two numbers");
    }
    for (int i = 0; i < 2; ++i) {
      Require(kernel[i] > 0 && dilation[i] > 0 && stride[i] > 0, "kernelSize, dilation and stride are positive");
      Require(padding[i] >= 0, "padding is not negative");
      const int64_t room = image.shape[image.rank() - 2 + i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1;
      Require(room >= 0, "the window is not larger than the padded image");
      (i == 0 ? rows : columns) = room / stride[i] + 1;
    }
  }
  Shape Result(const Tensor &image) const {
    Shape shape = {image.shape[image.rank() - 3] * kernel[0] * kernel[1], rows * columns};
    if (image.rank() == 4) shape.insert(shape.begin(), image.shape[0]);
    return shape;
  }
  // f(place in the columns, place in the image) for what is not padding
  template <class F>
  void Visit(const Tensor &image, F f) const {
    const int64_t height = image.shape[image.rank() - 2], width = image.shape[image.rank() - 1];
    const int64_t taps = kernel[0] * kernel[1], places = rows * columns;
    for (int64_t i = 0; i < Count(Result(image)); ++i) {
      const int64_t place = i % places, tap = i / places % taps, plane = i / places / taps;
      const int64_t y = place / columns * stride[0] - padding[0] + tap / kernel[1] * dilation[0];
      const int64_t x = place % columns * stride[1] - padding[1] + tap % kernel[1] * dilation[1];
      if (y >= 0 && y < height && x >= 0 && x < width) f(i, (plane * height + y) * width + x);
    }
  }
};
}  // namespace
ACLNN_OP(Im2col, (Tensor self, Ints kernelSize, Ints dilation, Ints padding, Ints stride, Out out),
         "ops-math/conversion/im2col") {
  Takes(self, kHalves);
  SameType(self, out);
  Columns columns{kernelSize, dilation, padding, stride};
  columns.Fit(self);
  HasShape(out, columns.Result(self));
  return [=] {
    const auto x = Reals(self);
    std::vector<double> y(static_cast<size_t>(out.numel()));
    columns.Visit(self, [&](int64_t i, int64_t j) { y[i] = x[j]; });
    Write(out, y);
  };
}
ACLNN_OP(Im2colBackward,
         (Tensor gradOutput, Ints inputSize, Ints kernelSize, Ints dilation, Ints padding, Ints stride, Out out),
         "ops-cv/image/col2im") {
  Takes(gradOutput, kHalves);
  SameType(gradOutput, out);
  Columns columns{kernelSize, dilation, padding, stride};
  columns.Fit(out);
  Require(inputSize.size() == 2 && out.shape[out.rank() - 2] == inputSize[0] && out.shape.back() == inputSize[1],
          "the last axes of out are inputSize");
  HasShape(gradOutput, columns.Result(out));
  return [=] {
    const auto g = Reals(gradOutput);
    std::vector<double> d(static_cast<size_t>(out.numel()));
    columns.Visit(out, [&](int64_t i, int64_t j) { d[j] += g[i]; });
    Write(out, d);
  };
}

// ---- distances between rows
ACLNN_OP(Cdist, (Tensor x1, Tensor x2, float p, int64_t compute_mode, Out out), "ops-math/math/cdist") {
  Takes(x1, kHalves);
  SameType(x1, x2);
  HasRank(x1, 2, 8);
  HasRank(x2, 2, 8);
  Require(p >= 0, "p is not negative");
  (void)compute_mode;  // it has no effect, as the page says
  const int64_t rows = x1.shape[x1.rank() - 2], columns = x2.shape[x2.rank() - 2], width = x1.shape.back();
  Require(x2.shape.back() == width, "the last axes agree");
  const Shape batch =
      BroadcastShape(Shape(x1.shape.begin(), x1.shape.end() - 2), Shape(x2.shape.begin(), x2.shape.end() - 2));
  Shape left = batch, right = batch, shape = batch;
  left.insert(left.end(), {rows, width});
  right.insert(right.end(), {columns, width});
  shape.insert(shape.end(), {rows, columns});
  HasShape(out, shape);
  return [=] {
    const auto a = Reals(x1, left), b = Reals(x2, right);
    std::vector<double> y(static_cast<size_t>(out.numel()));
    for (int64_t i = 0; i < static_cast<int64_t>(y.size()); ++i) {
      const int64_t n = i / (rows * columns), row = i / columns % rows, column = i % columns;
      double sum = 0;
      for (int64_t d = 0; d < width; ++d) {
        const double v = std::fabs(a[(n * rows + row) * width + d] - b[(n * columns + column) * width + d]);
        sum = std::isinf(p) ? std::max(sum, v) : p == 0 ? sum + (v != 0) : sum + std::pow(v, static_cast<double>(p));
      }
      y[i] = std::isinf(p) || p == 0 ? sum : std::pow(sum, 1 / static_cast<double>(p));
    }
    Write(out, y);
  };
}

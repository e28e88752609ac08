// Images of other sizes: upsampling of one to three axes and sampling at the places of a grid, with the gradients.
#include <cmath>

#include "image.h"

using namespace sim;

namespace {
void IsImage(const Tensor &self, int64_t axes, Types types) {
  Takes(self, types);
  HasRank(self, axes + 2, axes + 2);
  ChannelsFirst(self);
}

// ---- upsampling. A number of the result is a sum over numbers of each axis, with weights.
using Taps = std::vector<std::vector<std::pair<int64_t, double>>>;  // for each place of the result
enum Kernel { kNearest, kLinear, kCubic };

std::vector<double> CubicWeights(double t) {
  constexpr double a = -0.75;
  auto near = [](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  auto far = [](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(t + 1), near(t), near(1 - t), far(2 - t)};
}
Taps TapsOf(Kernel kernel, int64_t in, int64_t out, bool align, double scale) {
  double step = scale > 0 ? 1 / scale : static_cast<double>(in) / static_cast<double>(out);
  if (align) step = out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
  Taps taps;
  for (int64_t i = 0; i < out; ++i) {
    const double place = align ? static_cast<double>(i) * step : (static_cast<double>(i) + 0.5) * step - 0.5;
    if (kernel == kNearest) {  // in float32, because the page's formula depends on it where a place is a whole number
      const float size = static_cast<float>(in) / static_cast<float>(out);
      taps.push_back({{std::min(static_cast<int64_t>(std::floor(static_cast<float>(i) * size)), in - 1), 1.0}});
    } else if (kernel == kLinear) {
      const double inside = std::max(place, 0.0);
      const int64_t before = std::min(static_cast<int64_t>(inside), in - 1), behind = std::min(before + 1, in - 1);
      const double t = inside - static_cast<double>(before);
      taps.push_back({{before, 1 - t}, {behind, t}});
    } else {
      const double floor = std::floor(place);
      const auto weights = CubicWeights(place - floor);
      taps.emplace_back();
      for (int64_t k = 0; k < 4; ++k) {
        const int64_t at = static_cast<int64_t>(floor) + k - 1;
        taps.back().emplace_back(std::min(std::max<int64_t>(at, 0), in - 1), weights[k]);
      }
    }
  }
  return taps;
}
// Sums along one axis; `back`: the transpose of it, to an axis of the given size.
std::vector<double> Along(const std::vector<double> &x, Shape *shape, int64_t axis, const Taps &taps, bool back,
                          int64_t size) {
  const Around from(*shape, axis);
  (*shape)[axis] = size;
  std::vector<double> y(static_cast<size_t>(Count(*shape)));
  for (int64_t o = 0; o < from.outer; ++o) {
    for (size_t p = 0; p < taps.size(); ++p) {
      for (const auto &[q, weight] : taps[p]) {
        const int64_t source = back ? static_cast<int64_t>(p) : q, target = back ? q : static_cast<int64_t>(p);
        const double *read = &x[(o * from.along + source) * from.inner];
        double *write = &y[(o * size + target) * from.inner];
        for (int64_t i = 0; i < from.inner; ++i) write[i] += weight * read[i];
      }
    }
  }
  return y;
}
// `image` is the smaller side: what is upsampled, or its gradient. `scales` has a number for each axis; 0 means that
// the sizes say it.
Task Resample(const Tensor &image, const Tensor &result, Kernel kernel, bool align, const std::vector<double> &scales,
              bool back) {
  SameType(image, result);
  std::vector<Taps> taps;
  for (size_t i = 0; i < scales.size(); ++i) {
    taps.push_back(TapsOf(kernel, image.shape[i + 2], result.shape[i + 2], align, scales[i]));
  }
  const Tensor from = back ? result : image, to = back ? image : result;
  return [=] {
    auto x = Reals(from);
    Shape shape = from.shape;
    for (size_t i = 0; i < taps.size(); ++i) {
      x = Along(x, &shape, static_cast<int64_t>(i) + 2, taps[i], back, to.shape[i + 2]);
    }
    Write(to, x);
  };
}
void Positive(const std::vector<int64_t> &sizes, size_t count, const char *name) {
  if (sizes.size() != count) Refuse("'%s' has %zu numbers; it has %zu", name, sizes.size(), count);
  for (const int64_t one : sizes) {
    if (one < 1) Refuse("'%s' has the number %lld; the least is 1", name, (long long)one);
  }
}
Task Upsample(const Tensor &self, const std::vector<int64_t> &sizes, Kernel kernel, bool align,
              const std::vector<double> &scales, const Tensor &out, Types types) {
  const size_t axes = scales.size();
  IsImage(self, static_cast<int64_t>(axes), types);
  Require(self.numel() > 0, "self is not empty");
  Positive(sizes, axes, "outputSize");
  Shape shape = {self.shape[0], self.shape[1]};
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  HasShape(out, shape);
  return Resample(self, out, kernel, align, scales, false);
}
Task UpsampleBackward(const Tensor &gradient, const std::vector<int64_t> &sizes, const std::vector<int64_t> &input,
                      Kernel kernel, bool align, const std::vector<double> &scales, const Tensor &out, Types types) {
  const size_t axes = scales.size();
  IsImage(gradient, static_cast<int64_t>(axes), types);
  Positive(sizes, axes, "outputSize");
  Positive(input, axes + 2, "inputSize");
  Shape shape = {input[0], input[1]};
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  HasShape(gradient, shape);
  HasShape(out, input);
  return Resample(out, gradient, kernel, align, scales, true);
}
void AtMost(std::initializer_list<double> scales, double most) {
  for (const double one : scales) {
    if (one > most) Refuse("a scale is %g; the most is %g", one, most);
  }
}
constexpr const char *kNearestPage = "ops-cv/image/resize_nearest_neighbor_v2";
constexpr const char *kNearestGrad = "ops-cv/image/upsample_nearest2d_grad";
constexpr const char *kBilinearGrad = "ops-cv/image/upsample_bilinear2d_grad";
}  // namespace

// The pages of the nearest neighbour compute from the sizes alone; the scales change nothing.
ACLNN_OP(UpsampleNearest1d, (Tensor self, Ints outputSize, Out out), kNearestPage) {
  return Upsample(self, outputSize, kNearest, false, {0}, out, kFloats | U8);
}
ACLNN_OP(UpsampleNearest2d, (Tensor self, Ints outputSize, Out out), kNearestPage) {
  return Upsample(self, outputSize, kNearest, false, {0, 0}, out, kFloats | U8);
}
ACLNN_OP(UpsampleNearest3d, (Tensor self, Ints outputSize, double scalesD, double scalesH, double scalesW, Out out),
         "ops-cv/image/upsample_nearest3d") {
  return Upsample(self, outputSize, kNearest, false, {scalesD, scalesH, scalesW}, out, kFloats);
}
ACLNN_OP(UpsampleNearest1dBackward, (Tensor gradOut, Ints outputSize, Ints inputSize, double scales, Out out),
         kNearestGrad) {
  return UpsampleBackward(gradOut, outputSize, inputSize, kNearest, false, {scales}, out, kFloats);
}
ACLNN_OP(UpsampleNearest2dBackward,
         (Tensor gradOut, Ints outputSize, Ints inputSize, double scalesH, double scalesW, Out gradInput),
         kNearestGrad) {
  return UpsampleBackward(gradOut, outputSize, inputSize, kNearest, false, {scalesH, scalesW}, gradInput, kHalves);
}
ACLNN_OP(UpsampleNearest3dBackward,
         (Tensor gradOut, Ints outputSize, Ints inputSize, double scalesD, double scalesH, double scalesW,
          Out gradInput),
         "ops-cv/image/upsample_nearest3d_grad") {
  return UpsampleBackward(gradOut, outputSize, inputSize, kNearest, false, {scalesD, scalesH, scalesW}, gradInput,
                          kFloats);
}
ACLNN_OP(UpsampleLinear1d, (Tensor self, Ints outputSize, bool alignCorners, double scales, Out out),
         "ops-cv/image/upsample_linear1d") {
  return Upsample(self, outputSize, kLinear, alignCorners, {scales}, out, kHalves);
}
ACLNN_OP(UpsampleLinear1dBackward,
         (Tensor gradOut, Ints outputSize, Ints inputSize, bool alignCorners, double scales, Out out), kBilinearGrad) {
  AtMost({scales}, 500);
  const bool same = inputSize.size() == 3 && gradOut.rank() == 3 && inputSize[2] == gradOut.shape[2];
  return UpsampleBackward(gradOut, outputSize, inputSize, kLinear, alignCorners, {scales}, out,
                          same ? kHalves : F32 | F16);
}
ACLNN_OP(UpsampleBilinear2d, (Tensor self, Ints outputSize, bool alignCorners, double scalesH, double scalesW, Out out),
         "ops-cv/image/upsample_bilinear2d") {
  Require(scalesH >= 0 && scalesW >= 0, "the scales are not negative");
  return Upsample(self, outputSize, kLinear, alignCorners, {scalesH, scalesW}, out, kHalves);
}
ACLNN_OP(UpsampleBilinear2dBackwardV2,
         (Tensor gradOut, Ints outputSize, Ints inputSize, bool alignCorners, double scalesH, double scalesW, Out out),
         kBilinearGrad) {
  return UpsampleBackward(gradOut, outputSize, inputSize, kLinear, alignCorners, {scalesH, scalesW}, out, kHalves);
}
ACLNN_OP(UpsampleBicubic2d, (Tensor self, Ints outputSize, bool alignCorners, double scalesH, double scalesW, Out out),
         "ops-cv/image/upsample_bicubic2d") {
  return Upsample(self, outputSize, kCubic, alignCorners, {scalesH, scalesW}, out, kHalves);
}
ACLNN_OP(UpsampleBicubic2dBackward,
         (Tensor gradOut, Ints outputSize, Ints inputSize, bool alignCorners, double scalesH, double scalesW,
          Out gradInput),
         "ops-cv/image/upsample_bicubic2d_grad") {
  return UpsampleBackward(gradOut, outputSize, inputSize, kCubic, alignCorners, {scalesH, scalesW}, gradInput, kHalves);
}
ACLNN_OP(UpsampleTrilinear3d,
         (Tensor self, Ints outputSize, bool alignCorners, double scalesD, double scalesH, double scalesW, Out out),
         "ops-cv/image/resize_upsample_trilinear") {
  AtMost({scalesD, scalesH, scalesW}, 50);
  return Upsample(self, outputSize, kLinear, alignCorners, {scalesD, scalesH, scalesW}, out, kFloats);
}
ACLNN_OP(UpsampleTrilinear3dBackward,
         (Tensor gradOut, Ints outputSize, Ints inputSize, bool alignCorners, double scalesD, double scalesH,
          double scalesW, Out gradInput),
         "ops-cv/image/upsample_trilinear3d_backward") {
  return UpsampleBackward(gradOut, outputSize, inputSize, kLinear, alignCorners, {scalesD, scalesH, scalesW}, gradInput,
                          kFloats);
}

// ---- sampling at the places of a grid, whose numbers from -1 to 1 span an axis
namespace {
struct Sampling {
  int64_t mode, padding;  // 0 linear, 1 nearest, 2 cubic; 0 zeros, 1 the border, 2 reflected
  bool align;
};
struct Place {
  double at, slope;  // where along the axis, and its derivative by the number in the grid
};
Place Bounded(Place place, int64_t size, const Sampling &how) {
  const double last = static_cast<double>(size - 1);
  if (how.padding == 2) {
    const double low = how.align ? 0 : -0.5, span = how.align ? last : static_cast<double>(size);
    if (span == 0) {
      place = {0, 0};
    } else {
      double offset = place.at - low;
      if (offset < 0) place.slope = -place.slope;
      offset = std::fabs(offset);
      const double rest = std::fmod(offset, span);
      const bool odd = std::fmod(std::floor(offset / span), 2) != 0;
      place = {(odd ? span - rest : rest) + low, odd ? -place.slope : place.slope};
    }
  }
  if (how.padding != 0) {
    if (place.at <= 0) return {0, 0};
    if (place.at >= last) return {last, 0};
  }
  return place;
}
struct Tap {
  int64_t index;          // along the axis
  double weight, change;  // `change`: the derivative of the weight by the number in the grid
};
// The numbers of an axis that are read for one number of the grid. What lies outside is left out.
std::vector<Tap> TapsAt(double number, int64_t size, const Sampling &how) {
  const double half = how.align ? static_cast<double>(size - 1) / 2 : static_cast<double>(size) / 2;
  Place place = {how.align ? (number + 1) * half : (number + 1) * half - 0.5, half};
  if (how.mode != 2) place = Bounded(place, size, how);
  if (!(std::fabs(place.at) < 2147483647.0)) place = {-100, 0};  // not-a-number and what no int32 holds lie outside
  std::vector<Tap> taps;
  auto add = [&](double at, double weight, double change) {
    if (at >= 0 && at < static_cast<double>(size)) taps.push_back({static_cast<int64_t>(at), weight, change});
  };
  const double floor = std::floor(place.at), t = place.at - floor;
  if (how.mode == 0) {
    add(floor, 1 - t, -place.slope);
    add(floor + 1, t, place.slope);
  } else if (how.mode == 1) {
    add(std::nearbyint(place.at), 1, 0);
  } else {
    constexpr double a = -0.75;
    auto near = [](double d) { return (3 * (a + 2) * d - 2 * (a + 3)) * d; };
    auto far = [](double d) { return (3 * a * d - 10 * a) * d + 8 * a; };
    const auto weights = CubicWeights(t);
    const double changes[] = {far(t + 1), near(t), -near(1 - t), -far(2 - t)};
    for (int k = 0; k < 4; ++k) {
      add(Bounded({floor + k - 1, 0}, size, how).at, weights[k], changes[k] * place.slope);
    }
  }
  return taps;
}
// One number of a plane with its weight, and the derivatives of the weight by the numbers of the grid.
struct Sample {
  int64_t index;
  double weight, changes[3];
};
std::vector<Sample> SamplesAt(const double *grid, const Shape &sizes, const Sampling &how) {
  std::vector<Sample> samples = {{0, 1, {0, 0, 0}}};
  const size_t axes = sizes.size();
  for (size_t axis = 0; axis < axes; ++axis) {  // the grid names the last axis first
    const size_t number = axes - 1 - axis;
    std::vector<Sample> more;
    for (const Tap &tap : TapsAt(grid[number], sizes[axis], how)) {
      for (const Sample &one : samples) {
        Sample next = {one.index * sizes[axis] + tap.index, one.weight * tap.weight, {}};
        for (size_t k = 0; k < axes; ++k) next.changes[k] = one.changes[k] * tap.weight;
        next.changes[number] = one.weight * tap.change;
        more.push_back(next);
      }
    }
    samples = std::move(more);
  }
  return samples;
}
// f(the plane of the result, the place in it, the place in the grid, the samples)
template <class F>
void EachSample(const Tensor &input, const Tensor &grid, const Sampling &how, F f) {
  const auto numbers = Reals(grid);
  const int64_t axes = input.rank() - 2, places = grid.numel() / std::max<int64_t>(grid.shape[0] * axes, 1);
  const Shape sizes(input.shape.begin() + 2, input.shape.end());
  for (int64_t n = 0; n < grid.shape[0]; ++n) {
    for (int64_t p = 0; p < places; ++p) {
      const int64_t place = (n * places + p) * axes;
      const auto samples = SamplesAt(&numbers[place], sizes, how);
      for (int64_t c = 0; c < input.shape[1]; ++c) f(n * input.shape[1] + c, p, place, samples);
    }
  }
}
void CheckGrid(const Tensor &input, const Tensor &grid, const Sampling &how, const Tensor &result, int64_t axes) {
  IsImage(input, axes, kFloats);
  SameType(input, grid);
  SameType(input, result);
  HasRank(grid, axes + 2, axes + 2);
  Require(grid.shape[0] == input.shape[0] && grid.shape.back() == axes,
          "grid has the batch of input and a number for "
          "each axis");
  for (int64_t i = 0; i < axes; ++i) Require(input.shape[i + 2] > 0, "the sampled axes are not empty");
  const bool cubic = axes == 2 && IsIn(input.type, kHalves);
  if (how.mode < 0 || how.mode > (cubic ? 2 : 1)) Refuse("interpolationMode is %lld", (long long)how.mode);
  if (how.padding < 0 || how.padding > 2) Refuse("paddingMode is %lld", (long long)how.padding);
  Shape shape = {input.shape[0], input.shape[1]};
  shape.insert(shape.end(), grid.shape.begin() + 1, grid.shape.end() - 1);
  HasShape(result, shape);
}
Task Sampled(const Tensor &input, const Tensor &grid, const Sampling &how, const Tensor &out, int64_t axes) {
  CheckGrid(input, grid, how, out, axes);
  return [=] {
    const auto x = Reals(input);
    std::vector<double> y(static_cast<size_t>(out.numel()));
    const int64_t size = Count({input.shape.begin() + 2, input.shape.end()});
    const int64_t places = Count({out.shape.begin() + 2, out.shape.end()});
    EachSample(input, grid, how, [&](int64_t plane, int64_t p, int64_t, const auto &samples) {
      for (const Sample &one : samples) y[plane * places + p] += one.weight * x[plane * size + one.index];
    });
    Write(out, y);
  };
}
Task SampledBackward(const Tensor &gradient, const Tensor &input, const Tensor &grid, const Sampling &how,
                     const std::vector<uint8_t> &wanted, const Tensor &input_out, const Tensor &grid_out,
                     int64_t axes) {
  CheckGrid(input, grid, how, gradient, axes);
  Require(wanted.size() == 2, "outputMask has two entries");
  for (const Tensor &one : {input_out, grid_out}) SameType(input, one);
  SameShape(input, input_out);
  SameShape(grid, grid_out);
  return [=] {
    const auto x = Reals(input), g = Reals(gradient);
    std::vector<double> dx(x.size()), dg(static_cast<size_t>(grid.numel()));
    const int64_t size = Count({input.shape.begin() + 2, input.shape.end()});
    const int64_t places = Count({gradient.shape.begin() + 2, gradient.shape.end()});
    EachSample(input, grid, how, [&](int64_t plane, int64_t p, int64_t place, const auto &samples) {
      const double d = g[plane * places + p];
      for (const Sample &one : samples) {
        dx[plane * size + one.index] += d * one.weight;
        for (int64_t k = 0; k < axes; ++k) dg[place + k] += d * x[plane * size + one.index] * one.changes[k];
      }
    });
    if (wanted[0]) Write(input_out, dx);
    if (wanted[1]) Write(grid_out, dg);
  };
}
}  // namespace
ACLNN_OP(GridSampler2D,
         (Tensor input, Tensor grid, int64_t interpolationMode, int64_t paddingMode, bool alignCorners, Out out),
         "ops-cv/image/grid_sample") {
  return Sampled(input, grid, {interpolationMode, paddingMode, alignCorners}, out, 2);
}
ACLNN_OP(GridSampler2DBackward,
         (Tensor gradOutput, Tensor input, Tensor grid, int64_t interpolationMode, int64_t paddingMode,
          bool alignCorners, Bools outputMask, MaybeOut inputGrad, MaybeOut gridGrad),
         "ops-cv/image/grid_sampler2_d_grad") {
  return SampledBackward(gradOutput, input, grid, {interpolationMode, paddingMode, alignCorners}, outputMask, inputGrad,
                         gridGrad, 2);
}
ACLNN_OP(GridSampler3D,
         (Tensor input, Tensor grid, int64_t interpolationMode, int64_t paddingMode, bool alignCorners, Out out),
         "ops-cv/image/grid_sample") {
  return Sampled(input, grid, {interpolationMode, paddingMode, alignCorners}, out, 3);
}
ACLNN_OP(GridSampler3DBackward,
         (Tensor gradOutput, Tensor input, Tensor grid, int64_t interpolationMode, int64_t paddingMode,
          bool alignCorners, Bools outputMask, MaybeOut inputGrad, MaybeOut gridGrad),
         "ops-cv/image/grid_sampler3_d_grad") {
  return SampledBackward(gradOutput, input, grid, {interpolationMode, paddingMode, alignCorners}, outputMask, inputGrad,
                         gridGrad, 3);
}

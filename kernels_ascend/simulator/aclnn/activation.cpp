// Activations and their gradients.
#include "pointwise.h"

using namespace sim;

#define ACTIVATION(NAME, PAGE, TYPES, EXPRESSION)                                         \
  ACLNN_OP(NAME, (Tensor self, Out out), PAGE) {                                          \
    return Unary(self, out, TYPES, TYPES, [](double x) -> double { return EXPRESSION; }); \
  }
// d is the gradient of the result, x the input or the result, as the operator's page says.
#define GRADIENT(NAME, PAGE, TYPES, EXPRESSION)                                                                   \
  ACLNN_OP(NAME, (Tensor gradOutput, Tensor self, Out gradInput), PAGE) {                                         \
    return Backward(gradOutput, self, gradInput, TYPES, [](double d, double x) -> double { return EXPRESSION; }); \
  }

namespace {
const double kSqrt2OverPi = std::sqrt(2 / M_PI);
double GeluErf(double x) { return 0.5 * x * (1 + std::erf(x * M_SQRT1_2)); }
double GeluErfSlope(double x) {
  return 0.5 * (1 + std::erf(x * M_SQRT1_2)) + x * std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI);
}
double GeluTanh(double x) { return 0.5 * x * (1 + std::tanh(kSqrt2OverPi * (x + 0.044715 * x * x * x))); }
double GeluTanhSlope(double x) {
  const double t = std::tanh(kSqrt2OverPi * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kSqrt2OverPi * (1 + 3 * 0.044715 * x * x);
}
double SiluSlope(double x) {
  const double s = Sigmoid(x);
  return s * (1 + x * (1 - s));
}
double Softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
double MishSlope(double x) {
  const double t = std::tanh(Softplus(x));
  return t + x * (1 - t * t) * Sigmoid(x);
}
double HardSigmoid(double x) { return std::clamp(x / 6 + 0.5, 0.0, 1.0); }
double HardSwishSlope(double x) { return x <= -3 ? 0 : x < 3 ? x / 3 + 0.5 : 1; }
constexpr Types kReluTypes = kHalves | kIndices | I8 | U8;
}  // namespace

// ---- without parameters
ACTIVATION(Sigmoid, "ops-nn/activation/sigmoid", kAll, Sigmoid(x))
ACLNN_OP(InplaceSigmoid, (Out self), "ops-nn/activation/sigmoid") {
  return Unary(self, self, kFloats, kFloats, Sigmoid);
}
GRADIENT(SigmoidBackward, "ops-nn/activation/sigmoid_grad", kFloats, d * x * (1 - x))
GRADIENT(TanhBackward, "ops-math/math/tanh_grad", kFloats, d * (1 - x * x))
ACTIVATION(Silu, "ops-nn/activation/swish", kHalves, x *Sigmoid(x))
GRADIENT(SiluBackward, "ops-nn/activation/silu_grad", kHalves, d *SiluSlope(x))
ACTIVATION(Gelu, "ops-nn/activation/gelu", kHalves, GeluErf(x))
GRADIENT(GeluBackward, "ops-nn/activation/gelu_grad", kHalves, d *GeluErfSlope(x))
ACTIVATION(Mish, "ops-nn/activation/mish", kHalves, x *std::tanh(Softplus(x)))
ACLNN_OP(InplaceMish, (Out self), "ops-nn/activation/mish") {
  return Unary(self, self, kHalves, kHalves, [](double x) { return x * std::tanh(Softplus(x)); });
}
GRADIENT(MishBackward, "ops-nn/activation/mish_grad", kHalves, d *MishSlope(x))
ACTIVATION(Hardsigmoid, "ops-nn/activation/hard_sigmoid", kHalves | I32, HardSigmoid(x))
GRADIENT(HardsigmoidBackward, "ops-nn/activation/hard_sigmoid_grad", kHalves, x > -3 && x < 3 ? d / 6 : 0)
ACTIVATION(Hardswish, "ops-nn/activation/hard_swish", kHalves, x *HardSigmoid(x))
GRADIENT(HardswishBackward, "ops-nn/activation/hard_swish_grad", kHalves, d *HardSwishSlope(x))
ACLNN_OP(Relu, (Tensor self, Out out), "ops-nn/activation/relu") {
  return UnaryExact(self, out, kReluTypes, kReluTypes, [](auto x) { return x > 0 || x != x ? x : decltype(x)(0); });
}
ACLNN_OP(InplaceRelu, (Out self), "ops-nn/activation/relu") {
  return UnaryExact(self, self, kReluTypes, kReluTypes, [](auto x) { return x > 0 || x != x ? x : decltype(x)(0); });
}

// ---- gelu: 0 or "none" is the error function, 1 or "tanh" the approximation
ACLNN_OP(GeluV2, (Tensor x, int64_t approximate, Out y), "ops-nn/activation/gelu_v2") {
  Require(approximate == 0 || approximate == 1, "approximate is 0 or 1");
  return Unary(x, y, kHalves, kHalves, approximate == 1 ? GeluTanh : GeluErf);
}
ACLNN_OP(GeluBackwardV2, (Tensor gradOutput, Tensor self, Text approximate, Out gradInput),
         "ops-nn/activation/gelu_grad_v2") {
  Require(approximate == "none" || approximate == "tanh", "approximate is \"none\" or \"tanh\"");
  const bool tanh = approximate == "tanh";
  return Backward(gradOutput, self, gradInput, kHalves,
                  [=](double d, double x) { return d * (tanh ? GeluTanhSlope(x) : GeluErfSlope(x)); });
}

// ---- selu: its gradient is given the result
namespace {
constexpr double kSeluAlpha = 1.6732632423543772, kSeluScale = 1.0507009873554805;
double Selu(double x) { return kSeluScale * (x > 0 ? x : kSeluAlpha * std::expm1(x)); }
}  // namespace
ACLNN_OP(Selu, (Tensor self, Out out), "ops-nn/activation/selu") { return Unary(self, out, kHalves, kHalves, Selu); }
ACLNN_OP(InplaceSelu, (Out self), "ops-nn/activation/selu") { return Unary(self, self, kHalves, kHalves, Selu); }
GRADIENT(SeluBackward, "ops-nn/activation/selu_grad", kHalves, d *(x > 0 ? kSeluScale : x + kSeluScale * kSeluAlpha))

// ---- with a slope or a threshold
ACLNN_OP(LeakyRelu, (Tensor self, Scalar negativeSlope, Out out), "ops-nn/activation/leaky_relu") {
  return Unary(self, out, kFloats, kFloats, [s = negativeSlope.real](double x) { return x > 0 ? x : x * s; });
}
ACLNN_OP(LeakyReluBackward, (Tensor gradOutput, Tensor self, Scalar negativeSlope, bool selfIsResult, Out out),
         "ops-nn/activation/leaky_relu_grad") {
  if (selfIsResult && negativeSlope.real < 0) Refuse("a negative slope cannot be recovered from the result");
  return Backward(gradOutput, self, out, kFloats,
                  [s = negativeSlope.real](double d, double x) { return x > 0 ? d : d * s; });
}
namespace {
Task EluInto(const Tensor &self, double alpha, double scale, double input_scale, const Tensor &out) {
  return Unary(self, out, kFloats, kFloats,
               [=](double x) { return x > 0 ? scale * x : scale * alpha * std::expm1(input_scale * x); });
}
}  // namespace
ACLNN_OP(Elu, (Tensor self, Scalar alpha, Scalar scale, Scalar inputScale, Out out), "ops-nn/activation/elu") {
  return EluInto(self, alpha.real, scale.real, inputScale.real, out);
}
ACLNN_OP(InplaceElu, (Out self, Scalar alpha, Scalar scale, Scalar inputScale), "ops-nn/activation/elu") {
  return EluInto(self, alpha.real, scale.real, inputScale.real, self);
}
ACLNN_OP(EluBackward,
         (Tensor gradOutput, Scalar alpha, Scalar scale, Scalar inputScale, bool isResult, Tensor selfOrResult,
          Out gradInput),
         "ops-nn/activation/elu_grad_v2") {
  return Backward(gradOutput, selfOrResult, gradInput, kHalves,
                  [a = alpha.real, s = scale.real, k = inputScale.real, isResult](double d, double x) {
                    if (x > 0) return d * s;
                    return isResult ? d * k * (x + s * a) : d * k * s * a * std::exp(k * x);
                  });
}
ACLNN_OP(Softplus, (Tensor self, Scalar beta, Scalar threshold, Out out), "ops-nn/activation/softplus_v2") {
  return Unary(self, out, kHalves, kHalves,
               [b = beta.real, t = threshold.real](double x) { return x * b > t ? x : Softplus(x * b) / b; });
}
ACLNN_OP(SoftplusBackward, (Tensor gradOutput, Tensor self, Scalar beta, Scalar threshold, Out gradInput),
         "ops-nn/activation/softplus_v2_grad") {
  return Backward(gradOutput, self, gradInput, kFloats, [b = beta.real, t = threshold.real](double d, double x) {
    return x * b > t ? d : d * Sigmoid(x * b);
  });
}
ACLNN_OP(Threshold, (Tensor self, Scalar threshold, Scalar value, Out out), "ops-nn/activation/threshold") {
  return UnaryExact(self, out, kHalves | kInts, kHalves | kInts, [=](auto x) {
    using C = decltype(x);
    return x <= As<C>(threshold) ? As<C>(value) : x;
  });
}
ACLNN_OP(ThresholdBackward, (Tensor gradOutput, Tensor self, Scalar threshold, Out out),
         "ops-nn/activation/threshold_grad_v2_d") {
  return Backward(gradOutput, self, out, kHalves | I32 | I8 | U8,
                  [t = threshold.real](double d, double x) { return x <= t ? 0 : d; });
}
ACLNN_OP(Hardshrink, (Tensor self, Scalar lambd, Out out), "ops-nn/activation/hard_shrink") {
  return Unary(self, out, kHalves, kHalves, [k = lambd.real](double x) { return x >= -k && x <= k ? 0 : x; });
}
ACLNN_OP(HardshrinkBackward, (Tensor gradOutput, Tensor self, Scalar lambd, Out gradInput),
         "ops-nn/activation/hard_shrink_grad") {
  return Backward(gradOutput, self, gradInput, kHalves,
                  [k = lambd.real](double d, double x) { return x >= -k && x <= k ? 0 : d; });
}
ACLNN_OP(Softshrink, (Tensor self, Scalar lambd, Out out), "ops-nn/activation/softshrink") {
  Require(lambd.real >= 0, "lambd is not negative");
  return Unary(self, out, kHalves, kHalves, [k = lambd.real](double x) {
    return x > k ? x - k : x < -k ? x + k : x != x ? x : 0;
  });
}
ACLNN_OP(SoftshrinkBackward, (Tensor gradOutput, Tensor self, Scalar lambd, Out gradInput),
         "ops-nn/activation/soft_shrink_grad") {
  return Backward(gradOutput, self, gradInput, kHalves,
                  [k = lambd.real](double d, double x) { return x >= -k && x <= k ? 0 : d; });
}
ACLNN_OP(HardtanhBackward, (Tensor gradOutput, Tensor self, Scalar min, Scalar max, Out out),
         "ops-nn/activation/hardtanh_grad") {
  return Backward(gradOutput, self, out, kHalves,
                  [low = min.real, high = max.real](double d, double x) { return x <= low || x >= high ? 0 : d; });
}

// ---- log sigmoid: the buffer of the forward pass is not used
ACLNN_OP(LogSigmoidForward, (Tensor self, Out out, MaybeOut buffer), "ops-nn/activation/log_sigmoid") {
  (void)buffer;
  return Unary(self, out, kHalves, kHalves, [](double x) { return -Softplus(-x); });
}
ACLNN_OP(LogSigmoid, (Tensor self, Out out), "ops-nn/activation/log_sigmoid") {
  return Unary(self, out, kHalves, kHalves, [](double x) { return -Softplus(-x); });
}
ACLNN_OP(LogSigmoidBackward, (Tensor gradOutput, Tensor self, Maybe buffer, Out gradInput),
         "ops-nn/activation/logsigmoid_grad") {
  (void)buffer;
  return Backward(gradOutput, self, gradInput, kHalves, [](double d, double x) { return d * Sigmoid(-x); });
}

// ---- prelu: one weight for all channels, or one for each (axis 1)
ACLNN_OP(Prelu, (Tensor self, Tensor weight, Out out), "ops-nn/activation/p_relu") {
  Takes(self, kHalves);
  SameType(self, weight);
  SameShape(self, out);
  const int64_t channels = self.rank() > 1 ? self.shape[1] : 1, given = weight.numel();
  Require(given == 1 || given == channels, "the number of weights is 1 or that of the channels");
  return [=] {
    auto x = Reals(self);
    const auto w = Reals(weight);
    const Around around(self.shape, 1);
    for (size_t i = 0; i < x.size(); ++i) {
      const int64_t channel = given == 1 ? 0 : static_cast<int64_t>(i) / around.inner % channels;
      if (!(x[i] > 0)) x[i] *= w[channel];
    }
    Write(out, x);
  };
}

// ---- gated units: the first half of an axis times a function of the second
namespace {
// SwiGLU applies its function to the first half, GLU to the second.
Task Gated(const Tensor &self, int64_t dim, const Tensor &out, bool swish) {
  Takes(self, kFloats);
  SameType(self, out);
  const int64_t axis = Axis(dim, self.rank());
  Require(self.rank() > 0 && self.shape[axis] % 2 == 0, "the size along dim is even");
  Shape half = self.shape;
  half[axis] /= 2;
  HasShape(out, half);
  return [=] {
    const auto a = Reals(Part(self, axis, 0, half[axis])), b = Reals(Part(self, axis, half[axis], half[axis]));
    std::vector<double> y(a.size());
    for (size_t i = 0; i < y.size(); ++i) y[i] = swish ? a[i] * Sigmoid(a[i]) * b[i] : a[i] * Sigmoid(b[i]);
    Write(out, y);
  };
}
Task GatedBackward(const Tensor &gradient, const Tensor &self, int64_t dim, const Tensor &out, bool swish) {
  Takes(self, kFloats);
  SameShape(self, out);
  const int64_t axis = Axis(dim, self.rank());
  Require(self.rank() > 0 && self.shape[axis] % 2 == 0, "the size along dim is even");
  return [=] {
    const int64_t half = self.shape[axis] / 2;
    const auto a = Reals(Part(self, axis, 0, half)), b = Reals(Part(self, axis, half, half));
    auto da = Reals(gradient), db = da;
    for (size_t i = 0; i < a.size(); ++i) {
      if (swish) {
        da[i] *= SiluSlope(a[i]) * b[i];
        db[i] *= a[i] * Sigmoid(a[i]);
      } else {
        const double s = Sigmoid(b[i]);
        da[i] *= s;
        db[i] *= a[i] * s * (1 - s);
      }
    }
    Write(Part(out, axis, 0, half), da);
    Write(Part(out, axis, half, half), db);
  };
}
}  // namespace
ACLNN_OP(Glu, (Tensor self, int64_t dim, Out out), "ops-nn/activation/glu") { return Gated(self, dim, out, false); }
ACLNN_OP(GluBackward, (Tensor gradOut, Tensor self, int64_t dim, Out out), "ops-nn/activation/glu_grad") {
  return GatedBackward(gradOut, self, dim, out, false);
}
ACLNN_OP(SwiGlu, (Tensor x, int64_t dim, Out out), "ops-nn/activation/swi_glu") {
  Takes(x, kHalves);
  return Gated(x, dim, out, true);
}
ACLNN_OP(SwiGluGrad, (Tensor yGrad, Tensor x, int64_t dim, Out out), "ops-nn/activation/swi_glu_grad") {
  Takes(x, kHalves);
  SameType(x, yGrad);
  return GatedBackward(yGrad, x, dim, out, true);
}

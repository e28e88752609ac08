// Softmax, its logarithm, and losses that are built on them.
#include <cmath>
#include <memory>

#include "pointwise.h"

using namespace sim;

namespace {
Task SoftmaxInto(const Tensor &self, int64_t dim, const Tensor &out, bool log) {
  Takes(self, kFloats);
  Takes(out, kFloats);
  SameShape(self, out);
  const int64_t axis = Axis(dim, self.rank());
  return [=] {
    auto x = Reals(self);
    const Around around(self.shape, axis);
    for (int64_t o = 0; o < around.outer; ++o) {
      for (int64_t i = 0; i < around.inner; ++i) {
        double *p = x.data() + o * around.along * around.inner + i, top = -INFINITY, sum = 0;
        auto at = [&](int64_t k) -> double & { return p[k * around.inner]; };
        for (int64_t k = 0; k < around.along; ++k) top = std::max(top, at(k));
        for (int64_t k = 0; k < around.along; ++k) sum += std::exp(at(k) - top);
        for (int64_t k = 0; k < around.along; ++k) {
          at(k) = log ? at(k) - top - std::log(sum) : std::exp(at(k) - top) / sum;
        }
      }
    }
    Write(out, x);
  };
}
Task SoftmaxBackwardInto(const Tensor &gradient, const Tensor &output, int64_t dim, const Tensor &out, bool log) {
  Takes(output, kFloats);
  SameShape(gradient, output);
  SameShape(output, out);
  const int64_t axis = Axis(dim, output.rank());
  return [=] {
    auto d = Reals(gradient);
    const auto y = Reals(output);
    const Around around(output.shape, axis);
    for (int64_t o = 0; o < around.outer; ++o) {
      for (int64_t i = 0; i < around.inner; ++i) {
        auto at = [&](int64_t k) { return (o * around.along + k) * around.inner + i; };
        double sum = 0;
        for (int64_t k = 0; k < around.along; ++k) sum += log ? d[at(k)] : d[at(k)] * y[at(k)];
        for (int64_t k = 0; k < around.along; ++k) {
          double &v = d[at(k)];
          v = log ? v - std::exp(y[at(k)]) * sum : y[at(k)] * (v - sum);
        }
      }
    }
    Write(out, d);
  };
}
enum Reduction { kNone = 0, kMean = 1, kSum = 2 };
void CheckReduction(int64_t reduction) { Require(reduction >= 0 && reduction <= 2, "reduction is 0, 1 or 2"); }
}  // namespace

ACLNN_OP(Softmax, (Tensor self, int64_t dim, Out out), "ops-nn/activation/softmax_v2") {
  return SoftmaxInto(self, dim, out, false);
}
ACLNN_OP(LogSoftmax, (Tensor self, int64_t dim, Out out), "ops-nn/activation/log_softmax_v2") {
  return SoftmaxInto(self, dim, out, true);
}
ACLNN_OP(SoftmaxBackward, (Tensor gradOutput, Tensor output, int64_t dim, Out out), "ops-nn/activation/softmax_grad") {
  return SoftmaxBackwardInto(gradOutput, output, dim, out, false);
}
ACLNN_OP(LogSoftmaxBackward, (Tensor gradOutput, Tensor output, int64_t dim, Out out),
         "ops-nn/activation/log_softmax_grad") {
  return SoftmaxBackwardInto(gradOutput, output, dim, out, true);
}

// ---- negative log likelihood. Classes lie along axis 1, or the only axis; `rest` are the axes behind.
namespace {
struct Classes {
  int64_t batch, classes, rest;
  explicit Classes(const Shape &shape)
      : batch(shape.size() > 1 ? shape[0] : 1), classes(shape.size() > 1 ? shape[1] : shape[0]), rest(1) {
    for (size_t i = 2; i < shape.size(); ++i) rest *= shape[i];
  }
  int64_t At(int64_t n, int64_t c, int64_t r) const { return (n * classes + c) * rest + r; }
};
void CheckNll(const Tensor &self, const Tensor &target, const Tensor &weight, int64_t reduction) {
  Takes(self, kHalves);
  Takes(target, kIndices | U8);
  CheckReduction(reduction);
  const Classes classes(self.shape);
  HasShape(weight, {classes.classes});
  Require(target.numel() == classes.batch * classes.rest, "one target for each row");
}
// Calls f(place in target, place of the target's class, weight) for each target that is not ignored.
template <class F>
void EachTarget(const Classes &sizes, const std::vector<int64_t> &target, const std::vector<double> &weight,
                int64_t ignore, F f) {
  for (int64_t n = 0; n < sizes.batch; ++n) {
    for (int64_t r = 0; r < sizes.rest; ++r) {
      const int64_t place = n * sizes.rest + r, c = target[place];
      if (c == ignore) continue;
      if (c < 0 || c >= sizes.classes) OutOfRange("the class", c, sizes.classes);
      f(place, sizes.At(n, c, r), weight[c]);
    }
  }
}
Task NllInto(const Tensor &self, const Tensor &target, const Tensor &weight, int64_t reduction, int64_t ignore,
             const Tensor &out, const Tensor &total_weight) {
  CheckNll(self, target, weight, reduction);
  return [=] {
    const auto x = Reals(self);
    std::vector<double> loss(static_cast<size_t>(target.numel()));
    double sum = 0, total = 0;
    EachTarget(Classes(self.shape), Wholes(target), Reals(weight), ignore, [&](int64_t place, int64_t at, double w) {
      loss[place] = -x[at] * w;
      sum += loss[place];
      total += w;
    });
    Write(out, reduction == kNone ? loss : std::vector<double>{reduction == kMean ? sum / total : sum});
    Write(total_weight, std::vector<double>{total});
  };
}
Task NllBackwardInto(const Tensor &gradient, const Tensor &self, const Tensor &target, const Tensor &weight,
                     int64_t reduction, int64_t ignore, const Tensor &total_weight, const Tensor &out) {
  CheckNll(self, target, weight, reduction);
  SameShape(self, out);
  return [=] {
    const auto d = Reals(gradient);
    const double total = Reals(total_weight)[0];
    std::vector<double> r(static_cast<size_t>(out.numel()));
    EachTarget(Classes(self.shape), Wholes(target), Reals(weight), ignore, [&](int64_t place, int64_t at, double w) {
      r[at] = -w * (reduction == kNone ? d[place] : reduction == kMean ? d[0] / total : d[0]);
    });
    Write(out, r);
  };
}
constexpr const char *kNll = "ops-nn/loss/nll_loss", *kNllGrad = "ops-nn/loss/nll_loss_grad";
}  // namespace
ACLNN_OP(NLLLoss,
         (Tensor self, Tensor target, Tensor weight, int64_t reduction, int64_t ignoreIndex, Out out,
          Out totalWeightOut),
         kNll) {
  HasRank(self, 1, 2);
  return NllInto(self, target, weight, reduction, ignoreIndex, out, totalWeightOut);
}
ACLNN_OP(NLLLoss2d,
         (Tensor self, Tensor target, Tensor weight, int64_t reduction, int64_t ignoreIndex, Out out,
          Out totalWeightOut),
         kNll) {
  HasRank(self, 4, 4);
  return NllInto(self, target, weight, reduction, ignoreIndex, out, totalWeightOut);
}
ACLNN_OP(NLLLossBackward,
         (Tensor gradOutput, Tensor self, Tensor target, Tensor weight, int64_t reduction, int64_t ignoreIndex,
          Tensor totalWeight, Out out),
         kNllGrad) {
  HasRank(self, 1, 2);
  return NllBackwardInto(gradOutput, self, target, weight, reduction, ignoreIndex, totalWeight, out);
}
ACLNN_OP(NLLLoss2dBackward,
         (Tensor gradOutput, Tensor self, Tensor target, Tensor weight, int64_t reduction, int64_t ignoreIndex,
          Tensor totalWeight, Out out),
         kNllGrad) {
  HasRank(self, 4, 4);
  return NllBackwardInto(gradOutput, self, target, weight, reduction, ignoreIndex, totalWeight, out);
}

// ---- cross entropy with label smoothing. The z-loss is not simulated.
namespace {
void CheckCrossEntropy(const Tensor &rows, const Tensor &target, const std::string &reduction, double smoothing) {
  HasRank(rows, 2, 2);
  Takes(rows, kHalves);
  Takes(target, kIndices);
  HasShape(target, {rows.shape[0]});
  Require(reduction == "none" || reduction == "mean" || reduction == "sum", "reduction is none, mean or sum");
  Require(smoothing >= 0 && smoothing < 1, "labelSmoothing lies in [0, 1)");
}
std::vector<double> WeightsOf(const Tensor &weight, int64_t classes) {
  return weight ? Reals(weight) : std::vector<double>(static_cast<size_t>(classes), 1);
}
}  // namespace
ACLNN_OP(CrossEntropyLoss,
         (Tensor input, Tensor target, Maybe weightOptional, Text reduction, int64_t ignoreIndex, double labelSmoothing,
          double lseSquareScaleForZloss, bool returnZloss, Out lossOut, Out logProbOut, MaybeOut zlossOut,
          MaybeOut lseForZlossOut),
         "ops-nn/loss/cross_entropy_loss") {
  CheckCrossEntropy(input, target, reduction, labelSmoothing);
  Require(lseSquareScaleForZloss == 0 && !returnZloss, "the z-loss must be off");
  (void)zlossOut;
  (void)lseForZlossOut;
  return [=] {
    const int64_t rows = input.shape[0], classes = input.shape[1];
    auto x = Reals(input);
    const auto chosen = Wholes(target);
    const auto weight = WeightsOf(weightOptional, classes);
    std::vector<double> loss(static_cast<size_t>(rows));
    double sum = 0, total = 0;
    for (int64_t i = 0; i < rows; ++i) {
      double *row = &x[i * classes], top = *std::max_element(row, row + classes), exponentials = 0, smooth = 0;
      for (int64_t k = 0; k < classes; ++k) exponentials += std::exp(row[k] - top);
      for (int64_t k = 0; k < classes; ++k) {
        row[k] -= top + std::log(exponentials);
        smooth -= weight[k] * row[k];
      }
      const int64_t c = chosen[i];
      if (c == ignoreIndex) continue;
      if (c < 0 || c >= classes) OutOfRange("the class", c, classes);
      loss[i] = -(1 - labelSmoothing) * weight[c] * row[c] + labelSmoothing / static_cast<double>(classes) * smooth;
      sum += loss[i];
      total += weight[c];
    }
    if (reduction == "none") {
      Write(lossOut, loss);
    } else {
      Write(lossOut,
            std::vector<double>(static_cast<size_t>(lossOut.numel()), reduction == "mean" ? sum / total : sum));
    }
    Write(logProbOut, x);
  };
}
ACLNN_OP(CrossEntropyLossGrad,
         (Tensor gradLoss, Tensor logProb, Tensor target, Maybe weightOptional, Maybe gradZlossOptional,
          Maybe lseForZlossOptional, Text reduction, int64_t ignoreIndex, double labelSmoothing,
          double lseSquareScaleForZloss, Out out),
         "ops-nn/loss/cross_entropy_loss_grad") {
  CheckCrossEntropy(logProb, target, reduction, labelSmoothing);
  Require(lseSquareScaleForZloss == 0, "the z-loss must be off");
  SameShape(logProb, out);
  (void)gradZlossOptional;
  (void)lseForZlossOptional;
  return [=] {
    const int64_t rows = logProb.shape[0], classes = logProb.shape[1];
    auto x = Reals(logProb);
    const auto d = Reals(gradLoss), weight = WeightsOf(weightOptional, classes);
    const auto chosen = Wholes(target);
    double total = 0, all = 0;
    for (const double w : weight) all += w;
    for (const int64_t c : chosen) total += c == ignoreIndex ? 0 : weight[c];
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t c = chosen[i];
      const double scale = reduction == "none" ? d[i] : reduction == "mean" ? d[0] / total : d[0];
      for (int64_t k = 0; k < classes; ++k) {
        double &v = x[i * classes + k];
        const double p = std::exp(v);
        v = c == ignoreIndex ? 0
                             : scale * ((1 - labelSmoothing) * weight[c] * (p - (c == k)) +
                                        labelSmoothing / static_cast<double>(classes) * (all * p - weight[k]));
      }
    }
    Write(out, x);
  };
}

// ---- losses of pairs
namespace {
template <class F>
Task PairLoss(const Tensor &self, const Tensor &target, int64_t reduction, const Tensor &out, F f) {
  Takes(self, kHalves);
  CheckReduction(reduction);
  const Shape shape = BroadcastShape(self.shape, target.shape);
  HasShape(out, reduction == kNone ? shape : Shape{});
  return [=] {
    auto x = Reals(self, shape);
    const auto y = Reals(target, shape);
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) sum += x[i] = f(x[i], y[i], static_cast<int64_t>(i));
    if (reduction == kNone) return Write(out, x);
    Write(out, std::vector<double>{reduction == kMean ? sum / static_cast<double>(x.size()) : sum});
  };
}
template <class F>
Task PairLossBackward(const Tensor &gradient, const Tensor &self, const Tensor &target, int64_t reduction,
                      const Tensor &out, F f) {
  Takes(self, kHalves);
  CheckReduction(reduction);
  const Shape shape = BroadcastShape(self.shape, target.shape);
  HasShape(out, shape);
  return [=] {
    auto x = Reals(self, shape);
    const auto y = Reals(target, shape), d = Reals(gradient, shape);
    const double scale = reduction == kMean ? 1 / static_cast<double>(x.size()) : 1;
    for (size_t i = 0; i < x.size(); ++i) x[i] = d[i] * scale * f(x[i], y[i]);
    Write(out, x);
  };
}
}  // namespace
ACLNN_OP(SmoothL1Loss, (Tensor self, Tensor target, int64_t reduction, float beta, Out result),
         "ops-nn/loss/smooth_l1_loss_v2") {
  Require(beta >= 0, "beta is not negative");
  return PairLoss(self, target, reduction, result, [b = double(beta)](double x, double y, int64_t) {
    const double z = std::fabs(x - y);
    return z < b ? 0.5 * z * z / b : z - 0.5 * b;
  });
}
ACLNN_OP(SmoothL1LossBackward,
         (Tensor gradOut, Tensor self, Tensor target, int64_t reduction, float beta, Out gradInput),
         "ops-nn/loss/smooth_l1_loss_grad_v2") {
  return PairLossBackward(gradOut, self, target, reduction, gradInput, [b = double(beta)](double x, double y) {
    const double z = x - y;
    return std::fabs(z) < b ? z / b : z > 0 ? 1.0 : z < 0 ? -1.0 : 0.0;
  });
}
ACLNN_OP(SoftMarginLoss, (Tensor self, Tensor target, int64_t reduction, Out out), "ops-nn/loss/soft_margin_loss") {
  return PairLoss(self, target, reduction, out,
                  [](double x, double y, int64_t) { return std::log1p(std::exp(-y * x)); });
}
ACLNN_OP(SoftMarginLossBackward, (Tensor gradOutput, Tensor self, Tensor target, int64_t reduction, Out out),
         "ops-nn/loss/soft_margin_loss_grad") {
  return PairLossBackward(gradOutput, self, target, reduction, out,
                          [](double x, double y) { return -y * Sigmoid(-y * x); });
}
ACLNN_OP(MseLoss, (Tensor self, Tensor target, int64_t reduction, Out out), "ops-nn/loss/mse_loss") {
  return PairLoss(self, target, reduction, out, [](double x, double y, int64_t) { return (x - y) * (x - y); });
}
ACLNN_OP(MseLossBackward, (Tensor gradOutput, Tensor self, Tensor target, int64_t reduction, Out out),
         "ops-nn/loss/mse_loss_grad_v2") {
  return PairLossBackward(gradOutput, self, target, reduction, out, [](double x, double y) { return 2 * (x - y); });
}
ACLNN_OP(L1Loss, (Tensor self, Tensor target, int64_t reduction, Out out), "ops-nn/loss/lp_loss") {
  return PairLoss(self, target, reduction, out, [](double x, double y, int64_t) { return std::fabs(x - y); });
}
ACLNN_OP(L1LossBackward, (Tensor gradOutput, Tensor self, Tensor target, int64_t reduction, Out gradInput),
         "ops-nn/loss/l1_loss_grad") {
  return PairLossBackward(gradOutput, self, target, reduction, gradInput, [](double x, double y) {
    return x > y ? 1.0 : x < y ? -1.0 : 0.0;
  });
}
ACLNN_OP(BinaryCrossEntropyWithLogits,
         (Tensor self, Tensor target, Maybe weightOptional, Maybe posWeightOptional, int64_t reduction, Out out),
         "ops-nn/loss/sigmoid_cross_entropy_with_logits_v2") {
  const Shape shape = self.shape;
  auto weight = std::make_shared<std::vector<double>>(), positive = std::make_shared<std::vector<double>>();
  Task loss = PairLoss(self, target, reduction, out, [=](double x, double y, int64_t i) {
    const double p = positive->empty() ? 1 : (*positive)[i], w = weight->empty() ? 1 : (*weight)[i];
    const double softplus = std::log1p(std::exp(-std::fabs(x))) + std::max(-x, 0.0);
    return w * ((1 - y) * x + (1 + (p - 1) * y) * softplus);
  });
  return [=] {
    if (weightOptional) *weight = Reals(weightOptional, shape);
    if (posWeightOptional) *positive = Reals(posWeightOptional, shape);
    loss();
  };
}
ACLNN_OP(KlDiv, (Tensor self, Tensor target, int64_t reduction, bool logTarget, Out out), "ops-nn/loss/kl_div_v2") {
  Takes(self, kHalves);
  Require(reduction >= 0 && reduction <= 3, "reduction is 0 to 3");
  const int64_t batch = self.rank() > 0 ? self.shape[0] : 1;
  return [=] {
    const Shape shape = BroadcastShape(self.shape, target.shape);
    auto x = Reals(self, shape);
    const auto y = Reals(target, shape);
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = logTarget ? std::exp(y[i]) * (y[i] - x[i]) : y[i] > 0 ? y[i] * (std::log(y[i]) - x[i]) : 0;
      sum += x[i];
    }
    if (reduction == kNone) return Write(out, x);
    const double parts = reduction == kMean ? static_cast<double>(x.size())
                         : reduction == 3   ? static_cast<double>(batch)
                                            : 1;
    Write(out, std::vector<double>{sum / parts});
  };
}

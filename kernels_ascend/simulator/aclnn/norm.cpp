// Normalisations: layer, group, batch and root mean square norms, with their gradients.
#include <cmath>

#include "values.h"

using namespace sim;

namespace {
int64_t Rows(const Tensor &self, int64_t length) { return length > 0 ? self.numel() / length : 0; }
std::vector<double> OrOnes(const Tensor &weight, int64_t count) {
  return weight ? Reals(weight) : std::vector<double>(static_cast<size_t>(count), 1);
}
std::vector<double> OrZeros(const Tensor &bias, int64_t count) {
  return bias ? Reals(bias) : std::vector<double>(static_cast<size_t>(count), 0);
}
// The mean and one over the standard deviation of n numbers.
struct Moments {
  double mean = 0, rstd = 0, variance = 0;
  template <class F>
  Moments(int64_t n, double eps, F value) {
    for (int64_t i = 0; i < n; ++i) mean += value(i);
    mean /= static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i) variance += (value(i) - mean) * (value(i) - mean);
    variance /= static_cast<double>(n);
    rstd = 1 / std::sqrt(variance + eps);
  }
};
bool EndsWith(const Shape &shape, const Shape &end) {
  return shape.size() >= end.size() && std::equal(end.rbegin(), end.rend(), shape.rbegin());
}
}  // namespace

// ---- layer norm
ACLNN_OP(LayerNorm,
         (Tensor input, Ints normalizedShape, Maybe weightOptional, Maybe biasOptional, double eps, Out out,
          MaybeOut meanOutOptional, MaybeOut rstdOutOptional),
         "ops-nn/norm/layer_norm_v4") {
  for (const Tensor &one : {Tensor(input), Tensor(weightOptional), Tensor(biasOptional)}) Takes(one, kHalves);
  SameShape(input, out);
  Require(!normalizedShape.empty() && EndsWith(input.shape, normalizedShape),
          "normalizedShape is the end of the shape");
  HasShape(weightOptional, normalizedShape);
  HasShape(biasOptional, normalizedShape);
  return [=] {
    const int64_t n = Count(normalizedShape), rows = Rows(input, n);
    auto x = Reals(input);
    std::vector<double> mean(static_cast<size_t>(rows)), rstd(mean);
    const auto w = OrOnes(weightOptional, n), b = OrZeros(biasOptional, n);
    for (int64_t i = 0; i < rows; ++i) {
      double *row = &x[i * n];
      const Moments moments(n, eps, [&](int64_t k) { return row[k]; });
      mean[i] = moments.mean;
      rstd[i] = moments.rstd;
      for (int64_t k = 0; k < n; ++k) row[k] = (row[k] - mean[i]) * rstd[i] * w[k] + b[k];
    }
    Write(out, x);
    Write(meanOutOptional, mean);
    Write(rstdOutOptional, rstd);
  };
}
ACLNN_OP(LayerNormBackward,
         (Tensor gradOut, Tensor input, Ints normalizedShape, Tensor mean, Tensor rstd, Maybe weightOptional,
          Maybe biasOptional, Bools outputMask, MaybeOut gradInputOut, MaybeOut gradWeightOut, MaybeOut gradBiasOut),
         "ops-nn/norm/layer_norm_grad_v3") {
  Takes(input, kHalves);
  SameShape(gradOut, input);
  Require(outputMask.size() == 3, "outputMask has three entries");
  Require(!normalizedShape.empty() && EndsWith(input.shape, normalizedShape),
          "normalizedShape is the end of the shape");
  (void)biasOptional;
  return [=] {
    const int64_t n = Count(normalizedShape), rows = Rows(input, n);
    const auto x = Reals(input), m = Reals(mean), r = Reals(rstd), w = OrOnes(weightOptional, n);
    auto d = Reals(gradOut);
    std::vector<double> dw(static_cast<size_t>(n)), db(dw);
    for (int64_t i = 0; i < rows; ++i) {
      double sum = 0, product = 0;
      for (int64_t k = 0; k < n; ++k) {
        const double h = (x[i * n + k] - m[i]) * r[i], v = d[i * n + k];
        dw[k] += v * h;
        db[k] += v;
        sum += v * w[k];
        product += v * w[k] * h;
      }
      for (int64_t k = 0; k < n; ++k) {
        double &v = d[i * n + k];
        const double h = (x[i * n + k] - m[i]) * r[i];
        v = r[i] * (v * w[k] - sum / static_cast<double>(n) - h * product / static_cast<double>(n));
      }
    }
    if (outputMask[0]) Write(gradInputOut, d);
    if (outputMask[1]) Write(gradWeightOut, dw);
    if (outputMask[2]) Write(gradBiasOut, db);
  };
}

// ---- root mean square norm
namespace {
struct RootMeanSquare {
  std::vector<double> y, rstd;
};
RootMeanSquare RmsOf(std::vector<double> x, const std::vector<double> &weight, double eps) {
  const int64_t n = static_cast<int64_t>(weight.size()), rows = static_cast<int64_t>(x.size()) / n;
  std::vector<double> rstd(static_cast<size_t>(rows));
  for (int64_t i = 0; i < rows; ++i) {
    double sum = 0;
    for (int64_t k = 0; k < n; ++k) sum += x[i * n + k] * x[i * n + k];
    rstd[i] = 1 / std::sqrt(sum / static_cast<double>(n) + eps);
    for (int64_t k = 0; k < n; ++k) x[i * n + k] *= rstd[i] * weight[k];
  }
  return {std::move(x), std::move(rstd)};
}
void CheckRms(const Tensor &x, const Tensor &gamma) {
  Takes(x, kHalves);
  Takes(gamma, kHalves);
  Require(gamma.numel() > 0 && EndsWith(x.shape, gamma.shape), "the shape of gamma is the end of that of x");
}
}  // namespace
ACLNN_OP(RmsNorm, (Tensor x, Tensor gamma, double epsilon, Out yOut, Out rstdOut), "ops-nn/norm/rms_norm") {
  CheckRms(x, gamma);
  SameShape(x, yOut);
  Takes(rstdOut, F32);
  return [=] {
    const auto result = RmsOf(Reals(x), Reals(gamma), epsilon);
    Write(yOut, result.y);
    Write(rstdOut, result.rstd);
  };
}
ACLNN_OP(AddRmsNorm, (Tensor x1, Tensor x2, Tensor gamma, double epsilon, Out yOut, Out rstdOut, Out xOut),
         "ops-nn/norm/add_rms_norm") {
  CheckRms(x1, gamma);
  SameShape(x1, x2);
  SameType(x1, x2);
  SameType(x1, gamma);
  Takes(rstdOut, F32);
  return [=] {
    auto x = Reals(x1);
    const auto other = Reals(x2);
    for (size_t i = 0; i < x.size(); ++i) x[i] += other[i];
    const auto weight = Reals(gamma);
    Write(xOut, x);
    const auto result = RmsOf(std::move(x), weight, epsilon);
    Write(yOut, result.y);
    Write(rstdOut, result.rstd);
  };
}
ACLNN_OP(RmsNormGrad, (Tensor dy, Tensor x, Tensor rstd, Tensor gamma, Out dxOut, Out dgammaOut),
         "ops-nn/norm/rms_norm_grad") {
  CheckRms(x, gamma);
  SameShape(dy, x);
  SameType(dy, x);
  Takes(rstd, F32);
  Takes(dgammaOut, F32);
  return [=] {
    const int64_t n = gamma.numel(), rows = Rows(x, n);
    const auto v = Reals(x), w = Reals(gamma), r = Reals(rstd);
    auto d = Reals(dy);
    std::vector<double> dw(static_cast<size_t>(n));
    for (int64_t i = 0; i < rows; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < n; ++k) {
        dw[k] += d[i * n + k] * v[i * n + k] * r[i];
        sum += d[i * n + k] * w[k] * v[i * n + k];
      }
      for (int64_t k = 0; k < n; ++k) {
        double &g = d[i * n + k];
        g = r[i] * (g * w[k] - v[i * n + k] * r[i] * r[i] * sum / static_cast<double>(n));
      }
    }
    Write(dxOut, d);
    Write(dgammaOut, dw);
  };
}

// ---- group norm: n batches of c channels in groups, each channel of hxw numbers
ACLNN_OP(GroupNorm,
         (Tensor self, Maybe gammaOptional, Maybe betaOptional, int64_t n, int64_t c, int64_t hxw, int64_t group,
          double eps, Out out, Out meanOut, Out rstdOut),
         "ops-nn/norm/group_norm") {
  Takes(self, kHalves);
  Require(group > 0 && c % group == 0, "the channels divide into groups");
  Require(self.numel() == n * c * hxw, "the sizes are those of self");
  HasShape(gammaOptional, {c});
  HasShape(betaOptional, {c});
  return [=] {
    auto x = Reals(self);
    const auto w = OrOnes(gammaOptional, c), b = OrZeros(betaOptional, c);
    const int64_t channels = c / group, length = channels * hxw;
    std::vector<double> mean, rstd;
    for (int64_t row = 0; row < n * group; ++row) {
      double *p = &x[row * length];
      const Moments moments(length, eps, [&](int64_t k) { return p[k]; });
      for (int64_t k = 0; k < length; ++k) {
        const int64_t channel = row % group * channels + k / hxw;
        p[k] = (p[k] - moments.mean) * moments.rstd * w[channel] + b[channel];
      }
      mean.push_back(moments.mean);
      rstd.push_back(moments.rstd);
    }
    Write(out, x);
    Write(meanOut, mean);
    Write(rstdOut, rstd);
  };
}
ACLNN_OP(GroupNormBackward,
         (Tensor gradOut, Tensor input, Tensor mean, Tensor rstd, Maybe gamma, int64_t N, int64_t C, int64_t HxW,
          int64_t group, Bools outputMask, MaybeOut gradInput, MaybeOut gradGammaOut, MaybeOut gradBetaOut),
         "ops-nn/norm/group_norm_grad") {
  Takes(input, kHalves);
  Require(group > 0 && C % group == 0, "the channels divide into groups");
  Require(outputMask.size() == 3, "outputMask has three entries");
  return [=] {
    const auto x = Reals(input), m = Reals(mean), r = Reals(rstd), w = OrOnes(gamma, C);
    auto d = Reals(gradOut);
    const int64_t channels = C / group, length = channels * HxW;
    std::vector<double> dw(static_cast<size_t>(C)), db(dw);
    for (int64_t row = 0; row < N * group; ++row) {
      double sum = 0, product = 0;
      auto channel = [&](int64_t k) { return row % group * channels + k / HxW; };
      auto normal = [&](int64_t k) { return (x[row * length + k] - m[row]) * r[row]; };
      for (int64_t k = 0; k < length; ++k) {
        const double v = d[row * length + k];
        dw[channel(k)] += v * normal(k);
        db[channel(k)] += v;
        sum += v * w[channel(k)];
        product += v * w[channel(k)] * normal(k);
      }
      for (int64_t k = 0; k < length; ++k) {
        double &v = d[row * length + k];
        v = r[row] * (v * w[channel(k)] - (sum + normal(k) * product) / static_cast<double>(length));
      }
    }
    if (outputMask[0]) Write(gradInput, d);
    if (outputMask[1]) Write(gradGammaOut, dw);
    if (outputMask[2]) Write(gradBetaOut, db);
  };
}

// ---- batch norm: channels are axis 1
ACLNN_OP(BatchNorm,
         (Tensor input, Maybe weight, Maybe bias, MaybeOut runningMean, MaybeOut runningVar, bool training,
          double momentum, double eps, Out output, MaybeOut saveMean, MaybeOut saveInvstd),
         "ops-nn/norm/batch_norm_v3") {
  Takes(input, kHalves);
  HasRank(input, 2, 5);
  SameShape(input, output);
  Require(training || (runningMean && runningVar), "evaluation needs the running statistics");
  return [=] {
    const Around around(input.shape, 1);
    const int64_t c = around.along, each = around.outer * around.inner;
    auto x = Reals(input);
    const auto w = OrOnes(weight, c), b = OrZeros(bias, c);
    auto running_mean = OrZeros(runningMean, c), running_variance = OrOnes(runningVar, c);
    std::vector<double> mean(static_cast<size_t>(c)), rstd(mean);
    for (int64_t k = 0; k < c; ++k) {
      auto at = [&](int64_t i) -> double & { return x[(i / around.inner * c + k) * around.inner + i % around.inner]; };
      const Moments moments(each, eps, at);
      mean[k] = training ? moments.mean : running_mean[k];
      rstd[k] = training ? moments.rstd : 1 / std::sqrt(running_variance[k] + eps);
      const double unbiased = moments.variance * static_cast<double>(each) / std::max<double>(1, double(each - 1));
      running_mean[k] += momentum * (moments.mean - running_mean[k]);
      running_variance[k] += momentum * (unbiased - running_variance[k]);
      for (int64_t i = 0; i < each; ++i) at(i) = (at(i) - mean[k]) * rstd[k] * w[k] + b[k];
    }
    Write(output, x);
    if (!training) return;
    Write(saveMean, mean);
    Write(saveInvstd, rstd);
    Write(runningMean, running_mean);
    Write(runningVar, running_variance);
  };
}
ACLNN_OP(BatchNormBackward,
         (Tensor gradOut, Tensor input, Maybe weight, Maybe runningMean, Maybe runningVar, Maybe saveMean,
          Maybe saveInvstd, bool training, double eps, Bools outputMask, MaybeOut gradInput, MaybeOut gradWeight,
          MaybeOut gradBias),
         "ops-nn/norm/batch_norm_grad_v3") {
  Takes(input, kHalves);
  HasRank(input, 2, 5);
  SameShape(gradOut, input);
  Require(outputMask.size() == 3, "outputMask has three entries");
  return [=] {
    const Around around(input.shape, 1);
    const int64_t c = around.along, each = around.outer * around.inner;
    const auto x = Reals(input), w = OrOnes(weight, c);
    const auto mean = OrZeros(training ? saveMean : runningMean, c);
    auto rstd = OrOnes(training ? saveInvstd : runningVar, c);
    if (!training) {
      for (auto &v : rstd) v = 1 / std::sqrt(v + eps);
    }
    auto d = Reals(gradOut);
    std::vector<double> dw(static_cast<size_t>(c)), db(dw);
    for (int64_t k = 0; k < c; ++k) {
      auto at = [&](int64_t i) { return (i / around.inner * c + k) * around.inner + i % around.inner; };
      for (int64_t i = 0; i < each; ++i) {
        dw[k] += d[at(i)] * (x[at(i)] - mean[k]) * rstd[k];
        db[k] += d[at(i)];
      }
      for (int64_t i = 0; i < each; ++i) {
        const double h = (x[at(i)] - mean[k]) * rstd[k];
        const double centred = training ? d[at(i)] - (db[k] + h * dw[k]) / static_cast<double>(each) : d[at(i)];
        d[at(i)] = w[k] * rstd[k] * centred;
      }
    }
    if (outputMask[0]) Write(gradInput, d);
    if (outputMask[1]) Write(gradWeight, dw);
    if (outputMask[2]) Write(gradBias, db);
  };
}

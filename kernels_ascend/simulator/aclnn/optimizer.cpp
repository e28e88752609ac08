// Optimizers, checks of all gradients at once, and operators on lists of tensors.
#include <cmath>

#include "values.h"

using namespace sim;

ACLNN_OP(ApplyAdamWV2,
         (Out varRef, Out mRef, Out vRef, MaybeOut maxGradNormOptionalRef, Tensor grad, Tensor step, float lr,
          float beta1, float beta2, float weightDecay, float eps, bool amsgrad, bool maximize),
         "ops-nn/optim/apply_adam_w_v2") {
  for (const Tensor &one : {Tensor(varRef), Tensor(mRef), Tensor(vRef), grad}) Takes(one, kHalves);
  Takes(step, F32 | I64);
  Require(step.numel() == 1, "step is a single number");
  SameShape(varRef, mRef);
  SameShape(varRef, vRef);
  SameShape(varRef, grad);
  Require(!amsgrad || maxGradNormOptionalRef, "amsgrad needs maxGradNormOptionalRef");
  return [=] {
    auto p = Reals(varRef), m = Reals(mRef), v = Reals(vRef);
    const auto g = Reals(grad);
    // The page does not say it, but CANN's kernel counts steps from 0 (ops-nn/optim/apply_adam_w_v2/op_kernel).
    const double t = Reals(step)[0] + 1;
    const double first = 1 - std::pow(double(beta1), t), second = 1 - std::pow(double(beta2), t);
    std::vector<double> most;
    if (amsgrad) most = Reals(maxGradNormOptionalRef);
    for (size_t i = 0; i < p.size(); ++i) {
      const double d = maximize ? -g[i] : g[i];
      p[i] *= 1 - double(lr) * weightDecay;
      m[i] = beta1 * m[i] + (1 - double(beta1)) * d;
      v[i] = beta2 * v[i] + (1 - double(beta2)) * d * d;
      const double square = amsgrad ? most[i] = std::max(most[i], v[i]) : v[i];
      p[i] -= lr / first * m[i] / (std::sqrt(square / second) + eps);
    }
    Write(varRef, p);
    Write(mRef, m);
    Write(vRef, v);
    if (amsgrad) Write(maxGradNormOptionalRef, most);
  };
}

// ---- whether all numbers of some tensors are finite
ACLNN_OP(AllFinite, (Tensor x, Out out), "the header of MindSpore's own operator, custom_ascendc_910b") {
  Takes(x, kHalves);
  return [=] {
    bool finite = true;
    for (const double v : Reals(x)) finite = finite && std::isfinite(v);
    Write(out, std::vector<int64_t>{!finite});  // it answers whether one is not finite
  };
}

// ---- lists: an operation of each tensor, with one scalar for all or another list
namespace {
constexpr Types kListed = kHalves | I32;

void CheckLists(const std::vector<Tensor> &x, const std::vector<Tensor> &out) {
  Require(x.size() == out.size(), "as many results as tensors");
  for (size_t i = 0; i < x.size(); ++i) {
    Takes(x[i], kListed);
    SameShape(x[i], out[i]);
  }
}
double Number(const Tensor &scalar) { return Reals(scalar).at(0); }

template <class F>
Task EachOf(const std::vector<Tensor> &x, const std::vector<Tensor> &out, F f) {
  CheckLists(x, out);
  return [=] {
    for (size_t i = 0; i < x.size(); ++i) {
      auto v = Reals(x[i]);
      for (auto &one : v) one = f(one);
      Write(out[i], v);
    }
  };
}
template <class F>
Task EachWithNumber(const std::vector<Tensor> &x, const Tensor &scalar, const std::vector<Tensor> &out, F f) {
  CheckLists(x, out);
  Require(scalar.numel() == 1, "scalar is a single number");
  return [=] {
    const double s = Number(scalar);
    for (size_t i = 0; i < x.size(); ++i) {
      auto v = Reals(x[i]);
      for (auto &one : v) one = f(one, s);
      Write(out[i], v);
    }
  };
}
template <class F>
Task EachPair(const std::vector<Tensor> &x, const std::vector<Tensor> &y, const std::vector<Tensor> &out, F f) {
  CheckLists(x, out);
  CheckLists(x, y);
  return [=] {
    for (size_t i = 0; i < x.size(); ++i) {
      auto v = Reals(x[i]);
      const auto w = Reals(y[i]);
      for (size_t k = 0; k < v.size(); ++k) v[k] = f(v[k], w[k]);
      Write(out[i], v);
    }
  };
}
}  // namespace

#define FOREACH(NAME, FOLDER, EXPRESSION)                                 \
  ACLNN_OP(NAME, (Tensors x, Tensors out), "ops-nn/foreach/" FOLDER) {    \
    return EachOf(x, out, [](double v) -> double { return EXPRESSION; }); \
  }
FOREACH(ForeachAbs, "foreach_abs", std::fabs(v))
FOREACH(ForeachExp, "foreach_exp", std::exp(v))
FOREACH(ForeachLog, "foreach_log", std::log(v))
FOREACH(ForeachNeg, "foreach_neg", -v)
FOREACH(ForeachSqrt, "foreach_sqrt", std::sqrt(v))
FOREACH(ForeachReciprocal, "foreach_reciprocal", 1 / v)
FOREACH(ForeachCopy, "foreach_copy", v)
ACLNN_OP(ForeachAddScalar, (Tensors x, Tensor scalar, Tensors out), "ops-nn/foreach/foreach_add_scalar") {
  return EachWithNumber(x, scalar, out, [](double v, double s) { return v + s; });
}
ACLNN_OP(ForeachSubScalar, (Tensors x, Tensor scalar, Tensors out), "ops-nn/foreach/foreach_sub_scalar") {
  return EachWithNumber(x, scalar, out, [](double v, double s) { return v - s; });
}
ACLNN_OP(ForeachMulScalar, (Tensors x, Tensor scalar, Tensors out), "ops-nn/foreach/foreach_mul_scalar") {
  return EachWithNumber(x, scalar, out, [](double v, double s) { return v * s; });
}
ACLNN_OP(ForeachDivScalar, (Tensors x, Tensor scalar, Tensors out), "ops-nn/foreach/foreach_div_scalar") {
  return EachWithNumber(x, scalar, out, [](double v, double s) { return v / s; });
}
ACLNN_OP(ForeachMulList, (Tensors x1, Tensors x2, Tensors out), "ops-nn/foreach/foreach_mul_list") {
  return EachPair(x1, x2, out, [](double v, double w) { return v * w; });
}
ACLNN_OP(ForeachDivList, (Tensors x1, Tensors x2, Tensors out), "ops-nn/foreach/foreach_div_list") {
  return EachPair(x1, x2, out, [](double v, double w) { return v / w; });
}
ACLNN_OP(ForeachAddList, (Tensors x1, Tensors x2, Tensor alpha, Tensors out), "ops-nn/foreach/foreach_add_list") {
  Require(alpha.numel() == 1, "alpha is a single number");
  CheckLists(x1, out);
  CheckLists(x1, x2);
  return [=] { EachPair(x1, x2, out, [a = Number(alpha)](double v, double w) { return v + a * w; })(); };
}
ACLNN_OP(ForeachSubList, (Tensors x1, Tensors x2, Tensor alpha, Tensors out), "ops-nn/foreach/foreach_sub_list") {
  Require(alpha.numel() == 1, "alpha is a single number");
  CheckLists(x1, out);
  CheckLists(x1, x2);
  return [=] { EachPair(x1, x2, out, [a = Number(alpha)](double v, double w) { return v - a * w; })(); };
}
ACLNN_OP(ForeachNorm, (Tensors x, Tensor scalar, Tensors out), "ops-nn/foreach/foreach_norm") {
  Require(x.size() == out.size(), "as many results as tensors");
  for (const Tensor &one : x) Takes(one, kHalves);
  return [=] {
    const double p = Number(scalar);
    if (p != 1 && p != 2) OutOfRange("the order of the norm (1 and 2 are taken)", static_cast<int64_t>(p), 3);
    for (size_t i = 0; i < x.size(); ++i) {
      double sum = 0;
      for (const double v : Reals(x[i])) sum += p == 1 ? std::fabs(v) : v * v;
      Write(out[i], std::vector<double>{p == 1 ? sum : std::sqrt(sum)});
    }
  };
}
ACLNN_OP(ForeachNonFiniteCheckAndUnscale, (Tensors scaledGrads, Tensor foundInf, Tensor inScale),
         "ops-nn/foreach/foreach_non_finite_check_and_unscale") {
  for (const Tensor &one : scaledGrads) Takes(one, kHalves);
  Takes(foundInf, F32);
  Takes(inScale, F32);
  return [=] {
    bool finite = true;
    const double scale = Number(inScale);
    for (const Tensor &one : scaledGrads) {
      auto v = Reals(one);
      for (auto &g : v) {
        finite = finite && std::isfinite(g);
        g *= scale;
      }
      Write(one, v);
    }
    if (!finite) Write(foundInf, std::vector<double>(static_cast<size_t>(foundInf.numel()), 1));
  };
}

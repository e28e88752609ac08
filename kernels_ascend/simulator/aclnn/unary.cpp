// Functions of one tensor.
#include "pointwise.h"

using namespace sim;

#define UNARY(NAME, PAGE, IN, OUT, EXPRESSION)                                       \
  ACLNN_OP(NAME, (Tensor self, Out out), PAGE) {                                     \
    return Unary(self, out, IN, OUT, [](double x) -> double { return EXPRESSION; }); \
  }
#define UNARY_IN_PLACE(NAME, PAGE, IN, OUT, EXPRESSION)                                \
  UNARY(NAME, PAGE, IN, OUT, EXPRESSION)                                               \
  ACLNN_OP(Inplace##NAME, (Out self), PAGE) {                                          \
    return Unary(self, self, OUT, OUT, [](double x) -> double { return EXPRESSION; }); \
  }
#define EXACT(NAME, PAGE, IN, OUT, EXPRESSION)                                \
  ACLNN_OP(NAME, (Tensor self, Out out), PAGE) {                              \
    return UnaryExact(self, out, IN, OUT, [](auto x) { return EXPRESSION; }); \
  }
#define EXACT_IN_PLACE(NAME, PAGE, IN, OUT, EXPRESSION)                         \
  EXACT(NAME, PAGE, IN, OUT, EXPRESSION)                                        \
  ACLNN_OP(Inplace##NAME, (Out self), PAGE) {                                   \
    return UnaryExact(self, self, OUT, OUT, [](auto x) { return EXPRESSION; }); \
  }

namespace {
constexpr double kPi = 3.14159265358979323846;

// The inverse of the error function: an approximation, then two steps of Newton's method.
double InverseErf(double x) {
  if (x <= -1 || x >= 1) return x == 1 ? INFINITY : x == -1 ? -INFINITY : NAN;
  const double w = std::log1p(-x * x), a = 2 / (kPi * 0.147) + w / 2;
  double y = std::copysign(std::sqrt(std::sqrt(a * a - w / 0.147) - a), x);
  for (int i = 0; i < 3; ++i) y -= (std::erf(y) - x) * std::sqrt(kPi) / 2 * std::exp(y * y);
  return y;
}
double Sinc(double x) { return x == 0 ? 1 : std::sin(kPi * x) / (kPi * x); }
constexpr Types kExpIn = kFloats | B | I64;
constexpr Types kHalvesAndInts = kHalves | kInts | B;
}  // namespace

// ---- exponentials and logarithms
UNARY_IN_PLACE(Exp, "ops-math/math/exp", kExpIn, kFloats, std::exp(x))
UNARY_IN_PLACE(Exp2, "ops-math/math/pow", kAll, kFloats, std::exp2(x))
UNARY_IN_PLACE(Expm1, "ops-math/math/expm1", kHalves | B | I64, kHalves, std::expm1(x))
UNARY_IN_PLACE(Log, "ops-math/math/log", kAll, kFloats, std::log(x))
UNARY_IN_PLACE(Log2, "ops-math/math/log", kAll, kFloats, std::log2(x))
UNARY_IN_PLACE(Log10, "ops-math/math/log", kAll, kFloats, std::log10(x))
UNARY_IN_PLACE(Log1p, "ops-math/math/log1p", kAll, kFloats, std::log1p(x))
UNARY_IN_PLACE(Sqrt, "ops-math/math/sqrt", kAll, kFloats, std::sqrt(x))
UNARY_IN_PLACE(Rsqrt, "ops-math/math/rsqrt", kAll, kFloats, 1 / std::sqrt(x))
UNARY_IN_PLACE(Reciprocal, "ops-math/math/reciprocal", kAll, kFloats, 1 / x)

// ---- trigonometric and hyperbolic functions
UNARY_IN_PLACE(Sin, "ops-math/math/sin", kAll, kFloats, std::sin(x))
UNARY_IN_PLACE(Cos, "ops-math/math/cos", kAll, kFloats, std::cos(x))
UNARY_IN_PLACE(Tan, "ops-math/math/tan", kAll, kFloats, std::tan(x))
UNARY_IN_PLACE(Asin, "ops-math/math/asin", kAll, kFloats, std::asin(x))
UNARY_IN_PLACE(Acos, "ops-math/math/acos", kAll, kFloats, std::acos(x))
UNARY_IN_PLACE(Atan, "ops-math/math/atan", kAll, kFloats, std::atan(x))
UNARY_IN_PLACE(Sinh, "ops-math/math/sinh", kAll, kFloats, std::sinh(x))
UNARY_IN_PLACE(Cosh, "ops-math/math/cosh", kAll, kFloats, std::cosh(x))
UNARY_IN_PLACE(Tanh, "ops-math/math/tanh", kHalvesAndInts, kHalves, std::tanh(x))
UNARY_IN_PLACE(Asinh, "ops-math/math/asinh", kAll, kFloats, std::asinh(x))
UNARY_IN_PLACE(Acosh, "ops-math/math/acosh", kAll, kFloats, std::acosh(x))
UNARY_IN_PLACE(Atanh, "ops-math/math/atanh", kAll, kFloats, std::atanh(x))
UNARY_IN_PLACE(Sinc, "ops-math/math/sinc", kAll, kFloats, Sinc(x))

// ---- error functions
UNARY_IN_PLACE(Erf, "ops-math/math/erf", kFloats | B | I64, kFloats, std::erf(x))
UNARY_IN_PLACE(Erfc, "ops-math/math/erfc", kFloats | B | I64, kFloats, std::erfc(x))
UNARY_IN_PLACE(Erfinv, "ops-nn/activation/erfinv", kHalvesAndInts, kHalves, InverseErf(x))

// ---- rounding and signs
EXACT_IN_PLACE(Floor, "ops-math/math/floor", kReals | U16 | U32 | U64, kReals, static_cast<decltype(x)>(std::floor(x)))
EXACT_IN_PLACE(Ceil, "ops-math/math/ceil", kFloats, kFloats, std::ceil(x))
EXACT_IN_PLACE(Trunc, "ops-math/math/trunc", kHalves, kHalves, std::trunc(x))
EXACT_IN_PLACE(Round, "ops-math/math/round", kFloats | kIndices, kFloats | kIndices, std::nearbyint(x))
EXACT_IN_PLACE(Frac, "ops-math/math/sub", kHalves | kInts, kHalves | kInts, x - std::trunc(x))
EXACT(Abs, "ops-math/math/abs", kAll, kAll, x < 0 ? -x : x)
EXACT_IN_PLACE(Neg, "ops-math/math/neg", kReals, kReals, -x)
EXACT(Sign, "ops-math/math/sign", kFloats | kIndices | I16 | B, kFloats | kIndices | I16 | B,
      x != x ? x : static_cast<decltype(x)>((x > 0) - (x < 0)))
ACLNN_OP(RoundDecimals, (Tensor self, int64_t decimals, Out out), "ops-math/math/round") {
  const double scale = std::pow(10.0, static_cast<double>(decimals));
  return UnaryExact(self, out, kFloats | kIndices, kFloats | kIndices,
                    [=](auto x) { return std::nearbyint(static_cast<double>(x) * scale) / scale; });
}

// ---- truth
EXACT_IN_PLACE(LogicalNot, "ops-math/math/logical_not", kAll, kAll, x == 0)
UNARY(IsFinite, "ops-math/math/is_finite", kAll, B, std::isfinite(x))
UNARY(IsPosInf, "ops-math/math/is_pos_inf", kHalvesAndInts, B, std::isinf(x) && x > 0)
UNARY(IsNegInf, "ops-math/math/is_neg_inf", kHalvesAndInts, B, std::isinf(x) && x < 0)
namespace {
Task BitwiseNotInto(const Tensor &self, const Tensor &out) {
  const bool truth = self.type == kBool;
  return UnaryExact(self, out, kInts | B, kInts | B,
                    [=](auto x) { return truth ? static_cast<int64_t>(x == 0) : ~static_cast<int64_t>(x); });
}
Task NanToNumInto(const Tensor &self, double nan, double highest, double lowest, const Tensor &out) {
  return UnaryExact(self, out, kHalvesAndInts, kHalvesAndInts, [=](auto x) {
    const double v = static_cast<double>(x);
    if (std::isnan(v)) return static_cast<decltype(x)>(nan);
    if (std::isinf(v)) return static_cast<decltype(x)>(v > 0 ? highest : lowest);
    return x;
  });
}
}  // namespace
ACLNN_OP(BitwiseNot, (Tensor self, Out out), "ops-math/math/bitwise_not") { return BitwiseNotInto(self, out); }
ACLNN_OP(NanToNum, (Tensor self, float nan, float posinf, float neginf, Out out), "ops-math/math/nan_to_num") {
  return NanToNumInto(self, nan, posinf, neginf, out);
}
ACLNN_OP(InplaceNanToNum, (Out self, float nan, float posinf, float neginf), "ops-math/math/nan_to_num") {
  return NanToNumInto(self, nan, posinf, neginf, self);
}

// ---- clamps
namespace {
Task ClampInto(const Tensor &self, const Scalar &low, const Scalar &high, const Tensor &out, Types types) {
  Require(low || high, "one of the limits must be given");
  return UnaryExact(self, out, types, types, [=](auto x) {
    using C = decltype(x);
    if (low && x < As<C>(low)) x = As<C>(low);
    if (high && x > As<C>(high)) x = As<C>(high);
    return x;
  });
}
Task ClampTensorInto(const Tensor &self, const Tensor &low, const Tensor &high, const Tensor &out) {
  Takes(self, kReals);
  Takes(low, kReals);
  Takes(high, kReals);
  Require(low || high, "one of the limits must be given");
  FitsBroadcast({self, low, high}, out);
  return [=] {
    Computed(self.floating() || (low && low.floating()) || (high && high.floating()), [&](auto zero) {
      auto x = Read<decltype(zero)>(self, out.shape);
      auto limit = [&](const Tensor &tensor, int sign) {
        if (!tensor) return;
        const auto edge = Read<decltype(zero)>(tensor, out.shape);
        for (size_t i = 0; i < x.size(); ++i) {
          if (sign * x[i] > sign * edge[i] || edge[i] != edge[i]) x[i] = edge[i];
        }
      };
      limit(low, -1);
      limit(high, 1);
      Write(out, x);
    });
  };
}
constexpr const char *kClampPage = "ops-math/conversion/clip_by_value_v2";
}  // namespace
ACLNN_OP(Clamp, (Tensor self, MaybeScalar clipValueMin, MaybeScalar clipValueMax, Out out), kClampPage) {
  return ClampInto(self, clipValueMin, clipValueMax, out, kReals);
}
ACLNN_OP(ClampMin, (Tensor self, Scalar clipValueMin, Out out), kClampPage) {
  return ClampInto(self, clipValueMin, MaybeScalar{}, out, kReals);
}
ACLNN_OP(ClampMax, (Tensor self, Scalar clipValueMax, Out out), kClampPage) {
  return ClampInto(self, MaybeScalar{}, clipValueMax, out, kReals);
}
ACLNN_OP(ClampTensor, (Tensor self, Maybe clipValueMin, Maybe clipValueMax, Out out), kClampPage) {
  return ClampTensorInto(self, clipValueMin, clipValueMax, out);
}
ACLNN_OP(ClampMinTensor, (Tensor self, Tensor clipValueMin, Out out), kClampPage) {
  return ClampTensorInto(self, clipValueMin, Maybe{}, out);
}
ACLNN_OP(InplaceClampMinTensor, (Out self, Tensor clipValueMin), kClampPage) {
  return ClampTensorInto(self, clipValueMin, Maybe{}, self);
}
ACLNN_OP(InplaceClampMaxTensor, (Out self, Tensor clipValueMax), kClampPage) {
  return ClampTensorInto(self, Maybe{}, clipValueMax, self);
}
ACLNN_OP(Hardtanh, (Tensor self, Scalar clipValueMin, Scalar clipValueMax, Out out), kClampPage) {
  return ClampInto(self, clipValueMin, clipValueMax, out, kReals);
}
ACLNN_OP(InplaceHardtanh, (Out self, Scalar clipValueMin, Scalar clipValueMax), kClampPage) {
  return ClampInto(self, clipValueMin, clipValueMax, self, kReals);
}

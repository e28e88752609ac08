// Arithmetic, comparisons, logic and bits of two tensors, or of a tensor and a scalar.
#include "pointwise.h"

using namespace sim;

#define BINARY(NAME, PAGE, IN, EXPRESSION)                                          \
  ACLNN_OP(NAME, (Tensor self, Tensor other, Out out), PAGE) {                      \
    return Binary(self, other, out, IN, [](auto x, auto y) { return EXPRESSION; }); \
  }
#define BINARY_IN_PLACE(NAME, PAGE, IN, EXPRESSION)                                  \
  BINARY(NAME, PAGE, IN, EXPRESSION)                                                 \
  ACLNN_OP(Inplace##NAME, (Out self, Tensor other), PAGE) {                          \
    return Binary(self, other, self, IN, [](auto x, auto y) { return EXPRESSION; }); \
  }
#define SCALAR_IN_PLACE(NAME, PAGE, IN, EXPRESSION)                                        \
  ACLNN_OP(NAME, (Tensor self, Scalar other, Out out), PAGE) {                             \
    return BinaryScalar(self, other, out, IN, [](auto x, auto y) { return EXPRESSION; });  \
  }                                                                                        \
  ACLNN_OP(Inplace##NAME, (Out self, Scalar other), PAGE) {                                \
    return BinaryScalar(self, other, self, IN, [](auto x, auto y) { return EXPRESSION; }); \
  }
// Comparisons: the result is a truth value, in place one of the tensor's own type.
#define COMPARE_TENSOR(NAME, PAGE, IN, EXPRESSION)                                         \
  ACLNN_OP(NAME, (Tensor self, Tensor other, Out out), PAGE) {                             \
    return Binary(self, other, out, IN, [](auto x, auto y) { return EXPRESSION; }, true);  \
  }                                                                                        \
  ACLNN_OP(Inplace##NAME, (Out self, Tensor other), PAGE) {                                \
    return Binary(self, other, self, IN, [](auto x, auto y) { return EXPRESSION; }, true); \
  }
#define COMPARE(NAME, PAGE, OPERATOR)                                                                \
  COMPARE_TENSOR(NAME##Tensor, PAGE, kAll | U16 | U32 | U64, x OPERATOR y)                           \
  ACLNN_OP(NAME##Scalar, (Tensor self, Scalar other, Out out), PAGE) {                               \
    return BinaryScalar(self, other, out, kAll, [](auto x, auto y) { return x OPERATOR y; }, true);  \
  }                                                                                                  \
  ACLNN_OP(Inplace##NAME##Scalar, (Out self, Scalar other), PAGE) {                                  \
    return BinaryScalar(self, other, self, kAll, [](auto x, auto y) { return x OPERATOR y; }, true); \
  }

namespace {
// Remainders and quotients of whole numbers by zero are 0: a device gives an unspecified number and no error.
double FloorMod(double x, double y) {
  const double r = std::fmod(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
int64_t FloorMod(int64_t x, int64_t y) {
  if (y == 0 || y == -1) return 0;
  const int64_t r = x % y;
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
int64_t Divided(int64_t x, int64_t y) { return y == 0 ? 0 : y == -1 ? -x : x / y; }
double Divided(double x, double y) { return x / y; }
double FloorDiv(double x, double y) { return std::floor(x / y); }
int64_t FloorDiv(int64_t x, int64_t y) {
  const int64_t q = Divided(x, y);
  return y != 0 && y != -1 && x % y != 0 && (x < 0) != (y < 0) ? q - 1 : q;
}
double TruncDiv(double x, double y) { return std::trunc(x / y); }
int64_t TruncDiv(int64_t x, int64_t y) { return Divided(x, y); }
double TruncMod(double x, double y) { return std::fmod(x, y); }
int64_t TruncMod(int64_t x, int64_t y) { return y == 0 || y == -1 ? 0 : x % y; }
template <class C>
C Rounded(C x, C y, int mode) {  // the modes of aclnnDivMod: 0 true, 1 towards zero, 2 down
  return mode == 1 ? TruncDiv(x, y) : mode == 2 ? FloorDiv(x, y) : Divided(x, y);
}
double Power(double x, double y) { return std::pow(x, y); }
int64_t Power(int64_t x, int64_t y) {
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 != 0 ? -1 : 1) : 0;
  uint64_t result = 1, base = static_cast<uint64_t>(x);
  for (; y > 0; y >>= 1, base *= base) {
    if (y & 1) result *= base;
  }
  return static_cast<int64_t>(result);
}
int64_t Divisor(int64_t x, int64_t y) {
  while (y != 0) {
    const int64_t r = x % y;
    x = y;
    y = r;
  }
  return x < 0 ? -x : x;
}
double LogAddExp(double x, double y) {
  const double top = std::max(x, y);
  return std::isinf(top) ? top : top + std::log1p(std::exp(-std::fabs(x - y)));
}

// x * log(y), which is 0 where x is 0 and NaN where y is NaN.
double XLogY(double x, double y) { return std::isnan(y) ? y : x == 0 ? 0.0 : x * std::log(y); }

// self + alpha * other. The sign is -1 for a subtraction.
Task Sum(const Tensor &self, const Tensor &other, const Scalar &alpha, const Tensor &out, int sign) {
  if (alpha.floating() && !self.floating() && !other.floating()) {
    Refuse("alpha is %s, but both tensors are whole numbers", NameOf(alpha.type).c_str());
  }
  return Binary(self, other, out, kAll, [=](auto x, auto y) { return x + sign * As<decltype(x)>(alpha) * y; });
}
Task SumScalar(const Tensor &self, const Scalar &other, const Scalar &alpha, const Tensor &out, int sign) {
  return BinaryScalar(self, other, out, kAll, [=](auto x, auto y) { return x + sign * As<decltype(x)>(alpha) * y; });
}
constexpr const char *kAdd = "ops-math/math/add", *kSub = "ops-math/math/sub", *kDiv = "ops-math/math/div";
constexpr const char *kPow = "ops-math/math/pow";
}  // namespace

// ---- sums
ACLNN_OP(Add, (Tensor self, Tensor other, Scalar alpha, Out out), kAdd) { return Sum(self, other, alpha, out, 1); }
ACLNN_OP(InplaceAdd, (Out self, Tensor other, Scalar alpha), kAdd) { return Sum(self, other, alpha, self, 1); }
ACLNN_OP(Adds, (Tensor self, Scalar other, Scalar alpha, Out out), kAdd) {
  return SumScalar(self, other, alpha, out, 1);
}
ACLNN_OP(InplaceAdds, (Out self, Scalar other, Scalar alpha), kAdd) { return SumScalar(self, other, alpha, self, 1); }
ACLNN_OP(Sub, (Tensor self, Tensor other, Scalar alpha, Out out), kSub) { return Sum(self, other, alpha, out, -1); }
ACLNN_OP(InplaceSub, (Out self, Tensor other, Scalar alpha), kSub) { return Sum(self, other, alpha, self, -1); }
ACLNN_OP(Subs, (Tensor self, Scalar other, Scalar alpha, Out out), kSub) {
  return SumScalar(self, other, alpha, out, -1);
}
ACLNN_OP(InplaceSubs, (Out self, Scalar other, Scalar alpha), kSub) { return SumScalar(self, other, alpha, self, -1); }
ACLNN_OP(Rsubs, (Tensor self, Scalar other, Scalar alpha, Out out), "ops-math/math/sub") {
  return BinaryScalar(self, other, out, kAll, [=](auto x, auto y) { return y - As<decltype(x)>(alpha) * x; });
}

// ---- products and quotients
BINARY_IN_PLACE(Mul, "ops-math/math/mul", kAll, x *y)
SCALAR_IN_PLACE(Muls, "ops-math/math/mul", kAll, x *y)
namespace {
// A true quotient is floating, even of whole numbers.
void TrueQuotient(const Tensor &out) {
  if (!out.floating()) Refuse("'%s' is %s, and a quotient is floating", out.name, NameOf(out.type).c_str());
}
}  // namespace
ACLNN_OP(Div, (Tensor self, Tensor other, Out out), kDiv) {
  TrueQuotient(out);
  return Binary(self, other, out, kAll, [](auto x, auto y) { return Divided(x, y); });
}
ACLNN_OP(InplaceDiv, (Out self, Tensor other), kDiv) {
  TrueQuotient(self);
  return Binary(self, other, self, kAll, [](auto x, auto y) { return Divided(x, y); });
}
ACLNN_OP(Divs, (Tensor self, Scalar other, Out out), kDiv) {
  TrueQuotient(out);
  return BinaryScalar(self, other, out, kAll, [](auto x, auto y) { return Divided(x, y); });
}
ACLNN_OP(InplaceDivs, (Out self, Scalar other), kDiv) {
  TrueQuotient(self);
  return BinaryScalar(self, other, self, kAll, [](auto x, auto y) { return Divided(x, y); });
}
ACLNN_OP(DivMod, (Tensor self, Tensor other, int mode, Out out), kDiv) {
  Require(mode >= 0 && mode <= 2, "mode is 0, 1 or 2");
  return Binary(self, other, out, kAll, [=](auto x, auto y) { return Rounded(x, y, mode); });
}
ACLNN_OP(InplaceDivMod, (Out self, Tensor other, int mode), kDiv) {
  Require(mode >= 0 && mode <= 2, "mode is 0, 1 or 2");
  return Binary(self, other, self, kAll, [=](auto x, auto y) { return Rounded(x, y, mode); });
}
ACLNN_OP(DivMods, (Tensor self, Scalar other, int mode, Out out), kDiv) {
  Require(mode >= 0 && mode <= 2, "mode is 0, 1 or 2");
  return BinaryScalar(self, other, out, kAll, [=](auto x, auto y) { return Rounded(x, y, mode); });
}
ACLNN_OP(InplaceDivMods, (Out self, Scalar other, int mode), kDiv) {
  Require(mode >= 0 && mode <= 2, "mode is 0, 1 or 2");
  return BinaryScalar(self, other, self, kAll, [=](auto x, auto y) { return Rounded(x, y, mode); });
}
BINARY_IN_PLACE(FloorDivide, "ops-math/math/floor_div", kAll, FloorDiv(x, y))
SCALAR_IN_PLACE(FloorDivides, "ops-math/math/floor_div", kAll, FloorDiv(x, y))
BINARY_IN_PLACE(FmodTensor, "ops-math/math/mod", kReals, TruncMod(x, y))
SCALAR_IN_PLACE(FmodScalar, "ops-math/math/mod", kReals, TruncMod(x, y))
BINARY_IN_PLACE(RemainderTensorTensor, "ops-math/math/floor_mod", kFloats | kIndices, FloorMod(x, y))
SCALAR_IN_PLACE(RemainderTensorScalar, "ops-math/math/floor_mod", kFloats | kIndices, FloorMod(x, y))
ACLNN_OP(RemainderScalarTensor, (Scalar self, Tensor other, Out out), "ops-math/math/floor_mod") {
  return BinaryScalar(other, self, out, kFloats | kIndices, [](auto x, auto y) { return FloorMod(y, x); });
}
BINARY(Gcd, "ops-math/math/gcd", kInts, Divisor(static_cast<int64_t>(x), static_cast<int64_t>(y)))

// ---- powers and logarithms
BINARY_IN_PLACE(PowTensorTensor, kPow, kAll, Power(x, y))
SCALAR_IN_PLACE(PowTensorScalar, kPow, kAll, Power(x, y))
ACLNN_OP(PowScalarTensor, (Scalar self, Tensor exponent, Out out), kPow) {
  return BinaryScalar(exponent, self, out, kAll, [](auto x, auto y) { return Power(y, x); });
}
BINARY(LogAddExp, "ops-math/math/log_add_exp", kHalves, LogAddExp(double(x), double(y)))
BINARY(LogAddExp2, "ops-math/math/log_add_exp", kHalves, LogAddExp(double(x) * M_LN2, double(y) * M_LN2) / M_LN2)
ACLNN_OP(XLogYTensor, (Tensor self, Tensor other, Out out), "ops-math/math/xlogy") {
  TrueQuotient(out);
  return Binary(self, other, out, kHalves | kInts | B, [](auto x, auto y) { return XLogY(double(x), double(y)); });
}
ACLNN_OP(XLogYScalarOther, (Tensor self, Scalar other, Out out), "ops-math/math/xlogy") {
  TrueQuotient(out);
  return BinaryScalar(self, other, out, kHalves | kInts | B,
                      [](auto x, auto y) { return XLogY(double(x), double(y)); });
}
ACLNN_OP(XLogYScalarSelf, (Scalar self, Tensor other, Out out), "ops-math/math/xlogy") {
  TrueQuotient(out);
  return BinaryScalar(other, self, out, kHalves | kInts | B,
                      [](auto x, auto y) { return XLogY(double(y), double(x)); });
}
ACLNN_OP(Atan2, (Tensor self, Tensor other, Out out), "ops-math/math/atan2") {
  TrueQuotient(out);
  return Binary(self, other, out, kAll, [](auto x, auto y) { return std::atan2(double(x), double(y)); });
}

// ---- the larger, the smaller
BINARY(Maximum, "ops-math/math/maximum", kAll, x > y || x != x ? x : y)
BINARY(Minimum, "ops-math/math/minimum", kAll, x < y || x != x ? x : y)

// ---- comparisons and logic
COMPARE(Eq, "ops-math/math/equal", ==)
COMPARE(Ne, "ops-math/math/not_equal", !=)
COMPARE(Lt, "ops-math/math/less", <)
COMPARE(Le, "ops-math/math/less_equal", <=)
COMPARE(Gt, "ops-math/math/greater", >)
COMPARE(Ge, "ops-math/math/greater_equal", >=)
COMPARE_TENSOR(LogicalAnd, "ops-math/math/logical_and", kAll, x != 0 && y != 0)
COMPARE_TENSOR(LogicalOr, "ops-math/math/logical_or", kAll, x != 0 || y != 0)
ACLNN_OP(LogicalXor, (Tensor self, Tensor other, Out out), "ops-math/math/not_equal") {
  return Binary(self, other, out, kAll, [](auto x, auto y) { return (x != 0) != (y != 0); }, true);
}
ACLNN_OP(IsClose, (Tensor self, Tensor other, double rtol, double atol, bool equal_nan, Out out),
         "ops-math/math/is_close") {
  Takes(out, B);
  SameType(self, other);
  return Binary(
      self, other, out, kAll,
      [=](auto x, auto y) {
        const double a = static_cast<double>(x), b = static_cast<double>(y);
        if (a != a || b != b) return equal_nan && a != a && b != b;
        return a == b || (std::isfinite(a) && std::isfinite(b) && std::fabs(a - b) <= atol + rtol * std::fabs(b));
      },
      true);
}
ACLNN_OP(Equal, (Tensor self, Tensor other, Out out), "ops-math/math/tensor_equal") {
  Takes(out, B);
  return [=] {
    bool same = self.shape == other.shape;
    if (same)
      Computed(self.floating() || other.floating(),
               [&](auto zero) { same = Read<decltype(zero)>(self) == Read<decltype(zero)>(other); });
    Write(out, std::vector<int64_t>{same});
  };
}

// ---- bits
BINARY_IN_PLACE(BitwiseAndTensor, "ops-math/math/bitwise_and", kInts | B | U16, int64_t(x) & int64_t(y))
BINARY_IN_PLACE(BitwiseOrTensor, "ops-math/math/bitwise_or", kInts | B | U16 | U32 | U64, int64_t(x) | int64_t(y))
BINARY_IN_PLACE(BitwiseXorTensor, "ops-math/math/bitwise_xor", kInts | B, int64_t(x) ^ int64_t(y))
SCALAR_IN_PLACE(BitwiseAndScalar, "ops-math/math/bitwise_and", kInts | B, int64_t(x) & int64_t(y))
SCALAR_IN_PLACE(BitwiseOrScalar, "ops-math/math/bitwise_or", kInts | B, int64_t(x) | int64_t(y))
SCALAR_IN_PLACE(BitwiseXorScalar, "ops-math/math/bitwise_xor", kInts | B, int64_t(x) ^ int64_t(y))
BINARY(LeftShift, "ops-math/math/left_shift", kInts | U16 | U32 | U64, int64_t(uint64_t(x) << (uint64_t(y) & 63)))
BINARY(RightShift, "ops-math/math/right_shift", kInts | U16 | U32 | U64, int64_t(x) >> (uint64_t(y) & 63))

// ---- three tensors
namespace {
Task Combine(const Tensor &self, const Tensor &a, const Tensor &b, const Scalar &value, const Tensor &out, bool divide,
             Types in) {
  for (const Tensor &one : {self, a, b}) Takes(one, in);
  FitsBroadcast({self, a, b}, out);
  return [=] {
    Computed(self.floating() || a.floating() || b.floating() || divide, [&](auto zero) {
      using C = decltype(zero);
      auto x = Read<C>(self, out.shape);
      const auto p = Read<C>(a, out.shape), q = Read<C>(b, out.shape);
      for (size_t i = 0; i < x.size(); ++i) x[i] += As<C>(value) * (divide ? Divided(p[i], q[i]) : p[i] * q[i]);
      Write(out, x);
    });
  };
}
Task LerpInto(const Tensor &self, const Tensor &end, const Tensor &weight, const Tensor &out) {
  for (const Tensor &one : {self, end, weight}) Takes(one, kHalves);
  SameType(self, end);
  FitsBroadcast({self, end, weight}, out);
  return [=] {
    auto x = Reals(self, out.shape);
    const auto y = Reals(end, out.shape), w = Reals(weight, out.shape);
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = std::fabs(w[i]) < 0.5 ? x[i] + w[i] * (y[i] - x[i]) : y[i] - (y[i] - x[i]) * (1 - w[i]);
    }
    Write(out, x);
  };
}
Task LerpScalar(const Tensor &self, const Tensor &end, const Scalar &weight, const Tensor &out) {
  Takes(self, kHalves);
  SameType(self, end);
  return Binary(self, end, out, kHalves, [w = weight.real](auto x, auto y) {
    return std::fabs(w) < 0.5 ? x + w * (y - x) : y - (y - x) * (1 - w);
  });
}
constexpr Types kMultiplied = kFloats | kIndices | I8 | U8, kDividedTypes = kFloats | I64;
constexpr const char *kAddcmul = "ops-math/math/addcmul", *kAddcdiv = "ops-math/math/addcdiv";
}  // namespace
ACLNN_OP(Addcmul, (Tensor self, Tensor tensor1, Tensor tensor2, Scalar value, Out out), kAddcmul) {
  return Combine(self, tensor1, tensor2, value, out, false, kMultiplied);
}
ACLNN_OP(InplaceAddcmul, (Out self, Tensor tensor1, Tensor tensor2, Scalar value), kAddcmul) {
  return Combine(self, tensor1, tensor2, value, self, false, kMultiplied);
}
ACLNN_OP(Addcdiv, (Tensor self, Tensor tensor1, Tensor tensor2, Scalar value, Out out), kAddcdiv) {
  return Combine(self, tensor1, tensor2, value, out, true, kDividedTypes);
}
ACLNN_OP(InplaceAddcdiv, (Out self, Tensor tensor1, Tensor tensor2, Scalar value), kAddcdiv) {
  return Combine(self, tensor1, tensor2, value, self, true, kDividedTypes);
}
ACLNN_OP(Lerp, (Tensor self, Tensor end, Tensor weight, Out out), "ops-math/math/lerp") {
  return LerpInto(self, end, weight, out);
}
ACLNN_OP(InplaceLerp, (Out self, Tensor end, Tensor weight), "ops-math/math/lerp") {
  return LerpInto(self, end, weight, self);
}
ACLNN_OP(Lerps, (Tensor self, Tensor end, Scalar weight, Out out), "ops-math/math/lerp") {
  return LerpScalar(self, end, weight, out);
}
ACLNN_OP(InplaceLerps, (Out self, Tensor end, Scalar weight), "ops-math/math/lerp") {
  return LerpScalar(self, end, weight, self);
}

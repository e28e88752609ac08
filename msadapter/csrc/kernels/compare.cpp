// Comparisons and predicates: the result is bool.
#include "pointwise_math.h"

namespace msa {

MSA_COMPARE_KERNEL(Equal, ALL, "eq_cpu", x == y)
MSA_KERNEL_ALIAS(EqScalar, Equal)
MSA_COMPARE_KERNEL(NotEqual, ALL, "ne_cpu", x != y)
MSA_KERNEL_ALIAS(NeScalar, NotEqual)
MSA_COMPARE_KERNEL(Less, REAL_BOOL, "lt_cpu", x < y)
MSA_KERNEL_ALIAS(LessScalar, Less)
MSA_COMPARE_KERNEL(LessEqual, REAL_BOOL, "le_cpu", x <= y)
MSA_COMPARE_KERNEL(Greater, REAL_BOOL, "gt_cpu", x > y)
MSA_COMPARE_KERNEL(GreaterEqual, REAL_BOOL, "ge_cpu", x >= y)
MSA_KERNEL_ALIAS(GreaterEqualScalar, GreaterEqual)

MSA_COMPARE_KERNEL(LogicalAnd, ALL, "logical_and_cpu", (x != T(0)) & (y != T(0)))
MSA_COMPARE_KERNEL(LogicalOr, ALL, "logical_or_cpu", (x != T(0)) | (y != T(0)))
MSA_COMPARE_KERNEL(LogicalXor, ALL, "logical_xor_cpu", (x != T(0)) != (y != T(0)))
MSA_PREDICATE_KERNEL(LogicalNot, ALL, "logical_not_cpu", x == T(0))

namespace {
// Written as comparisons, which the compiler vectorises, unlike std::isfinite and std::isinf.
template <class T>
bool finite(T x) {
  if constexpr (is_complex_v<T>)
    return finite(x.real()) & finite(x.imag());
  else
    return std::abs(x) < T(INFINITY);
}
template <class T>
bool infinite(T x) {
  if constexpr (is_complex_v<T>)
    return infinite(x.real()) | infinite(x.imag());
  else
    return std::abs(x) == T(INFINITY);
}
// Integers are never NaN or infinite, so the result is a constant.
bool constant_for_integers(Call &c, bool value) {
  const Tensor &a = c.in(0);
  if (!is_integral(a.dtype)) return false;
  unary<bool, int64_t>(c.out_pointwise(0, DType::Bool, {&a}), a, [value](int64_t) { return value; });
  return true;
}
template <class T>
bool close(T x, T y, double rtol, double atol, bool equal_nan) {
  if (x == y) return true;
  if (is_nan(x) && is_nan(y)) return equal_nan;
  if constexpr (std::is_integral_v<T>) {
    return std::abs(static_cast<double>(x - y)) <= atol + rtol * std::abs(static_cast<double>(y));
  } else {
    using R = decltype(std::abs(x));
    const R difference = std::abs(x - y);
    return std::isfinite(difference) && difference <= R(atol) + std::abs(T(R(rtol)) * y);
  }
}
template <class F>
void float_predicate(Call &c, bool for_integers, F f) {
  if (constant_for_integers(c, for_integers)) return;
  const Tensor &a = c.in(0);
  Tensor o = c.out_pointwise(0, DType::Bool, {&a});
  MSA_COMPUTE_FLOAT(a.dtype, "isinf", (unary<bool, T>(o, a, f)));
}
}  // namespace

MSA_POINTWISE_KERNEL(IsNan) {
  if (constant_for_integers(c, false)) return;
  const Tensor &a = c.in(0);
  Tensor o = c.out_pointwise(0, DType::Bool, {&a});
  MSA_COMPUTE_FLOAT_COMPLEX(a.dtype, "isnan", (unary<bool, T>(o, a, [](T x) { return x != x; })));
}
MSA_POINTWISE_KERNEL(IsFinite) {
  if (constant_for_integers(c, true)) return;
  const Tensor &a = c.in(0);
  Tensor o = c.out_pointwise(0, DType::Bool, {&a});
  MSA_COMPUTE_FLOAT_COMPLEX(a.dtype, "isfinite", (unary<bool, T>(o, a, [](T x) { return finite(x); })));
}
MSA_POINTWISE_KERNEL(IsInf) {
  if (constant_for_integers(c, false)) return;
  const Tensor &a = c.in(0);
  Tensor o = c.out_pointwise(0, DType::Bool, {&a});
  MSA_COMPUTE_FLOAT_COMPLEX(a.dtype, "isinf", (unary<bool, T>(o, a, [](T x) { return infinite(x); })));
}
MSA_POINTWISE_KERNEL(IsNegInf) {
  check(!is_complex(c.in(0).dtype), "isneginf does not support complex inputs.");
  float_predicate(c, false, [](auto x) { return x == -INFINITY; });
}
MSA_POINTWISE_KERNEL(IsPosInf) {
  check(!is_complex(c.in(0).dtype), "isposinf does not support complex inputs.");
  float_predicate(c, false, [](auto x) { return x == INFINITY; });
}
MSA_POINTWISE_KERNEL(Signbit) {
  const Tensor &a = c.in(0);
  if (is_complex(a.dtype)) throw NotImplementedError("signbit is not implemented for complex tensors.");
  Tensor o = c.out_pointwise(0, DType::Bool, {&a});
  if (is_integral(a.dtype)) return unary<bool, int64_t>(o, a, [](int64_t x) { return x < 0; });
  MSA_COMPUTE_FLOAT(a.dtype, "signbit_cpu", (unary<bool, T>(o, a, [](T x) { return std::signbit(x); })));
}

// |input - other| <= atol + rtol |other|. An infinity is close only to the same infinity.
// Operands: input, other, rtol, atol, equal_nan
MSA_POINTWISE_KERNEL(IsClose) {
  const Two p = operands(c);
  const double rtol = c.number(2), atol = c.number(3);
  const bool equal_nan = c.flag(4);
  check(rtol >= 0, "rtol must be greater than or equal to zero, but got ", rtol);
  check(atol >= 0, "atol must be greater than or equal to zero, but got ", atol);
  Tensor o = out2(c, DType::Bool, p);
  MSA_COMPUTE_ALL(p.dtype, "isclose",
                  (binary<bool, T, T>(o, p.a, p.b, [=](T x, T y) { return close(x, y, rtol, atol, equal_nan); })));
}

constexpr int64_t kEqualPart = 1 << 18;  // elements that are compared at a time

// One bool for two whole tensors. Tensors of different shapes are not equal. Operands: input, other
MSA_KERNEL(EqualExt) {
  const Tensor &a = c.in(0), &b = c.in(1);
  Tensor o = c.out(0, DType::Bool, Dims{});
  bool *result = o.ptr<bool>();
  *result = a.same_shape(b);
  if (!*result || a.numel == 0) return;
  const DType d = common_dtype(c, 0, 1);
  // A part of the first dim is compared at a time, which needs little memory, and the first part that differs ends it.
  const int64_t rows = a.ndim ? a.sizes[0] : 1, row = a.numel / rows;
  const int64_t step = std::clamp<int64_t>(kEqualPart / row, 1, rows);
  Tensor same = contiguous_tensor(c.scratch(step * row), DType::Bool, a.shape());
  for (int64_t begin = 0; *result && begin < rows; begin += step) {
    auto part = [&](const Tensor &t) {
      if (t.ndim == 0) return t;
      Dims sizes = t.shape();
      sizes[0] = std::min(step, rows - begin);
      return make_view(t, sizes, Dims(t.strides, t.strides + t.ndim), begin * t.strides[0]);
    };
    const Tensor pa = part(a), pb = part(b);
    same = contiguous_tensor(same.data, DType::Bool, pa.shape());
    MSA_COMPUTE_ALL(d, "equal", (binary<bool, T, T>(same, pa, pb, [](T x, T y) { return x == y; })));
    if (!shape_only()) *result = std::memchr(same.data, 0, same.numel) == nullptr;
  }
}

}  // namespace msa

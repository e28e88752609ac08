// Choosing and moving values: where, masked_fill, clamp, copies, casts and fills.
#include "pointwise_math.h"
#include "stored_number.h"
#include "type_names.h"

namespace msa {
namespace {

// The bytes of a scalar in dtype d, as a 0-dim tensor. RuntimeError if the dtype does not hold it; a 16-bit float
// becomes infinite instead if `infinite`.
Tensor scalar_tensor(Call &c, const Scalar &s, DType d, bool infinite = false) {
  Tensor r;
  r.numel = 1;
  r.dtype = d;
  r.data = c.scratch(16);
  infinite = infinite && (d == DType::F16 || d == DType::BF16 || d == DType::C32);
  MSA_SWITCH_STORED(d, "fill_cpu", (*r.ptr<T>() = infinite ? s.wrapped<T>() : stored<T>(s)));
  return r;
}
// Returns a fill value, which is a number or a tensor without dims, as a tensor of dtype d.
Tensor value_as(Call &c, int i, DType d, bool infinite = false) {
  return c.args[i].kind == Arg::kScalar ? scalar_tensor(c, c.scalar(i), d, infinite)
         : c.in(i).dtype == d           ? c.in(i)
                                        : c.cast(c.in(i), d);
}

template <class T>
void select_block(char *const *p, int64_t n, const void *) {
  T *po = reinterpret_cast<T *>(p[0]);
  const uint8_t *m = reinterpret_cast<const uint8_t *>(p[1]);
  const T *pa = reinterpret_cast<const T *>(p[2]), *pb = reinterpret_cast<const T *>(p[3]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T x = pa[i], y = pb[i];
    po[i] = m[i] ? x : y;
  }
}
// Values are moved as bytes, so all types of the same size use one loop.
void select(const Tensor &o, const Tensor &mask, const Tensor &a, const Tensor &b) {
  const Tensor *t[] = {&o, &mask, &a, &b};
  const DType d[] = {o.dtype, mask.dtype, o.dtype, o.dtype};
  Block f = nullptr;
  MSA_SWITCH_BYTES(o.dtype, (f = select_block<T>));
  run_blocks(4, 1, t, d, f, nullptr);
}

// Whether PyTorch stores the number without its check for overflow, so that one beyond 16 bits becomes infinite. It
// does where a real tensor has a single element.
bool stored_unchecked(const Tensor &o, const Scalar &value) {
  return o.numel == 1 && o.dtype != DType::C32 && value.kind != Scalar::kComplex;
}
void fill(Call &c, DType d, const Dims &sizes, const Scalar &value) {
  Tensor o = c.out(0, d, sizes);
  copy_into(o, scalar_tensor(c, value, d, d == DType::C32 || stored_unchecked(o, value)));
}
Scalar number(int64_t v) {
  Scalar s;
  s.i = v;
  return s;
}
DType dtype_or(Call &c, int i, DType otherwise) { return c.has(i) ? c.dtype(i) : otherwise; }

void fill_like(Call &c, int dtype_index, const Scalar &value) {
  const Tensor &a = c.in(0);
  Tensor o = c.out_pointwise(0, dtype_or(c, dtype_index, a.dtype), {&a});
  copy_into(o, scalar_tensor(c, value, o.dtype, stored_unchecked(o, value)));
}

template <class T>
T larger(T x, T y) {
  return x != x ? x : (x < y ? y : x);
}
template <class T>
T smaller(T x, T y) {
  return x != x ? x : (y < x ? y : x);
}

}  // namespace

MSA_POINTWISE_KERNEL(Select) {  // condition, input, other (promoted to one type)
  const Tensor &m = c.in(0);
  check(m.dtype == DType::Bool || m.dtype == DType::U8,
        "where expected condition to be a boolean tensor, but got a tensor with dtype ", dtype_name(m.dtype));
  const DType d = common_dtype(c, 1, 2);
  const Tensor a = value_as(c, 1, d, true), b = value_as(c, 2, d, true);
  Tensor o = c.out_pointwise(0, d, {&m, &a, &b});
  select(o, m, a, b);
}
MSA_KERNEL_ALIAS(SelectV2, Select)

MSA_POINTWISE_KERNEL(MaskedFill) {  // input, mask, value (a number or a 0-dim tensor)
  const Tensor &a = c.in(0), &m = c.in(1);
  check(m.dtype == DType::Bool, "masked_fill_ only supports boolean masks, but got mask with dtype ",
        cpp_type_name(m.dtype));
  const Tensor v = value_as(c, 2, a.dtype);
  select(c.out_pointwise(0, a.dtype, {&a, &m}), m, v, a);
}
MSA_KERNEL_ALIAS(MaskedFillScalar, MaskedFill)
MSA_KERNEL_ALIAS(InplaceMaskedFillScalar, MaskedFill)
MSA_KERNEL_ALIAS(InplaceMaskedFillTensor, MaskedFill)

// ---- limits. The result is NaN if any operand is. If min is above max, the result is max.
namespace {
// Limits by one number each, where `lower` and `upper` tell which of them there are.
template <class T>
void clamp_between(const Tensor &o, const Tensor &a, bool lower, T lo, bool upper, T hi) {
  if (lower && lo != lo)
    unary<T, T>(o, a, [lo](T) { return lo; });
  else if (upper && hi != hi)
    unary<T, T>(o, a, [hi](T) { return hi; });
  else if (lower && upper)
    unary<T, T>(o, a, [lo, hi](T x) {
      const T y = x < lo ? lo : x;
      return y > hi ? hi : y;
    });
  else if (lower)
    unary<T, T>(o, a, [lo](T x) { return x < lo ? lo : x; });
  else
    unary<T, T>(o, a, [hi](T x) { return x > hi ? hi : x; });
}
// The value of a tensor of one element, converted to T.
template <class T>
T only_value(Call &c, const Tensor &t) {
  return *static_cast<const T *>(c.cast(t, dtype_of<T>::value).data);
}
}  // namespace

MSA_POINTWISE_KERNEL(ClampScalar) {  // input, min?, max?
  const Tensor &a = c.in(0);
  check(c.has(1) || c.has(2), "torch.clamp: At least one of 'min' or 'max' must not be None");
  Tensor o = c.out_pointwise(0, a.dtype, {&a});
  MSA_COMPUTE_REAL_BOOL(a.dtype, "clamp_scalar_cpu", {
    const bool lower = c.has(1), upper = c.has(2);
    clamp_between<T>(o, a, lower, lower ? c.scalar(1).to<T>() : T(0), upper, upper ? c.scalar(2).to<T>() : T(0));
  });
}
MSA_KERNEL_ALIAS(ClampMin, ClampScalar)
MSA_KERNEL_ALIAS(InplaceClampScalar, ClampScalar)

MSA_POINTWISE_KERNEL(ClampTensor) {  // input, min?, max? (tensors)
  const Tensor &a = c.in(0);
  check(c.has(1) || c.has(2), "torch.clamp: At least one of 'min' or 'max' must not be None");
  const Tensor &lo = c.has(1) ? c.in(1) : c.in(2), &hi = c.has(2) ? c.in(2) : c.in(1);
  Tensor o = c.out_pointwise(0, a.dtype, {&a, &lo, &hi});
  const bool lower = c.has(1), upper = c.has(2);
  const bool numbers = lo.numel == 1 && hi.numel == 1 && a.numel == o.numel && !shape_only();
  MSA_COMPUTE_REAL_BOOL(a.dtype, "clamp_tensor_impl", {
    if (numbers)
      clamp_between<T>(o, a, lower, lower ? only_value<T>(c, lo) : T(0), upper, upper ? only_value<T>(c, hi) : T(0));
    else if (lower && upper)
      ternary<T, T, T, T>(o, a, lo, hi, [](T x, T l, T h) {
        const T y = l != l ? l : larger(x, l);
        return h != h ? h : smaller(y, h);
      });
    else if (lower)
      binary<T, T, T>(o, a, lo, [](T x, T y) { return y != y ? y : larger(x, y); });
    else
      binary<T, T, T>(o, a, hi, [](T x, T y) { return y != y ? y : smaller(x, y); });
  });
}
MSA_KERNEL_ALIAS(InplaceClampTensor, ClampTensor)

MSA_POINTWISE_KERNEL(Maximum) {
  check(!is_complex(c.in(0).dtype), "maximum not implemented for complex tensors.");
  MSA_BINARY_BODY(REAL_BOOL, "maximum_cpu", y != y ? y : larger(x, y));
}
MSA_POINTWISE_KERNEL(Minimum) {
  check(!is_complex(c.in(0).dtype), "minimum not implemented for complex tensors.");
  MSA_BINARY_BODY(REAL_BOOL, "minimum_cpu", y != y ? y : smaller(x, y));
}
MSA_BINARY_KERNEL(FMax, REAL_BOOL, "fmax_cpu", y != y ? x : (x != x ? y : (x > y ? x : y)))
MSA_BINARY_KERNEL(FMin, REAL_BOOL, "fmin_cpu", y != y ? x : (x != x ? y : (x < y ? x : y)))

// ---- copies
// Creates a result with the strides of a tensor whose elements fill their memory. For other tensors, only the order of
// the dims is kept.
static Tensor out_preserving(Call &c, DType dtype, const Tensor &a) {
  std::vector<std::pair<int64_t, int64_t>> dims;
  for (int d = 0; d < a.ndim; ++d)
    if (a.sizes[d] != 1) dims.emplace_back(a.strides[d], a.sizes[d]);
  std::sort(dims.begin(), dims.end());
  int64_t expected = 1;
  bool dense = true;
  for (auto &d : dims) {
    dense = dense && d.first == expected;
    expected *= d.second;
  }
  return dense || a.numel == 0 ? c.out(0, dtype, a.sizes, a.ndim, a.strides) : c.out_pointwise(0, dtype, {&a});
}

MSA_POINTWISE_KERNEL(Clone) { copy_into(out_preserving(c, c.in(0).dtype, c.in(0)), c.in(0)); }
MSA_KERNEL_ALIAS(Copy, Clone)
MSA_KERNEL(Identity) { copy_into(c.out_pointwise(0, c.in(0).dtype, {&c.in(0)}), c.in(0)); }
MSA_KERNEL(Contiguous) { copy_into(c.out(0, c.in(0).dtype, c.in(0).shape()), c.in(0)); }
MSA_POINTWISE_KERNEL(InplaceCopy) {  // input, src
  const Tensor &a = c.in(0);
  copy_into(c.out_pointwise(0, a.dtype, {&a}), c.in(1));
}
MSA_KERNEL(Cast) {  // input, dtype
  const Tensor &a = c.in(0);
  copy_into(out_preserving(c, c.dtype(1), a), a);
}
MSA_KERNEL(TypeAs) { copy_into(out_preserving(c, c.in(1).dtype, c.in(0)), c.in(0)); }

// ---- fills
MSA_POINTWISE_KERNEL(InplaceZero) { fill_zero(c.out_pointwise(0, c.in(0).dtype, {&c.in(0)})); }
MSA_POINTWISE_KERNEL(InplaceFillScalar) {  // input, value
  const Tensor &a = c.in(0);
  copy_into(c.out_pointwise(0, a.dtype, {&a}), scalar_tensor(c, c.scalar(1), a.dtype, a.dtype == DType::C32));
}
MSA_POINTWISE_KERNEL(InplaceFillTensor) {  // input, value (0-dim)
  const Tensor &a = c.in(0), &v = c.in(1);
  check(v.ndim == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", v.ndim, " dimensions.");
  copy_into(c.out_pointwise(0, a.dtype, {&a}), v);
}
MSA_KERNEL(FillScalar) { fill(c, dtype_or(c, 2, DType::F32), c.ints(0), c.scalar(1)); }  // size, value, dtype?
MSA_KERNEL(FillTensor) {                                                                 // size, value, dtype?
  Tensor o = c.out(0, dtype_or(c, 2, c.in(1).dtype), c.ints(0));
  copy_into(o, c.in(1));
}
MSA_KERNEL(Zeros) { fill_zero(c.out(0, dtype_or(c, 1, DType::F32), c.ints(0))); }  // size, dtype?
MSA_KERNEL(Ones) { fill(c, dtype_or(c, 1, DType::F32), c.ints(0), number(1)); }
MSA_KERNEL(ZerosLikeExt) { fill_zero(c.out_pointwise(0, dtype_or(c, 1, c.in(0).dtype), {&c.in(0)})); }  // input, dtype?
MSA_KERNEL_ALIAS(ZerosLike, ZerosLikeExt)
MSA_KERNEL(OnesLikeExt) { fill_like(c, 1, number(1)); }
MSA_KERNEL_ALIAS(OnesLike, OnesLikeExt)
MSA_KERNEL(FullLike) { fill_like(c, 2, c.scalar(1)); }                                   // input, value, dtype?
MSA_KERNEL(NewZeros) { fill_zero(c.out(0, dtype_or(c, 2, c.in(0).dtype), c.ints(1))); }  // input, size, dtype?
MSA_KERNEL(NewOnes) { fill(c, dtype_or(c, 2, c.in(0).dtype), c.ints(1), number(1)); }
MSA_KERNEL(NewFull) { fill(c, dtype_or(c, 3, c.in(0).dtype), c.ints(1), c.scalar(2)); }  // input, size, value, dtype?

// input, nan, posinf, neginf
namespace {
template <class T>
T replaced(T x, T nan, T high, T low) {
  return x != x ? nan : x == INFINITY ? high : x == -INFINITY ? low : x;
}
double largest(DType d) {
  switch (d) {
    case DType::F16: return 65504.;
    case DType::BF16: return 3.3895313892515355e38;
    case DType::F64:
    case DType::C128: return 1.7976931348623157e308;
    default: return 3.4028234663852886e38;
  }
}
}  // namespace
MSA_POINTWISE_KERNEL(NanToNum) {
  const Tensor &a = c.in(0);
  Tensor o = c.out_pointwise(0, a.dtype, {&a});
  if (is_integral(a.dtype)) return copy_into(o, a);
  const double n = c.has(1) ? c.number(1) : 0, h = c.has(2) ? c.number(2) : largest(a.dtype),
               l = c.has(3) ? c.number(3) : -largest(a.dtype);
  if (is_complex(a.dtype)) {
    MSA_COMPUTE_COMPLEX(a.dtype, "nan_to_num", {
      using R = T::value_type;
      const R rn = R(n);
      const R rh = R(h);
      const R rl = R(l);
      unary<T, T>(o, a, [=](T x) { return T(replaced(x.real(), rn, rh, rl), replaced(x.imag(), rn, rh, rl)); });
    });
    return;
  }
  MSA_COMPUTE_FLOAT(a.dtype, "nan_to_num", {
    const T tn = T(n);
    const T th = T(h);
    const T tl = T(l);
    unary<T, T>(o, a, [=](T x) { return replaced(x, tn, th, tl); });
  });
}

}  // namespace msa

// PyTorch's type promotion.
#include "internal.h"

namespace msa {

static DType default_ = DType::F32;
DType default_dtype() { return default_; }
void set_default_dtype(DType d) { default_ = d; }

AutocastState &autocast_state() {
  thread_local AutocastState s;
  return s;
}

// bool < integral < floating < complex
static int category(DType d) { return d == DType::Bool ? 0 : is_integral(d) ? 1 : is_floating(d) ? 2 : 3; }

DType promote_types(DType a, DType b) {
  if (a == b) return a;
  if (is_float8(a) || is_float8(b))
    fail("Promotion for Float8 Types is not supported, attempted to promote ", dtype_name(a), " and ", dtype_name(b));
  const int ca = category(a), cb = category(b);
  if (ca == 3 || cb == 3) {
    const DType wide_a = ca == 3 ? real_of(a) : a, wide_b = cb == 3 ? real_of(b) : b;
    return wide_a == DType::F64 || wide_b == DType::F64 ? DType::C128 : DType::C64;
  }
  if (ca != cb) return ca > cb ? a : b;
  if (ca == 2) {  // float16 and bfloat16 together give float32
    if (a == DType::F64 || b == DType::F64) return DType::F64;
    return DType::F32;
  }
  auto bits = [](DType d) { return item_size(d) * 8; };
  auto is_unsigned = [](DType d) { return d == DType::U8 || d == DType::U16 || d == DType::U32 || d == DType::U64; };
  if (is_unsigned(a) == is_unsigned(b)) return bits(a) > bits(b) ? a : b;
  const DType u = is_unsigned(a) ? a : b, s = is_unsigned(a) ? b : a;
  if (u != DType::U8)
    fail("Promotion for uint16, uint32, uint64 types is not supported, attempted to promote ", dtype_name(a), " and ",
         dtype_name(b));
  return s == DType::I8 ? DType::I16 : s;
}

static DType cast_target(const Op &op, const Operand *v) {
  bool has[3] = {false, false, false};
  DType best[3] = {};
  auto add = [&](int level, DType d) {
    best[level] = has[level] ? promote_types(best[level], d) : d;
    has[level] = true;
  };
  for (int i : op.promote_params) {
    const Operand &o = v[i];
    if (o.kind == Arg::kTensor)
      add(o.tensor->shape().empty() ? 1 : 0, from_ms(o.tensor->data_type()));
    else if (o.kind == Arg::kScalar)
      add(2, scalar_dtype(o.scalar));
    else if (o.kind == Arg::kTensors)
      for (auto &t : o.tensors)
        if (t) add(t->shape().empty() ? 1 : 0, from_ms(t->data_type()));
  }
  auto category = [](DType d) { return d == DType::Bool ? 0 : is_integral(d) ? 1 : is_floating(d) ? 2 : 3; };
  bool any = false;
  DType r = DType::F32;
  for (int level = 0; level < 3; ++level) {
    if (!has[level]) continue;
    if (!any)
      r = best[level];
    else if (category(best[level]) > category(r)) {
      // an operand of lower priority changes only the category; a complex result has the width of the tensor's type
      r = category(best[level]) == 3 && category(r) == 2 && level == 2 ? complex_of(r)
          : level == 2 && category(r) == 2                             ? r
                                                                       : best[level];
      if (level == 1) r = best[level];
      if (category(best[level]) == 3 && is_floating(best[0]) && has[0]) r = complex_of(best[0]);
    }
    any = true;
  }
  if (op.promote == Promote::kFloat && is_integral(r)) r = default_dtype();
  return r;
}

TensorPtr raw_cast(const TensorPtr &t, DType d) {
  if (from_ms(t->data_type()) == d) return t;
  if (!on_cpu(t)) return run1("Cast", {Operand::of(t), Operand::of(d)});
  Tensor src = view_of(t);
  // keeps the strides of a dense operand, as PyTorch's cast does
  Dims strides = strides_of(t);
  int64_t extent = 1;
  for (int k = 0; k < src.ndim; ++k) extent += (src.sizes[k] - 1) * strides[k];
  TensorPtr r = new_tensor(d, src.sizes, src.ndim, src.numel > 0 && extent == src.numel ? strides.data() : nullptr);
  copy_into(view_of(r), src);
  return r;
}

static TensorPtr scalar_tensor(const Scalar &s, DType d) {
  TensorPtr t = new_tensor(d, Dims{});
  void *p = view_of(t).data;
  MSA_SWITCH_ALL(d, "scalar", (*static_cast<T *>(p) = s.to<T>()));
  return t;
}

static bool is_bool(const Operand &o) {
  return o.kind == Arg::kTensor ? from_ms(o.tensor->data_type()) == DType::Bool
                                : o.kind == Arg::kScalar && o.scalar.kind == Scalar::kBool;
}

// torch's parser takes a number for `self` where the other operand is a tensor, and two numbers for arithmetic only.
static void check_not_numbers_alone(const Op &op, const Operand *v) {
  static const char *names[] = {"bool", "int", "float", "complex"};
  std::string got;
  for (size_t i = 0; i < op.params.size(); ++i) {
    if (v[i].kind == Arg::kTensor || v[i].kind == Arg::kTensors) return;
    if (v[i].kind == Arg::kScalar) got += (got.empty() ? "" : ", ") + std::string(names[v[i].scalar.kind]);
  }
  throw TypeError(op.name + "() received an invalid combination of arguments - got (" + got + ")");
}

void promote(const Op &op, Operand *v) {
  if (v[0].kind == Arg::kScalar && !op.numbers_alone) check_not_numbers_alone(op, v);
  if (op.subtraction) {
    check(!is_bool(v[0]) || !is_bool(v[1]),
          "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
          "operator instead.");
    check(!is_bool(v[0]) && !is_bool(v[1]),
          "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use "
          "the `~` or "
          "`logical_not()` operator instead.");
  }
  const DType d = cast_target(op, v);
  // The elementwise kernels accept Python numbers without conversion, so 16-bit results are rounded once, as in
  // PyTorch.
  const bool keep_numbers = !op.body && op.kernel && op.kernel->kernel && op.kernel->kernel->elementwise && fast_path();
  for (int i : op.promote_params) {
    Operand &o = v[i];
    if (o.kind == Arg::kTensor) {
      if (from_ms(o.tensor->data_type()) != d) o.tensor = raw_cast(o.tensor, d);
    } else if (o.kind == Arg::kScalar && op.params[i].type == ParamType::kTensorOrScalar && !keep_numbers) {
      o.tensor = scalar_tensor(o.scalar, d);
      o.kind = Arg::kTensor;
    } else if (o.kind == Arg::kTensors) {
      for (auto &t : o.tensors)
        if (t) t = raw_cast(t, d);
    }
  }
}

}  // namespace msa

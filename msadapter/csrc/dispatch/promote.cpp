// PyTorch's type promotion.
#include <optional>

#include "../kernels/category.h"
#include "../kernels/stored_number.h"
#include "internal.h"

namespace msa {

static DType default_ = DType::F32;
DType default_dtype() { return default_; }
void set_default_dtype(DType d) { default_ = d; }

DType promote_types(DType a, DType b) {
  if (a == b) return a;
  if (is_float8(a) || is_float8(b))
    fail("Promotion for Float8 Types is not supported, attempted to promote ", dtype_name(a), " and ", dtype_name(b));
  const int ca = category(a), cb = category(b);
  if (ca == 3 || cb == 3) {
    const DType wide_a = real_of(a), wide_b = real_of(b);
    const auto fits_half = [](DType d) { return d == DType::F16 || is_integral(d); };
    if (wide_a == DType::F64 || wide_b == DType::F64) return DType::C128;
    return fits_half(wide_a) && fits_half(wide_b) ? DType::C32 : DType::C64;
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

// Operands decide the common type in three ranks: tensors with dims, tensors without, Python numbers.
struct Ranks {
  std::optional<DType> dims, no_dims, numbers;
};
static void join(std::optional<DType> *rank, DType d) { *rank = *rank ? promote_types(**rank, d) : d; }
static void join(Ranks *ranks, const TensorPtr &t) {
  join(t->shape().empty() ? &ranks->no_dims : &ranks->dims, from_ms(t->data_type()));
}

static Ranks ranks_of(const Op &op, const Operand *v) {
  Ranks r;
  for (int i : op.promote_params) {
    const Operand &o = v[i];
    if (o.kind == Arg::kTensor) join(&r, o.tensor);
    if (o.kind == Arg::kScalar) join(&r.numbers, scalar_dtype(o.scalar));
    if (o.kind == Arg::kTensors)
      for (auto &t : o.tensors)
        if (t) join(&r, t);
  }
  return r;
}

// PyTorch has no common type of bools and an integer beyond the range of int64.
static void refuse_unsigned_number(const Op &op, const Operand *v, const Ranks &ranks) {
  if (ranks.dims.value_or(DType::Bool) != DType::Bool || ranks.no_dims.value_or(DType::Bool) != DType::Bool) return;
  if (!ranks.dims && !ranks.no_dims) return;
  for (int i : op.promote_params)
    if (v[i].kind == Arg::kScalar && v[i].scalar.kind == Scalar::kInt && v[i].scalar.is_unsigned)
      fail("Promotion for uint16, uint32, uint64 types is not supported, attempted to promote Bool and UInt64");
}

// The type of operands of two ranks: the lower rank counts only where its category is higher.
static std::optional<DType> ranked(std::optional<DType> high, std::optional<DType> low) {
  if (!high || !low) return high ? high : low;
  if (category(*low) <= category(*high)) return high;
  return is_complex(*low) && is_floating(*high) ? complex_of(*high) : promote_types(*high, *low);
}

// The type that the operands of a promoting operator are cast to.
static DType cast_target(const Op &op, const Operand *v) {
  const Ranks ranks = ranks_of(op, v);
  refuse_unsigned_number(op, v, ranks);
  const DType d = ranked(ranks.dims, ranked(ranks.no_dims, ranks.numbers)).value_or(DType::F32);
  return op.promote == Promote::kFloat && is_integral(d) ? default_dtype() : d;
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

void check_limits(const Op &op, const Operand *v, DType elements) {
  if (elements == DType::C32) return;  // where a number that is too large becomes infinite
  for (size_t i = 0; i < op.params.size(); ++i) {
    const Param &p = op.params[i];
    if (p.limit == NumberLimit::kNone || v[i].kind != Arg::kScalar) continue;
    const bool floats = is_floating(elements) || is_complex(elements);
    const bool half = elements == DType::F16 || elements == DType::BF16;
    if ((p.floats_only && !floats) || (p.narrow_only && floats && !half)) continue;
    const DType d = p.limit == NumberLimit::kCompute && half ? DType::F32 : elements;
    MSA_SWITCH_STORED(d, "number", static_cast<void>(stored<T>(v[i].scalar)));
  }
}

static bool is_bool(const Operand &o) {
  return o.kind == Arg::kTensor ? from_ms(o.tensor->data_type()) == DType::Bool
                                : o.kind == Arg::kScalar && o.scalar.kind == Scalar::kBool;
}

static void refuse_bool(const Operand &a, const Operand &b) {
  check(!is_bool(a) || !is_bool(b),
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
        "operator instead.");
  check(!is_bool(a) && !is_bool(b),
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use "
        "the `~` or `logical_not()` operator instead.");
}

// PyTorch's parser takes a number for `self` where the other operand is a tensor, and two numbers for arithmetic only.
static void check_not_numbers_alone(const Op &op, const Operand *v) {
  static const char *names[] = {"bool", "int", "float", "complex"};
  std::string got;
  for (size_t i = 0; i < op.params.size(); ++i) {
    if (v[i].kind == Arg::kTensor || v[i].kind == Arg::kTensors) return;
    if (v[i].kind == Arg::kScalar) got += (got.empty() ? "" : ", ") + std::string(names[v[i].scalar.kind]);
  }
  throw TypeError(op.name + "() received an invalid combination of arguments - got (" + got + ")");
}

// Tensors without dims may be in host memory beside tensors of the accelerator, as in PyTorch.
// Returns whether the operands are there.
static bool bring_to_accelerator(const Op &op, Operand *v) {
  bool there = false;
  for (int i : op.promote_params) there = there || (v[i].kind == Arg::kTensor && !on_cpu(v[i].tensor));
  if (!there) return false;
  for (int i : op.promote_params) {
    TensorPtr &t = v[i].tensor;
    if (v[i].kind == Arg::kTensor && on_cpu(t) && t->shape().empty()) t = copy_to_device(t, accelerator_tag());
  }
  return true;
}

void promote(const Op &op, Operand *v) {
  const bool there = has_accelerator() && bring_to_accelerator(op, v);
  if (v[0].kind == Arg::kScalar && !op.numbers_alone) check_not_numbers_alone(op, v);
  if (op.refuses_bool) refuse_bool(v[0], v[1]);
  const DType d = cast_target(op, v);
  if (op.limited) check_limits(op, v, d);
  // The elementwise kernels accept Python numbers without conversion, so 16-bit results are rounded once, as in
  // PyTorch.
  const bool keep_numbers = !op.body && op.kernel && op.kernel->kernel && op.kernel->kernel->elementwise && fast_path();
  const bool one_number = mapping_for_number(op, v) != nullptr;  // MindSpore has an operator that takes it
  for (int i : op.promote_params) {
    Operand &o = v[i];
    if (o.kind == Arg::kTensor) {
      if (from_ms(o.tensor->data_type()) != d) o.tensor = raw_cast(o.tensor, d);
    } else if (o.kind == Arg::kScalar && op.params[i].type == ParamType::kTensorOrScalar && !keep_numbers &&
               !one_number) {
      const bool wrap = op.params[i].limit == NumberLimit::kNone;
      o.tensor = there ? number_on_accelerator(o.scalar, d) : number_on_host(o.scalar, d, wrap);
      o.kind = Arg::kTensor;
    } else if (o.kind == Arg::kTensors) {
      for (auto &t : o.tensors)
        if (t) t = raw_cast(t, d);
    }
  }
}

}  // namespace msa

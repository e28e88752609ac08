// C++ bodies of functions that create tensors, for plain calls: a CPU tensor without layout, device, requires_grad or
// pin_memory. All other calls, and every error, are left to the Python bodies.
#include "../device/geometry.h"
#include "rare_facts.h"

namespace msa {
namespace {

// Checks the options, which follow the function's own arguments: dtype, layout, device, requires_grad, pin_memory,
// and others after that.
bool plain_options(const Operand &dtype, PyObject **slots, int first, int count) {
  if (!factories_on_cpu() || (dtype.kind != Arg::kNone && dtype.kind != Arg::kDType)) return false;
  for (int i = first + 1; i < first + count; ++i)
    if (slots[i] != Py_None && slots[i] != Py_False) return false;
  return true;
}
bool sized(const Operand &size) {
  if (size.kind != Arg::kInts) return false;
  for (int64_t s : size.ints)
    if (s < 0) return false;
  return true;
}
DType type_or(const Operand &dtype, DType fallback) { return dtype.kind == Arg::kDType ? dtype.dtype : fallback; }

bool give(TensorPtr t, Tensors *out) {
  out->push_back(std::move(t));
  return true;
}
bool give_zeros(TensorPtr t, Tensors *out) {
  fill_zero(view_of(t));
  return give(std::move(t), out);
}
bool give_filled(const Operand &size, const Scalar &value, DType dtype, Tensors *out) {
  Operand number = Operand::of(int64_t(0));
  number.scalar = value;
  const Operand v[] = {size, number, Operand::of(dtype)};
  *out = run_operator(MSA_OPERATOR("FillScalar"), v, 3);
  return true;
}
Scalar one() {
  Scalar s;
  s.i = 1;
  return s;
}

// ---- from sizes: size, dtype, layout, device, requires_grad, pin_memory, (memory_format,) names
bool empty(const Operand *v, PyObject **slots, Tensors *out) {
  return !fills_empty() && sized(v[0]) && plain_options(v[1], slots, 1, 7) &&
         give(new_tensor(type_or(v[1], default_dtype()), v[0].ints), out);
}
bool zeros(const Operand *v, PyObject **slots, Tensors *out) {
  return sized(v[0]) && plain_options(v[1], slots, 1, 6) &&
         give_zeros(new_tensor(type_or(v[1], default_dtype()), v[0].ints), out);
}
bool ones(const Operand *v, PyObject **slots, Tensors *out) {
  return sized(v[0]) && plain_options(v[1], slots, 1, 6) &&
         give_filled(v[0], one(), type_or(v[1], default_dtype()), out);
}
DType number_type(std::initializer_list<const Scalar *> values) {
  bool real = false;
  for (auto *s : values) {
    if (s->kind == Scalar::kComplex) return DType::C128;  // the callers do not handle complex numbers
    real = real || s->kind == Scalar::kFloat;
  }
  return real ? default_dtype() : DType::I64;
}
bool full(const Operand *v, PyObject **slots, Tensors *out) {  // size, fill_value, dtype, ...
  if (!sized(v[0]) || v[1].kind != Arg::kScalar || !plain_options(v[2], slots, 2, 6)) return false;
  const Scalar &s = v[1].scalar;
  if (s.kind == Scalar::kComplex || is_tensor(slots[1])) return false;
  return give_filled(v[0], s, type_or(v[2], s.kind == Scalar::kBool ? DType::Bool : number_type({&s})), out);
}
bool arange(const Operand *v, PyObject **slots, Tensors *out) {  // start, end, step, dtype, ...
  if (v[0].kind != Arg::kScalar || !plain_options(v[3], slots, 3, 5)) return false;
  Operand start = Operand::of(int64_t(0)), end = v[0];
  if (v[1].kind == Arg::kScalar) {
    start = v[0];
    end = v[1];
  } else if (v[1].kind != Arg::kNone) {
    return false;
  }
  for (const Operand *o : {static_cast<const Operand *>(&start), static_cast<const Operand *>(&end), &v[2]})
    if (o->kind != Arg::kScalar || o->scalar.kind == Scalar::kComplex) return false;
  const DType dtype = type_or(v[3], number_type({&start.scalar, &end.scalar, &v[2].scalar}));
  const Operand operands[] = {start, end, v[2], Operand::of(dtype)};
  *out = run_operator(MSA_OPERATOR("Arange"), operands, 4);
  return true;
}

// ---- random: size, generator, dtype, ... with the default generator of the CPU, whose id and offset are 0
bool random(const Operator *op, const Operand *v, PyObject **slots, Tensors *out) {
  if (!sized(v[0]) || slots[1] != Py_None || !plain_options(v[2], slots, 2, 6)) return false;
  static const TensorPtr zero = [] {
    DeviceScope host(0);
    TensorPtr t = new_tensor(DType::I64, Dims{});
    fill_zero(view_of(t));
    return t;
  }();
  const Operand operands[] = {v[0], Operand::of(zero), Operand::of(zero), Operand::of(type_or(v[2], default_dtype())),
                              Operand()};
  *out = run_operator(op, operands, 5);
  return true;
}
bool rand(const Operand *v, PyObject **slots, Tensors *out) { return random(MSA_OPERATOR("RandExt"), v, slots, out); }
bool randn(const Operand *v, PyObject **slots, Tensors *out) { return random(MSA_OPERATOR("Randn"), v, slots, out); }

// ---- like a contiguous tensor: self, dtype, layout, device, requires_grad, pin_memory, memory_format. Where dims have
// at most one element, a contiguous tensor may have other strides than a new one, and the result keeps them.
bool like(const Operand *v, PyObject **slots) {
  return v[0].kind == Arg::kTensor && plain_options(v[1], slots, 1, 6) &&
         strides_of(v[0].tensor) == contiguous_strides(v[0].tensor->shape());
}
TensorPtr shaped(const Operand *v) {
  return new_tensor(type_or(v[1], from_ms(v[0].tensor->data_type())), v[0].tensor->shape());
}
bool empty_like(const Operand *v, PyObject **slots, Tensors *out) {
  return !fills_empty() && like(v, slots) && give(shaped(v), out);
}
bool zeros_like(const Operand *v, PyObject **slots, Tensors *out) {
  return like(v, slots) && give_zeros(shaped(v), out);
}
bool ones_like(const Operand *v, PyObject **slots, Tensors *out) {
  if (!like(v, slots)) return false;
  return give_filled(Operand::of(Dims(v[0].tensor->shape())), one(), type_or(v[1], from_ms(v[0].tensor->data_type())),
                     out);
}

// ---- self, size, dtype, layout, device, requires_grad, pin_memory
bool new_empty(const Operand *v, PyObject **slots, Tensors *out) {
  return !fills_empty() && sized(v[1]) && plain_options(v[2], slots, 2, 5) &&
         give(new_tensor(type_or(v[2], from_ms(v[0].tensor->data_type())), v[1].ints), out);
}
bool new_zeros(const Operand *v, PyObject **slots, Tensors *out) {
  return sized(v[1]) && plain_options(v[2], slots, 2, 5) &&
         give_zeros(new_tensor(type_or(v[2], from_ms(v[0].tensor->data_type())), v[1].ints), out);
}

}  // namespace

const Table<NativeBody> &native_factories() {
  static const Table<NativeBody> table = {
      {"empty", empty},
      {"zeros", zeros},
      {"ones", ones},
      {"full", full},
      {"arange", arange},
      {"rand", rand},
      {"randn", randn},
      {"empty_like", empty_like},
      {"zeros_like", zeros_like},
      {"ones_like", ones_like},
      {"Tensor.new_empty", new_empty},
      {"Tensor.new_zeros", new_zeros},
  };
  return table;
}

}  // namespace msa

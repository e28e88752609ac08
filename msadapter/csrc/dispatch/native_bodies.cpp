// C++ bodies of the most frequent operators, for plain calls. Calls that need more than one kernel (because of a
// dtype, a device or type promotion) are left to the Python body.
#include "internal.h"

namespace msa {
namespace {

bool run(const Operator *op, std::initializer_list<Operand> v, Tensors *out) {
  *out = run_operator(op, v.begin(), static_cast<int>(v.size()));
  return true;
}
DType type_of(const Operand &v) { return from_ms(v.tensor->data_type()); }
bool inexact(const Operand &v) { return is_floating(type_of(v)) || is_complex(type_of(v)); }

// ---- reductions of floating point tensors (the Python body decides the result type of other types)
bool sum(const Operand *v, PyObject **, Tensors *out) {
  if (v[3].kind != Arg::kNone || !inexact(v[0])) return false;
  *out = run_operator(MSA_OPERATOR("SumExt"), v, 4);
  return true;
}
bool mean(const Operand *v, PyObject **, Tensors *out) {
  if (v[3].kind != Arg::kNone || !inexact(v[0])) return false;
  *out = run_operator(MSA_OPERATOR("MeanExt"), v, 4);
  return true;
}

bool softmax(const Operand *v, PyObject **, Tensors *out) {
  return v[2].kind == Arg::kNone && run(MSA_OPERATOR("Softmax"), {v[0], Operand::of(Dims{v[1].scalar.i})}, out);
}
bool log_softmax(const Operand *v, PyObject **, Tensors *out) {
  return v[2].kind == Arg::kNone && run(MSA_OPERATOR("LogSoftmax"), {v[0], v[1]}, out);
}
bool cumsum(const Operand *v, PyObject **, Tensors *out) {
  return v[2].kind == Arg::kNone && inexact(v[0]) && run(MSA_OPERATOR("CumsumExt"), {v[0], v[1], Operand()}, out);
}
bool clone(const Operand *v, PyObject **slots, Tensors *out) {
  return slots[1] == Py_None && run(MSA_OPERATOR("Clone"), {v[0]}, out);
}
bool contiguous_copy(const Operand *v, PyObject **, Tensors *out) {
  out->push_back(new_tensor(type_of(v[0]), v[0].tensor->shape()));
  copy_into(view_of(out->back()), view_of(v[0].tensor));
  return true;
}
bool cat(const Operand *v, PyObject **, Tensors *out) { return run(MSA_OPERATOR("Concat"), {v[0], v[1]}, out); }
bool embedding(const Operand *v, PyObject **, Tensors *out) {  // weight, indices, padding_idx, scale_grad_by_freq
  return run(MSA_OPERATOR("Embedding"), {v[1], v[0], v[2], Operand(), Operand::of(2.0), v[3]}, out);
}
bool cross_entropy(const Operand *v, PyObject **, Tensors *out) {
  run(MSA_OPERATOR("CrossEntropyLoss"), {v[0], v[1], v[2], v[3], v[4], v[5], Operand::of(0.0), Operand::of(false)},
      out);
  out->resize(2);
  return true;
}

}  // namespace

const Table<NativeBody> &native_bodies() {
  static const Table<NativeBody> table = {
      {"sum", sum},
      {"mean", mean},
      {"softmax", softmax},
      {"log_softmax", log_softmax},
      {"clone", clone},
      {"_contiguous_copy", contiguous_copy},
      {"_cat", cat},
      {"_embedding", embedding},
      {"_cross_entropy", cross_entropy},
      {"cumsum", cumsum},
  };
  return table;
}

}  // namespace msa

// Shortcuts of composites whose plain call is a single other operator. It is called without the Python body. All
// other calls are left to the body, which raises PyTorch's errors.
#include "../device/geometry.h"
#include "../device/trace.h"
#include "internal.h"

namespace msa {

// Returns the declared operator. It is not taken from msadapter.ops, because a module there may have the same name.
Op *op_named(const char *name) {
  PyObject *table = table_function("t");
  Ref f = checked(PyObject_GetAttrString(table, name));
  check(is_operator(f.get()), name, " is not an operator");
  return reinterpret_cast<OpObject *>(f.get())->op;
}

namespace {

using Values = Operands;

// Calls a declared operator with the given operands. `self` is the Python object of the first one, which a view
// remembers as its base. The other slots are used only where an operand is empty.
Ref run(Op *op, Values &v, PyObject *self = Py_None) {
  PyObject *slots[kMaxParams];
  std::fill_n(slots, op->params.size(), Py_None);
  slots[0] = self;
  TraceScope trace;
  if (tracing) trace.begin("aten::", op->trace_name, "cpu_op");
  return run_functional(*op, v.data(), slots);
}
int width(const Op *op) { return static_cast<int>(op->params.size()); }
bool integer(PyObject *o, int64_t *value) {
  if (!PyLong_CheckExact(o)) return false;
  return integer_fits(o, value);
}

PyObject *reshape(const Op &op, PyObject **slots) {
  static Op *view = op_named("view");
  if (!is_tensor(slots[0])) return nullptr;
  Values v(width(view));
  for (int i = 0; i < 2; ++i) convert(op, i, slots[i], &v[i]);
  return can_view(v[0].tensor, v[1]) ? run(view, v, slots[0]).release() : nullptr;
}

PyObject *flatten(const Op &, PyObject **slots) {  // self, start_dim, end_dim
  static Op *view = op_named("view");
  int64_t a, b;
  if (!is_tensor(slots[0]) || !integer(slots[1], &a) || !integer(slots[2], &b)) return nullptr;
  Values v(width(view));
  v[0] = Operand::of(unwrap(slots[0]));
  const Dims &shape = v[0].tensor->shape();
  const int64_t n = static_cast<int64_t>(shape.size());
  if (!wrap_dim(&a, n) || !wrap_dim(&b, n) || a >= b) return nullptr;
  Dims sizes(shape.begin(), shape.begin() + a);
  const int64_t joined = element_count(&shape[a], static_cast<size_t>(b - a + 1));
  sizes.push_back(joined);
  sizes.insert(sizes.end(), shape.begin() + b + 1, shape.end());
  v[1] = Operand::of(sizes);
  return can_view(v[0].tensor, v[1]) ? run(view, v, slots[0]).release() : nullptr;
}

PyObject *narrow(const Op &, PyObject **slots) {  // self, dim, start, length
  static Op *slice = op_named("_slice");
  int64_t dim, start, length;
  if (!is_tensor(slots[0]) || !integer(slots[1], &dim) || !integer(slots[2], &start) || !integer(slots[3], &length))
    return nullptr;
  Values v(width(slice));
  v[0] = Operand::of(unwrap(slots[0]));
  const Dims &shape = v[0].tensor->shape();
  const int64_t n = static_cast<int64_t>(shape.size());
  if (!wrap_dim(&dim, n) || start < 0 || length < 0 || length > shape[dim] || start > shape[dim] - length)
    return nullptr;
  v[1] = Operand::of(dim);
  v[2] = Operand::of(start);
  v[3] = Operand::of(start + length);
  v[4] = Operand::of(int64_t(1));
  return run(slice, v, slots[0]).release();
}

PyObject *chunk(const Op &, PyObject **slots) {  // self, chunks, dim
  static Op *split = op_named("_split");
  int64_t chunks, dim;
  if (!is_tensor(slots[0]) || !integer(slots[1], &chunks) || !integer(slots[2], &dim) || chunks <= 0) return nullptr;
  Values v(width(split));
  v[0] = Operand::of(unwrap(slots[0]));
  const Dims &shape = v[0].tensor->shape();
  const int64_t n = static_cast<int64_t>(shape.size());
  if (!wrap_dim(&dim, n) || shape[dim] == 0) return nullptr;
  const int64_t each = slice_length(0, shape[dim], chunks);
  v[1].kind = Arg::kInts;
  for (int64_t left = shape[dim]; left > 0; left -= each) v[1].ints.push_back(std::min(each, left));
  if (v[1].ints.size() == 1) return nullptr;  // the Python body handles a single part
  v[2] = Operand::of(dim);
  return run(split, v, slots[0]).release();
}

PyObject *contiguous(const Op &, PyObject **slots) {
  if (!is_tensor(slots[0]) || slots[1] != Py_None || !is_contiguous(unwrap(slots[0]))) return nullptr;
  Py_INCREF(slots[0]);
  return slots[0];
}

PyObject *where(const Op &op, PyObject **slots) {
  if (!is_tensor(slots[0]) || slots[1] == Py_None || slots[2] == Py_None) return nullptr;
  static PyObject *choose = table_function("_where");
  const bool method = op.params[1].required;  // in x.where(condition, other) the condition is the second argument
  PyObject *ordered[] = {slots[method], slots[!method], slots[2]};
  if (is_tensor(ordered[0]) && from_ms(unwrap(ordered[0])->data_type()) == DType::U8 &&
      PyErr_WarnEx(PyExc_UserWarning,
                   "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a "
                   "future version of PyTorch. Use a boolean condition instead.",
                   1) < 0)
    throw PythonError{};
  return checked(PyObject_Vectorcall(choose, ordered, 3, nullptr)).release();
}

PyObject *cat(const Op &, PyObject **slots) {
  static Op *joined = op_named("_cat");
  int64_t dim;
  if ((!PyList_CheckExact(slots[0]) && !PyTuple_CheckExact(slots[0])) || !integer(slots[1], &dim)) return nullptr;
  Values v(width(joined));
  v[0].kind = Arg::kTensors;
  v[2].kind = Arg::kInts;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(slots[0]); ++i) {
    PyObject *o = PySequence_Fast_GET_ITEM(slots[0], i);
    if (!is_tensor(o)) return nullptr;
    TensorPtr t = unwrap(o);
    const int64_t rank = static_cast<int64_t>(t->shape().size());
    int64_t d = dim;
    if (!wrap_dim(&d, rank)) return nullptr;
    const int64_t length = t->shape()[d];
    v[2].ints.push_back(rank == 1 && length == 0 ? -1 : length);
    v[0].tensors.push_back(std::move(t));
  }
  if (v[0].tensors.empty()) return nullptr;
  v[1] = Operand::of(dim);
  return run(joined, v).release();
}

PyObject *embedding(
    const Op &op,
    PyObject **slots) {  // nn.functional's: input, weight, padding_idx, max_norm, norm_type, scale, sparse
  static Op *rows = op_named("_embedding");
  if (width(&op) != 7 || !is_tensor(slots[0]) || !is_tensor(slots[1]) || slots[2] != Py_None || slots[3] != Py_None ||
      !PyBool_Check(slots[5]) || slots[6] != Py_False)
    return nullptr;
  Values v(width(rows));
  v[0] = Operand::of(unwrap(slots[1]));
  v[1] = Operand::of(unwrap(slots[0]));
  v[2] = Operand::of(static_cast<int64_t>(-1));
  v[3] = Operand::of(slots[5] == Py_True);
  return run(rows, v).release();
}

// The plain case has logits (N, C) and classes (N) only. Arguments: input, target, weight, size_average,
// ignore_index, reduce, reduction, label_smoothing
PyObject *cross_entropy(const Op &op, PyObject **slots) {
  static Op *fused = op_named("_cross_entropy");
  if (width(&op) != 8 || !is_tensor(slots[0]) || !is_tensor(slots[1])) return nullptr;
  int64_t ignored;
  for (int i : {2, 3, 5})
    if (slots[i] != Py_None) return nullptr;
  if (!PyUnicode_Check(slots[6]) || !PyFloat_CheckExact(slots[7]) || !integer(slots[4], &ignored)) return nullptr;
  TensorPtr x = unwrap(slots[0]), y = unwrap(slots[1]);
  const double smoothing = PyFloat_AS_DOUBLE(slots[7]);
  if (x->shape().size() != 2 || y->shape().size() != 1 || x->shape()[0] != y->shape()[0] ||
      from_ms(y->data_type()) != DType::I64)
    return nullptr;
  if (!(smoothing >= 0 && smoothing <= 1) || (smoothing > 0 && has_accelerator())) return nullptr;
  const std::string reduction = PyUnicode_AsUTF8(slots[6]);
  const int64_t code = reduction == "sum" ? 0 : reduction == "mean" ? 1 : reduction == "none" ? 2 : -1;
  if (code < 0) return nullptr;
  Values v(width(fused));
  v[0] = Operand::of(x);
  v[1] = Operand::of(y);
  v[3] = Operand::of(code);
  v[4] = Operand::of(ignored);
  v[5] = Operand::of(smoothing);
  Ref both = run(fused, v);
  return Ref::borrow(PyTuple_GET_ITEM(both.get(), 0)).release();
}

}  // namespace

const Table<PlainCall> &plain_calls() {
  static const Table<PlainCall> table = {
      {"reshape", reshape},
      {"contiguous", contiguous},
      {"flatten", flatten},
      {"narrow", narrow},
      {"chunk", chunk},
      {"cat", cat},
      {"where", where},
      {"Tensor.where", where},
      {"nn.functional.embedding", embedding},
      {"nn.functional.cross_entropy", cross_entropy},
  };
  return table;
}

}  // namespace msa

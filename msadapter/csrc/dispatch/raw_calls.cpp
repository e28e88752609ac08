// raw.Name(...): calls one MindSpore operator without recording a gradient. Python types decide how its arguments are
// passed.
#include "../device/python_objects.h"
#include "internal.h"

namespace msa {
namespace {

// A size or position that a Python body has computed. RuntimeError if it has grown beyond 64 bits.
int64_t computed_integer(PyObject *o) {
  int64_t value;
  if (!integer_fits(o, &value)) size_overflow("a size, count or step");
  return value;
}

void box_list(PyObject *o, Operand *r) {
  PyObject **items = PySequence_Fast_ITEMS(o);
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  bool tensors = false, floats = false;
  for (Py_ssize_t k = 0; k < n; ++k) {
    tensors = tensors || is_tensor(items[k]);
    floats = floats || PyFloat_Check(items[k]);
  }
  r->kind = tensors ? Arg::kTensors : floats ? Arg::kFloats : Arg::kInts;
  for (Py_ssize_t k = 0; k < n; ++k) {
    if (tensors)
      r->tensors.push_back(items[k] == Py_None ? nullptr : unwrap(items[k]));
    else if (floats)
      r->floats.push_back(PyFloat_AsDouble(items[k]));
    else
      r->ints.push_back(computed_integer(items[k]));
  }
}

void box(const Operator &op, int i, PyObject *o, Operand *r) {
  if (o == Py_None) return;
  if (is_tensor(o)) {
    r->kind = Arg::kTensor;
    r->tensor = unwrap(o);
    if (is_meta(r->tensor) && has_object(r->tensor))
      throw NotImplementedError(op.name + ": a computation that a __torch_dispatch__ does not see, on a " +
                                type_name(o) + " without memory, is not supported (docs/coverage.md)");
  } else if (PyUnicode_Check(o)) {
    r->kind = Arg::kString;
    r->str = PyUnicode_AsUTF8(o);
  } else if (dtype_from_object(o, &r->dtype)) {
    r->kind = Arg::kDType;
    r->scalar.i = to_ms(r->dtype);
  } else if (PyTuple_Check(o) || PyList_Check(o)) {
    box_list(o, r);
  } else {
    r->kind = Arg::kScalar;
    if (PyLong_CheckExact(o) && !scalar_fits(o)) size_overflow("a size, count or step");
    if (!scalar_from(o, &r->scalar))
      throw TypeError(op.name + ": operand " + std::to_string(i) + " of unknown kind " + type_name(o));
  }
}

// Returns the argument that an in-place operator has returned as its result, or null if it returned another tensor.
PyObject *given_back(const TensorPtr &t, Operand *v, PyObject *const *args, int n) {
  for (int i = 0; i < n; ++i)
    if (v[i].kind == Arg::kTensor && v[i].tensor == t) return args[i];
  return nullptr;
}

PyObject *call(const Operator *op, PyObject *const *args, int n) {
  check(n <= kMaxParams, op->name, ": too many operands");
  Operands v(n);
  for (int i = 0; i < n; ++i) box(*op, i, args[i], &v[i]);
  Tensors t = run_operator(op, v.data(), n);
  if (t.size() == 1) {
    PyObject *same = given_back(t[0], v.data(), args, n);
    Py_XINCREF(same);
    return same ? same : wrap(t[0]);
  }
  Ref r = checked(PyTuple_New(t.size()));
  for (size_t i = 0; i < t.size(); ++i) PyTuple_SET_ITEM(r.get(), i, python_tensor(t[i]).release());
  return r.release();
}

}  // namespace

// call_operator(handle or name, *args)
PyObject *call_operator(PyObject *, PyObject *const *args, Py_ssize_t nargs) {
  try {
    const Operator *op = PyLong_Check(args[0]) ? reinterpret_cast<const Operator *>(PyLong_AsVoidPtr(args[0]))
                                               : find_operator(PyUnicode_AsUTF8(args[0]));
    return call(op, args + 1, static_cast<int>(nargs) - 1);
  } catch (...) {
    translate_exception();
    return nullptr;
  }
}
PyObject *operator_handle(PyObject *, PyObject *name) {
  try {
    return PyLong_FromVoidPtr(const_cast<Operator *>(find_operator(PyUnicode_AsUTF8(name))));
  } catch (...) {
    translate_exception();
    return nullptr;
  }
}

}  // namespace msa

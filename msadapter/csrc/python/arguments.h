// How the functions of the Python module `_C` read their arguments.
#pragma once
#include "../dispatch/internal.h"
#include "guarded.h"

// A function of the module: it gets its `n` positional arguments as `a`.
#define MSA_FUNCTION(name) PyObject *name(PyObject *, PyObject *const *a, Py_ssize_t n)
// Its entry in a table of functions.
#define MSA_ENTRY(py, fn) {py, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(fn)), METH_FASTCALL, nullptr}

namespace msa {

inline PyObject *int_tuple(const Dims &v) {
  PyObject *r = PyTuple_New(v.size());
  for (size_t i = 0; i < v.size(); ++i) PyTuple_SET_ITEM(r, i, PyLong_FromLongLong(v[i]));
  return r;
}
inline Dims dims_from(PyObject *o) {
  Ref seq = checked(PySequence_Fast(o, "expected a sequence of ints"));
  Dims r;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(seq.get()); ++i) {
    Ref ix = checked(PyNumber_Index(PySequence_Fast_GET_ITEM(seq.get(), i)));
    r.push_back(PyLong_AsLongLong(ix.get()));
    if (r.back() == -1 && PyErr_Occurred()) throw PythonError{};
  }
  return r;
}
inline int64_t int_from(PyObject *o) {
  Ref ix = checked(PyNumber_Index(o));
  const int64_t r = PyLong_AsLongLong(ix.get());
  if (r == -1 && PyErr_Occurred()) throw PythonError{};
  return r;
}
inline TensorPtr arg_tensor(PyObject *o) {
  if (!is_tensor(o)) throw TypeError(text("expected a Tensor, not ", Py_TYPE(o)->tp_name));
  return unwrap(o);
}
inline void expect(Py_ssize_t n, Py_ssize_t want) {
  if (n != want)
    throw TypeError(text("expected ", static_cast<int64_t>(want), " arguments, got ", static_cast<int64_t>(n)));
}

}  // namespace msa

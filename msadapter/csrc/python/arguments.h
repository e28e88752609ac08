// How the functions of the Python module `_C` read their arguments.
#pragma once
#include "../dispatch/internal.h"
#include "guarded.h"

// Defines a function of the module. Its positional arguments are a[0] to a[n - 1].
#define MSA_FUNCTION(name) PyObject *name(PyObject *, PyObject *const *a, Py_ssize_t n)
// The entry of such a function in a table of functions.
#define MSA_ENTRY(py, fn) {py, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(fn)), METH_FASTCALL, nullptr}

namespace msa {

inline PyObject *int_tuple(const Dims &v) {
  PyObject *r = PyTuple_New(v.size());
  for (size_t i = 0; i < v.size(); ++i) PyTuple_SET_ITEM(r, i, PyLong_FromLongLong(v[i]));
  return r;
}
// A size or position that Python code has computed. RuntimeError if it has grown beyond 64 bits.
inline int64_t int_from(PyObject *o) {
  int64_t value;
  if (!integer_fits(o, &value)) size_overflow("a size, count or step");
  return value;
}
inline Dims dims_from(PyObject *o) {
  Ref seq = checked(PySequence_Fast(o, "expected a sequence of ints"));
  Dims r;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(seq.get()); ++i)
    r.push_back(int_from(PySequence_Fast_GET_ITEM(seq.get(), i)));
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

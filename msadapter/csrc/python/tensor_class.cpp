// The parts of the class Tensor that are written in C++: properties, subscripts, and values as Python numbers.
#include "../device/python_objects.h"
#include "../dispatch/python_dispatch.h"
#include "../kernels/wrapping.h"
#include "arguments.h"

namespace msa {
namespace {

PyObject *size_type = nullptr;  // torch.Size

PyObject *size_object(const Dims &v) {
  if (!size_type) return int_tuple(v);
  PyTypeObject *t = reinterpret_cast<PyTypeObject *>(size_type);
  PyObject *r = t->tp_alloc(t, v.size());
  for (size_t i = 0; r && i < v.size(); ++i) PyTuple_SET_ITEM(r, i, PyLong_FromLongLong(v[i]));
  return r;
}

// ---------------------------------------------------------------- metadata (getters of Tensor)
PyObject *get_shape(PyObject *t, void *) {
  return guarded([&] { return size_object(unwrap(t)->shape()); });
}
PyObject *get_dtype(PyObject *t, void *) {
  return guarded([&] {
    PyObject *o = dtype_object(from_ms(unwrap(t)->data_type()));
    Py_INCREF(o);
    return o;
  });
}
PyObject *get_ndim(PyObject *t, void *) {
  return guarded([&] { return PyLong_FromSize_t(unwrap(t)->shape().size()); });
}
PyObject *get_requires_grad(PyObject *t, void *) {
  return guarded([&] { return PyBool_FromLong(requires_grad(unwrap(t))); });
}
int put_requires_grad(PyObject *t, PyObject *v, void *) {
  try {
    check(v != nullptr, "requires_grad cannot be deleted");
    const int on = PyObject_IsTrue(v);
    if (on < 0) return -1;
    set_requires_grad(unwrap(t), on);
    if (auto *acc = accumulator(unwrap(t))) acc->remember(t);
    return 0;
  } catch (...) {
    translate_exception();
    return -1;
  }
}
PyObject *get_is_leaf(PyObject *t, void *) {
  return guarded([&] {
    grad_fn(unwrap(t));  // raises an error if the history of a view was lost
    return PyBool_FromLong(is_leaf(unwrap(t)));
  });
}
PyObject *get_grad_fn(PyObject *t, void *) {
  return guarded([&]() -> PyObject * {
    auto n = grad_fn(unwrap(t));
    if (!n || !requires_grad(unwrap(t))) Py_RETURN_NONE;
    return node_object(n);
  });
}
PyObject *get_version(PyObject *t, void *) {
  return guarded([&] {
    const TensorPtr p = unwrap(t);
    if (is_inference(p)) fail("Inference tensors do not track version counter.");
    return PyLong_FromUnsignedLong(version_of(p));
  });
}
PyObject *get_output_nr(PyObject *t, void *) {
  return guarded([&] {
    auto p = unwrap(t);
    return PyLong_FromSize_t(p->auto_grad_meta_data() ? p->auto_grad_meta_data()->output_index() : 0);
  });
}
PyObject *get_base(PyObject *t, void *) {
  return guarded([&] { return base_object(unwrap(t)); });
}
PyGetSetDef tensor_getset[] = {
    {"shape", get_shape, nullptr, "size of each dimension", nullptr},
    {"dtype", get_dtype, nullptr, "element type", nullptr},
    {"ndim", get_ndim, nullptr, "number of dimensions", nullptr},
    {"requires_grad", get_requires_grad, put_requires_grad, "whether gradients are computed for this tensor", nullptr},
    {"is_leaf", get_is_leaf, nullptr, "no recorded operation made it", nullptr},
    {"grad_fn", get_grad_fn, nullptr, "node of the graph that made it", nullptr},
    {"_version", get_version, nullptr, "in-place writes so far", nullptr},
    {"output_nr", get_output_nr, nullptr, "which output of grad_fn", nullptr},
    {"_base", get_base, nullptr, "the tensor it is a view of", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

// ---------------------------------------------------------------- values
PyObject *number_at(DType dtype, const void *p) {
#define MSA_NUMBER(D, T, make) \
  case DType::D: {             \
    const T x = element<T>(p); \
    return make;               \
  }
  switch (dtype) {
    MSA_NUMBER(Bool, bool, PyBool_FromLong(x))
    MSA_NUMBER(U8, uint8_t, PyLong_FromLong(x))
    MSA_NUMBER(I8, int8_t, PyLong_FromLong(x))
    MSA_NUMBER(I16, int16_t, PyLong_FromLong(x))
    MSA_NUMBER(I32, int32_t, PyLong_FromLong(x))
    MSA_NUMBER(I64, int64_t, PyLong_FromLongLong(x))
    MSA_NUMBER(U16, uint16_t, PyLong_FromLong(x))
    MSA_NUMBER(U32, uint32_t, PyLong_FromUnsignedLong(x))
    MSA_NUMBER(U64, uint64_t, PyLong_FromUnsignedLongLong(x))
    MSA_NUMBER(F16, Half, PyFloat_FromDouble(static_cast<float>(x)))
    MSA_NUMBER(BF16, BFloat16, PyFloat_FromDouble(static_cast<float>(x)))
    MSA_NUMBER(F8E4M3FN, Float8E4M3FN, PyFloat_FromDouble(static_cast<float>(x)))
    MSA_NUMBER(F8E5M2, Float8E5M2, PyFloat_FromDouble(static_cast<float>(x)))
    MSA_NUMBER(F32, float, PyFloat_FromDouble(x))
    MSA_NUMBER(F64, double, PyFloat_FromDouble(x))
    MSA_NUMBER(C32, Complex32, PyComplex_FromDoubles(x.real, x.imag))
    MSA_NUMBER(C64, c64, PyComplex_FromDoubles(x.real(), x.imag()))
    MSA_NUMBER(C128, c128, PyComplex_FromDoubles(x.real(), x.imag()))
  }
#undef MSA_NUMBER
  fail("internal: a dtype without Python numbers");
}
Ref list_of(const Tensor &v, int dim, const char *at) {
  const char *p = dim ? at : static_cast<const char *>(v.data);
  if (dim == v.ndim) return checked(number_at(v.dtype, p));
  Ref l = checked(PyList_New(v.sizes[dim]));
  // The stride of a dim with one element may be any number.
  const int64_t step = wrapping_mul<int64_t>(v.strides[dim], item_size(v.dtype));
  for (int64_t i = 0; i < v.sizes[dim]; ++i) PyList_SET_ITEM(l.get(), i, list_of(v, dim + 1, p + i * step).release());
  return l;
}

// The value of a one-element tensor.
MSA_FUNCTION(item) {
  return guarded([&]() -> PyObject * {
    (void)n;
    TensorPtr t = arg_tensor(a[0]);
    if (answered_by_program(a[0])) return ask_program("_local_scalar_dense", a[0]).release();
    t = on_host(t);
    Tensor v = view_of(t);
    if (v.numel != 1) fail("a Tensor with ", v.numel, " elements cannot be converted to Scalar");
    if (is_meta(t)) fail("Tensor.item() cannot be called on meta tensors");
    return number_at(v.dtype, v.data);
  });
}
// Returns the values as nested lists, or as a number for a tensor without dims.
MSA_FUNCTION(to_list) {
  return guarded([&]() -> PyObject * {
    (void)n;
    TensorPtr t = arg_tensor(a[0]);
    if (is_meta(t)) throw NotImplementedError("Cannot copy out of meta tensor; no data!");
    t = on_host(t);
    return list_of(view_of(t), 0, nullptr).release();
  });
}
PyObject *tensor_item(PyObject *self, PyObject *) { return item(nullptr, &self, 1); }

// ---------------------------------------------------------------- the class
// Tensor.__getitem__. Plain indices are handled here, and all others by the declared Python function.
PyObject *tensor_getitem(PyObject *self, PyObject *index) {
  return guarded([&]() -> PyObject * {
    static PyObject *general = table_function("_getitem");
    const bool ours = Py_TYPE(self) == tensor_type || Py_TYPE(self) == parameter_type;
    if (!ours || functions_overridden()) {
      static PyObject *method = PyObject_GetAttrString(reinterpret_cast<PyObject *>(tensor_type), "__getitem__");
      Ref args = checked(PyTuple_Pack(2, self, index)), none = checked(PyDict_New());
      if (Ref r = call_torch_function(method, args.get(), none.get())) return r.release();
      return checked(PyObject_CallFunctionObjArgs(general, self, index, nullptr))
          .release();  // its operators are used from now on
    }
    if (PyObject *r = plain_subscript(self, index)) return r;
    return checked(PyObject_CallFunctionObjArgs(general, self, index, nullptr)).release();
  });
}
PyMethodDef tensor_methods[] = {
    {"__getitem__", tensor_getitem, METH_O, "x[index]: a view for plain indices, a copy where tensors index."},
    {"item", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(tensor_item)), METH_NOARGS,
     "The value of a tensor of one element, as a Python number."},
    {nullptr, nullptr, 0, nullptr}};

// What a tensor alone keeps alive, for Python's collector: the context of the Function that made it, and its hooks.
// They often refer to the tensor again (`ctx.result = y`). A node that the graph uses elsewhere too is not visited.
int tensor_traverse(PyObject *o, visitproc visit, void *arg) {
  auto &value = reinterpret_cast<mindspore::tensor::PyType<mindspore::tensor::TensorPy> *>(o)->value;
  if (!value.IsInitFinished() || value.has_stub()) return 0;
  const TensorPtr t = value.GetTensor();
  if (!t || t.use_count() != 2) return 0;  // one of the two is `t` itself
  if (const int stop = visit_object(t, visit, arg)) return stop;
  Node *node = only_owned_node(t);
  return node ? visit_references(node, visit, arg) : 0;
}

MSA_FUNCTION(bind_types) {  // (tensor class, size class)
  expect(n, 2);
  // Classes in Python visit what they add, and then what this base class says. It has nothing to say by itself.
  PyTypeObject *base = mindspore::tensor::GetTensorPyType();
  if (base->tp_traverse) {
    PyErr_SetString(PyExc_RuntimeError, "internal: MindSpore's tensor class has a function for Python's collector");
    return nullptr;
  }
  base->tp_traverse = tensor_traverse;
  tensor_type = reinterpret_cast<PyTypeObject *>(a[0]);
  Py_INCREF(a[0]);
  Py_INCREF(a[1]);
  size_type = a[1];
  for (PyGetSetDef *g = tensor_getset; g->name; ++g) {
    PyObject *d = PyDescr_NewGetSet(tensor_type, g);
    if (!d || PyObject_SetAttrString(a[0], g->name, d) < 0) return nullptr;
    Py_DECREF(d);
  }
  for (PyMethodDef *m = tensor_methods; m->ml_name; ++m) {
    PyObject *d = PyDescr_NewMethod(tensor_type, m);
    if (!d || PyObject_SetAttrString(a[0], m->ml_name, d) < 0) return nullptr;
    Py_DECREF(d);
  }
  Py_RETURN_NONE;
}
MSA_FUNCTION(bind_parameter) {
  (void)n;
  Py_INCREF(a[0]);
  parameter_type = reinterpret_cast<PyTypeObject *>(a[0]);
  Py_RETURN_NONE;
}

PyMethodDef tensor_class_functions[] = {MSA_ENTRY("item", item),
                                        MSA_ENTRY("tolist", to_list),
                                        MSA_ENTRY("bind_types", bind_types),
                                        MSA_ENTRY("bind_parameter", bind_parameter),
                                        {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool init_tensor_class(PyObject *module) { return PyModule_AddFunctions(module, tensor_class_functions) == 0; }

}  // namespace msa

// The Python module `_C`: metadata of tensors, storage, autograd entry points.
#include <pybind11/pybind11.h>

#include "../device/storage_bounds.h"
#include "../device/trace.h"
#include "../dispatch/internal.h"
#include "../kernels/fused_pointwise.h"
#include "guarded.h"

namespace msa {

std::string &duplicate_kernels();  // runtime.cpp
bool init_nodes(PyObject *module);
bool init_exchange(PyObject *module);

namespace {

PyObject *size_type = nullptr;  // torch.Size

PyObject *int_tuple(const Dims &v) {
  PyObject *r = PyTuple_New(v.size());
  for (size_t i = 0; i < v.size(); ++i) PyTuple_SET_ITEM(r, i, PyLong_FromLongLong(v[i]));
  return r;
}
PyObject *size_object(const Dims &v) {
  if (!size_type) return int_tuple(v);
  PyTypeObject *t = reinterpret_cast<PyTypeObject *>(size_type);
  PyObject *r = t->tp_alloc(t, v.size());
  for (size_t i = 0; r && i < v.size(); ++i) PyTuple_SET_ITEM(r, i, PyLong_FromLongLong(v[i]));
  return r;
}
Dims dims_from(PyObject *o) {
  Ref seq = checked(PySequence_Fast(o, "expected a sequence of ints"));
  Dims r;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(seq.get()); ++i) {
    Ref ix = checked(PyNumber_Index(PySequence_Fast_GET_ITEM(seq.get(), i)));
    r.push_back(PyLong_AsLongLong(ix.get()));
    if (r.back() == -1 && PyErr_Occurred()) throw PythonError{};
  }
  return r;
}
int64_t int_from(PyObject *o) {
  Ref ix = checked(PyNumber_Index(o));
  const int64_t r = PyLong_AsLongLong(ix.get());
  if (r == -1 && PyErr_Occurred()) throw PythonError{};
  return r;
}
TensorPtr arg_tensor(PyObject *o) {
  if (!is_tensor(o)) throw TypeError(text("expected a Tensor, not ", Py_TYPE(o)->tp_name));
  return unwrap(o);
}
void expect(Py_ssize_t n, Py_ssize_t want) {
  if (n != want)
    throw TypeError(text("expected ", static_cast<int64_t>(want), " arguments, got ", static_cast<int64_t>(n)));
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
  return guarded([&] { return PyLong_FromUnsignedLong(version_of(unwrap(t))); });
}
PyObject *get_output_nr(PyObject *t, void *) {
  return guarded([&] {
    auto p = unwrap(t);
    return PyLong_FromSize_t(p->auto_grad_meta_data() ? p->auto_grad_meta_data()->output_index() : 0);
  });
}
PyObject *get_base(PyObject *t, void *) {
  return guarded([&]() -> PyObject * {
    auto b = base_of(unwrap(t));
    if (!b) Py_RETURN_NONE;
    return wrap(b);
  });
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

// ---------------------------------------------------------------- functions
using Args = PyObject *const *;
#define MSA_FUNCTION(name) PyObject *name(PyObject *, Args a, Py_ssize_t n)

MSA_FUNCTION(stride) {
  return guarded([&] {
    (void)n;
    return int_tuple(strides_of(arg_tensor(a[0])));
  });
}
MSA_FUNCTION(storage_offset) {
  return guarded([&] {
    (void)n;
    return PyLong_FromLongLong(offset_of(arg_tensor(a[0])));
  });
}
MSA_FUNCTION(contiguous) {
  return guarded([&] {
    (void)n;
    return PyBool_FromLong(is_contiguous(arg_tensor(a[0])));
  });
}
MSA_FUNCTION(data_ptr) {  // 0 if there is no memory, or if it was released
  return guarded([&] {
    (void)n;
    const TensorPtr t = arg_tensor(a[0]);
    const auto &address = t->device_address();
    const bool released = address && !address->GetMutablePtr();
    return PyLong_FromVoidPtr(released || geometry_of(t).numel == 0 ? nullptr : view_of(t).data);
  });
}
MSA_FUNCTION(storage_ptr) {
  return guarded([&] {
    (void)n;
    auto d = arg_tensor(a[0])->device_address();
    return PyLong_FromVoidPtr(d ? d->GetMutablePtr() : nullptr);
  });
}
MSA_FUNCTION(storage_nbytes) {
  return guarded([&] {
    (void)n;
    auto d = arg_tensor(a[0])->device_address();
    return PyLong_FromSize_t(d ? d->GetSize() : 0);
  });
}
// Identity of the storage: equal for tensors that share memory.
MSA_FUNCTION(storage_id) {
  return guarded([&] {
    (void)n;
    return PyLong_FromVoidPtr(arg_tensor(a[0])->device_address().get());
  });
}
// raw_empty(sizes, strides | None, dtype)
MSA_FUNCTION(raw_empty) {
  return guarded([&] {
    expect(n, 3);
    Dims sizes = dims_from(a[0]);
    DType d;
    if (!dtype_from_object(a[2], &d)) throw TypeError("dtype must be a torch.dtype");
    if (a[1] == Py_None) return wrap(new_tensor(d, sizes));
    Dims strides = dims_from(a[1]);
    TensorPtr base = new_tensor(d, {storage_bytes(d, sizes, strides, 0) / item_size(d)});
    TensorPtr v = new_view(base, d, sizes, strides, 0);
    return wrap(v);
  });
}
// bytes_reached(sizes, strides, offset, dtype): bytes of storage that a geometry needs
MSA_FUNCTION(bytes_reached) {
  return guarded([&] {
    expect(n, 4);
    DType d;
    if (!dtype_from_object(a[3], &d)) throw TypeError("dtype must be a torch.dtype");
    return PyLong_FromLongLong(storage_bytes(d, dims_from(a[0]), dims_from(a[1]), int_from(a[2])));
  });
}
// raw_view(base, sizes, strides, offset[, dtype]): shares storage and version, records nothing. All tensors that
// Python makes on a storage come from here, so sizes and strides that leave the storage are refused here.
MSA_FUNCTION(raw_view) {
  return guarded([&] {
    if (n < 4) expect(n, 4);
    TensorPtr b = arg_tensor(a[0]);
    DType d = from_ms(b->data_type());
    if (n > 4 && a[4] != Py_None && !dtype_from_object(a[4], &d)) throw TypeError("dtype must be a torch.dtype");
    const Dims sizes = dims_from(a[1]), strides = dims_from(a[2]);
    const int64_t offset = int_from(a[3]);
    check_inside_storage(b, d, sizes, strides, offset);
    return wrap(new_view(b, d, sizes, strides, offset));
  });
}
MSA_FUNCTION(detach) {
  return guarded([&] {
    (void)n;
    auto r = alias_of(arg_tensor(a[0]));
    return wrap(r);
  });
}
// Returns a view of x with x's own history (unlike x.detach()). Tensor.data uses it.
MSA_FUNCTION(fresh_version) {
  return guarded([&] {
    (void)n;
    auto r = alias_of(arg_tensor(a[0]));
    r->set_version(mindspore::tensor::Version());
    return wrap(r);
  });
}
// set_data(t, other): t gets the storage, sizes, strides and dtype of other; it stays the same tensor for autograd
MSA_FUNCTION(set_data) {
  return guarded([&]() -> PyObject * {
    expect(n, 2);
    TensorPtr t = arg_tensor(a[0]), o = arg_tensor(a[1]);
    t->set_data_type(o->data_type());
    t->set_device_address(o->device_address());  // before the sizes, because MindSpore compares them with the memory
    t->set_shape(o->shape());
    t->set_storage_info(o->storage_info());
    Py_RETURN_NONE;
  });
}
// set_geometry(t, base, sizes, strides, offset): in-place as_strided on another tensor's storage
MSA_FUNCTION(set_geometry) {
  return guarded([&]() -> PyObject * {
    expect(n, 5);
    TensorPtr t = arg_tensor(a[0]), b = arg_tensor(a[1]);
    const DType d = from_ms(t->data_type());
    const Dims sizes = dims_from(a[2]), strides = dims_from(a[3]);
    const int64_t offset = int_from(a[4]);
    check_inside_storage(b, d, sizes, strides, offset);
    TensorPtr v = new_view(b, d, sizes, strides, offset);
    t->set_device_address(b->device_address());
    t->set_shape(sizes);
    t->set_storage_info(v->storage_info());
    Py_RETURN_NONE;
  });
}
// to_meta(t): a tensor of t's geometry without values
MSA_FUNCTION(to_meta) {
  return guarded([&] {
    (void)n;
    TensorPtr t = arg_tensor(a[0]);
    DeviceScope scope(kMetaTag);
    const Dims strides = strides_of(t);
    return wrap(
        new_tensor(from_ms(t->data_type()), t->shape().data(), static_cast<int>(t->shape().size()), strides.data()));
  });
}
// become_view(t, view): t takes the sizes, strides and history of a view of itself
MSA_FUNCTION(py_become_view) {
  return guarded([&]() -> PyObject * {
    expect(n, 2);
    become_view(arg_tensor(a[0]), arg_tensor(a[1]));
    Py_RETURN_NONE;
  });
}
// resize_storage(t, nbytes): changes the size of the storage of t and all its views; the bytes that fit are kept
MSA_FUNCTION(resize_storage) {
  return guarded([&]() -> PyObject * {
    expect(n, 2);
    auto d = arg_tensor(a[0])->device_address();
    const int64_t bytes = int_from(a[1]);
    check(bytes >= 0, "storage size must not be negative");
    const size_t old = d->GetSize(), asked = std::max<size_t>(bytes, 1);
    void *p = bytes > 0 ? allocate(asked) : nullptr;
    if (p && d->GetMutablePtr()) std::memcpy(p, d->GetMutablePtr(), std::min<size_t>(old, bytes));
    auto pointer = std::make_shared<mindspore::DevicePointer>(p, [asked](void *q, bool) {
      if (q) deallocate(q, asked);
    });
    pointer->set_from_mem_pool(true);
    d->set_device_pointer(pointer);
    d->SetSize(bytes);
    Py_RETURN_NONE;
  });
}
// A reference to a Python object that is given up from any thread, and not at all once Python has ended.
static std::shared_ptr<void> kept_alive(PyObject *object) {
  Py_INCREF(object);
  return {object, [](void *o) {
            if (!Py_IsInitialized()) return;
            PyGILState_STATE s = PyGILState_Ensure();
            Py_DECREF(static_cast<PyObject *>(o));
            PyGILState_Release(s);
          }};
}
// move_storage(t, address, owner): the storage shared by all its views lies at another address from now on. The memory
// there has its size and is kept alive by the owner; nothing is copied.
MSA_FUNCTION(move_storage) {
  return guarded([&]() -> PyObject * {
    expect(n, 3);
    auto owner = kept_alive(a[2]);
    auto pointer = std::make_shared<mindspore::DevicePointer>(PyLong_AsVoidPtr(a[1]), [owner](void *, bool) {});
    pointer->set_from_mem_pool(true);
    arg_tensor(a[0])->device_address()->set_device_pointer(pointer);
    Py_RETURN_NONE;
  });
}
// from_buffer(address, nbytes, dtype, sizes, owner): zero copy; owner is kept alive
MSA_FUNCTION(from_buffer) {
  return guarded([&] {
    expect(n, 5);
    DType d;
    if (!dtype_from_object(a[2], &d)) throw TypeError("dtype must be a torch.dtype");
    std::shared_ptr<void> owner = kept_alive(a[4]);
    const Dims sizes = dims_from(a[3]);
    const int64_t bytes = int_from(a[1]);
    const int64_t need = dense_bytes(d, sizes);
    check(need <= bytes, "from_buffer: sizes ", sizes, " need ", need, " bytes, but the buffer has ", bytes);
    return wrap(tensor_on(PyLong_AsVoidPtr(a[0]), static_cast<size_t>(bytes), d, sizes, owner));
  });
}
MSA_FUNCTION(bump_version) {
  return guarded([&]() -> PyObject * {
    (void)n;
    arg_tensor(a[0])->BumpVersion();
    Py_RETURN_NONE;
  });
}
MSA_FUNCTION(py_check_history) {
  return guarded([&]() -> PyObject * {
    (void)n;
    check_history(arg_tensor(a[0]), requires_grad(arg_tensor(a[0])));
    Py_RETURN_NONE;
  });
}
MSA_FUNCTION(inplace_check) {
  return guarded([&]() -> PyObject * {
    (void)n;
    check_inplace(arg_tensor(a[0]), requires_grad(arg_tensor(a[0])));
    Py_RETURN_NONE;
  });
}
MSA_FUNCTION(py_copy_into) {
  return guarded([&]() -> PyObject * {
    expect(n, 2);
    TensorPtr d = arg_tensor(a[0]), s = arg_tensor(a[1]);
    Tensor dv = view_of(d), sv = view_of(s);
    if (broadcast_shapes({&dv, &sv}) != dv.shape())
      fail("output with shape ", d->shape(), " doesn't match the broadcast shape ", broadcast_shapes({&dv, &sv}));
    copy_into(dv, sv);
    Py_RETURN_NONE;
  });
}
PyObject *number_at(DType dtype, const void *p) {
#define MSA_NUMBER(D, T, make)              \
  case DType::D: {                          \
    const T x = *static_cast<const T *>(p); \
    return make;                            \
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
  const int64_t step = v.strides[dim] * item_size(v.dtype);
  for (int64_t i = 0; i < v.sizes[dim]; ++i) PyList_SET_ITEM(l.get(), i, list_of(v, dim + 1, p + i * step).release());
  return l;
}

// The value of a one-element tensor.
MSA_FUNCTION(item) {
  return guarded([&]() -> PyObject * {
    (void)n;
    TensorPtr t = arg_tensor(a[0]);
    if (!on_cpu(t)) t = t->cpu();
    Tensor v = view_of(t);
    if (v.numel != 1) fail("a Tensor with ", v.numel, " elements cannot be converted to Scalar");
    if (is_meta(t)) fail("Tensor.item() cannot be called on meta tensors");
    return number_at(v.dtype, v.data);
  });
}
// Nested lists of the values; the number itself for a tensor without dims.
MSA_FUNCTION(to_list) {
  return guarded([&]() -> PyObject * {
    (void)n;
    TensorPtr t = arg_tensor(a[0]);
    if (is_meta(t)) throw NotImplementedError("Cannot copy out of meta tensor; no data!");
    if (!on_cpu(t)) t = t->cpu();
    return list_of(view_of(t), 0, nullptr).release();
  });
}
PyObject *tensor_item(PyObject *self, PyObject *) { return item(nullptr, &self, 1); }
// wrap_as(cls, tensor): the same C++ tensor as an object of another Python class
MSA_FUNCTION(alias) {
  return guarded([&] {
    (void)n;
    return wrap(alias_of(arg_tensor(a[0])));
  });
}

MSA_FUNCTION(get_device_tag) {
  return guarded([&] {
    (void)n;
    return PyLong_FromLong(device_tag(arg_tensor(a[0])));
  });
}
MSA_FUNCTION(put_device_tag) {
  return guarded([&]() -> PyObject * {
    expect(n, 2);
    set_device_tag(arg_tensor(a[0]), static_cast<int>(PyLong_AsLong(a[1])));
    Py_RETURN_NONE;
  });
}

// ---- gradients
MSA_FUNCTION(get_grad) {
  return guarded([&]() -> PyObject * {
    (void)n;
    auto *acc = accumulator(arg_tensor(a[0]));
    if (!acc || !acc->grad) Py_RETURN_NONE;
    Py_INCREF(acc->grad.get());
    return acc->grad.get();
  });
}
// set_grad(t, grad | None) -> True when the accumulator holds it
MSA_FUNCTION(set_grad) {
  return guarded([&]() -> PyObject * {
    expect(n, 2);
    TensorPtr t = arg_tensor(a[0]);
    if (!is_leaf(t)) Py_RETURN_FALSE;
    auto acc = a[1] == Py_None ? nullptr : make_accumulator(t);
    auto *have = accumulator(t);
    if (have) have->grad = a[1] == Py_None ? Ref() : Ref::borrow(a[1]);
    (void)acc;
    Py_RETURN_TRUE;
  });
}
MSA_FUNCTION(grad_accumulator) {
  return guarded([&] {
    (void)n;
    auto acc = make_accumulator(arg_tensor(a[0]));
    acc->remember(a[0]);
    return node_object(acc);
  });
}
MSA_FUNCTION(gradient_edge) {  // (node, output index) of a tensor that requires grad
  return guarded([&]() -> PyObject * {
    (void)n;
    Edge e = edge_of(arg_tensor(a[0]));
    if (!e.is_defined()) Py_RETURN_NONE;
    Ref node = checked(node_object(e.grad_node));
    return Py_BuildValue("(On)", node.get(), static_cast<Py_ssize_t>(e.input_index));
  });
}
Tensors tensors_from(PyObject *o) {
  Ref seq = checked(PySequence_Fast(o, "expected a sequence of tensors"));
  Tensors r;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(seq.get()); ++i) {
    PyObject *e = PySequence_Fast_GET_ITEM(seq.get(), i);
    r.push_back(e == Py_None ? nullptr : arg_tensor(e));
  }
  return r;
}
// backward(roots, gradients, inputs, keep_graph, create_graph, allow_unreachable, accumulate)
MSA_FUNCTION(backward) {
  return guarded([&]() -> PyObject * {
    expect(n, 7);
    BackwardOptions o;
    o.keep_graph = PyObject_IsTrue(a[3]);
    o.create_graph = PyObject_IsTrue(a[4]);
    o.allow_unreachable = PyObject_IsTrue(a[5]);
    o.accumulate = PyObject_IsTrue(a[6]);
    Tensors r = run_backward(tensors_from(a[0]), tensors_from(a[1]), tensors_from(a[2]), o);
    Ref t = checked(PyTuple_New(r.size()));
    for (size_t i = 0; i < r.size(); ++i) {
      PyObject *e = Py_None;
      if (r[i])
        e = wrap(r[i]);
      else
        Py_INCREF(e);
      PyTuple_SET_ITEM(t.get(), i, e);
    }
    return t.release();
  });
}
MSA_FUNCTION(py_queue_callback) {
  return guarded([&]() -> PyObject * {
    (void)n;
    queue_callback(a[0]);
    Py_RETURN_NONE;
  });
}
MSA_FUNCTION(push_saved_hooks) {
  return guarded([&]() -> PyObject * {
    expect(n, 2);
    saved_hooks_stack().push_back(a[0] == Py_None ? SavedHooks{} : SavedHooks{Ref::borrow(a[0]), Ref::borrow(a[1])});
    Py_RETURN_NONE;
  });
}
MSA_FUNCTION(pop_saved_hooks) {
  (void)a;
  (void)n;
  saved_hooks_stack().pop_back();
  Py_RETURN_NONE;
}
MSA_FUNCTION(is_grad_enabled) {
  (void)a;
  (void)n;
  return PyBool_FromLong(grad_enabled());
}
MSA_FUNCTION(set_grad_enabled) {
  (void)n;
  mindspore::pynative::GradState::Get().set_grad_flag(true);
  mindspore::pynative::GradState::Get().set_enable_grad(a[0] == Py_True);
  Py_RETURN_NONE;
}
MSA_FUNCTION(is_view_) {
  return guarded([&] {
    (void)n;
    return PyBool_FromLong(is_view(arg_tensor(a[0])));
  });
}
// mark_view(view, of): autograd's view relation for tensors made outside the table
MSA_FUNCTION(mark_view) {
  return guarded([&]() -> PyObject * {
    expect(n, 3);
    set_view(arg_tensor(a[0]), arg_tensor(a[1]), static_cast<ViewKind>(PyLong_AsLong(a[2])));
    Py_RETURN_NONE;
  });
}
MSA_FUNCTION(strip_autograd) {  // detach_()
  return guarded([&]() -> PyObject * {
    (void)n;
    forget_history(arg_tensor(a[0]));
    Py_RETURN_NONE;
  });
}

// ---- configuration
// Tensor.__getitem__: a plain index here, any other in the table's Python function.
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

MSA_FUNCTION(bind_types) {  // (tensor class, size class)
  expect(n, 2);
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
MSA_FUNCTION(py_bind_dtype) {  // (code, object)
  expect(n, 2);
  bind_dtype(static_cast<DType>(PyLong_AsLong(a[0])), a[1]);
  Py_RETURN_NONE;
}
MSA_FUNCTION(dtype_from_ms) {  // MindSpore's type id -> torch dtype
  return guarded([&] {
    (void)n;
    PyObject *o = dtype_object(from_ms(static_cast<TypeId>(PyLong_AsLong(a[0]))));
    Py_INCREF(o);
    return o;
  });
}
MSA_FUNCTION(ms_type_id) {
  return guarded([&]() -> PyObject * {
    (void)n;
    DType d;
    if (!dtype_from_object(a[0], &d)) throw TypeError("dtype must be a torch.dtype");
    return PyLong_FromLong(to_ms(d));
  });
}
MSA_FUNCTION(py_default_dtype) {
  (void)a;
  (void)n;
  PyObject *o = dtype_object(default_dtype());
  Py_INCREF(o);
  return o;
}
MSA_FUNCTION(py_set_default_dtype) {
  return guarded([&]() -> PyObject * {
    (void)n;
    DType d;
    if (!dtype_from_object(a[0], &d)) throw TypeError("dtype must be a torch.dtype");
    set_default_dtype(d);
    Py_RETURN_NONE;
  });
}
MSA_FUNCTION(py_promote_types) {
  return guarded([&]() -> PyObject * {
    expect(n, 2);
    DType x, y;
    if (!dtype_from_object(a[0], &x) || !dtype_from_object(a[1], &y)) throw TypeError("dtype must be a torch.dtype");
    PyObject *o = dtype_object(promote_types(x, y));
    Py_INCREF(o);
    return o;
  });
}
MSA_FUNCTION(autocast_enabled) {
  return guarded([&] {
    (void)a;
    (void)n;
    return PyBool_FromLong(autocast_state().enabled);
  });
}
MSA_FUNCTION(set_autocast) {  // (accelerator or host, enabled, dtype)
  return guarded([&]() -> PyObject * {
    expect(n, 3);
    auto &s = autocast_state();
    auto &device = s.devices[a[0] == Py_True ? kAccelerator : kHost];
    if (!dtype_from_object(a[2], &device.dtype)) throw TypeError("dtype must be a torch.dtype");
    device.enabled = a[1] == Py_True;
    s.enabled = s.devices[kHost].enabled || s.devices[kAccelerator].enabled;
    Py_RETURN_NONE;
  });
}
MSA_FUNCTION(fused_instruction_names) {  // -> list of names, each at the place that is its code
  return guarded([&]() -> PyObject * {
    (void)a;
    (void)n;
    Ref names(PyList_New(0));
    for (auto &name : fused_instructions())
      PyList_Append(names.get(), checked(PyUnicode_FromString(name.c_str())).get());
    return names.release();
  });
}
MSA_FUNCTION(py_num_threads) {
  (void)a;
  (void)n;
  return PyLong_FromLong(num_threads());
}
MSA_FUNCTION(py_set_num_threads) {
  return guarded([&]() -> PyObject * {
    (void)n;
    set_num_threads(static_cast<int>(PyLong_AsLong(a[0])));
    Py_RETURN_NONE;
  });
}
MSA_FUNCTION(py_memory_stats) {
  (void)a;
  (void)n;
  auto s = memory_stats();
  return Py_BuildValue("{s:L,s:L,s:L}", "allocated", s.allocated, "peak", s.peak, "reserved", s.reserved);
}
MSA_FUNCTION(py_reset_peak) {
  (void)a;
  (void)n;
  reset_peak();
  Py_RETURN_NONE;
}
MSA_FUNCTION(py_release_cached) {
  (void)a;
  (void)n;
  release_cached();
  Py_RETURN_NONE;
}
MSA_FUNCTION(py_set_fast_path) {
  (void)n;
  set_fast_path(a[0] == Py_True);
  Py_RETURN_NONE;
}
MSA_FUNCTION(py_fast_path) {
  (void)a;
  (void)n;
  return PyBool_FromLong(fast_path());
}
MSA_FUNCTION(names) {  // (kernels, MindSpore operators)
  return guarded([&] {
    (void)a;
    (void)n;
    auto list = [](const std::vector<std::string> &v) {
      PyObject *l = PyList_New(v.size());
      for (size_t i = 0; i < v.size(); ++i) PyList_SET_ITEM(l, i, PyUnicode_FromString(v[i].c_str()));
      return l;
    };
    return Py_BuildValue("(NN)", list(kernel_names()), list(mindspore_operators()));
  });
}
MSA_FUNCTION(py_install_overrides) {
  return guarded([&]() -> PyObject * {
    (void)a;
    (void)n;
    install_overrides();
    Py_RETURN_NONE;
  });
}

#define MSA_ENTRY(py, fn) {py, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(fn)), METH_FASTCALL, nullptr}
PyMethodDef functions[] = {MSA_ENTRY("stride", stride),
                           MSA_ENTRY("storage_offset", storage_offset),
                           MSA_ENTRY("is_contiguous", contiguous),
                           MSA_ENTRY("data_ptr", data_ptr),
                           MSA_ENTRY("storage_ptr", storage_ptr),
                           MSA_ENTRY("storage_nbytes", storage_nbytes),
                           MSA_ENTRY("storage_id", storage_id),
                           MSA_ENTRY("raw_empty", raw_empty),
                           MSA_ENTRY("bytes_reached", bytes_reached),
                           MSA_ENTRY("raw_view", raw_view),
                           MSA_ENTRY("detach", detach),
                           MSA_ENTRY("fresh_version", fresh_version),
                           MSA_ENTRY("set_data", set_data),
                           MSA_ENTRY("set_geometry", set_geometry),
                           MSA_ENTRY("become_view", py_become_view),
                           MSA_ENTRY("to_meta", to_meta),
                           MSA_ENTRY("resize_storage", resize_storage),
                           MSA_ENTRY("move_storage", move_storage),
                           MSA_ENTRY("from_buffer", from_buffer),
                           MSA_ENTRY("bump_version", bump_version),
                           MSA_ENTRY("inplace_check", inplace_check),
                           MSA_ENTRY("check_history", py_check_history),
                           MSA_ENTRY("copy_into", py_copy_into),
                           MSA_ENTRY("item", item),
                           MSA_ENTRY("tolist", to_list),
                           MSA_ENTRY("alias", alias),
                           MSA_ENTRY("get_grad", get_grad),
                           MSA_ENTRY("set_grad", set_grad),
                           MSA_ENTRY("grad_accumulator", grad_accumulator),
                           MSA_ENTRY("gradient_edge", gradient_edge),
                           MSA_ENTRY("backward", backward),
                           MSA_ENTRY("queue_callback", py_queue_callback),
                           MSA_ENTRY("push_saved_hooks", push_saved_hooks),
                           MSA_ENTRY("pop_saved_hooks", pop_saved_hooks),
                           MSA_ENTRY("is_grad_enabled", is_grad_enabled),
                           MSA_ENTRY("set_grad_enabled", set_grad_enabled),
                           MSA_ENTRY("is_view", is_view_),
                           MSA_ENTRY("mark_view", mark_view),
                           MSA_ENTRY("strip_autograd", strip_autograd),
                           MSA_ENTRY("bind_types", bind_types),
                           MSA_ENTRY("bind_parameter", bind_parameter),
                           MSA_ENTRY("bind_dtype", py_bind_dtype),
                           MSA_ENTRY("dtype_from_ms", dtype_from_ms),
                           MSA_ENTRY("ms_type_id", ms_type_id),
                           MSA_ENTRY("default_dtype", py_default_dtype),
                           MSA_ENTRY("set_default_dtype", py_set_default_dtype),
                           MSA_ENTRY("promote_types", py_promote_types),
                           MSA_ENTRY("set_autocast", set_autocast),
                           MSA_ENTRY("autocast_enabled", autocast_enabled),
                           MSA_ENTRY("fused_instructions", fused_instruction_names),
                           MSA_ENTRY("num_threads", py_num_threads),
                           MSA_ENTRY("set_num_threads", py_set_num_threads),
                           MSA_ENTRY("memory_stats", py_memory_stats),
                           MSA_ENTRY("reset_peak", py_reset_peak),
                           MSA_ENTRY("release_cached", py_release_cached),
                           MSA_ENTRY("set_fast_path", py_set_fast_path),
                           MSA_ENTRY("fast_path", py_fast_path),
                           MSA_ENTRY("names", names),
                           MSA_ENTRY("device_tag", get_device_tag),
                           MSA_ENTRY("set_device_tag", put_device_tag),
                           MSA_ENTRY("install_overrides", py_install_overrides),
                           {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_C", "native layer of msadapter", -1, functions, nullptr, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace msa

extern "C" __attribute__((visibility("default"))) PyObject *PyInit__C() {
  if (!msa::duplicate_kernels().empty()) {
    PyErr_Format(PyExc_ImportError, "kernels registered twice:%s", msa::duplicate_kernels().c_str());
    return nullptr;
  }
  PyObject *m = PyModule_Create(&msa::definition);
  if (!m || !msa::init_ops(m) || !msa::init_nodes(m) || !msa::init_exchange(m) || !msa::init_trace(m)) return nullptr;
  return m;
}

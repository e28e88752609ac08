// Functions of `_C` about the memory of tensors: geometry, storages, views without a gradient, copies, device tags.
#include "../device/transfer.h"
#include "../device/storage_bounds.h"
#include "arguments.h"

namespace msa {
namespace {

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
    if (!on_cpu(t)) return PyLong_FromVoidPtr(geometry_of(t).numel == 0 ? nullptr : data_pointer(t));
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
    before_change(t);
    // MindSpore looks up how many bytes an element has, and does not know the name that complex32 has here. Elements of
    // float32 have as many. The setter of the base class looks up nothing.
    using Meta = mindspore::tensor::MetaTensor;
    t->Meta::set_data_type(from_ms(o->data_type()) == DType::C32 ? to_ms(DType::F32) : o->data_type());
    t->set_device_address(o->device_address());  // before the sizes, because MindSpore compares them with the memory
    t->set_shape(o->shape());
    t->Meta::set_data_type(o->data_type());
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
    before_change(t);
    using Meta = mindspore::tensor::MetaTensor;
    if (d == DType::C32) t->Meta::set_data_type(to_ms(DType::F32));  // as in set_data
    t->set_device_address(b->device_address());
    t->set_shape(sizes);
    t->Meta::set_data_type(to_ms(d));
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
// Gives the storage of t, which is in an accelerator's memory, a block of another size there.
void resize_on_device(const TensorPtr &t, int64_t bytes) {
  const auto address = t->device_address();
  const int64_t kept = std::min<int64_t>(static_cast<int64_t>(address->GetSize()), bytes);
  DeviceScope scope(device_tag(t));
  const TensorPtr fresh = new_tensor(DType::U8, {bytes});
  if (kept > 0) copy_tensor(new_view(fresh, DType::U8, {kept}, {1}, 0), new_view(t, DType::U8, {kept}, {1}, 0));
  before_change(t);
  address->set_device_pointer(fresh->device_address()->device_pointer());
  address->SetSize(bytes);
}
// resize_storage(t, nbytes): changes the size of the storage of t and all its views; the bytes that fit are kept
MSA_FUNCTION(resize_storage) {
  return guarded([&]() -> PyObject * {
    expect(n, 2);
    auto d = arg_tensor(a[0])->device_address();
    const int64_t bytes = int_from(a[1]);
    check(bytes >= 0, "storage size must not be negative");
    if (!on_cpu(arg_tensor(a[0]))) {
      resize_on_device(arg_tensor(a[0]), bytes);
      Py_RETURN_NONE;
    }
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
    before_change(arg_tensor(a[0]));
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
    const Tensor dv = geometry_of(d), sv = geometry_of(s);
    if (broadcast_shapes({&dv, &sv}) != dv.shape())
      fail("output with shape ", d->shape(), " doesn't match the broadcast shape ", broadcast_shapes({&dv, &sv}));
    copy_tensor(d, s);
    Py_RETURN_NONE;
  });
}
// alias(tensor): another tensor on the same memory, without history
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

PyMethodDef storage_functions[] = {MSA_ENTRY("stride", stride),
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
                                   MSA_ENTRY("alias", alias),
                                   MSA_ENTRY("device_tag", get_device_tag),
                                   MSA_ENTRY("set_device_tag", put_device_tag),
                                   {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool init_storage(PyObject *module) { return PyModule_AddFunctions(module, storage_functions) == 0; }

}  // namespace msa

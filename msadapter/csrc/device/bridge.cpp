#include "python_objects.h"

#include <pybind11/pybind11.h>

#include "geometry.h"

namespace msa {

using mindspore::device::DeviceAddress;
using mindspore::device::DeviceType;

static const struct {
  DType d;
  TypeId t;
} kTypes[] = {{DType::Bool, mindspore::kNumberTypeBool},
              {DType::U8, mindspore::kNumberTypeUInt8},
              {DType::I8, mindspore::kNumberTypeInt8},
              {DType::I16, mindspore::kNumberTypeInt16},
              {DType::I32, mindspore::kNumberTypeInt32},
              {DType::I64, mindspore::kNumberTypeInt64},
              {DType::U16, mindspore::kNumberTypeUInt16},
              {DType::U32, mindspore::kNumberTypeUInt32},
              {DType::U64, mindspore::kNumberTypeUInt64},
              {DType::F16, mindspore::kNumberTypeFloat16},
              {DType::BF16, mindspore::kNumberTypeBFloat16},
              {DType::F32, mindspore::kNumberTypeFloat32},
              {DType::F64, mindspore::kNumberTypeFloat64},
              {DType::C64, mindspore::kNumberTypeComplex64},
              {DType::C128, mindspore::kNumberTypeComplex128},
              {DType::F8E4M3FN, mindspore::kNumberTypeFloat8E4M3FN},
              {DType::F8E5M2, mindspore::kNumberTypeFloat8E5M2},
              // MindSpore has no such type. This general name is that of no tensor of its own, and its elements have
              // four bytes too.
              {DType::C32, mindspore::kNumberTypeFloat}};

TypeId to_ms(DType d) { return kTypes[static_cast<int>(d)].t; }

static const int8_t *reverse_types() {
  static int8_t table[256];
  static bool ready = [] {
    for (auto &v : table) v = -1;
    for (auto &e : kTypes) table[static_cast<int>(e.t) & 255] = static_cast<int8_t>(e.d);
    return true;
  }();
  (void)ready;
  return table;
}
bool known_dtype(TypeId t) { return t >= 0 && t < 256 && reverse_types()[t] >= 0; }
DType from_ms(TypeId t) {
  if (!known_dtype(t)) fail("tensor of an element type that torch does not have: ", static_cast<int>(t));
  return static_cast<DType>(reverse_types()[t]);
}

bool lies_on_host(const TensorPtr &t) {
  const auto &a = t->device_address();
  return !a || a->GetDeviceType() == DeviceType::kCPU || a->GetDeviceType() == DeviceType::kUnknown;
}

// Reads sizes and strides, and returns the storage offset in elements.
static int64_t read_geometry(const TensorPtr &t, Tensor *r) {
  const auto &shape = t->shape();
  const int nd = static_cast<int>(shape.size());
  check(nd <= kMaxDims, "tensors of more than ", kMaxDims, " dimensions are not supported on CPU, got ", nd);
  r->dtype = from_ms(t->data_type());
  r->ndim = nd;
  r->numel = 1;
  const auto info = t->storage_info();
  uint64_t dense = 1;
  for (int d = nd - 1; d >= 0; --d) {
    r->sizes[d] = shape[d];
    r->strides[d] = info ? info->strides[d] : static_cast<int64_t>(dense);
    r->numel *= shape[d];
    dense *= static_cast<uint64_t>(std::max<int64_t>(shape[d], 1));
  }
  return info ? static_cast<int64_t>(info->storage_offset) : 0;
}
Tensor geometry_of(const TensorPtr &t) {
  Tensor r;
  read_geometry(t, &r);
  return r;
}
Tensor view_of(const TensorPtr &t) {
  Tensor r;
  const int64_t offset = read_geometry(t, &r);
  check(on_cpu(t), "internal: host code asked for the values of a tensor in device memory");
  const auto &address = t->device_address();
  char *base = address ? static_cast<char *>(address->GetMutablePtr()) : static_cast<char *>(t->data_c());
  check(base != nullptr || r.numel == 0, "The tensor has no storage: its memory was released");
  r.data = base + offset * item_size(r.dtype);
  return r;
}

void *data_pointer(const TensorPtr &t) {
  if (on_cpu(t)) return view_of(t).data;
  finish_queue();
  char *base = static_cast<char *>(t->device_address()->GetMutablePtr());
  check(base != nullptr || geometry_of(t).numel == 0, "The tensor has no storage: its memory was released");
  return base + offset_of(t) * static_cast<int64_t>(item_size(from_ms(t->data_type())));
}

static thread_local int current_tag = 0;
int device_tag(const TensorPtr &t) {
  const auto &a = t->device_address();
  if (!a) return 0;
  return on_cpu(t) ? static_cast<int>(a->stream_id()) : accelerator_tag();
}
void set_device_tag(const TensorPtr &t, int tag) {
  if (device_tag(t) == tag || !t->device_address()) return;
  check(!has_accelerator() || tag == kMetaTag, "internal: a tensor moves to another device only by a copy");
  t->device_address()->set_stream_id(static_cast<uint32_t>(tag));
}
int scope_tag() { return current_tag; }
int factory_tag() { return shape_only() ? kMetaTag : 0; }
static thread_local bool own_code = false;
int own_code_tag() { return own_code ? current_tag : -1; }
void OwnCodeScope::enter(int tag) {
  previous_tag_ = current_tag;
  previous_ = own_code;
  entered_ = true;
  current_tag = tag;
  own_code = true;
}
void OwnCodeScope::leave() {
  current_tag = previous_tag_;
  own_code = previous_;
}
ProgramScope::ProgramScope() : previous_tag_(current_tag), previous_(own_code) {
  if (!own_code) return;
  current_tag = 0;
  own_code = false;
}
ProgramScope::~ProgramScope() {
  current_tag = previous_tag_;
  own_code = previous_;
}
DeviceScope::DeviceScope(int tag) : previous_(current_tag) { current_tag = tag; }
DeviceScope::~DeviceScope() { current_tag = previous_; }

static mindspore::TensorStorageInfoPtr storage_info(const Dims &sizes, const Dims &strides, int64_t offset) {
  Dims expected = contiguous_strides(sizes);
  bool contiguous = true;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] != 1 && strides[d] != expected[d]) contiguous = false;
  return std::make_shared<mindspore::TensorStorageInfo>(sizes, strides, static_cast<size_t>(offset), sizes, expected,
                                                        contiguous);
}

TensorPtr tensor_on(void *data, size_t bytes, DType dtype, const Dims &sizes, std::shared_ptr<void> owner) {
  auto address = std::make_shared<DeviceAddress>(data, bytes, DeviceType::kCPU, 0);
  address->set_from_mem_pool(true);
  address->SetDevicePointerDeleter([owner](void *, bool) mutable { owner.reset(); });
  return std::make_shared<MsTensor>(to_ms(dtype), sizes, address);
}

void warn_once(const std::string &message) {
  pybind11::gil_scoped_acquire gil;
  Ref module = checked(PyImport_ImportModule("msadapter._host.warn"));
  checked(PyObject_CallMethod(module.get(), "warn_once", "si", message.c_str(), 1));
}

TensorPtr new_tensor(DType dtype, const int64_t *sizes, int ndim, const int64_t *strides) {
  if (dtype == DType::C32) warn_once("ComplexHalf support is experimental and many operators don't support it yet.");
  for (int d = 0; d < ndim; ++d)
    check(sizes[d] >= 0, "Trying to create tensor with negative dimension ", sizes[d], ": ", Dims(sizes, sizes + ndim));
  int64_t count;
  const bool fits = count_elements(sizes, static_cast<size_t>(ndim), &count);
  const Size product = Size(count) * static_cast<int64_t>(item_size(dtype));
  check(fits && product.fits(), "Storage size calculation overflowed with sizes=", Dims(sizes, sizes + ndim));
  const size_t bytes = static_cast<size_t>(product.value());
  if (current_tag != 0 && current_tag != kMetaTag && has_accelerator()) {
    auto t = std::make_shared<MsTensor>(to_ms(dtype), Dims(sizes, sizes + ndim), accelerator()->allocate(bytes));
    if (strides) t->set_storage_info(storage_info(Dims(sizes, sizes + ndim), Dims(strides, strides + ndim), 0));
    return t;
  }
  const size_t asked = std::max<size_t>(bytes, 1);
  const bool meta = current_tag == kMetaTag;
  void *p = meta ? reserve_address_space(asked) : allocate(asked);
  auto address = std::make_shared<DeviceAddress>(p, bytes, DeviceType::kCPU, static_cast<uint32_t>(current_tag));
  address->set_from_mem_pool(true);
  if (meta)
    address->SetDevicePointerDeleter([asked](void *q, bool) { release_address_space(q, asked); });
  else
    address->SetDevicePointerDeleter([asked](void *q, bool) { deallocate(q, asked); });
  auto t = std::make_shared<MsTensor>(to_ms(dtype), Dims(sizes, sizes + ndim), address);
  if (strides) t->set_storage_info(storage_info(Dims(sizes, sizes + ndim), Dims(strides, strides + ndim), 0));
  return t;
}

TensorPtr new_view(const TensorPtr &base, DType dtype, const Dims &sizes, const Dims &strides, int64_t offset) {
  element_count(sizes);
  auto t = std::make_shared<MsTensor>(to_ms(dtype), sizes, base->device_address());
  t->set_storage_info(storage_info(sizes, strides, offset));
  t->set_version(base->version());
  t->set_need_pipeline_sync(true);
  return t;
}

Dims strides_of(const TensorPtr &t) {
  if (auto i = t->storage_info()) return i->strides;
  return contiguous_strides(t->shape());
}
int64_t offset_of(const TensorPtr &t) {
  auto i = t->storage_info();
  return i ? static_cast<int64_t>(i->storage_offset) : 0;
}
void count_reals(Dims *sizes, Dims *strides) {
  for (auto &s : *strides) s *= 2;
  sizes->push_back(2);
  strides->push_back(1);
}
bool is_dense(const Dims &sizes, const Dims &strides) {
  int64_t n = 1, extent = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    n *= sizes[d];
    extent += (sizes[d] - 1) * strides[d];
  }
  return n == 0 || extent == n;
}

bool is_contiguous(const TensorPtr &t) { return geometry_of(t).contiguous(); }

TensorPtr alias_of(const TensorPtr &t) {
  auto r = std::make_shared<MsTensor>(t->data_type(), t->shape(), t->device_address());
  if (auto i = t->storage_info()) r->set_storage_info(i);
  r->set_version(t->version());
  return r;
}

PyTypeObject *tensor_type = nullptr;

// Like MindSpore's Wrap, but with the class of this package, and without MindSpore's Python package.
PyObject *wrap(const TensorPtr &t) {
  using Object = mindspore::tensor::PyType<mindspore::tensor::TensorPy>;
  if (!tensor_type) return mindspore::tensor::Wrap(t);
  if (PyObject *kept = kept_object(t)) return kept;
  PyObject *o = tensor_type->tp_alloc(tensor_type, 0);
  if (!o) return nullptr;
  auto *value = &reinterpret_cast<Object *>(o)->value;
  new (value) mindspore::tensor::TensorPy(t);
  value->SetInitFinished(true);
  return o;
}
PyTypeObject *parameter_type = nullptr;

static PyObject *dtype_objects[32];
PyObject *dtype_object(DType d) {
  PyObject *o = dtype_objects[static_cast<int>(d)];
  return o ? o : Py_None;
}
void bind_dtype(DType d, PyObject *o) {
  Py_INCREF(o);
  dtype_objects[static_cast<int>(d)] = o;
}
bool dtype_from_object(PyObject *o, DType *d) {
  for (int i = 0; i <= static_cast<int>(kLastDType); ++i)
    if (dtype_objects[i] == o) {
      *d = static_cast<DType>(i);
      return true;
    }
  const std::pair<PyTypeObject *, DType> numbers[] = {{&PyBool_Type, DType::Bool},
                                                      {&PyLong_Type, DType::I64},
                                                      {&PyFloat_Type, DType::F64},
                                                      {&PyComplex_Type, DType::C128}};
  for (auto &n : numbers)
    if (reinterpret_cast<PyObject *>(n.first) == o) {
      *d = n.second;
      return true;
    }
  if (dtype_objects[0] &&
      Py_TYPE(o) == Py_TYPE(dtype_objects[0])) {  // torch.float8_e8m0fnu exists for comparisons only
    Ref name(PyObject_Repr(o));
    throw NotImplementedError(std::string(name ? PyUnicode_AsUTF8(name.get()) : "dtype") +
                              ": MindSpore has no such type, it is not supported (docs/coverage.md)");
  }
  return false;
}

bool integer_fits(PyObject *o, int64_t *value) {
  Ref v = PyLong_CheckExact(o) ? Ref::borrow(o) : checked(PyNumber_Index(o));
  int overflow = 0;
  *value = PyLong_AsLongLongAndOverflow(v.get(), &overflow);
  return !overflow;
}
int64_t integer_of(PyObject *o) {
  int64_t value;
  if (!integer_fits(o, &value)) throw ValueError("Overflow when unpacking long long");
  return value;
}
bool scalar_fits(PyObject *o) {
  int64_t value;
  if (integer_fits(o, &value)) return true;
  PyLong_AsUnsignedLongLong(o);
  const bool fits = !PyErr_Occurred();
  PyErr_Clear();
  return fits;
}

void translate_exception() {
  try {
    throw;
  } catch (const PythonError &) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "msadapter: error without a Python exception");
  } catch (pybind11::error_already_set &e) { e.restore(); } catch (const IndexError &e) {
    PyErr_SetString(PyExc_IndexError, e.what());
  } catch (const ValueError &e) { PyErr_SetString(PyExc_ValueError, e.what()); } catch (const TypeError &e) {
    PyErr_SetString(PyExc_TypeError, e.what());
  } catch (const NotImplementedError &e) {
    PyErr_SetString(PyExc_NotImplementedError, e.what());
  } catch (const OverflowError &e) { PyErr_SetString(PyExc_OverflowError, e.what()); } catch (const OutOfMemory &e) {
    Ref errors = Ref(PyImport_ImportModule("msadapter._errors"));
    Ref type(errors ? PyObject_GetAttrString(errors.get(), "OutOfMemoryError") : nullptr);
    PyErr_SetString(type ? type.get() : PyExc_RuntimeError, e.what());
  } catch (const std::bad_alloc &) {
    PyErr_SetString(PyExc_RuntimeError, "std::bad_alloc");  // PyTorch translates this C++ exception so
  } catch (const std::exception &e) { PyErr_SetString(PyExc_RuntimeError, e.what()); }
}

}  // namespace msa

// Conversion of MindSpore tensors for the kernels, and allocation of new tensors from the memory pool.
#pragma once
#include <Python.h>

#include <memory>
#include <string>
#include <vector>

#include "../kernels/loops.h"
#include "include/utils/pynative/grad_state.h"
#include "include/utils/pynative/variable.h"
#include "include/utils/tensor_py.h"
#include "ir/tensor.h"

namespace msa {

using mindspore::TypeId;
using TensorPtr = mindspore::tensor::TensorPtr;
using MsTensor = mindspore::tensor::Tensor;

TypeId to_ms(DType d);
DType from_ms(TypeId t);
bool known_dtype(TypeId t);

// Whether the tensor's memory is CPU memory, which the kernels can access.
bool on_cpu(const TensorPtr &t);

Tensor view_of(const TensorPtr &t);      // RuntimeError when its memory was released
Tensor geometry_of(const TensorPtr &t);  // the same, but without data
TensorPtr new_tensor(DType dtype, const int64_t *sizes, int ndim, const int64_t *strides = nullptr);
inline TensorPtr new_tensor(DType dtype, const Dims &sizes) {
  return new_tensor(dtype, sizes.data(), static_cast<int>(sizes.size()));
}
// Returns a tensor on memory that belongs to `owner`, which is kept alive.
TensorPtr tensor_on(void *data, size_t bytes, DType dtype, const Dims &sizes, std::shared_ptr<void> owner);
// Returns a tensor that shares storage and version counter with base. The offset counts elements from the start of
// the storage.
TensorPtr new_view(const TensorPtr &base, DType dtype, const Dims &sizes, const Dims &strides, int64_t offset);
// Returns a tensor with the same storage, sizes, strides and version counter, but without history.
TensorPtr alias_of(const TensorPtr &t);
Dims strides_of(const TensorPtr &t);
int64_t offset_of(const TensorPtr &t);
bool is_contiguous(const TensorPtr &t);

// Without an NPU the accelerator is the CPU, so each storage has a tag for its device (0 = cpu, k = accelerator k-1).
// New tensors take the tag of the operands in scope.
constexpr int kMetaTag = 32767;  // a tensor without values (torch.device("meta"))
int device_tag(const TensorPtr &t);
void set_device_tag(const TensorPtr &t, int tag);
inline bool is_meta(const TensorPtr &t) { return device_tag(t) == kMetaTag; }
// The tag of results without operands: meta if the factory was asked for that device, else that of the CPU.
int factory_tag();
class DeviceScope {
 public:
  explicit DeviceScope(int tag);
  ~DeviceScope();

 private:
  int previous_;
};

// ---- Python objects
extern PyTypeObject *tensor_type;     // the class of every result (torch.Tensor)
extern PyTypeObject *parameter_type;  // torch.nn.Parameter, once known
inline bool is_tensor(PyObject *o) {
  PyTypeObject *t = Py_TYPE(o);
  return t == tensor_type || t == parameter_type || PyType_IsSubtype(t, mindspore::tensor::GetTensorPyType());
}
inline TensorPtr unwrap(PyObject *o) {
  auto &v = reinterpret_cast<mindspore::tensor::PyType<mindspore::tensor::TensorPy> *>(o)->value;
  return v.has_stub() ? mindspore::tensor::ConvertPyObjectToTensor(o) : v.GetTensor();
}
PyObject *wrap(const TensorPtr &t);  // a new object of the class of every result

PyObject *dtype_object(DType d);  // torch.float32 ...
bool dtype_from_object(PyObject *o, DType *d);
void bind_dtype(DType d, PyObject *o);

// An integer of Python's as int64_t. False if it does not fit; the object must be an integer or have __index__.
bool integer_fits(PyObject *o, int64_t *value);
int64_t integer_of(PyObject *o);  // ValueError with PyTorch's text if it does not fit
bool scalar_fits(PyObject *o);    // whether a Scalar can hold this int

// RAII reference to a Python object.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject *o) : o_(o) {}
  Ref(const Ref &r) : o_(r.o_) { Py_XINCREF(o_); }
  Ref(Ref &&r) noexcept : o_(r.o_) { r.o_ = nullptr; }
  Ref &operator=(Ref r) noexcept {
    std::swap(o_, r.o_);
    return *this;
  }
  ~Ref() { Py_XDECREF(o_); }
  static Ref borrow(PyObject *o) {
    Py_XINCREF(o);
    return Ref(o);
  }
  PyObject *get() const { return o_; }
  PyObject *release() {
    PyObject *o = o_;
    o_ = nullptr;
    return o;
  }
  explicit operator bool() const { return o_ != nullptr; }

 private:
  PyObject *o_ = nullptr;
};

// Thrown when a Python exception is set. It unwinds the C++ frames up to the entry point.
struct PythonError {};
inline Ref checked(PyObject *o) {
  if (!o) throw PythonError{};
  return Ref(o);
}
// Sets the Python exception for the C++ exception that is being handled (used in catch (...)).
void translate_exception();

class NoGrad {
 public:
  NoGrad() : previous_(state().enable_grad()) { state().set_enable_grad(false); }
  ~NoGrad() { state().set_enable_grad(previous_); }

 private:
  static mindspore::pynative::GradState &state() { return mindspore::pynative::GradState::Get(); }
  bool previous_;
};
// Grad mode is MindSpore's own thread-local switch. MindSpore has a second flag, which is false in new threads and
// after some of its errors; it is set to true wherever grad mode is read.
inline bool grad_enabled() {
  auto &s = mindspore::pynative::GradState::Get();
  if (!s.grad_flag()) s.set_grad_flag(true);
  return s.enable_grad();
}

}  // namespace msa

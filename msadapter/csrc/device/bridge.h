// Conversion of MindSpore tensors for the kernels, and allocation of new tensors from the memory pool.
#pragma once
#include <Python.h>

#include <memory>
#include <string>
#include <vector>

#include "../kernels/loops.h"
#include "accelerator.h"
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

bool lies_on_host(const TensorPtr &t);
// Whether the tensor's memory is CPU memory, which the kernels can access.
inline bool on_cpu(const TensorPtr &t) { return !has_accelerator() || lies_on_host(t); }

Tensor view_of(const TensorPtr &t);      // RuntimeError when its memory was released
Tensor geometry_of(const TensorPtr &t);  // the same, but without data
// The address of the first element, on whichever device it is. Operators that are still queued run first.
void *data_pointer(const TensorPtr &t);
// Must be called before the sizes, strides or memory of an existing tensor change. Operators that are still in the
// queue read them when it is their turn.
inline void before_change(const TensorPtr &t) {
  if (!on_cpu(t)) finish_queue();
}
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
// Converts sizes and strides of complex numbers to those of real numbers, with a last dim of size two.
void count_reals(Dims *sizes, Dims *strides);
// Whether the elements fill their memory without gaps and overlaps
bool is_dense(const Dims &sizes, const Dims &strides);

// Without an NPU, the accelerator is the CPU. Each storage therefore has a tag with the device that the user sees: 0 is
// the CPU, and k is accelerator k - 1. New tensors get the tag of the current DeviceScope, which is that of the
// operands.
constexpr int kMetaTag = 32767;  // a tensor without values (torch.device("meta"))
int device_tag(const TensorPtr &t);
void set_device_tag(const TensorPtr &t, int tag);
inline bool is_meta(const TensorPtr &t) { return device_tag(t) == kMetaTag; }
// The tag of results without operands: meta if the factory was asked for that device, else that of the CPU.
int factory_tag();
// The tag that new tensors get in this thread.
int scope_tag();
// The device for which an operator's own code makes tensors without naming a device, or -1 elsewhere and if the
// accelerator is the host. An operator computes where its operands are, also with the tensors that it needs beside
// them.
int own_code_tag();
// The scope of an operator's own code (a body, a composite, the formula of a gradient) with operands on the device
// `tag`.
class OwnCodeScope {
 public:
  explicit OwnCodeScope(int tag) {
    if (has_accelerator() && tag != kMetaTag) enter(tag);
  }
  ~OwnCodeScope() {
    if (entered_) leave();
  }

 private:
  void enter(int tag);
  void leave();
  bool entered_ = false, previous_ = false;
  int previous_tag_ = 0;
};
// The scope of a program's code that runs inside of an operator's own code.
class ProgramScope {
 public:
  ProgramScope();
  ~ProgramScope();

 private:
  int previous_tag_;
  bool previous_;
};
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

// Reads a Python integer, or an object with __index__, as int64_t. Returns false if it does not fit.
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
// Shows a UserWarning at the calling line of Python, once in a process, or every time if torch.set_warn_always asks for
// that.
void warn_once(const std::string &message);
// Sets the Python exception for the C++ exception that is being handled (used in catch (...)).
void translate_exception();

// Grad mode is MindSpore's own thread-local switch. MindSpore has a second flag, which is false in new threads and
// after some of its errors; it is set to true wherever grad mode is read.
inline bool grad_enabled() {
  auto &s = mindspore::pynative::GradState::Get();
  if (!s.grad_flag()) s.set_grad_flag(true);
  return s.enable_grad();
}
inline void set_grad_enabled(bool on) { mindspore::pynative::GradState::Get().set_enable_grad(on); }

// A scope with grad mode on or off.
struct GradMode {
  explicit GradMode(bool on) : before(grad_enabled()) { set_grad_enabled(on); }
  ~GradMode() { set_grad_enabled(before); }
  GradMode(const GradMode &) = delete;
  const bool before;
};
struct NoGrad : GradMode {
  NoGrad() : GradMode(false) {}
};

}  // namespace msa

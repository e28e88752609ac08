// The Python module `_C`: dtypes, settings and statistics. The other files of this folder add the other functions.
#include <pybind11/pybind11.h>

#include "../device/trace.h"
#include "../dispatch/python_dispatch.h"
#include "../kernels/fft.h"
#include "../kernels/fused_pointwise.h"
#include "../kernels/type_names.h"
#include "arguments.h"

namespace msa {

std::string &duplicate_kernels();  // runtime.cpp
bool init_tensor_class(PyObject *module);
bool init_storage(PyObject *module);
bool init_gradients(PyObject *module);
bool init_nodes(PyObject *module);
bool init_exchange(PyObject *module);
bool init_signatures(PyObject *module);
bool init_result_types(PyObject *module);
bool init_devices(PyObject *module);

namespace {

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
MSA_FUNCTION(py_cpp_type_name) {  // of a dtype, as PyTorch's messages name it
  return guarded([&]() -> PyObject * {
    expect(n, 1);
    DType d;
    if (!dtype_from_object(a[0], &d)) throw TypeError("dtype must be a torch.dtype");
    return PyUnicode_FromString(cpp_type_name(d));
  });
}
MSA_FUNCTION(autocast_enabled) {
  return guarded([&] {
    (void)a;
    (void)n;
    return PyBool_FromLong(autocast_state().enabled);
  });
}
MSA_FUNCTION(set_autocast) {  // (True for accelerators or False for the CPU, enabled, dtype)
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
MSA_FUNCTION(fused_instruction_names) {  // -> list of names; the position of a name is the code of the instruction
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
MSA_FUNCTION(py_bind_transforms) {  // (address of a function that runs a Fourier transform)
  return guarded([&]() -> PyObject * {
    (void)n;
    bind_transforms(reinterpret_cast<RunTransform>(PyLong_AsVoidPtr(a[0])));
    Py_RETURN_NONE;
  });
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

PyMethodDef module_functions[] = {MSA_ENTRY("bind_dtype", py_bind_dtype),
                                  MSA_ENTRY("dtype_from_ms", dtype_from_ms),
                                  MSA_ENTRY("ms_type_id", ms_type_id),
                                  MSA_ENTRY("default_dtype", py_default_dtype),
                                  MSA_ENTRY("set_default_dtype", py_set_default_dtype),
                                  MSA_ENTRY("promote_types", py_promote_types),
                                  MSA_ENTRY("cpp_type_name", py_cpp_type_name),
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
                                  MSA_ENTRY("bind_transforms", py_bind_transforms),
                                  MSA_ENTRY("names", names),
                                  MSA_ENTRY("install_overrides", py_install_overrides),
                                  {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_C", "native layer of msadapter", -1, module_functions, nullptr, nullptr, nullptr, nullptr};

// Lets this thread, and those that it starts, compute with numbers below the smallest normal one. MindSpore's libraries
// for aarch64 make the processor flush them to zero when they are loaded; those for x86-64 do not.
void keep_denormals() {
#ifdef __aarch64__
  constexpr uint64_t kFlush = 1 << 24, kFlushHalf = 1 << 19;  // FZ and FZ16 of the control register
  uint64_t control;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  asm volatile("msr fpcr, %0" : : "r"(control & ~(kFlush | kFlushHalf)));
#endif
}

}  // namespace
}  // namespace msa

extern "C" __attribute__((visibility("default"))) PyObject *PyInit__C() {
  if (!msa::duplicate_kernels().empty()) {
    PyErr_Format(PyExc_ImportError, "kernels registered twice:%s", msa::duplicate_kernels().c_str());
    return nullptr;
  }
  msa::keep_denormals();
  PyObject *m = PyModule_Create(&msa::definition);
  for (auto init : {msa::init_tensor_class, msa::init_storage, msa::init_gradients, msa::init_ops,
                    msa::init_python_dispatch, msa::init_nodes, msa::init_exchange, msa::init_signatures,
                    msa::init_result_types, msa::init_devices, msa::init_trace})
    if (!m || !init(m)) return nullptr;
  return m;
}

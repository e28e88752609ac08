// The functions on devices for Python: copies between devices, synchronization, and the number of bytes copied.
#include "../device/ascend_limits.h"
#include "../device/operators.h"
#include "../device/transfer.h"
#include "../dispatch/internal.h"
#include "guarded.h"

namespace msa {
namespace {

PyObject *py_copied_to(PyObject *, PyObject *args) {
  return guarded([&] {
    int tag, later = 0;
    PyObject *object;
    if (!PyArg_ParseTuple(args, "Oi|p", &object, &tag, &later)) throw PythonError{};
    if (!is_tensor(object)) throw TypeError("expected a tensor");
    return wrap(copy_to_device(unwrap(object), tag, later != 0));
  });
}

PyObject *py_pinned(PyObject *, PyObject *object) {
  return guarded([&] {
    if (!is_tensor(object)) throw TypeError("expected a tensor");
    return wrap(pinned_copy(unwrap(object)));
  });
}

PyObject *py_is_pinned(PyObject *, PyObject *object) {
  return guarded([&] {
    if (!is_tensor(object)) throw TypeError("expected a tensor");
    return PyBool_FromLong(is_pinned(unwrap(object)));
  });
}

PyObject *placed(PyObject *, PyObject *args) {
  return guarded([&] {
    int tag;
    PyObject *object;
    if (!PyArg_ParseTuple(args, "Oi", &object, &tag)) throw PythonError{};
    if (!is_tensor(object)) throw TypeError("expected a tensor");
    const TensorPtr t = unwrap(object);
    if (has_accelerator() && device_tag(t) != tag) return wrap(copy_to_device(t, tag));
    set_device_tag(t, tag);
    Py_INCREF(object);
    return object;
  });
}

PyObject *in_device_memory(PyObject *, PyObject *object) {
  return guarded([&] {
    if (!is_tensor(object)) throw TypeError("expected a tensor");
    return PyBool_FromLong(!on_cpu(unwrap(object)));
  });
}

PyObject *has_own_memory(PyObject *, PyObject *) {
  return guarded([] { return PyBool_FromLong(has_accelerator()); });
}

PyObject *synchronise(PyObject *, PyObject *) {
  return guarded([]() -> PyObject * {
    if (accelerator()) accelerator()->synchronise();
    Py_RETURN_NONE;
  });
}

PyObject *set_stopped(PyObject *, PyObject *object) {
  return guarded([&]() -> PyObject * {
    const int stopped = PyObject_IsTrue(object);
    if (stopped < 0) throw PythonError{};
    if (stopped) finish_queue();
    set_device_stopped(stopped != 0);
    Py_RETURN_NONE;
  });
}

PyObject *py_copy_counts(PyObject *, PyObject *) {
  return guarded([] {
    const CopyCounts &c = copy_counts();
    return Py_BuildValue("(LLLL)", static_cast<long long>(c.to_host), static_cast<long long>(c.from_host),
                         static_cast<long long>(c.bytes_to_host), static_cast<long long>(c.bytes_from_host));
  });
}

PyObject *own_code(PyObject *, PyObject *) { return PyLong_FromLong(own_code_tag()); }

PyObject *runs_on_accelerator(PyObject *, PyObject *name) {
  return guarded([&] {
    const char *text = PyUnicode_AsUTF8(name);
    if (!text) throw PythonError{};
    if (!accelerator()) throw std::runtime_error("this process computes on the host only");
    const Operator *op = find_operator(text);
    return PyBool_FromLong(runs_on_accelerator(*op));
  });
}

PyObject *limits(PyObject *, PyObject *) {
  return guarded([] {
    Ref all = checked(PyList_New(0));
    for (auto &[name, reason] : npu_limits()) {
      Ref pair = checked(Py_BuildValue("(ss)", name.c_str(), reason.c_str()));
      if (PyList_Append(all.get(), pair.get()) < 0) throw PythonError{};
    }
    return all.release();
  });
}

PyObject *py_host_calls(PyObject *, PyObject *) {
  return guarded([] {
    Ref all = checked(PyDict_New());
    for (auto &[call, count] : host_calls()) {
      Ref key = checked(Py_BuildValue("(ss)", call.first.c_str(), call.second.c_str()));
      Ref value = checked(PyLong_FromLongLong(count));
      if (PyDict_SetItem(all.get(), key.get(), value.get()) < 0) throw PythonError{};
    }
    return all.release();
  });
}

PyObject *host_int64(PyObject *, PyObject *object) {
  return guarded([&] {
    const long long value = PyLong_AsLongLong(object);
    if (PyErr_Occurred()) throw PythonError{};
    Scalar number;
    number.kind = Scalar::kInt;
    number.i = value;
    return wrap(number_on_host(number, DType::I64));
  });
}

PyMethodDef devices_functions[] = {
    {"copied_to", py_copied_to, METH_VARARGS,
     "copied_to(tensor, tag, non_blocking=False) -> a copy on the device with that tag"},
    {"pinned", py_pinned, METH_O,
     "pinned(tensor on the host) -> a copy in pinned memory, or the tensor if it is there"},
    {"is_pinned", py_is_pinned, METH_O, "whether the tensor is in pinned memory"},
    {"placed", placed, METH_VARARGS,
     "placed(tensor, tag) -> a new tensor, to which nothing else refers yet, on the device with that tag"},
    {"in_device_memory", in_device_memory, METH_O, "whether the tensor is in the memory of an accelerator"},
    {"has_own_memory", has_own_memory, METH_NOARGS, "whether the accelerator is another device than the host"},
    {"runs_on_accelerator", runs_on_accelerator, METH_O,
     "whether MindSpore has the operator with this name for the accelerator"},
    {"own_code_tag", own_code, METH_NOARGS,
     "the tag of the device for which an operator's own code makes tensors, or -1 outside of such code"},
    {"npu_limits", limits, METH_NOARGS,
     "[(MindSpore operator, what it does not take on an NPU)]: such calls are computed on the host"},
    {"host_calls", py_host_calls, METH_NOARGS,
     "{(operator, what MindSpore's operator does not take or ''): how often NPU tensors were computed on the host}"},
    {"host_int64", host_int64, METH_O, "an int64 tensor without dims in host memory, whatever the device of the scope"},
    {"synchronise_device", synchronise, METH_NOARGS, "wait until the accelerator has done all issued work"},
    {"set_device_stopped", set_stopped, METH_O,
     "set_device_stopped(bool): whether operators on the accelerator are errors"},
    {"copy_counts", py_copy_counts, METH_NOARGS,
     "(copies to the host, copies from the host, bytes to the host, bytes from the host) since the start"},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool init_devices(PyObject *module) {
  find_accelerator();
  return PyModule_AddFunctions(module, devices_functions) == 0;
}

}  // namespace msa

// The checks of out=: PyTorch's errors for calls that cannot be recorded, and for results that share memory.
#include "../kernels/type_names.h"
#include "internal.h"
#include "rare_facts.h"

namespace msa {
namespace {

// Whether a tensor among the arguments of a composite requires grad, also in lists.
bool any_argument_requires_grad(const Op &op, PyObject **slots) {
  bool required = false;
  for (size_t i = 0; i < op.params.size(); ++i)
    each_tensor_in(slots[i], [&](const TensorPtr &t) { required = required || requires_grad(t); });
  return required;
}

void check_out_history(const Op &op, const Operand *v, PyObject **slots, PyObject *out) {
  if (!op.differentiable || !grad_enabled()) return;
  bool required = v ? any_requires_grad(op, v) : any_argument_requires_grad(op, slots);
  each_tensor_in(out, [&](const TensorPtr &t) { required = required || requires_grad(t); });
  if (required)
    fail(op.name,
         "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
         "requires grad.");
}

// The slot of the parameter with this name, or null if there is none.
PyObject **slot_named(const Op &op, PyObject **slots, const char *name) {
  for (size_t i = 0; i < op.params.size(); ++i)
    if (PyUnicode_CompareWithASCIIString(op.params[i].name, name) == 0) return &slots[i];
  return nullptr;
}

// RuntimeError if a function that creates a tensor is given another layout or type of device than that of out=.
void check_options(const Op &op, PyObject **slots, PyObject *out) {
  for (const char *option : {"layout", "device"}) {
    PyObject **given = slot_named(op, slots, option);
    if (!given || *given == Py_None) continue;
    checked(PyObject_CallFunctionObjArgs(table_function("_check_option_of_out"), *given, out, nullptr));
  }
}

// Whether the dtype of out= is that of the computation. Means take it if it is a floating point type, as the operand's.
bool computes_in_dtype_of_out(const Op &op, PyObject **slots, DType own) {
  PyObject *rule = rare_facts(op).out_dtype;
  if (PyUnicode_CompareWithASCIIString(rule, "decides") == 0) return true;
  return PyUnicode_CompareWithASCIIString(rule, "cast") == 0 && is_floating(own) && is_tensor(slots[0]) &&
         is_floating(from_ms(unwrap(slots[0])->data_type()));
}

}  // namespace

Ref take_options_of_out(const Op &op, PyObject **slots, PyObject *out) {
  if (!is_tensor(out)) return Ref();
  const bool creates = op.device_param >= 0;
  const DType own = from_ms(unwrap(out)->data_type());
  DType given = own;
  PyObject **dtype = slot_named(op, slots, "dtype"), **stored = slot_named(op, slots, "out_dtype");
  if (stored) dtype = stored;
  if (dtype && *dtype != Py_None && dtype_from_object(*dtype, &given) && given != own) {
    if (stored) throw ValueError("out_dtype must match output matrix type");
    if (creates) fail("dtype ", dtype_name(given), " does not match dtype of out parameter (", dtype_name(own), ")");
    fail("Expected out tensor to have dtype ", cpp_type_name(given), ", but got ", cpp_type_name(own), " instead");
  }
  if (dtype && *dtype == Py_None && (creates || computes_in_dtype_of_out(op, slots, own))) *dtype = dtype_object(own);
  if (!creates) return Ref();
  check_options(op, slots, out);
  Ref device = checked(PyObject_GetAttrString(out, "device"));
  slots[op.device_param] = device.get();
  return device;
}

void check_out(const Op &op, const Operand *v, PyObject **slots, PyObject *out) {
  check_out_history(op, v, slots, out);
  // Objects that are not tensors are refused when the results are written.
  each_tensor_in(out, [&](const TensorPtr &t) {
    check_inplace(t, op.composite && requires_grad(t));
    if (!v || (op.promote == Promote::kNone && !op.separate_operands && !elementwise(op))) return;
    for (int i = 0; i < static_cast<int>(op.params.size()); ++i)
      if (v[i].kind == Arg::kTensor) check_overlap(t, v[i].tensor);
  });
}

}  // namespace msa

// The Python type of declared operators.

#include <set>

#include "../device/trace.h"
#include "python_dispatch.h"
#include "rare_facts.h"

namespace msa {

namespace {

PyObject *torch_function_handler = nullptr;
thread_local int torch_function_modes = 0;  // number of active modes of __torch_function__ and __torch_dispatch__
// Whether the class of an argument may handle the call itself. This is a subclass of Tensor, or any class with
// __torch_function__ if the parameter takes a tensor.
bool foreign(PyObject *o, ParamType type) {
  static PyObject *const name = PyUnicode_InternFromString("__torch_function__");
  PyTypeObject *t = Py_TYPE(o);
  if (t == tensor_type || t == parameter_type || o == Py_None || t == &PyLong_Type || t == &PyFloat_Type ||
      t == &PyTuple_Type || t == &PyList_Type || t == &PyUnicode_Type || t == &PyBool_Type)
    return false;
  if (PyType_IsSubtype(t, mindspore::tensor::GetTensorPyType())) return true;
  const bool tensor_place = type == ParamType::kTensor || type == ParamType::kTensorOrScalar ||
                            type == ParamType::kTensors || type == ParamType::kAny;
  return tensor_place && _PyType_Lookup(t, name);
}

PyObject *stored_handler = nullptr;

bool is_narrow_tensor(PyObject *o) {
  if (!PyObject_TypeCheck(o, mindspore::tensor::GetTensorPyType()) || !is_tensor(o)) return false;
  const DType d = from_ms(unwrap(o)->data_type());
  return only_stored(d) || d == DType::F16;
}

// Calls the Python function for operands of a type that is only stored, which kernels do not support. With a complex
// number, a float16 operand becomes one of them. Returns null if that fails too.
PyObject *for_stored(PyObject *callable, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  bool any = false;
  for (Py_ssize_t i = 0; i < nargs; ++i) any = any || is_narrow_tensor(args[i]);
  if (!any || !stored_handler) return nullptr;
  Ref pos(PyTuple_New(nargs));
  if (!pos) return nullptr;
  for (Py_ssize_t i = 0; i < nargs; ++i) {
    Py_INCREF(args[i]);
    PyTuple_SET_ITEM(pos.get(), i, args[i]);
  }
  Ref named(PyDict_New());
  if (!named) return nullptr;
  for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); ++i)
    if (PyDict_SetItem(named.get(), PyTuple_GET_ITEM(kwnames, i), args[nargs + i]) < 0) return nullptr;
  Ref r(PyObject_CallFunctionObjArgs(stored_handler, callable, pos.get(), named.get(), nullptr));
  if (!r) PyErr_Clear();  // the kernel's own error is more specific
  return r && r.get() != Py_NotImplemented ? r.release() : nullptr;
}

bool fill_empty = false;
thread_local int default_device = 0;  // for functions without a device argument: 0 the CPU, 1 an accelerator, 2 meta

// The tag of the device on which a function must create its result: by its argument, by that of its operand, or by
// default. The accelerator counts only if it has memory of its own.
int tag_of_result(const Op &op, PyObject **slots, const Operand &like) {
  PyObject *device = slots[op.device_param];
  const int there = has_accelerator() ? accelerator_tag() : 0;
  if (device == Py_None) {
    if (!like.tensor && own_code_tag() >= 0) return own_code_tag();
    if (like.tensor) return is_meta(like.tensor) ? kMetaTag : on_cpu(like.tensor) ? 0 : there;
    return default_device == 2 ? kMetaTag : default_device == 1 ? there : 0;
  }
  Ref name = PyUnicode_Check(device) ? Ref::borrow(device) : Ref(PyObject_GetAttrString(device, "type"));
  if (!name) PyErr_Clear();
  if (!name || !PyUnicode_Check(name.get())) return there;  // an integer is the index of an accelerator
  const std::string type = PyUnicode_AsUTF8(name.get());
  if (type == "meta") return kMetaTag;
  return type.rfind("cpu", 0) == 0 ? 0 : there;
}

std::string inplace_name(const Op &op) { return "aten::" + op.trace_name + "_"; }

// One call of a declared operator, its arguments in the order of the schema.
struct Invocation {
  OpObject *self;
  PyObject *const *args;
  Py_ssize_t nargs;
  PyObject *kwnames;
  Op &op = *self->op;
  const int n = static_cast<int>(op.params.size());
  PyObject *slots[kMaxParams];  // borrowed, one for each parameter
  PyObject *out = nullptr;      // out=, null without one
  Ref held;                     // what parsing had to make
};

void parse(Invocation *c) {
  Keywords keywords{c->kwnames, c->args + c->nargs, nullptr};
  parse(c->op, c->args, c->nargs, &keywords, c->slots, &c->held);
  if (keywords.out && (c->self->inplace || c->self->method))
    throw TypeError(c->op.name + (c->self->inplace ? "_" : "") + "() got an unexpected keyword argument 'out'");
  c->out = keywords.out == Py_None ? nullptr : keywords.out;
}

// Whether a mode is active, or a tensor of a subclass is among the arguments.
bool overridden(const Invocation &c) {
  if (torch_function_modes > 0) return true;
  for (int i = 0; i < c.n; ++i) {
    PyObject *o = c.slots[i];
    const ParamType type = c.op.params[i].type;
    if (foreign(o, type)) return true;
    if (type != ParamType::kTensors || !(PyTuple_CheckExact(o) || PyList_CheckExact(o))) continue;
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(o); ++k)
      if (foreign(PySequence_Fast_GET_ITEM(o, k), type)) return true;
  }
  return false;
}

Ref call_override(const Invocation &c) {
  Ref pos = checked(PyTuple_New(c.nargs));
  for (Py_ssize_t i = 0; i < c.nargs; ++i) {
    Py_INCREF(c.args[i]);
    PyTuple_SET_ITEM(pos.get(), i, c.args[i]);
  }
  Ref kw = checked(PyDict_New());
  for (Py_ssize_t k = 0; c.kwnames && k < PyTuple_GET_SIZE(c.kwnames); ++k)
    PyDict_SetItem(kw.get(), PyTuple_GET_ITEM(c.kwnames, k), c.args[c.nargs + k]);
  ProgramScope program;
  return call_torch_function(reinterpret_cast<PyObject *>(c.self), pos.get(), kw.get());
}

Ref copied_to_out(const Op &op, const Ref &result, PyObject *out) {
  return checked(PyObject_CallFunctionObjArgs(table_function("_copy_to_out"), result.get(), out,
                                              rare_facts(op).out_dtype, nullptr));
}

// Casts the tensors of a composite's arguments, also those in lists.
bool autocast_composite(Invocation *c, std::vector<Ref> *cast) {
  Operands operands(c->n);
  for (int i = 0; i < c->n; ++i) {
    if (is_tensor(c->slots[i]))
      operands[i] = Operand::of(unwrap(c->slots[i]));
    else if (c->op.params[i].type == ParamType::kTensors)
      convert(c->op, i, c->slots[i], &operands[i]);
  }
  if (!apply_autocast(c->op, operands.data(), c->slots, cast)) return false;
  for (int i = 0; i < c->n; ++i) {
    if (operands[i].kind != Arg::kTensors) continue;
    Ref list = checked(PyList_New(operands[i].tensors.size()));
    for (size_t k = 0; k < operands[i].tensors.size(); ++k)
      PyList_SET_ITEM(list.get(), k, python_tensor(operands[i].tensors[k]).release());
    c->slots[i] = list.get();
    cast->push_back(list);
  }
  return true;
}

// The first argument of a method or an in-place function must be a tensor, even if the declaration allows a number.
void check_self(const Invocation &c) {
  if (!(c.self->inplace || c.self->method) || !c.n || is_tensor(c.slots[0])) return;
  if (c.op.params[0].type == ParamType::kAny && !c.self->inplace) return;
  throw TypeError("descriptor '" + c.op.name + (c.self->inplace ? "_" : "") +
                  "' for 'torch._C.TensorBase' objects doesn't apply to a '" + type_name(c.slots[0]) + "' object");
}

Ref run_composite(Invocation *c) {
  check_arguments(c->op, c->slots);
  std::vector<Ref> numbers;
  numbers_for_tensors(c->op, c->slots, &numbers);
  if (c->out) check_out(c->op, nullptr, c->slots, c->out);
  if (c->self->inplace) {
    if (c->op.separate_operands) refuse_shared_arguments(c->slots, c->n);
    Ref result = call_body(c->op, c->slots);
    return checked(PyObject_CallFunctionObjArgs(table_function("_inplace_from"), c->slots[0], result.get(), nullptr));
  }
  std::vector<Ref> cast;
  AutocastPause pause(autocasts(c->op) && !c->out && autocast_composite(c, &cast));
  Ref result = call_body(c->op, c->slots);
  return c->out ? copied_to_out(c->op, result, c->out) : result;
}

// If a factory has to create an ordinary tensor like a meta tensor, the meta tensor is replaced by an ordinary one with
// the same geometry.
Ref ordinary_like(Invocation *c, Operands *operands) {
  const TensorPtr &t = (*operands)[0].tensor;
  TensorPtr made =
      new_tensor(from_ms(t->data_type()), t->shape().data(), static_cast<int>(t->shape().size()), strides_of(t).data());
  (*operands)[0].tensor = made;
  Ref like = checked(wrap(made));
  c->slots[0] = like.get();
  return like;
}

Ref run_operator_call(Invocation *c) {
  Op &op = c->op;
  Operands operands(c->n);
  for (int i = 0; i < c->n; ++i) convert(op, i, c->slots[i], &operands[i]);
  const bool factory = op.device_param >= 0;
  const int tag = factory ? tag_of_result(op, c->slots, operands[0]) : std::max(0, own_code_tag());
  const bool meta = tag == kMetaTag;
  Ref like;
  if (factory && !meta && c->n && operands[0].tensor && is_meta(operands[0].tensor)) like = ordinary_like(c, &operands);
  DeviceScope scope(tag);
  ShapeOnly shapes(meta || shape_only());
  if (!op.body) resolve_kernel(op);
  if (c->self->inplace) return run_inplace(op, operands.data(), c->slots);
  if (!c->out) return run_functional(op, operands.data(), c->slots);
  check_out(op, operands.data(), c->slots, c->out);
  NoGrad guard;
  return copied_to_out(op, run_functional(op, operands.data(), c->slots, false), c->out);
}

Ref run_call(Invocation *c) {
  parse(c);
  TraceScope trace;
  if (tracing)
    trace.begin(c->self->inplace ? "" : "aten::", c->self->inplace ? inplace_name(c->op) : c->op.trace_name, "cpu_op",
                c->slots, c->n);
  bool in_python = false;
  if (torch_function_handler && overridden(*c)) {
    if (Ref r = call_override(*c)) return r;
    in_python = answered_by_program(c->slots, c->n);
    if (in_python && !c->op.composite)
      return run_in_python(c->op, reinterpret_cast<PyObject *>(c->self), c->self->inplace, c->slots, c->out);
  }
  check_self(*c);
  const Ref options = c->out ? take_options_of_out(c->op, c->slots, c->out) : Ref();
  if (c->op.plain_call && !in_python && !c->self->inplace && !c->out && !autocasts(c->op))
    if (PyObject *r = c->op.plain_call(c->op, c->slots)) return Ref(r);
  return c->op.composite ? run_composite(c) : run_operator_call(c);
}

}  // namespace

PyObject *op_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
  const Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
  try {
    Invocation call{reinterpret_cast<OpObject *>(callable), args, nargs, kwnames};
    return run_call(&call).release();
  } catch (const NotImplementedError &) {
    if (PyObject *r = for_stored(callable, args, nargs, kwnames)) return r;
    translate_exception();
    return nullptr;
  } catch (...) {
    translate_exception();
    return nullptr;
  }
}

namespace {

// ---------------------------------------------------------------- the python type
PyObject *op_get(PyObject *self, PyObject *obj, PyObject *) {  // as a method of an instance
  if (!obj || obj == Py_None) {
    Py_INCREF(self);
    return self;
  }
  return PyMethod_New(self, obj);
}
// A function stays itself. It has __get__ nevertheless, by which Python's inspect.isroutine knows it.
PyObject *same(PyObject *self, PyObject *, PyObject *) {
  Py_INCREF(self);
  return self;
}
PyObject *op_repr(PyObject *self) {
  return PyUnicode_FromFormat("<built-in method %s of type object>",
                              reinterpret_cast<OpObject *>(self)->op->name.c_str());
}

// The signature of a function that PyTorch writes in Python; None for one that is a builtin there.
PyObject *signature_handler = nullptr;

PyObject *op_signature(PyObject *self, void *) {
  if (!signature_handler) Py_RETURN_NONE;
  return PyObject_CallFunctionObjArgs(signature_handler, self, nullptr);
}

// What PyTorch has as a builtin passes for one: `isinstance(torch.add, types.BuiltinFunctionType)`.
PyObject *builtin_class(PyObject *, void *) {
  PyTypeObject *type = &PyCFunction_Type;
  Py_INCREF(type);
  return reinterpret_cast<PyObject *>(type);
}

PyGetSetDef function_members[] = {{"__class__", builtin_class, nullptr, nullptr, nullptr},
                                  {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyGetSetDef bound_members[] = {
    {"__signature__", op_signature, nullptr, "the signature for inspect; None if PyTorch's function has none", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyObject *set_signature_handler(PyObject *, PyObject *f) {
  Py_INCREF(f);
  signature_handler = f;
  Py_RETURN_NONE;
}

PyObject *set_torch_function_handler(PyObject *, PyObject *f) {
  Py_INCREF(f);
  torch_function_handler = f;
  Py_RETURN_NONE;
}
PyObject *set_stored_handler(PyObject *, PyObject *f) {
  Py_INCREF(f);
  stored_handler = f;
  Py_RETURN_NONE;
}
PyObject *add_torch_function_modes(PyObject *, PyObject *n) {
  torch_function_modes += static_cast<int>(PyLong_AsLong(n));
  Py_RETURN_NONE;
}

PyObject *set_default_device(PyObject *, PyObject *kind) {
  default_device = static_cast<int>(PyLong_AsLong(kind));
  Py_RETURN_NONE;
}

PyObject *set_fills_empty(PyObject *, PyObject *on) {
  fill_empty = PyObject_IsTrue(on) == 1;
  Py_RETURN_NONE;
}

PyMethodDef op_functions[] = {
    {"set_fills_empty", set_fills_empty, METH_O,
     "whether new tensors are filled with a known value; their Python bodies then do it"},
    {"set_default_device", set_default_device, METH_O,
     "device of factories that name none: 0 the CPU, 1 an accelerator, 2 meta"},
    {"make_op", make_op, METH_O, "make_op(spec) -> callable operator"},
    {"method_form", method_form, METH_O, "method_form(operator) -> the method of Tensor: its form without out="},
    {"native_entries", native_entries, METH_NOARGS, "the names of all native bodies, gradients and calls"},
    {"call_operator", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_operator)), METH_FASTCALL,
     nullptr},
    {"operator_handle", operator_handle, METH_O, nullptr},
    {"set_torch_function_handler", set_torch_function_handler, METH_O, nullptr},
    {"set_stored_handler", set_stored_handler, METH_O, nullptr},
    {"set_signature_handler", set_signature_handler, METH_O, nullptr},
    {"add_torch_function_modes", add_torch_function_modes, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

Ref call_torch_function(PyObject *function, PyObject *args, PyObject *kwargs) {
  if (!torch_function_handler) return Ref();
  Ref r = checked(PyObject_CallFunctionObjArgs(torch_function_handler, function, args, kwargs, nullptr));
  return r.get() == Py_NotImplemented ? Ref() : r;
}

PyTypeObject op_type = {PyVarObject_HEAD_INIT(nullptr, 0)}, bound_op_type = {PyVarObject_HEAD_INIT(nullptr, 0)};

bool factories_on_cpu() { return default_device == 0; }
bool fills_empty() { return fill_empty; }
bool functions_overridden() { return torch_function_modes > 0; }

bool init_ops(PyObject *module) {
  for (PyTypeObject *type : {&op_type, &bound_op_type}) {
    type->tp_name = "builtin_function_or_method";
    type->tp_basicsize = sizeof(OpObject);
    type->tp_vectorcall_offset = offsetof(OpObject, vectorcall);
    type->tp_dictoffset = offsetof(OpObject, dict);
    type->tp_call = PyVectorcall_Call;
    type->tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL;
    type->tp_repr = op_repr;
    type->tp_getattro = PyObject_GenericGetAttr;
    type->tp_setattro = PyObject_GenericSetAttr;
  }
  op_type.tp_descr_get = same;
  op_type.tp_getset = function_members;
  bound_op_type.tp_flags |= Py_TPFLAGS_METHOD_DESCRIPTOR;
  bound_op_type.tp_descr_get = op_get;
  bound_op_type.tp_getset = bound_members;
  if (PyType_Ready(&op_type) < 0 || PyType_Ready(&bound_op_type) < 0) return false;
  return PyModule_AddFunctions(module, op_functions) == 0;
}

}  // namespace msa

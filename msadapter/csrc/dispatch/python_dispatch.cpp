// Calls that a __torch_dispatch__ answers: of a mode, or of the class of an argument. They are recorded here with the
// operator's own gradient formulas, as PyTorch's are, whose graph is above __torch_dispatch__ too.
#include "python_dispatch.h"

#include "../autograd/below.h"
#include "recording.h"

namespace msa {

namespace {

PyObject *handler = nullptr;        // (function, args, kwargs) -> the answer to a call of the table
PyObject *named_handler = nullptr;  // (name, tensor) -> the answer to another operator, which is not recorded

// Whether a class defines __torch_dispatch__ itself or inherits it from another class than Tensor.
bool answers(PyObject *o) {
  static PyObject *const name = PyUnicode_InternFromString("__torch_dispatch__");
  PyTypeObject *t = Py_TYPE(o);
  if (t == tensor_type || t == parameter_type || !PyType_IsSubtype(t, tensor_type)) return false;
  return _PyType_Lookup(t, name) != _PyType_Lookup(tensor_type, name);
}

bool any_answers(PyObject *o) {
  if (PyTuple_Check(o) || PyList_Check(o)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
      if (answers(PySequence_Fast_GET_ITEM(o, i))) return true;
    return false;
  }
  return answers(o);
}

// The call as a method sees it: by the schema, without the defaults at the end.
struct SchemaCall {
  Ref args, kwargs;
  SchemaCall(const Op &op, PyObject **slots, PyObject *out) : kwargs(checked(PyDict_New())) {
    const int n = static_cast<int>(op.params.size());
    int positional = 0;
    for (int i = 0; i < n; ++i)
      if (!op.params[i].keyword_only && !is_default(op.params[i], slots[i])) positional = i + 1;
    args = checked(PyTuple_New(positional));
    for (int i = 0; i < positional; ++i) PyTuple_SET_ITEM(args.get(), i, Ref::borrow(slots[i]).release());
    for (int i = positional; i < n; ++i)
      if (op.params[i].keyword_only && !is_default(op.params[i], slots[i]) &&
          PyDict_SetItem(kwargs.get(), op.params[i].name, slots[i]) < 0)
        throw PythonError{};
    if (out && PyDict_SetItemString(kwargs.get(), "out", out) < 0) throw PythonError{};
  }

 private:
  static bool is_default(const Param &p, PyObject *value) {
    if (p.required) return false;
    if (value == p.fallback) return true;
    if (!p.fallback || is_tensor(value) || Py_TYPE(value) != Py_TYPE(p.fallback)) return false;
    const int same = PyObject_RichCompareBool(value, p.fallback, Py_EQ);
    if (same < 0) PyErr_Clear();
    return same == 1;
  }
};

void load_handlers() {
  if (!handler) checked(PyImport_ImportModule("msadapter.utils._python_dispatch"));  // it sets them
}

Ref answer(const Op &op, PyObject *function, PyObject **slots, PyObject *out) {
  load_handlers();
  const SchemaCall call(op, slots, out);
  BelowGraph below;
  AutocastPause pause(true);
  ProgramScope program;
  DeviceScope device(0);
  ShapeOnly shapes(false);
  return checked(PyObject_CallFunctionObjArgs(handler, function, call.args.get(), call.kwargs.get(), nullptr));
}

// Calls f with the place of each tensor in an answer, which is a tensor or a list or tuple of them.
template <class F>
void each_result(Ref *answered, F f) {
  if (is_tensor(answered->get())) return f(answered);
  if (!PyTuple_Check(answered->get()) && !PyList_Check(answered->get())) return;
  const bool list = PyList_Check(answered->get());
  Ref seq = checked(PySequence_List(answered->get()));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(seq.get()); ++i) {
    Ref item = Ref::borrow(PyList_GET_ITEM(seq.get(), i));
    if (!is_tensor(item.get())) continue;
    f(&item);
    PyList_SetItem(seq.get(), i, item.release());
  }
  *answered = list ? seq : checked(PyList_AsTuple(seq.get()));
}

bool is_operand(const Op &op, const Operand *v, const TensorPtr &t) {
  for (size_t i = 0; i < op.params.size(); ++i) {
    if (v[i].kind == Arg::kTensor && v[i].tensor == t) return true;
    for (auto &one : v[i].tensors)
      if (one == t) return true;
  }
  return false;
}

// The results as tensors that may get a history: none of them is an operand itself.
Tensors separated(const Op &op, const Operand *v, PyObject *base, bool record, Ref *answered) {
  Tensors results;
  const bool single = is_tensor(answered->get());
  each_result(answered, [&](Ref *place) {
    if (answers(place->get())) keep_object(unwrap(place->get()), place->get());
    TensorPtr t = unwrap(place->get());
    if (is_operand(op, v, t) && (record || op.view)) {
      t = without_history(t);
      *place = checked(wrap(t));
    }
    if (op.view && base && !python_dispatch().inside) set_view_of(t, unwrap(base), base, single);
    results.push_back(t);
  });
  return results;
}

void keep_arguments(const Op &op, PyObject **slots) {
  const auto keep = [](PyObject *o) {
    if (answers(o)) keep_object(unwrap(o), o);
  };
  for (size_t i = 0; i < op.params.size(); ++i) {
    if (!PyTuple_Check(slots[i]) && !PyList_Check(slots[i])) {
      keep(slots[i]);
      continue;
    }
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(slots[i]); ++k) keep(PySequence_Fast_GET_ITEM(slots[i], k));
  }
}

bool any_kept(const Op &op, const Operand *v) {
  for (size_t i = 0; i < op.params.size(); ++i) {
    if (v[i].kind == Arg::kTensor && has_object(v[i].tensor)) return true;
    for (auto &t : v[i].tensors)
      if (has_object(t)) return true;
  }
  return false;
}

Ref run_inplace_in_python(Op &op, PyObject *function, PyObject **slots, Operand *v) {
  const int n = static_cast<int>(op.params.size());
  const TensorPtr self = v[0].tensor;
  check_history(self, anything_requires_grad(v, n));
  std::shared_ptr<OpNode> node;
  if (op.differentiable && grad_enabled() && any_requires_grad(op, v)) {
    Operands copy(v, n);
    node = make_inplace_node(op, copy.data(), slots);
    node->in_python = any_kept(op, v);
  }
  Ref answered = answer(op, function, slots, nullptr);
  if (!python_dispatch().inside) self->BumpVersion();
  if (node) record_inplace(op, self, self, node);
  return is_tensor(answered.get()) && unwrap(answered.get()) == self ? answered : Ref::borrow(slots[0]);
}

}  // namespace

bool answered_by_program(PyObject *tensor) {
  return modes_active() || (!python_dispatch().disabled && answers(tensor));
}

Ref ask_program(const char *name, PyObject *tensor) {
  load_handlers();
  BelowGraph below;
  ProgramScope program;
  DeviceScope device(0);
  ShapeOnly shapes(false);
  return checked(PyObject_CallFunction(named_handler, "sO", name, tensor));
}

bool answered_by_program(PyObject **slots, int n) {
  const PythonDispatch &state = python_dispatch();
  if (state.disabled) return false;
  if (state.modes > 0) return true;
  for (int i = 0; i < n; ++i)
    if (any_answers(slots[i])) return true;
  return false;
}

Ref run_in_python(Op &op, PyObject *function, bool inplace, PyObject **slots, PyObject *out) {
  const int n = static_cast<int>(op.params.size());
  keep_arguments(op, slots);
  Operands v(n);
  for (int i = 0; i < n; ++i) convert(op, i, slots[i], &v[i]);
  if (out) return answer(op, function, slots, out);
  if (inplace) return run_inplace_in_python(op, function, slots, v.data());
  std::vector<Ref> hold;
  if (autocasts(op)) apply_autocast(op, v.data(), slots, &hold);
  const bool record = op.differentiable && grad_enabled() && any_requires_grad(op, v.data());
  std::shared_ptr<OpNode> node;
  if (record && !saved_hooks_stack().empty()) node = make_node(op, v.data(), slots, 1);
  Ref answered = answer(op, function, slots, nullptr);
  PyObject *base = n && is_tensor(slots[0]) ? slots[0] : nullptr;
  const Tensors results = separated(op, v.data(), base, record, &answered);
  if (record && !results.empty()) {
    if (!node) node = make_node(op, v.data(), slots, results.size());
    node->in_python = any_kept(op, v.data()) || has_object(results[0]);
    attach(op, node, results);
  }
  const bool plain = PyTuple_CheckExact(answered.get()) || PyList_CheckExact(answered.get());
  if (!op.result_type || !plain) return answered;
  return checked(
      PyObject_CallFunctionObjArgs(op.result_type, checked(PySequence_Tuple(answered.get())).get(), nullptr));
}

namespace {

PyObject *set_python_dispatch_handlers(PyObject *, PyObject *pair) {
  if (!PyArg_ParseTuple(pair, "OO", &handler, &named_handler)) return nullptr;
  Py_INCREF(handler);
  Py_INCREF(named_handler);
  Py_RETURN_NONE;
}
PyObject *add_dispatch_modes(PyObject *, PyObject *n) {
  python_dispatch().modes += static_cast<int>(PyLong_AsLong(n));
  Py_RETURN_NONE;
}
PyObject *disable_dispatch(PyObject *, PyObject *n) {
  python_dispatch().disabled += static_cast<int>(PyLong_AsLong(n));
  Py_RETURN_NONE;
}
PyObject *dispatches(PyObject *, PyObject *tensor) { return PyBool_FromLong(answered_by_program(tensor)); }
PyObject *has_dispatch(PyObject *, PyObject *tensor) { return PyBool_FromLong(answers(tensor)); }
// dispatched_detach(tensor, shares): what a __torch_dispatch__ answers for detach. If `shares`, writes to it count for
// the tensor too, as for a view.
PyObject *dispatched_detach(PyObject *, PyObject *args) {
  PyObject *tensor, *shares;
  if (!PyArg_ParseTuple(args, "OO", &tensor, &shares)) return nullptr;
  try {
    Ref made = ask_program("detach", tensor);
    if (shares == Py_True && is_tensor(made.get()) && made.get() != tensor)
      unwrap(made.get())->set_version(unwrap(tensor)->version());
    return made.release();
  } catch (...) {
    translate_exception();
    return nullptr;
  }
}
PyObject *keep(PyObject *, PyObject *tensor) {
  try {
    if (answers(tensor)) keep_object(unwrap(tensor), tensor);
    Py_RETURN_NONE;
  } catch (...) {
    translate_exception();
    return nullptr;
  }
}

// leave_dispatch(): operators are recorded as if no method ran. Returns what return_to_dispatch takes.
PyObject *leave_dispatch(PyObject *, PyObject *) {
  PythonDispatch &state = python_dispatch();
  Ref before = Ref::borrow(state.inside ? Py_True : Py_False);
  if (state.inside) set_grad_enabled(state.asked_grad);
  state.inside = false;
  return before.release();
}
PyObject *return_to_dispatch(PyObject *, PyObject *inside) {
  PythonDispatch &state = python_dispatch();
  if (inside == Py_True) {
    state.inside = true;
    state.asked_grad = grad_enabled();
    set_grad_enabled(false);
  }
  Py_RETURN_NONE;
}

PyMethodDef python_dispatch_functions[] = {
    {"leave_dispatch", leave_dispatch, METH_NOARGS, nullptr},
    {"return_to_dispatch", return_to_dispatch, METH_O, nullptr},
    {"set_python_dispatch_handlers", set_python_dispatch_handlers, METH_O, nullptr},
    {"add_dispatch_modes", add_dispatch_modes, METH_O, "adds to the number of active modes of this thread"},
    {"disable_dispatch", disable_dispatch, METH_O, "adds to the number of guards that turn __torch_dispatch__ off"},
    {"dispatches", dispatches, METH_O, "whether a __torch_dispatch__ answers operators on this tensor"},
    {"keep_object", keep, METH_O,
     "lets the C++ tensor keep this object's class and attributes if the class has a __torch_dispatch__"},
    {"has_dispatch", has_dispatch, METH_O, "whether the class of this tensor has a __torch_dispatch__ of its own"},
    {"dispatched_detach", dispatched_detach, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool init_python_dispatch(PyObject *module) { return PyModule_AddFunctions(module, python_dispatch_functions) == 0; }

}  // namespace msa

// The Python type of declared operators.

#include <set>

#include "../device/trace.h"
#include "internal.h"

namespace msa {

namespace {

PyObject *torch_function_handler = nullptr;
thread_local int torch_function_modes = 0;  // number of active modes of __torch_function__ and __torch_dispatch__
bool foreign(PyObject *o) {
  PyTypeObject *t = Py_TYPE(o);
  return t != tensor_type && t != parameter_type && PyType_IsSubtype(t, mindspore::tensor::GetTensorPyType());
}

PyObject *float8_handler = nullptr;

bool is_float8_tensor(PyObject *o) {
  return PyObject_TypeCheck(o, mindspore::tensor::GetTensorPyType()) && is_tensor(o) &&
         is_float8(from_ms(unwrap(o)->data_type()));
}

// Calls the Python function for operators whose kernel does not support float8 operands. Null if it does not either.
PyObject *for_float8(PyObject *callable, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  bool any = false;
  for (Py_ssize_t i = 0; i < nargs; ++i) any = any || is_float8_tensor(args[i]);
  if (!any || !float8_handler || kwnames) return nullptr;
  Ref pos(PyTuple_New(nargs));
  if (!pos) return nullptr;
  for (Py_ssize_t i = 0; i < nargs; ++i) {
    Py_INCREF(args[i]);
    PyTuple_SET_ITEM(pos.get(), i, args[i]);
  }
  Ref r(PyObject_CallFunctionObjArgs(float8_handler, callable, pos.get(), nullptr));
  if (!r) PyErr_Clear();  // the kernel's own error is more specific
  return r && r.get() != Py_NotImplemented ? r.release() : nullptr;
}

thread_local int default_device = 0;  // for functions without a device argument: 0 the CPU, 1 an accelerator, 2 meta

// Whether a function must create a meta tensor: by its argument, by default, or because its operand is one.
bool makes_meta(const Op &op, PyObject **slots, const Operand &like) {
  PyObject *device = slots[op.device_param];
  if (device == Py_None) return like.tensor ? is_meta(like.tensor) : default_device == 2;
  Ref name = PyUnicode_Check(device) ? Ref::borrow(device) : Ref(PyObject_GetAttrString(device, "type"));
  if (!name) PyErr_Clear();  // an integer is the index of an accelerator
  return name && PyUnicode_Check(name.get()) && PyUnicode_CompareWithASCIIString(name.get(), "meta") == 0;
}

// The name in a profiler's trace: nn.functional.gelu -> gelu, linalg.inv -> linalg_inv.
std::string trace_name(const std::string &name) {
  std::string r = name;
  for (const char *prefix : {"nn.functional.", "Tensor."})
    if (r.rfind(prefix, 0) == 0) r.erase(0, std::string(prefix).size());
  std::replace(r.begin(), r.end(), '.', '_');
  return r;
}
std::string inplace_name(const Op &op) { return "aten::" + op.trace_name + "_"; }

PyObject *op_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
  auto *self = reinterpret_cast<OpObject *>(callable);
  Op &op = *self->op;
  try {
    const Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    const int n = static_cast<int>(op.params.size());
    if (n > kMaxParams) fail(op.name, ": too many parameters");
    PyObject *slots[kMaxParams];
    Ref held;
    Keywords keywords{kwnames, args + nargs, nullptr};
    parse(op, args, nargs, &keywords, slots, &held);
    PyObject *out = keywords.out == Py_None ? nullptr : keywords.out;
    TraceScope trace;
    if (tracing)
      trace.begin(self->inplace ? "" : "aten::", self->inplace ? inplace_name(op) : op.trace_name, "cpu_op", slots, n);
    if (torch_function_handler) {
      bool special = torch_function_modes > 0;
      for (int i = 0; i < n && !special; ++i) {
        if (foreign(slots[i]))
          special = true;
        else if (PyTuple_CheckExact(slots[i]) || PyList_CheckExact(slots[i])) {
          if (op.params[i].type != ParamType::kTensors) continue;
          Ref seq = checked(PySequence_Fast(slots[i], ""));
          for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(seq.get()); ++k)
            special = special || foreign(PySequence_Fast_GET_ITEM(seq.get(), k));
        }
      }
      if (special) {
        Ref pos = checked(PyTuple_New(nargs));
        for (Py_ssize_t i = 0; i < nargs; ++i) {
          Py_INCREF(args[i]);
          PyTuple_SET_ITEM(pos.get(), i, args[i]);
        }
        Ref kw = checked(PyDict_New());
        for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k)
          PyDict_SetItem(kw.get(), PyTuple_GET_ITEM(kwnames, k), args[nargs + k]);
        Ref r = call_torch_function(callable, pos.get(), kw.get());
        if (r) return r.release();
      }
    }
    if (op.plain_call && !self->inplace && !out) {
      if (PyObject *r = op.plain_call(op, slots)) return r;
    }
    if (op.composite) {
      std::vector<Ref> cast;
      if (op.autocast && autocast_state().enabled) {
        Operands operands(n);
        for (int i = 0; i < n; ++i)
          if (is_tensor(slots[i])) operands[i] = Operand::of(unwrap(slots[i]));
        apply_autocast(op, operands.data(), slots, &cast);
      }
      Ref r;
      if (self->inplace) {
        Ref copy_from = call_body(op, slots);
        r = checked(PyObject_CallFunctionObjArgs(table_function("_inplace_from"), slots[0], copy_from.get(), nullptr));
      } else {
        r = call_body(op, slots);
      }
      if (out)
        return checked(PyObject_CallFunctionObjArgs(table_function("_copy_to_out"), r.get(), out, nullptr)).release();
      return r.release();
    }
    Operands operands(n);
    for (int i = 0; i < n; ++i) convert(op, i, slots[i], &operands[i]);
    const bool meta = op.device_param >= 0 && makes_meta(op, slots, operands[0]);
    Ref like;
    if (op.device_param >= 0 && !meta && n && operands[0].tensor &&
        is_meta(operands[0].tensor)) {  // of the same shape on another device
      const TensorPtr &t = operands[0].tensor;
      operands[0].tensor = new_tensor(from_ms(t->data_type()), t->shape().data(), static_cast<int>(t->shape().size()),
                                      strides_of(t).data());
      like = checked(wrap(operands[0].tensor));
      slots[0] = like.get();
    }
    DeviceScope scope(meta ? kMetaTag : 0);
    ShapeOnly shapes(meta || shape_only());
    if (!op.body) resolve_kernel(op);
    if (self->inplace) return run_inplace(op, operands.data(), slots).release();
    if (out) {
      NoGrad guard;
      Ref r = run_functional(op, operands.data(), slots);
      return checked(PyObject_CallFunctionObjArgs(table_function("_copy_to_out"), r.get(), out, nullptr)).release();
    }
    return run_functional(op, operands.data(), slots).release();
  } catch (const NotImplementedError &) {
    if (PyObject *r = for_float8(callable, args, PyVectorcall_NARGS(nargsf), kwnames)) return r;
    translate_exception();
    return nullptr;
  } catch (...) {
    translate_exception();
    return nullptr;
  }
}

// ---------------------------------------------------------------- the python type
PyObject *op_get(PyObject *self, PyObject *obj, PyObject *) {  // as a method of Tensor
  if (!obj || obj == Py_None) {
    Py_INCREF(self);
    return self;
  }
  return PyMethod_New(self, obj);
}
PyObject *op_repr(PyObject *self) {
  return PyUnicode_FromFormat("<built-in method %s of type object>",
                              reinterpret_cast<OpObject *>(self)->op->name.c_str());
}

ParamType param_type(const std::string &s) {
  static const std::unordered_map<std::string, ParamType> m = {
      {"Tensor", ParamType::kTensor}, {"Tensor[]", ParamType::kTensors}, {"TensorOrScalar", ParamType::kTensorOrScalar},
      {"Scalar", ParamType::kScalar}, {"int", ParamType::kInt},          {"int[]", ParamType::kInts},
      {"float", ParamType::kFloat},   {"float[]", ParamType::kFloats},   {"bool", ParamType::kBool},
      {"str", ParamType::kString},    {"ScalarType", ParamType::kDType}};
  auto it = m.find(s);
  return it == m.end() ? ParamType::kAny : it->second;
}

std::string str_of(PyObject *o) { return o && o != Py_None ? PyUnicode_AsUTF8(o) : ""; }
PyObject *item(PyObject *d, const char *k) { return PyDict_GetItemString(d, k); }
bool truth(PyObject *o) { return o && PyObject_IsTrue(o) == 1; }
PyObject *kept(PyObject *o) {
  if (!o || o == Py_None) return nullptr;
  Py_INCREF(o);
  return o;
}

// make_op(spec: dict) -> Op object
PyObject *make_op(PyObject *, PyObject *spec) {
  try {
    auto *op = new Op;
    op->name = str_of(item(spec, "name"));
    op->trace_name = trace_name(op->name);
    op->node_name = str_of(item(spec, "node_name"));
    op->body = kept(item(spec, "body"));
    op->composite = truth(item(spec, "composite"));
    op->view = truth(item(spec, "view"));
    op->kernel_name = str_of(item(spec, "kernel"));
    op->result_type = kept(item(spec, "result_type"));
    op->doc = kept(item(spec, "doc"));
    op->vararg_index = static_cast<int>(PyLong_AsLong(item(spec, "vararg_index")));
    op->varargs = op->vararg_index >= 0;
    op->autocast = static_cast<int>(PyLong_AsLong(item(spec, "autocast")));
    const std::string p = str_of(item(spec, "promote"));
    op->promote = p.empty() ? Promote::kNone : p == "float" ? Promote::kFloat : Promote::kDefault;
    PyObject *params = item(spec, "params");
    std::vector<PyObject *> kwonly;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(params); ++i) {
      PyObject *e = PyList_GET_ITEM(params, i);
      Param q;
      q.name = kept(item(e, "name"));
      PyUnicode_InternInPlace(&q.name);
      PyObject *al = item(e, "aliases");
      for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(al); ++k) {
        PyObject *a = kept(PyTuple_GET_ITEM(al, k));
        PyUnicode_InternInPlace(&a);
        q.aliases.push_back(a);
      }
      q.type = param_type(str_of(item(e, "type")));
      q.nullable = truth(item(e, "nullable"));
      q.keyword_only = truth(item(e, "keyword_only"));
      q.required = truth(item(e, "required"));
      q.fallback = item(e, "default");
      Py_XINCREF(q.fallback);
      if (PyUnicode_CompareWithASCIIString(q.name, "device") == 0) op->device_param = static_cast<int>(i);
      if (q.keyword_only) kwonly.push_back(q.name);
      op->params.push_back(q);
    }
    if (!kwonly.empty()) {
      op->keyword_names = PyTuple_New(kwonly.size());
      for (size_t i = 0; i < kwonly.size(); ++i) {
        Py_INCREF(kwonly[i]);
        PyTuple_SET_ITEM(op->keyword_names, i, kwonly[i]);
      }
    }
    PyObject *pa = item(spec, "promote_params");
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(pa); ++i)
      op->promote_params.push_back(static_cast<int>(PyLong_AsLong(PyList_GET_ITEM(pa, i))));
    PyObject *fs = item(spec, "formulas");
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(fs); ++i) {
      PyObject *e = PyList_GET_ITEM(fs, i);  // (params list, function, needs list of (kind, index), joint)
      Formula f;
      PyObject *ps = PyTuple_GET_ITEM(e, 0);
      for (Py_ssize_t k = 0; k < PyList_GET_SIZE(ps); ++k)
        f.params.push_back(static_cast<int>(PyLong_AsLong(PyList_GET_ITEM(ps, k))));
      f.function = kept(PyTuple_GET_ITEM(e, 1));
      PyObject *ns = PyTuple_GET_ITEM(e, 2);
      for (Py_ssize_t k = 0; k < PyList_GET_SIZE(ns); ++k) {
        PyObject *t = PyList_GET_ITEM(ns, k);
        Need need{static_cast<Need::Kind>(PyLong_AsLong(PyTuple_GET_ITEM(t, 0))),
                  static_cast<int>(PyLong_AsLong(PyTuple_GET_ITEM(t, 1))), truth(PyTuple_GET_ITEM(t, 2))};
        f.needs.push_back(need);
        if (need.kind == Need::kParam && need.index == 0 && !need.shape_only) op->saves_self = true;
        if (need.kind == Need::kResult) op->saves_result = true;
      }
      f.joint = truth(PyTuple_GET_ITEM(e, 3));
      op->formulas.push_back(f);
    }
    op->differentiable = !op->formulas.empty();
    op->native = native_gradient(op->name);
    op->native_body = native_body(op->name);
    op->subtraction = op->name == "sub" || op->name == "rsub";
    static const std::set<std::string> arithmetic = {"add", "sub", "mul", "true_divide", "floor_divide", "_div_mode"};
    op->numbers_alone = arithmetic.count(op->name) > 0;
    if (op->composite) op->plain_call = plain_call(op->name);
    auto *o = PyObject_New(OpObject, &op_type);
    o->vectorcall = op_call;
    o->op = op;
    o->inplace = truth(item(spec, "inplace"));
    o->dict = PyDict_New();
    return reinterpret_cast<PyObject *>(o);
  } catch (...) {
    translate_exception();
    return nullptr;
  }
}

PyObject *set_torch_function_handler(PyObject *, PyObject *f) {
  Py_INCREF(f);
  torch_function_handler = f;
  Py_RETURN_NONE;
}
PyObject *set_float8_handler(PyObject *, PyObject *f) {
  Py_INCREF(f);
  float8_handler = f;
  Py_RETURN_NONE;
}
PyObject *add_torch_function_modes(PyObject *, PyObject *n) {
  torch_function_modes += static_cast<int>(PyLong_AsLong(n));
  Py_RETURN_NONE;
}

// call_operator(name, *args): one MindSpore operator, no gradient. Arguments are boxed by their Python kind.
PyObject *call_operator(PyObject *, PyObject *const *args, Py_ssize_t nargs) {
  try {
    const Operator *op = nullptr;
    if (PyLong_Check(args[0]))
      op = reinterpret_cast<const Operator *>(PyLong_AsVoidPtr(args[0]));
    else
      op = find_operator(PyUnicode_AsUTF8(args[0]));
    const int n = static_cast<int>(nargs) - 1;
    check(n <= kMaxParams, op->name, ": too many operands");
    Operands v(n);
    for (int i = 0; i < n; ++i) {
      PyObject *o = args[i + 1];
      Operand &r = v[i];
      if (o == Py_None) continue;
      if (is_tensor(o)) {
        r.kind = Arg::kTensor;
        r.tensor = unwrap(o);
        continue;
      }
      if (PyUnicode_Check(o)) {
        r.kind = Arg::kString;
        r.str = PyUnicode_AsUTF8(o);
        continue;
      }
      if (dtype_from_object(o, &r.dtype)) {
        r.kind = Arg::kDType;
        r.scalar.i = to_ms(r.dtype);
        continue;
      }
      if (PyTuple_Check(o) || PyList_Check(o)) {
        Ref seq = checked(PySequence_Fast(o, ""));
        const Py_ssize_t m = PySequence_Fast_GET_SIZE(seq.get());
        PyObject **items = PySequence_Fast_ITEMS(seq.get());
        bool tensors = false, floats = false;
        for (Py_ssize_t k = 0; k < m; ++k) {
          tensors = tensors || is_tensor(items[k]);
          floats = floats || PyFloat_Check(items[k]);
        }
        r.kind = tensors ? Arg::kTensors : floats ? Arg::kFloats : Arg::kInts;
        for (Py_ssize_t k = 0; k < m; ++k) {
          if (tensors)
            r.tensors.push_back(items[k] == Py_None ? nullptr : unwrap(items[k]));
          else if (floats)
            r.floats.push_back(PyFloat_AsDouble(items[k]));
          else {
            Ref ix = checked(PyNumber_Index(items[k]));
            r.ints.push_back(PyLong_AsLongLong(ix.get()));
          }
        }
        continue;
      }
      r.kind = Arg::kScalar;
      if (!scalar_from(o, &r.scalar))
        throw TypeError(op->name + ": operand " + std::to_string(i) + " of unknown kind " + type_name(o));
    }
    Tensors t = run_operator(op, v.data(), n);
    for (auto &x : t)
      for (int i = 0; i < n; ++i)
        if (v[i].kind == Arg::kTensor && v[i].tensor == x) {
          Py_INCREF(args[i + 1]);
          if (t.size() == 1) return args[i + 1];
          Py_DECREF(args[i + 1]);
        }
    if (t.size() == 1) return wrap(t[0]);
    Ref r = checked(PyTuple_New(t.size()));
    for (size_t i = 0; i < t.size(); ++i) PyTuple_SET_ITEM(r.get(), i, python_tensor(t[i]).release());
    return r.release();
  } catch (...) {
    translate_exception();
    return nullptr;
  }
}
PyObject *operator_handle(PyObject *, PyObject *name) {
  try {
    return PyLong_FromVoidPtr(const_cast<Operator *>(find_operator(PyUnicode_AsUTF8(name))));
  } catch (...) {
    translate_exception();
    return nullptr;
  }
}

PyObject *set_default_device(PyObject *, PyObject *kind) {
  default_device = static_cast<int>(PyLong_AsLong(kind));
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {{"set_default_device", set_default_device, METH_O,
                            "device of factories that name none: 0 the CPU, 1 an accelerator, 2 meta"},
                           {"make_op", make_op, METH_O, "make_op(spec) -> callable operator"},
                           {"call_operator", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_operator)),
                            METH_FASTCALL, nullptr},
                           {"operator_handle", operator_handle, METH_O, nullptr},
                           {"set_torch_function_handler", set_torch_function_handler, METH_O, nullptr},
                           {"set_float8_handler", set_float8_handler, METH_O, nullptr},
                           {"add_torch_function_modes", add_torch_function_modes, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

Ref call_torch_function(PyObject *function, PyObject *args, PyObject *kwargs) {
  if (!torch_function_handler) return Ref();
  Ref r = checked(PyObject_CallFunctionObjArgs(torch_function_handler, function, args, kwargs, nullptr));
  return r.get() == Py_NotImplemented ? Ref() : r;
}

PyTypeObject op_type = {PyVarObject_HEAD_INIT(nullptr, 0)};

bool factories_on_cpu() { return default_device == 0; }
bool functions_overridden() { return torch_function_modes > 0; }

bool init_ops(PyObject *module) {
  op_type.tp_name = "builtin_function_or_method";
  op_type.tp_basicsize = sizeof(OpObject);
  op_type.tp_vectorcall_offset = offsetof(OpObject, vectorcall);
  op_type.tp_dictoffset = offsetof(OpObject, dict);
  op_type.tp_call = PyVectorcall_Call;
  op_type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR;
  op_type.tp_descr_get = op_get;
  op_type.tp_repr = op_repr;
  op_type.tp_getattro = PyObject_GenericGetAttr;
  op_type.tp_setattro = PyObject_GenericSetAttr;
  if (PyType_Ready(&op_type) < 0) return false;
  return PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace msa

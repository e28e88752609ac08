// A declaration of the op table, read once into an Op.
#include "rare_facts.h"

namespace msa {
namespace {

ParamType param_type(const std::string &s) {
  static const std::unordered_map<std::string, ParamType> m = {
      {"Tensor", ParamType::kTensor}, {"Tensor[]", ParamType::kTensors}, {"TensorOrScalar", ParamType::kTensorOrScalar},
      {"Scalar", ParamType::kScalar}, {"int", ParamType::kInt},          {"int[]", ParamType::kInts},
      {"float", ParamType::kFloat},   {"float[]", ParamType::kFloats},   {"bool", ParamType::kBool},
      {"str", ParamType::kString},    {"ScalarType", ParamType::kDType}};
  auto it = m.find(s);
  return it == m.end() ? ParamType::kAny : it->second;
}

// ---- reading the dict that the Python side writes (ops/_declare.py, _spec)
PyObject *item(PyObject *d, const char *k) { return PyDict_GetItemString(d, k); }
std::string str_of(PyObject *o) { return o && o != Py_None ? PyUnicode_AsUTF8(o) : ""; }
std::string text(PyObject *d, const char *k) { return str_of(item(d, k)); }
bool flag(PyObject *d, const char *k) {
  PyObject *o = item(d, k);
  return o && PyObject_IsTrue(o) == 1;
}
int number(PyObject *o) { return static_cast<int>(PyLong_AsLong(o)); }
PyObject *kept(PyObject *o) {  // a new reference that is never given back; null for None
  if (!o || o == Py_None) return nullptr;
  Py_INCREF(o);
  return o;
}
PyObject *interned(PyObject *o) {
  PyObject *r = kept(o);
  PyUnicode_InternInPlace(&r);
  return r;
}
template <class F>
void each(PyObject *sequence, F f) {
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence); ++i) f(PySequence_Fast_GET_ITEM(sequence, i));
}

Param read_param(PyObject *spec) {
  Param p;
  p.name = interned(item(spec, "name"));
  each(item(spec, "aliases"), [&](PyObject *alias) { p.aliases.push_back(interned(alias)); });
  p.type = param_type(text(spec, "type"));
  p.nullable = flag(spec, "nullable");
  p.keyword_only = flag(spec, "keyword_only");
  p.required = flag(spec, "required");
  const std::string limit = text(spec, "limit");
  p.limit = limit.empty()                                 ? NumberLimit::kNone
            : limit.rfind("compute") != std::string::npos ? NumberLimit::kCompute
                                                          : NumberLimit::kElement;
  p.floats_only = limit.rfind("floating", 0) == 0;
  p.narrow_only = limit.rfind("narrow", 0) == 0;
  p.fallback = item(spec, "default");
  Py_XINCREF(p.fallback);
  return p;
}

void read_params(PyObject *specs, Op *op) {
  std::vector<PyObject *> keyword_only;
  each(specs, [&](PyObject *spec) {
    op->params.push_back(read_param(spec));
    const Param &p = op->params.back();
    if (PyUnicode_CompareWithASCIIString(p.name, "device") == 0)
      op->device_param = static_cast<int>(op->params.size()) - 1;
    if (p.keyword_only) keyword_only.push_back(p.name);
    op->limited = op->limited || p.limit != NumberLimit::kNone;
  });
  check(op->params.size() <= kMaxParams, op->qualified, ": ", op->params.size(), " parameters are declared, at most ",
        kMaxParams, " are possible");
  if (keyword_only.empty()) return;
  op->keyword_names = PyTuple_New(keyword_only.size());
  for (size_t i = 0; i < keyword_only.size(); ++i) {
    Py_INCREF(keyword_only[i]);
    PyTuple_SET_ITEM(op->keyword_names, i, keyword_only[i]);
  }
}

// (parameters, function, [(kind, index, shape only)], joint)
void read_formula(PyObject *spec, Op *op) {
  Formula f;
  each(PyTuple_GET_ITEM(spec, 0), [&](PyObject *p) {
    f.params.push_back(number(p));
    op->params[f.params.back()].differentiable = true;
  });
  f.function = kept(PyTuple_GET_ITEM(spec, 1));
  each(PyTuple_GET_ITEM(spec, 2), [&](PyObject *t) {
    const Need need{static_cast<Need::Kind>(number(PyTuple_GET_ITEM(t, 0))), number(PyTuple_GET_ITEM(t, 1)),
                    PyObject_IsTrue(PyTuple_GET_ITEM(t, 2)) == 1};
    f.needs.push_back(need);
    if (need.kind == Need::kParam && need.index == 0 && !need.shape_only) op->saves_self = true;
    if (need.kind == Need::kResult) {
      op->saves_result = true;
      if (op->read_results.size() <= static_cast<size_t>(need.index)) op->read_results.resize(need.index + 1);
      op->read_results[need.index] = true;
    }
  });
  check(f.needs.size() <= kMaxNeeds, op->qualified, ": a gradient formula reads ", f.needs.size(),
        " arguments, at most ", kMaxNeeds, " are possible");
  f.joint = PyObject_IsTrue(PyTuple_GET_ITEM(spec, 3)) == 1;
  op->formulas.push_back(f);
}

// (policy on the host, policy on an accelerator, message of a refusal)
void read_autocast(PyObject *spec, Op *op) {
  for (int d = 0; d < kAutocastDevices; ++d) {
    op->autocast[d] = static_cast<Cast>(number(PyTuple_GET_ITEM(spec, d)));
    op->casts = op->casts || op->autocast[d] != Cast::kNone;
  }
  op->autocast_refusal = str_of(PyTuple_GET_ITEM(spec, kAutocastDevices));
}

template <class Function>
Function entry(const Table<Function> &table, const Op &op, const char *what) {
  auto it = table.find(op.qualified);
  check(it != table.end(), op.qualified, ": the declaration says native=\"", what,
        "\", but csrc/dispatch has no entry of that name");
  return it->second;
}

void read_native(PyObject *words, Op *op) {
  each(words, [&](PyObject *word) {
    const std::string kind = str_of(word);
    if (kind == "gradient") {
      op->native = entry(native_gradients(), *op, "gradient");
    } else if (kind == "call") {
      op->plain_call = entry(plain_calls(), *op, "call");
    } else {
      check(kind == "body", op->qualified, ": native=\"", kind, "\" is none of body, gradient, call");
      for (auto *table : {&native_factories(), &native_views()})
        if (auto it = table->find(op->qualified); it != table->end()) op->native_body = it->second;
      if (!op->native_body) op->native_body = entry(native_bodies(), *op, "body");
    }
  });
}

// The name in a profiler's trace: nn.functional.gelu -> gelu, linalg.inv -> linalg_inv.
std::string trace_name(const std::string &name) {
  std::string r = name;
  for (const char *prefix : {"nn.functional.", "Tensor."})
    if (r.rfind(prefix, 0) == 0) r.erase(0, std::string(prefix).size());
  std::replace(r.begin(), r.end(), '.', '_');
  return r;
}

std::unordered_map<const Op *, RareFacts> rare;

void read_rare(PyObject *spec, const Op &op) {
  RareFacts facts;
  each(item(spec, "older"), [&](PyObject *order) {
    facts.older.emplace_back();
    each(order, [&](PyObject *p) { facts.older.back().push_back(number(p)); });
  });
  facts.warns_expanded = flag(spec, "warns_expanded");
  facts.out_dtype = item(spec, "out_dtype");
  if (facts.older.empty() && !facts.warns_expanded && facts.out_dtype == Py_None) return;
  Py_INCREF(facts.out_dtype);
  rare.emplace(&op, std::move(facts));
}

Op *read_op(PyObject *spec) {
  auto *op = new Op;  // lives as long as the process, as the table does
  op->qualified = text(spec, "qualified");
  op->name = op->qualified.substr(op->qualified.rfind('.') + 1);
  op->trace_name = trace_name(op->qualified);
  op->node_name = text(spec, "node_name");
  each(item(spec, "node_cases"), [&](PyObject *entry) {
    Op::NodeCase &one = op->node_cases.emplace_back();
    each(PyTuple_GET_ITEM(entry, 0), [&](PyObject *condition) {
      one.conditions.emplace_back(static_cast<Op::NodeCase::Kind>(number(PyTuple_GET_ITEM(condition, 0))),
                                  number(PyTuple_GET_ITEM(condition, 1)));
    });
    one.name = str_of(PyTuple_GET_ITEM(entry, 1));
  });
  op->body = kept(item(spec, "body"));
  op->composite = flag(spec, "composite");
  op->view = flag(spec, "view");
  op->kernel_name = text(spec, "kernel");
  each(item(spec, "numbers"), [&](PyObject *entry) {
    op->with_number.push_back({number(PyTuple_GET_ITEM(entry, 0)), str_of(PyTuple_GET_ITEM(entry, 1))});
  });
  op->npu_body = kept(item(spec, "npu"));
  each(item(spec, "writers"), [&](PyObject *entry) {
    op->writers.emplace(str_of(PyTuple_GET_ITEM(entry, 0)), str_of(PyTuple_GET_ITEM(entry, 1)));
  });
  op->result_type = kept(item(spec, "result_type"));
  op->vararg_index = number(item(spec, "vararg_index"));
  op->varargs = op->vararg_index >= 0;
  const std::string promote = text(spec, "promote");
  op->promote = promote.empty() ? Promote::kNone : promote == "float" ? Promote::kFloat : Promote::kDefault;
  op->takes_out = flag(spec, "takes_out");
  op->refuses_bool = flag(spec, "refuses_bool");
  op->numbers_alone = flag(spec, "numbers_alone");
  op->writes_expanded = flag(spec, "writes_expanded");
  op->separate_operands = flag(spec, "separate_operands");
  op->chain_of_views = flag(spec, "chain_of_views");
  op->converted = number(item(spec, "converted"));
  read_params(item(spec, "params"), op);
  each(item(spec, "promote_params"), [&](PyObject *p) { op->promote_params.push_back(number(p)); });
  each(item(spec, "formulas"), [&](PyObject *f) { read_formula(f, op); });
  op->differentiable = op->composite ? flag(spec, "recorded") : !op->formulas.empty();
  read_autocast(item(spec, "autocast"), op);
  read_native(item(spec, "native"), op);
  read_rare(spec, *op);
  return op;
}

template <class Function>
void add_names(const Table<Function> &table, PyObject *to) {
  for (auto &e : table) PyList_Append(to, checked(PyUnicode_FromString(e.first.c_str())).get());
}

PyObject *make_object(Op *op, bool inplace, bool method, bool binds) {
  auto *o = PyObject_New(OpObject, binds ? &bound_op_type : &op_type);
  o->vectorcall = op_call;
  o->op = op;
  o->inplace = inplace;
  o->method = method;
  o->dict = PyDict_New();
  return reinterpret_cast<PyObject *>(o);
}

}  // namespace

const RareFacts &rare_facts(const Op &op) {
  static const RareFacts none;
  auto it = rare.find(&op);
  return it == rare.end() ? none : it->second;
}

// make_op(spec: dict) -> the callable
PyObject *make_op(PyObject *, PyObject *spec) {
  try {
    return make_object(read_op(spec), flag(spec, "inplace"), false, flag(spec, "binds"));
  } catch (...) {
    translate_exception();
    return nullptr;
  }
}

PyObject *method_form(PyObject *, PyObject *function) {
  if (!is_operator(function)) {
    PyErr_SetString(PyExc_TypeError, "method_form() takes a declared operator");
    return nullptr;
  }
  return make_object(reinterpret_cast<OpObject *>(function)->op, false, true, true);
}

PyObject *native_entries(PyObject *, PyObject *) {
  Ref body(PyList_New(0)), gradient(PyList_New(0)), call(PyList_New(0));
  for (auto *table : {&native_bodies(), &native_factories(), &native_views()}) add_names(*table, body.get());
  add_names(native_gradients(), gradient.get());
  add_names(plain_calls(), call.get());
  return Py_BuildValue("{sOsOsO}", "body", body.get(), "gradient", gradient.get(), "call", call.get());
}

}  // namespace msa

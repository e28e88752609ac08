#include "op.h"

namespace msa {

// ---------------------------------------------------------------- small helpers
PyObject *table_function(const char *name) {
  static PyObject *ops = nullptr;
  if (!ops) {
    Ref m = checked(PyImport_ImportModule("msadapter.ops"));
    ops = m.release();
  }
  Ref f = checked(PyObject_GetAttrString(ops, name));
  return f.get();  // the module keeps it
}

TensorPtr reduce_to(const TensorPtr &g, const Dims &sizes, DType dtype) {
  TensorPtr r = g;
  const Dims &have = g->shape();
  if (have != sizes) {
    const int extra = static_cast<int>(have.size()) - static_cast<int>(sizes.size());
    Dims dims;
    for (int d = 0; d < static_cast<int>(have.size()); ++d)
      if (d < extra || (sizes[d - extra] == 1 && have[d] != 1)) dims.push_back(d);
    check(extra >= 0, "gradient of shape ", have, " cannot be reduced to ", sizes);
    if (!dims.empty()) {
      if (grad_enabled() && requires_grad(r)) {
        Ref d = checked(PyTuple_New(dims.size()));
        for (size_t i = 0; i < dims.size(); ++i) PyTuple_SET_ITEM(d.get(), i, PyLong_FromLongLong(dims[i]));
        r = unwrap(checked(PyObject_CallFunctionObjArgs(table_function("sum"), checked(wrap(r)).get(), d.get(), Py_True, nullptr)).get());
      } else {
        r = run1("SumExt", {Operand::of(r), Operand::of(dims), Operand::of(true), Operand()});
      }
    }
    if (r->shape() != sizes) {
      if (grad_enabled() && requires_grad(r)) {
        Ref s = checked(PyTuple_New(sizes.size()));
        for (size_t i = 0; i < sizes.size(); ++i) PyTuple_SET_ITEM(s.get(), i, PyLong_FromLongLong(sizes[i]));
        r = unwrap(checked(PyObject_CallFunctionObjArgs(table_function("reshape"), checked(wrap(r)).get(), s.get(), nullptr)).get());
      } else {
        int64_t n = 1, m = 1;
        for (auto s : sizes) n *= s;
        for (auto s : r->shape()) m *= s;
        check(n == m, "gradient of shape ", r->shape(), " does not fit ", sizes);
        Dims strides(sizes.size());
        int64_t step = 1;
        for (int d = static_cast<int>(sizes.size()) - 1; d >= 0; --d) { strides[d] = step; step *= std::max<int64_t>(sizes[d], 1); }
        TensorPtr base = is_contiguous(r) ? r : run1("Clone", {Operand::of(r)});
        TensorPtr v = new_view(base, from_ms(base->data_type()), sizes, strides, offset_of(base));
        r = v;
      }
    }
  }
  if (from_ms(r->data_type()) != dtype) {
    if (grad_enabled() && requires_grad(r)) {
      r = unwrap(checked(PyObject_CallFunctionObjArgs(table_function("_to_dtype"), checked(wrap(r)).get(), dtype_object(dtype), nullptr)).get());
    } else {
      TensorPtr c = new_tensor(dtype, sizes);
      copy_into(view_of(c), view_of(r));
      r = c;
    }
  }
  return r;
}

// ---------------------------------------------------------------- recorded node
void OpNode::Release() {
  for (auto &s : saved) s.second.reset();
  for (auto &l : saved_lists)
    for (auto &s : l.second) s.reset();
  for (auto &s : results) s.reset();
  released = true;
}

TensorPtr OpNode::saved_tensor(int param) const {
  for (auto &s : saved)
    if (s.first == param) return s.second.unpack(this);
  return nullptr;
}

static Ref result_of_none() { return Ref::borrow(Py_None); }
static Ref python_tensor(const TensorPtr &t) { return t ? checked(wrap(t)) : result_of_none(); }

Tensors OpNode::apply(const Tensors &grads) {
  Tensors out(next_edges_.size());
  if (op->native && output_size_ == 1 && !grad_enabled() && grads[0] && fast_path()) return op->native(*this, grads[0]);
  std::unordered_map<int, Ref> cache;
  auto value_of = [&](const Need &n, const Formula &f) -> Ref {
    if (n.kind == Need::kResult) return python_tensor(results.at(n.index).unpack(this));
    if (n.kind == Need::kNeeds) {
      Ref l = checked(PyList_New(f.params.size()));
      for (size_t i = 0; i < f.params.size(); ++i) {
        const Input &in = inputs[f.params[i]];
        PyObject *b = in.edge >= 0 && needs(in.edge) ? Py_True : Py_False;
        Py_INCREF(b);
        PyList_SET_ITEM(l.get(), i, b);
      }
      return l;
    }
    auto hit = cache.find(n.index);
    if (hit != cache.end()) return hit->second;
    Ref r;
    for (auto &s : saved)
      if (s.first == n.index) r = python_tensor(s.second.unpack(this));
    for (auto &l : saved_lists)
      if (l.first == n.index) {
        r = checked(PyList_New(l.second.size()));
        for (size_t i = 0; i < l.second.size(); ++i) PyList_SET_ITEM(r.get(), i, python_tensor(l.second[i].unpack(this)).release());
      }
    for (auto &p : plain)
      if (p.first == n.index) r = p.second;
    if (!r) r = result_of_none();
    cache[n.index] = r;
    return r;
  };
  Ref g;
  if (output_size_ == 1 && !op->result_type) g = python_tensor(grads[0]);
  else {
    g = checked(PyList_New(grads.size()));
    for (size_t i = 0; i < grads.size(); ++i) PyList_SET_ITEM(g.get(), i, python_tensor(grads[i]).release());
  }
  auto put = [&](int param, PyObject *value) {
    const Input &in = inputs[param];
    if (in.edge < 0 || value == Py_None) return;
    if (op->params[param].type == ParamType::kTensors) {
      Ref seq = checked(PySequence_Fast(value, "gradient of a list of tensors must be a list"));
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(seq.get()) && i < in.count; ++i) {
        PyObject *e = PySequence_Fast_GET_ITEM(seq.get(), i);
        if (e == Py_None || !needs(in.edge + i)) continue;
        out[in.edge + i] = reduce_to(unwrap(e), list_meta[i].first, list_meta[i].second);
      }
      return;
    }
    if (!is_tensor(value)) {
      PyErr_Format(PyExc_TypeError, "gradient of %s for '%U' must be a Tensor, not %s", op->name.c_str(), op->params[param].name, Py_TYPE(value)->tp_name);
      throw PythonError{};
    }
    out[in.edge] = reduce_to(unwrap(value), in.sizes, in.dtype);
  };
  for (const Formula &f : op->formulas) {
    bool wanted = false;
    for (int p : f.params) {
      const Input &in = inputs[p];
      for (int e = 0; in.edge >= 0 && e < in.count; ++e) wanted = wanted || needs(in.edge + e);
    }
    if (!wanted) continue;
    std::vector<Ref> hold;
    PyObject *argv[24];
    size_t n = 0;
    argv[n++] = g.get();
    for (auto &need : f.needs) {
      hold.push_back(value_of(need, f));
      argv[n++] = hold.back().get();
    }
    Ref r = checked(PyObject_Vectorcall(f.function, argv, n, nullptr));
    if (f.joint && is_tensor(r.get())) {
      put(f.params[0], r.get());  // an operator with one result: the others got none
    } else if (f.joint) {
      Ref seq = checked(PySequence_Fast(r.get(), "a joint gradient must return a tuple"));
      for (size_t i = 0; i < f.params.size() && static_cast<Py_ssize_t>(i) < PySequence_Fast_GET_SIZE(seq.get()); ++i)
        put(f.params[i], PySequence_Fast_GET_ITEM(seq.get(), i));
    } else {
      put(f.params[0], r.get());
    }
  }
  return out;
}

// ---------------------------------------------------------------- parsing
namespace {

constexpr int kMaxParams = 40;

[[noreturn]] void raise_type(const std::string &m) { throw TypeError(m); }

std::string type_name(PyObject *o) { return Py_TYPE(o)->tp_name; }

const char *expected_name(ParamType t) {
  switch (t) {
    case ParamType::kTensor: case ParamType::kTensorOrScalar: return "Tensor";
    case ParamType::kTensors: return "tuple of Tensors";
    case ParamType::kScalar: return "Number";
    case ParamType::kInt: return "int";
    case ParamType::kInts: return "tuple of ints";
    case ParamType::kFloat: return "float";
    case ParamType::kFloats: return "tuple of floats";
    case ParamType::kBool: return "bool";
    case ParamType::kString: return "str";
    case ParamType::kDType: return "torch.dtype";
    default: return "object";
  }
}
[[noreturn]] void bad_argument(const Op &op, int i, PyObject *o) {
  Ref n = Ref::borrow(op.params[i].name);
  raise_type(op.name + "(): argument '" + PyUnicode_AsUTF8(n.get()) + "' (position " + std::to_string(i + 1) + ") must be " +
             expected_name(op.params[i].type) + ", not " + type_name(o));
}

bool scalar_from(PyObject *o, Scalar *s) {
  if (PyBool_Check(o)) { s->kind = Scalar::kBool; s->i = o == Py_True; return true; }
  if (PyLong_Check(o)) {
    s->kind = Scalar::kInt;
    int overflow = 0;
    s->i = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow) {
      unsigned long long u = PyLong_AsUnsignedLongLong(o);
      if (PyErr_Occurred()) { PyErr_Clear(); fail("value cannot be converted to type int64_t without overflow"); }
      s->i = static_cast<int64_t>(u);
    }
    return true;
  }
  if (PyFloat_Check(o)) { s->kind = Scalar::kFloat; s->d = PyFloat_AS_DOUBLE(o); return true; }
  if (PyComplex_Check(o)) { s->kind = Scalar::kComplex; s->d = PyComplex_RealAsDouble(o); s->imag = PyComplex_ImagAsDouble(o); return true; }
  if (is_tensor(o)) {
    Ref v = checked(PyObject_CallMethod(o, "item", nullptr));
    return scalar_from(v.get(), s);
  }
  // numpy scalars and the like
  if (PyIndex_Check(o)) {
    Ref v = checked(PyNumber_Index(o));
    return scalar_from(v.get(), s);
  }
  if (Py_TYPE(o)->tp_as_number && Py_TYPE(o)->tp_as_number->nb_float) {
    Ref c = Ref(PyObject_GetAttrString(o, "imag"));
    if (!c) PyErr_Clear();
    Ref v = checked(PyNumber_Float(o));
    return scalar_from(v.get(), s);
  }
  return false;
}

DType scalar_dtype(const Scalar &s) {
  switch (s.kind) {
    case Scalar::kBool: return DType::Bool;
    case Scalar::kInt: return DType::I64;
    case Scalar::kFloat: return default_dtype();
    default: return complex_of(default_dtype());
  }
}

int64_t index_from(const Op &op, int i, PyObject *o) {
  if (PyLong_CheckExact(o)) return PyLong_AsLongLong(o);
  if (PyFloat_Check(o) || !PyIndex_Check(o)) bad_argument(op, i, o);
  Ref v = checked(PyNumber_Index(o));
  return PyLong_AsLongLong(v.get());
}

void convert(const Op &op, int i, PyObject *o, Operand *r) {
  const Param &p = op.params[i];
  if (o == Py_None) {
    if (p.nullable || p.type == ParamType::kAny) return;
    bad_argument(op, i, o);
  }
  switch (p.type) {
    case ParamType::kTensor:
      if (!is_tensor(o)) bad_argument(op, i, o);
      r->kind = Arg::kTensor;
      r->tensor = unwrap(o);
      return;
    case ParamType::kTensorOrScalar:
      if (is_tensor(o)) {
        r->kind = Arg::kTensor;
        r->tensor = unwrap(o);
        return;
      }
      [[fallthrough]];
    case ParamType::kScalar:
      r->kind = Arg::kScalar;
      if (!scalar_from(o, &r->scalar)) bad_argument(op, i, o);
      return;
    case ParamType::kTensors: {
      if (!PyTuple_Check(o) && !PyList_Check(o)) bad_argument(op, i, o);
      r->kind = Arg::kTensors;
      Ref seq = checked(PySequence_Fast(o, ""));
      for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(seq.get()); ++k) {
        PyObject *e = PySequence_Fast_GET_ITEM(seq.get(), k);
        if (e == Py_None) { r->tensors.push_back(nullptr); continue; }
        if (!is_tensor(e))
          raise_type("expected Tensor as element " + std::to_string(k) + " in argument " + std::to_string(i) + ", but got " + type_name(e));
        r->tensors.push_back(unwrap(e));
      }
      return;
    }
    case ParamType::kInt:
      r->kind = Arg::kScalar;
      r->scalar.kind = Scalar::kInt;
      r->scalar.i = index_from(op, i, o);
      return;
    case ParamType::kInts:
      r->kind = Arg::kInts;
      if (PyTuple_Check(o) || PyList_Check(o)) {
        Ref seq = checked(PySequence_Fast(o, ""));
        for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(seq.get()); ++k) r->ints.push_back(index_from(op, i, PySequence_Fast_GET_ITEM(seq.get(), k)));
      } else {
        r->ints.push_back(index_from(op, i, o));
      }
      return;
    case ParamType::kFloat:
      r->kind = Arg::kScalar;
      if (!scalar_from(o, &r->scalar) || r->scalar.kind == Scalar::kComplex) bad_argument(op, i, o);
      if (r->scalar.kind <= Scalar::kInt) { r->scalar.d = static_cast<double>(r->scalar.i); r->scalar.kind = Scalar::kFloat; }
      return;
    case ParamType::kFloats: {
      r->kind = Arg::kFloats;
      if (!PyTuple_Check(o) && !PyList_Check(o)) {
        r->floats.push_back(PyFloat_AsDouble(o));
      } else {
        Ref seq = checked(PySequence_Fast(o, ""));
        for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(seq.get()); ++k) r->floats.push_back(PyFloat_AsDouble(PySequence_Fast_GET_ITEM(seq.get(), k)));
      }
      if (PyErr_Occurred()) throw PythonError{};
      return;
    }
    case ParamType::kBool: {
      const int v = PyBool_Check(o) ? (o == Py_True) : PyObject_IsTrue(o);
      if (v < 0) throw PythonError{};
      if (!PyBool_Check(o) && !PyLong_Check(o) && !is_tensor(o)) {
        if (!PyIndex_Check(o) && std::string(Py_TYPE(o)->tp_name).find("bool") == std::string::npos) bad_argument(op, i, o);
      }
      r->kind = Arg::kScalar;
      r->scalar.kind = Scalar::kBool;
      r->scalar.i = v;
      return;
    }
    case ParamType::kString:
      if (!PyUnicode_Check(o)) bad_argument(op, i, o);
      r->kind = Arg::kString;
      r->str = PyUnicode_AsUTF8(o);
      return;
    case ParamType::kDType:
      r->kind = Arg::kDType;
      if (!dtype_from_object(o, &r->dtype)) bad_argument(op, i, o);
      r->scalar.i = to_ms(r->dtype);
      return;
    case ParamType::kAny: return;
  }
}

// Fills slots (borrowed) from a vectorcall; `held` owns what had to be made.
void parse(const Op &op, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **slots, Ref *held, PyObject **out) {
  const int n = static_cast<int>(op.params.size());
  for (int i = 0; i < n; ++i) slots[i] = nullptr;
  int positional = 0;
  while (positional < n && !op.params[positional].keyword_only) ++positional;
  if (op.varargs && nargs > op.vararg_index) {
    // x.view(2, 3): ints from vararg_index on belong together
    PyObject *first = args[op.vararg_index];
    const bool looks_like_ints = !PyTuple_Check(first) && !PyList_Check(first) && first != Py_None && PyIndex_Check(first) && !PyBool_Check(first);
    if (looks_like_ints && (nargs - op.vararg_index > 1 || op.vararg_index + 1 == positional)) {
      bool all = nargs > positional;
      if (!all) {
        all = true;
        for (Py_ssize_t k = op.vararg_index; k < nargs; ++k) all = all && PyIndex_Check(args[k]) && !PyBool_Check(args[k]);
      }
      if (all) {
        *held = checked(PyTuple_New(nargs - op.vararg_index));
        for (Py_ssize_t k = op.vararg_index; k < nargs; ++k) {
          Py_INCREF(args[k]);
          PyTuple_SET_ITEM(held->get(), k - op.vararg_index, args[k]);
        }
        slots[op.vararg_index] = held->get();
        for (int k = 0; k < op.vararg_index; ++k) slots[k] = args[k];
        nargs = 0;
      }
    }
  }
  if (nargs == 0 && op.varargs && !slots[op.vararg_index] && false) return;
  if (nargs > positional)
    raise_type(op.name + "() takes " + std::to_string(positional) + " positional arguments but " + std::to_string(nargs) + " were given");
  for (Py_ssize_t i = 0; i < nargs; ++i) slots[i] = args[i];
  if (kwnames) {
    const Py_ssize_t nk = PyTuple_GET_SIZE(kwnames);
    PyObject *const *values = args + nargs;
    // after the vararg case nargs was zeroed: the keyword values still follow the original positionals
    (void)values;
    for (Py_ssize_t k = 0; k < nk; ++k) {
      PyObject *key = PyTuple_GET_ITEM(kwnames, k);
      PyObject *value = out[1] ? reinterpret_cast<PyObject *const *>(out[1])[k] : nullptr;
      int hit = -1;
      for (int i = 0; i < n && hit < 0; ++i) {
        if (op.params[i].name == key) hit = i;
        for (auto *a : op.params[i].aliases)
          if (a == key) hit = i;
      }
      for (int i = 0; i < n && hit < 0; ++i) {
        if (PyUnicode_Compare(op.params[i].name, key) == 0) hit = i;
        for (auto *a : op.params[i].aliases)
          if (PyUnicode_Compare(a, key) == 0) hit = i;
      }
      if (hit < 0) {
        if (PyUnicode_CompareWithASCIIString(key, "out") == 0) { out[0] = value; continue; }
        raise_type(op.name + "() got an unexpected keyword argument '" + PyUnicode_AsUTF8(key) + "'");
      }
      if (slots[hit]) raise_type(op.name + "() got multiple values for argument '" + PyUnicode_AsUTF8(key) + "'");
      slots[hit] = value;
    }
  }
  for (int i = 0; i < n; ++i) {
    if (slots[i]) continue;
    if (op.params[i].required)
      raise_type(op.name + "() missing 1 required positional argument: \"" + PyUnicode_AsUTF8(op.params[i].name) + "\"");
    slots[i] = op.params[i].fallback;
  }
}

// ---------------------------------------------------------------- promotion
DType cast_target(const Op &op, const Operand *v) {
  static const int kBoolCategory = 0;
  (void)kBoolCategory;
  bool has[3] = {false, false, false};
  DType best[3] = {};
  auto add = [&](int level, DType d) {
    best[level] = has[level] ? promote_types(best[level], d) : d;
    has[level] = true;
  };
  for (int i : op.promote_params) {
    const Operand &o = v[i];
    if (o.kind == Arg::kTensor) add(o.tensor->shape().empty() ? 1 : 0, from_ms(o.tensor->data_type()));
    else if (o.kind == Arg::kScalar) add(2, scalar_dtype(o.scalar));
    else if (o.kind == Arg::kTensors)
      for (auto &t : o.tensors) if (t) add(t->shape().empty() ? 1 : 0, from_ms(t->data_type()));
  }
  auto category = [](DType d) { return d == DType::Bool ? 0 : is_integral(d) ? 1 : is_floating(d) ? 2 : 3; };
  bool any = false;
  DType r = DType::F32;
  for (int level = 0; level < 3; ++level) {
    if (!has[level]) continue;
    if (!any) r = best[level];
    else if (category(best[level]) > category(r)) {
      // a lower-priority operand decides only the kind: its own type (complex follows the tensor's width)
      r = category(best[level]) == 3 && category(r) == 2 && level == 2 ? complex_of(r) : level == 2 && category(r) == 2 ? r : best[level];
      if (level == 1) r = best[level];
      if (category(best[level]) == 3 && is_floating(best[0]) && has[0]) r = complex_of(best[0]);
    }
    any = true;
  }
  if (op.promote == Promote::kFloat && is_integral(r)) r = default_dtype();
  return r;
}

TensorPtr raw_cast(const TensorPtr &t, DType d) {
  if (from_ms(t->data_type()) == d) return t;
  if (!on_cpu(t)) return run1("Cast", {Operand::of(t), Operand::of(d)});
  Tensor src = view_of(t);
  // keeps the operand's own (dense) layout, as torch's cast does
  Dims strides = strides_of(t);
  int64_t extent = 1;
  for (int k = 0; k < src.ndim; ++k) extent += (src.sizes[k] - 1) * strides[k];
  TensorPtr r = new_tensor(d, src.sizes, src.ndim, src.numel > 0 && extent == src.numel ? strides.data() : nullptr);
  copy_into(view_of(r), src);
  return r;
}

TensorPtr scalar_tensor(const Scalar &s, DType d) {
  TensorPtr t = new_tensor(d, Dims{});
  void *p = view_of(t).data;
  MSA_SWITCH_ALL(d, "scalar", (*static_cast<T *>(p) = s.to<T>()));
  return t;
}

void promote(const Op &op, Operand *v) {
  const DType d = cast_target(op, v);
  for (int i : op.promote_params) {
    Operand &o = v[i];
    if (o.kind == Arg::kTensor) {
      if (from_ms(o.tensor->data_type()) != d) o.tensor = raw_cast(o.tensor, d);
    } else if (o.kind == Arg::kScalar && op.params[i].type == ParamType::kTensorOrScalar) {
      o.tensor = scalar_tensor(o.scalar, d);
      o.kind = Arg::kTensor;
    } else if (o.kind == Arg::kTensors) {
      for (auto &t : o.tensors) if (t) t = raw_cast(t, d);
    }
  }
}

// ---------------------------------------------------------------- running
PyObject *plain_object(const Op &op, int i, const Operand &o, PyObject *original) {
  switch (op.params[i].type) {
    case ParamType::kTensor: case ParamType::kTensorOrScalar:
      if (o.kind == Arg::kTensor) {
        if (is_tensor(original) && unwrap(original) == o.tensor) { Py_INCREF(original); return original; }
        return wrap(o.tensor);
      }
      Py_INCREF(original);
      return original;
    case ParamType::kTensors: {
      if (o.kind == Arg::kNone) { Py_INCREF(Py_None); return Py_None; }
      Ref l = checked(PyList_New(o.tensors.size()));
      for (size_t k = 0; k < o.tensors.size(); ++k) PyList_SET_ITEM(l.get(), k, python_tensor(o.tensors[k]).release());
      return l.release();
    }
    case ParamType::kInt:
      if (o.kind == Arg::kScalar) return PyLong_FromLongLong(o.scalar.i);
      break;
    case ParamType::kInts:
      if (o.kind == Arg::kInts) {
        Ref l = checked(PyList_New(o.ints.size()));
        for (size_t k = 0; k < o.ints.size(); ++k) PyList_SET_ITEM(l.get(), k, PyLong_FromLongLong(o.ints[k]));
        return l.release();
      }
      break;
    case ParamType::kBool:
      if (o.kind == Arg::kScalar) return PyBool_FromLong(o.scalar.i);
      break;
    case ParamType::kScalar:
      if (o.kind == Arg::kScalar && is_tensor(original)) {
        switch (o.scalar.kind) {
          case Scalar::kBool: return PyBool_FromLong(o.scalar.i);
          case Scalar::kInt: return PyLong_FromLongLong(o.scalar.i);
          case Scalar::kFloat: return PyFloat_FromDouble(o.scalar.d);
          default: return PyComplex_FromDoubles(o.scalar.d, o.scalar.imag);
        }
      }
      break;
    default: break;
  }
  Py_INCREF(original);
  return original;
}

Ref call_body(const Op &op, PyObject **objects) {
  const int n = static_cast<int>(op.params.size());
  const Py_ssize_t nk = op.keyword_names ? PyTuple_GET_SIZE(op.keyword_names) : 0;
  return checked(PyObject_Vectorcall(op.body, objects, n - nk, nk ? op.keyword_names : nullptr));
}

struct Results {
  Tensors tensors;
  bool single = true;
  bool as_list = false;
  Ref python;  // set when the body returned something that is not tensors
};

Results run_body(const Op &op, const Operand *v, PyObject **slots) {
  const int n = static_cast<int>(op.params.size());
  std::vector<Ref> hold(n);
  PyObject *objects[kMaxParams];
  for (int i = 0; i < n; ++i) {
    hold[i] = checked(plain_object(op, i, v[i], slots[i]));
    objects[i] = hold[i].get();
  }
  Ref r;
  {
    NoGrad guard;
    r = call_body(op, objects);
  }
  Results out;
  if (is_tensor(r.get())) {
    out.tensors.push_back(unwrap(r.get()));
  } else if (PyTuple_Check(r.get()) || PyList_Check(r.get())) {
    out.single = false;
    out.as_list = PyList_Check(r.get());
    Ref seq = checked(PySequence_Fast(r.get(), ""));
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(seq.get()); ++k) {
      PyObject *e = PySequence_Fast_GET_ITEM(seq.get(), k);
      if (!is_tensor(e)) {
        out.python = r;
        return out;
      }
      out.tensors.push_back(unwrap(e));
    }
  } else {
    out.python = r;
  }
  return out;
}

bool any_requires_grad(const Op &op, const Operand *v) {
  for (const Formula &f : op.formulas)
    for (int i : f.params) {
      const Operand &o = v[i];
      if (o.kind == Arg::kTensor && requires_grad(o.tensor)) return true;
      for (auto &t : o.tensors)
        if (t && requires_grad(t)) return true;
    }
  return false;
}

// Node with its edges and saved inputs; `before` are the operands as the user gave them.
std::shared_ptr<OpNode> make_node(const Op &op, const Operand *before, PyObject **slots, size_t outputs) {
  auto node = BackwardNode::Create<OpNode>(&op, outputs);
  const int n = static_cast<int>(op.params.size());
  node->inputs.resize(n);
  std::vector<uint8_t> differentiable(n, 0);
  for (const Formula &f : op.formulas)
    for (int p : f.params) differentiable[p] = 1;
  for (int i = 0; i < n; ++i) {
    if (!differentiable[i]) continue;
    auto &in = node->inputs[i];
    const Operand &o = before[i];
    if (o.kind == Arg::kTensor) {
      in.tensor = true;
      in.edge = static_cast<int>(node->next_edges().size());
      in.sizes = o.tensor->shape();
      in.dtype = from_ms(o.tensor->data_type());
      node->add_next_edge(edge_of(o.tensor));
    } else if (o.kind == Arg::kTensors) {
      in.tensor = true;
      in.edge = static_cast<int>(node->next_edges().size());
      in.count = static_cast<int>(o.tensors.size());
      for (auto &t : o.tensors) {
        node->list_meta.emplace_back(t ? t->shape() : Dims{}, t ? from_ms(t->data_type()) : DType::F32);
        node->add_next_edge(t ? edge_of(t) : Edge());
      }
    }
  }
  // Only what the formulas of inputs that need a gradient read is kept.
  std::vector<uint8_t> keep(n, 0);
  for (const Formula &f : op.formulas) {
    bool wanted = false;
    for (int p : f.params)
      for (int e = 0; node->inputs[p].edge >= 0 && e < node->inputs[p].count; ++e)
        wanted = wanted || node->next_edges()[node->inputs[p].edge + e].is_defined();
    if (!wanted) continue;
    for (auto &need : f.needs)
      if (need.kind == Need::kParam) keep[need.index] = 1;
  }
  for (int i = 0; i < n; ++i) {
    if (!keep[i]) continue;
    const Operand &o = before[i];
    if (o.kind == Arg::kTensor) node->saved.emplace_back(i, SavedTensor(o.tensor, false));
    else if (o.kind == Arg::kTensors) {
      std::vector<SavedTensor> l;
      for (auto &t : o.tensors) l.emplace_back(t, false);
      node->saved_lists.emplace_back(i, std::move(l));
    } else if (o.kind == Arg::kInts || op.params[i].type == ParamType::kInt || op.params[i].type == ParamType::kScalar) {
      node->plain.emplace_back(i, checked(plain_object(op, i, o, slots[i])));
    } else {
      node->plain.emplace_back(i, Ref::borrow(slots[i]));
    }
  }
  return node;
}

void attach(const Op &op, const std::shared_ptr<OpNode> &node, const Tensors &results) {
  for (size_t i = 0; i < results.size(); ++i) {
    const TensorPtr &r = results[i];
    const DType d = from_ms(r->data_type());
    if (is_floating(d) || is_complex(d)) {
      node->add_output_metadata(r);
      set_history(r, node, i);
    } else {
      node->add_output_metadata(r);
    }
  }
  if (op.saves_result)
    for (auto &r : results) node->results.emplace_back(r, true);
}

Ref wrap_results(const Op &op, Results &r) {
  if (r.python) return r.python;
  if (r.single && r.tensors.size() == 1 && !op.result_type) return checked(wrap(r.tensors[0]));
  if (r.as_list) {
    Ref l = checked(PyList_New(r.tensors.size()));
    for (size_t i = 0; i < r.tensors.size(); ++i) PyList_SET_ITEM(l.get(), i, checked(wrap(r.tensors[i])).release());
    return l;
  }
  Ref t = checked(PyTuple_New(r.tensors.size()));
  for (size_t i = 0; i < r.tensors.size(); ++i) PyTuple_SET_ITEM(t.get(), i, checked(wrap(r.tensors[i])).release());
  if (!op.result_type) return t;
  return checked(PyObject_CallFunctionObjArgs(op.result_type, t.get(), nullptr));
}

void resolve_kernel(Op &op) {
  if (!op.kernel && !op.kernel_name.empty()) op.kernel = find_operator(op.kernel_name);
}

// Casts the floating tensors of a call as autocast asks; returns true when something changed.
void apply_autocast(const Op &op, Operand *v, PyObject **slots, std::vector<Ref> *hold) {
  const AutocastState &s = autocast_state();
  DType target = op.autocast == 1 ? s.dtype : DType::F32;
  auto eligible = [](const TensorPtr &t) {
    const DType d = from_ms(t->data_type());
    return d == DType::F32 || d == DType::F16 || d == DType::BF16;
  };
  if (op.autocast == 3) {
    target = s.dtype;
    for (size_t i = 0; i < op.params.size(); ++i) {
      if (v[i].kind == Arg::kTensor && from_ms(v[i].tensor->data_type()) == DType::F32) target = DType::F32;
      for (auto &t : v[i].tensors) if (t && from_ms(t->data_type()) == DType::F32) target = DType::F32;
    }
  }
  auto cast = [&](TensorPtr &t) {
    if (!t || !eligible(t) || from_ms(t->data_type()) == target) return;
    Ref r = checked(PyObject_CallFunctionObjArgs(table_function("_autocast_cast"), checked(wrap(t)).get(), dtype_object(target), nullptr));
    t = unwrap(r.get());
    hold->push_back(r);
  };
  for (size_t i = 0; i < op.params.size(); ++i) {
    if (v[i].kind == Arg::kTensor) {
      TensorPtr before = v[i].tensor;
      cast(v[i].tensor);
      if (before != v[i].tensor) slots[i] = hold->back().get();
    }
    for (auto &t : v[i].tensors) cast(t);
  }
}

Ref run_functional(Op &op, Operand *v, PyObject **slots) {
  const int n = static_cast<int>(op.params.size());
  std::vector<Ref> hold;
  if (op.autocast && autocast_state().enabled) apply_autocast(op, v, slots, &hold);
  const bool record = op.differentiable && grad_enabled() && any_requires_grad(op, v);
  Operand copy[kMaxParams];
  Operand *run = v;
  if (op.promote != Promote::kNone) {
    for (int i = 0; i < n; ++i) copy[i] = v[i];
    promote(op, copy);
    run = copy;
  }
  Results r;
  if (op.body) {
    r = run_body(op, run, slots);
    if (op.view && r.python) return r.python;
  } else {
    r.tensors = run_operator(op.kernel, run, n);
    r.single = r.tensors.size() == 1;
  }
  if (r.python) return r.python;
  for (auto &t : r.tensors)
    for (int i = 0; i < n; ++i)
      if (!op.view && v[i].kind == Arg::kTensor && v[i].tensor == t) t = alias_of(t);  // a body may return its operand
  if (op.view)
    for (auto &t : r.tensors) {
      if (t == v[0].tensor) t = alias_of(t);
      set_view(t, v[0].tensor, !grad_enabled() ? ViewKind::kNoGrad : r.single ? ViewKind::kNormal : ViewKind::kMultiOutput);
    }
  if (record) attach(op, make_node(op, v, slots, r.tensors.size()), r.tensors);
  return wrap_results(op, r);
}

void check_result_cast(DType from, DType to) {
  auto category = [](DType d) { return d == DType::Bool ? 0 : is_integral(d) ? 1 : is_floating(d) ? 2 : 3; };
  if (category(from) > category(to))
    fail("result type ", dtype_name(from), " can't be cast to the desired output type ", dtype_name(to));
}

Ref run_inplace(Op &op, Operand *v, PyObject **slots) {
  const int n = static_cast<int>(op.params.size());
  TensorPtr self = v[0].tensor;
  check_inplace(self, op.name.c_str());
  std::vector<Ref> hold;
  const bool record = op.differentiable && grad_enabled() && any_requires_grad(op, v);
  const DType self_dtype = from_ms(self->data_type());
  Operand copy[kMaxParams];
  for (int i = 0; i < n; ++i) copy[i] = v[i];
  std::shared_ptr<OpNode> node;
  if (record) {
    if (op.saves_self) {  // the formulas read the value from before the write
      TensorPtr old = run1("Clone", {Operand::of(self)});
      if (requires_grad(self)) {
        Edge e = edge_of(self);
        set_history(old, e.grad_node, e.input_index);
      }
      copy[0].tensor = old;
    }
    Operand before[kMaxParams];
    for (int i = 0; i < n; ++i) before[i] = copy[i];
    node = make_node(op, before, slots, 1);
  }
  if (op.promote != Promote::kNone) promote(op, copy);
  TensorPtr result;
  const bool direct = !op.body && op.kernel->kernel && op.kernel->kernel->elementwise && copy[0].tensor == self && on_cpu(self);
  if (direct) {
    Dims shape = self->shape();
    for (int i = 0; i < n; ++i)
      if (copy[i].kind == Arg::kTensor) {
        const auto &s = copy[i].tensor->shape();
        bool fits = s.size() <= shape.size();
        for (size_t k = 0; fits && k < s.size(); ++k) fits = s[s.size() - 1 - k] == 1 || s[s.size() - 1 - k] == shape[shape.size() - 1 - k];
        if (!fits) {
          Tensor a = view_of(self), b = view_of(copy[i].tensor);
          fail("output with shape ", shape, " doesn't match the broadcast shape ", broadcast_shapes({&a, &b}));
        }
      }
    result = run_operator(op.kernel, copy, n, &self)[0];
  } else {
    Results r;
    if (op.body) r = run_body(op, copy, slots);
    else r.tensors = run_operator(op.kernel, copy, n);
    if (r.python || r.tensors.empty()) fail(op.name, "_: the operator has no in-place form");
    result = r.tensors[0];
  }
  if (result != self) {
    check_result_cast(from_ms(result->data_type()), self_dtype);
    if (result->shape() != self->shape())
      fail("output with shape ", self->shape(), " doesn't match the broadcast shape ", result->shape());
    if (on_cpu(self)) copy_into(view_of(self), view_of(result));
    else run1("InplaceCopy", {Operand::of(self), Operand::of(result), Operand::of(false)});
  }
  self->BumpVersion();
  if (record) {
    rebase_history(self, node);
    if (op.saves_result) {
      node->results.clear();
      TensorPtr kept = result == self ? alias_of(self) : result;
      node->results.emplace_back(kept, true);
    }
  }
  return Ref::borrow(slots[0]);
}

// Another class than ours among the tensors: give __torch_function__ a chance (python side).
PyObject *torch_function_handler = nullptr;
int torch_function_modes = 0;  // number of active modes
bool foreign(PyObject *o) {
  PyTypeObject *t = Py_TYPE(o);
  return t != tensor_type && t != parameter_type && PyType_IsSubtype(t, mindspore::tensor::GetTensorPyType());
}

PyObject *op_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
  auto *self = reinterpret_cast<OpObject *>(callable);
  Op &op = *self->op;
  try {
    const Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    const int n = static_cast<int>(op.params.size());
    if (n > kMaxParams) fail(op.name, ": too many parameters");
    PyObject *slots[kMaxParams];
    Ref held;
    PyObject *out[2] = {nullptr, reinterpret_cast<PyObject *>(const_cast<PyObject **>(args + nargs))};
    parse(op, args, nargs, kwnames, slots, &held, out);
    if (torch_function_handler) {
      bool special = torch_function_modes > 0;
      for (int i = 0; i < n && !special; ++i) {
        if (foreign(slots[i])) special = true;
        else if (PyTuple_CheckExact(slots[i]) || PyList_CheckExact(slots[i])) {
          if (op.params[i].type != ParamType::kTensors) continue;
          Ref seq = checked(PySequence_Fast(slots[i], ""));
          for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(seq.get()); ++k) special = special || foreign(PySequence_Fast_GET_ITEM(seq.get(), k));
        }
      }
      if (special) {
        Ref pos = checked(PyTuple_New(nargs));
        for (Py_ssize_t i = 0; i < nargs; ++i) { Py_INCREF(args[i]); PyTuple_SET_ITEM(pos.get(), i, args[i]); }
        Ref kw = checked(PyDict_New());
        for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) PyDict_SetItem(kw.get(), PyTuple_GET_ITEM(kwnames, k), args[nargs + k]);
        Ref r = checked(PyObject_CallFunctionObjArgs(torch_function_handler, callable, pos.get(), kw.get(), nullptr));
        if (r.get() != Py_NotImplemented) return r.release();
      }
    }
    if (op.composite) {
      Ref r;
      if (self->inplace) {
        Ref copy_from = call_body(op, slots);
        r = checked(PyObject_CallFunctionObjArgs(table_function("_inplace_from"), slots[0], copy_from.get(), nullptr));
      } else {
        r = call_body(op, slots);
      }
      if (out[0] && out[0] != Py_None) return checked(PyObject_CallFunctionObjArgs(table_function("_copy_to_out"), r.get(), out[0], nullptr)).release();
      return r.release();
    }
    Operand operands[kMaxParams];
    for (int i = 0; i < n; ++i) convert(op, i, slots[i], &operands[i]);
    if (!op.body) resolve_kernel(op);
    if (self->inplace) return run_inplace(op, operands, slots).release();
    if (out[0] && out[0] != Py_None) {
      NoGrad guard;
      Ref r = run_functional(op, operands, slots);
      return checked(PyObject_CallFunctionObjArgs(table_function("_copy_to_out"), r.get(), out[0], nullptr)).release();
    }
    return run_functional(op, operands, slots).release();
  } catch (...) {
    translate_exception();
    return nullptr;
  }
}

// ---------------------------------------------------------------- the python type
PyObject *op_get(PyObject *self, PyObject *obj, PyObject *) {  // as a method of Tensor
  if (!obj || obj == Py_None) { Py_INCREF(self); return self; }
  return PyMethod_New(self, obj);
}
PyObject *op_repr(PyObject *self) { return PyUnicode_FromFormat("<built-in method %s of type object>", reinterpret_cast<OpObject *>(self)->op->name.c_str()); }

ParamType param_type(const std::string &s) {
  static const std::unordered_map<std::string, ParamType> m = {
      {"Tensor", ParamType::kTensor}, {"Tensor[]", ParamType::kTensors}, {"TensorOrScalar", ParamType::kTensorOrScalar},
      {"Scalar", ParamType::kScalar}, {"int", ParamType::kInt}, {"int[]", ParamType::kInts}, {"float", ParamType::kFloat},
      {"float[]", ParamType::kFloats}, {"bool", ParamType::kBool}, {"str", ParamType::kString}, {"ScalarType", ParamType::kDType}};
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
      if (q.keyword_only) kwonly.push_back(q.name);
      op->params.push_back(q);
    }
    if (!kwonly.empty()) {
      op->keyword_names = PyTuple_New(kwonly.size());
      for (size_t i = 0; i < kwonly.size(); ++i) { Py_INCREF(kwonly[i]); PyTuple_SET_ITEM(op->keyword_names, i, kwonly[i]); }
    }
    PyObject *pa = item(spec, "promote_params");
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(pa); ++i) op->promote_params.push_back(static_cast<int>(PyLong_AsLong(PyList_GET_ITEM(pa, i))));
    PyObject *fs = item(spec, "formulas");
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(fs); ++i) {
      PyObject *e = PyList_GET_ITEM(fs, i);  // (params list, function, needs list of (kind, index), joint)
      Formula f;
      PyObject *ps = PyTuple_GET_ITEM(e, 0);
      for (Py_ssize_t k = 0; k < PyList_GET_SIZE(ps); ++k) f.params.push_back(static_cast<int>(PyLong_AsLong(PyList_GET_ITEM(ps, k))));
      f.function = kept(PyTuple_GET_ITEM(e, 1));
      PyObject *ns = PyTuple_GET_ITEM(e, 2);
      for (Py_ssize_t k = 0; k < PyList_GET_SIZE(ns); ++k) {
        PyObject *t = PyList_GET_ITEM(ns, k);
        Need need{static_cast<Need::Kind>(PyLong_AsLong(PyTuple_GET_ITEM(t, 0))), static_cast<int>(PyLong_AsLong(PyTuple_GET_ITEM(t, 1)))};
        f.needs.push_back(need);
        if (need.kind == Need::kParam && need.index == 0) op->saves_self = true;
        if (need.kind == Need::kResult) op->saves_result = true;
      }
      f.joint = truth(PyTuple_GET_ITEM(e, 3));
      op->formulas.push_back(f);
    }
    op->differentiable = !op->formulas.empty();
    op->native = native_gradient(op->name);
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
PyObject *set_torch_function_modes(PyObject *, PyObject *n) {
  torch_function_modes = static_cast<int>(PyLong_AsLong(n));
  Py_RETURN_NONE;
}

// call_operator(name, *args): one MindSpore operator, no gradient. Arguments are boxed by their Python kind.
PyObject *call_operator(PyObject *, PyObject *const *args, Py_ssize_t nargs) {
  try {
    const Operator *op = nullptr;
    if (PyLong_Check(args[0])) op = reinterpret_cast<const Operator *>(PyLong_AsVoidPtr(args[0]));
    else op = find_operator(PyUnicode_AsUTF8(args[0]));
    Operand v[kMaxParams];
    const int n = static_cast<int>(nargs) - 1;
    check(n <= kMaxParams, op->name, ": too many operands");
    for (int i = 0; i < n; ++i) {
      PyObject *o = args[i + 1];
      Operand &r = v[i];
      if (o == Py_None) continue;
      if (is_tensor(o)) { r.kind = Arg::kTensor; r.tensor = unwrap(o); continue; }
      if (PyUnicode_Check(o)) { r.kind = Arg::kString; r.str = PyUnicode_AsUTF8(o); continue; }
      if (dtype_from_object(o, &r.dtype)) { r.kind = Arg::kDType; r.scalar.i = to_ms(r.dtype); continue; }
      if (PyTuple_Check(o) || PyList_Check(o)) {
        Ref seq = checked(PySequence_Fast(o, ""));
        const Py_ssize_t m = PySequence_Fast_GET_SIZE(seq.get());
        PyObject **items = PySequence_Fast_ITEMS(seq.get());
        bool tensors = false, floats = false;
        for (Py_ssize_t k = 0; k < m; ++k) { tensors = tensors || is_tensor(items[k]); floats = floats || PyFloat_Check(items[k]); }
        r.kind = tensors ? Arg::kTensors : floats ? Arg::kFloats : Arg::kInts;
        for (Py_ssize_t k = 0; k < m; ++k) {
          if (tensors) r.tensors.push_back(items[k] == Py_None ? nullptr : unwrap(items[k]));
          else if (floats) r.floats.push_back(PyFloat_AsDouble(items[k]));
          else {
            Ref ix = checked(PyNumber_Index(items[k]));
            r.ints.push_back(PyLong_AsLongLong(ix.get()));
          }
        }
        continue;
      }
      r.kind = Arg::kScalar;
      if (!scalar_from(o, &r.scalar)) raise_type(op->name + ": operand " + std::to_string(i) + " of unknown kind " + type_name(o));
    }
    Tensors t = run_operator(op, v, n);
    for (auto &x : t)
      for (int i = 0; i < n; ++i)
        if (v[i].kind == Arg::kTensor && v[i].tensor == x) { Py_INCREF(args[i + 1]); if (t.size() == 1) return args[i + 1]; Py_DECREF(args[i + 1]); }
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

PyMethodDef functions[] = {
    {"make_op", make_op, METH_O, "make_op(spec) -> callable operator"},
    {"call_operator", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_operator)), METH_FASTCALL, nullptr},
    {"operator_handle", operator_handle, METH_O, nullptr},
    {"set_torch_function_handler", set_torch_function_handler, METH_O, nullptr},
    {"set_torch_function_modes", set_torch_function_modes, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyTypeObject op_type = {PyVarObject_HEAD_INIT(nullptr, 0)};

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

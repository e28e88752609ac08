// Converts the Python arguments of a call to operands, by the schema, with PyTorch's error messages.
#include "rare_facts.h"

namespace msa {

[[noreturn]] static void raise_type(const std::string &m) { throw TypeError(m); }

std::string type_name(PyObject *o) { return Py_TYPE(o)->tp_name; }

static const char *expected_name(ParamType t) {
  switch (t) {
    case ParamType::kTensor:
    case ParamType::kTensorOrScalar: return "Tensor";
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
  const std::string place = op.params[i].keyword_only ? "" : text(" (position ", i + 1, ")");
  raise_type(text(op.name, "(): argument '", PyUnicode_AsUTF8(n.get()), "'", place, " must be ",
                  expected_name(op.params[i].type), ", not ", type_name(o)));
}

bool scalar_from(PyObject *o, Scalar *s) {
  if (PyBool_Check(o)) {
    s->kind = Scalar::kBool;
    s->i = o == Py_True;
    return true;
  }
  if (PyLong_Check(o)) {
    s->kind = Scalar::kInt;
    int overflow = 0;
    s->i = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow) {
      s->i = static_cast<int64_t>(PyLong_AsUnsignedLongLong(o));
      if (PyErr_Occurred()) {
        PyErr_Clear();
        throw OverflowError("int too big to convert");
      }
      s->is_unsigned = true;
    }
    return true;
  }
  if (PyFloat_Check(o)) {
    s->kind = Scalar::kFloat;
    s->d = PyFloat_AS_DOUBLE(o);
    return true;
  }
  if (PyComplex_Check(o)) {
    s->kind = Scalar::kComplex;
    s->d = PyComplex_RealAsDouble(o);
    s->imag = PyComplex_ImagAsDouble(o);
    return true;
  }
  if (is_tensor(o)) {
    Ref v = checked(PyObject_CallMethod(o, "item", nullptr));
    return scalar_from(v.get(), s);
  }
  // scalars of numpy and similar types
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

// Whether PyTorch takes an object for a number. It takes tensors without dims, unless their gradient would be lost.
static bool stands_for_number(PyObject *o) {
  if (!is_tensor(o)) return true;
  const TensorPtr &t = unwrap(o);
  return t->shape().empty() && !requires_grad(t);
}

DType scalar_dtype(const Scalar &s) {
  switch (s.kind) {
    case Scalar::kBool: return DType::Bool;
    case Scalar::kInt: return DType::I64;
    case Scalar::kFloat: return default_dtype();
    default: return complex_of(default_dtype());
  }
}

// Whether PyTorch takes an object for an int. It takes no bool: not Python's, not numpy's, and not a tensor of bools.
static bool is_integer(PyObject *o) {
  if (PyLong_CheckExact(o)) return true;
  if (PyBool_Check(o) || PyFloat_Check(o) || !PyIndex_Check(o)) return false;
  if (is_tensor(o)) return is_integral(from_ms(unwrap(o)->data_type()), false);
  return std::string_view(Py_TYPE(o)->tp_name).substr(0, 10) != "numpy.bool";
}

// The dtype that holds any number of this kind.
static DType widest(const Scalar &s) {
  switch (s.kind) {
    case Scalar::kBool: return DType::Bool;
    case Scalar::kInt: return s.is_unsigned ? DType::U64 : DType::I64;
    case Scalar::kFloat: return DType::F64;
    default: return DType::C128;
  }
}

static int64_t index_from(const Op &op, int i, PyObject *o) {
  if (!is_integer(o)) bad_argument(op, i, o);
  return integer_of(o);
}

// One number of a list of integers.
static int64_t element_from(const Op &op, int i, PyObject *o, Py_ssize_t position) {
  Ref n = Ref::borrow(op.params[i].name);
  const bool later_bool = position > 0 && PyBool_Check(o);  // PyTorch looks for bools at the first place alone
  if (!later_bool && !is_integer(o))
    raise_type(text(op.name, "(): argument '", PyUnicode_AsUTF8(n.get()), "' (position ", i + 1,
                    ") must be tuple of ints, but found element of type ", type_name(o), " at pos ",
                    static_cast<int64_t>(position)));
  int64_t value;
  if (integer_fits(o, &value)) return value;
  raise_type(text(op.name, "(): argument '", PyUnicode_AsUTF8(n.get()), "' failed to unpack the object at pos ",
                  static_cast<int64_t>(position + 1), " with error \"Overflow when unpacking long long\""));
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
      if (!stands_for_number(o) || !scalar_from(o, &r->scalar)) bad_argument(op, i, o);
      for (auto &entry : op.with_number) {
        if (entry.param != i || !entry.name.empty()) continue;
        r->kind = Arg::kTensor;
        r->tensor = number_on_host(r->scalar, widest(r->scalar));
      }
      return;
    case ParamType::kTensors: {
      if (!PyTuple_Check(o) && !PyList_Check(o)) bad_argument(op, i, o);
      r->kind = Arg::kTensors;
      Ref seq = checked(PySequence_Fast(o, ""));
      for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(seq.get()); ++k) {
        PyObject *e = PySequence_Fast_GET_ITEM(seq.get(), k);
        if (e == Py_None) {
          r->tensors.push_back(nullptr);
          continue;
        }
        if (!is_tensor(e))
          raise_type("expected Tensor as element " + std::to_string(k) + " in argument " + std::to_string(i) +
                     ", but got " + type_name(e));
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
        for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(seq.get()); ++k)
          r->ints.push_back(element_from(op, i, PySequence_Fast_GET_ITEM(seq.get(), k), k));
      } else {
        r->ints.push_back(index_from(op, i, o));
      }
      return;
    case ParamType::kFloat:
      r->kind = Arg::kScalar;
      if (PyLong_CheckExact(o) && !scalar_fits(o)) {
        r->scalar.kind = Scalar::kFloat;
        r->scalar.d = PyLong_AsDouble(o);
        if (PyErr_Occurred()) throw PythonError{};
        return;
      }
      if (!stands_for_number(o) || !scalar_from(o, &r->scalar) || r->scalar.kind == Scalar::kComplex)
        bad_argument(op, i, o);
      if (r->scalar.kind <= Scalar::kInt) {
        r->scalar.d = r->scalar.wrapped<double>();
        r->scalar.kind = Scalar::kFloat;
      }
      return;
    case ParamType::kFloats: {
      r->kind = Arg::kFloats;
      if (!PyTuple_Check(o) && !PyList_Check(o)) {
        r->floats.push_back(PyFloat_AsDouble(o));
      } else {
        Ref seq = checked(PySequence_Fast(o, ""));
        for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(seq.get()); ++k)
          r->floats.push_back(PyFloat_AsDouble(PySequence_Fast_GET_ITEM(seq.get(), k)));
      }
      if (PyErr_Occurred()) throw PythonError{};
      return;
    }
    case ParamType::kBool:
      if (!PyBool_Check(o)) bad_argument(op, i, o);
      r->kind = Arg::kScalar;
      r->scalar.kind = Scalar::kBool;
      r->scalar.i = o == Py_True;
      return;
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

// Whether an object certainly has the declared type. All other objects are converted, and the conversion raises the
// error.
static bool fits(const Param &p, PyObject *o) {
  if (o == p.fallback && !p.required) return true;
  int64_t value;
  switch (p.type) {
    case ParamType::kTensor: return is_tensor(o);
    case ParamType::kAny: return true;
    case ParamType::kTensorOrScalar: return is_tensor(o) || PyFloat_CheckExact(o) || PyLong_CheckExact(o);
    case ParamType::kScalar:
    case ParamType::kFloat:
      return PyFloat_CheckExact(o) || PyLong_CheckExact(o) || (is_tensor(o) && stands_for_number(o));
    case ParamType::kInt: return PyLong_CheckExact(o) && integer_fits(o, &value);
    case ParamType::kBool: return PyBool_Check(o);
    case ParamType::kString: return PyUnicode_Check(o);
    default: return false;
  }
}

void check_arguments(const Op &op, PyObject **slots) {
  for (int i = 0; i < static_cast<int>(op.params.size()); ++i) {
    if (fits(op.params[i], slots[i])) continue;
    Operand converted;
    convert(op, i, slots[i], &converted);
  }
}

static void warn_older(const Op &op, const std::vector<int> &order) {
  std::string names;
  for (int i : order) names += (names.empty() ? "" : ", ") + std::string(PyUnicode_AsUTF8(op.params[i].name));
  warn_once(text("This overload of ", op.name, " is deprecated:\n\t", op.name, "(", names,
                 ")\nConsider giving the number by its name, after the tensors."));
}

// Fills the slots of a call whose arguments fit a deprecated signature.
static bool fits_older(const Op &op, PyObject *const *args, Py_ssize_t nargs, PyObject **slots) {
  for (const auto &order : rare_facts(op).older) {
    bool same = static_cast<Py_ssize_t>(order.size()) == nargs;
    for (Py_ssize_t i = 0; same && i < nargs; ++i)
      same = op.params[order[i]].type == ParamType::kScalar ? PyNumber_Check(args[i]) && !is_tensor(args[i])
                                                            : is_tensor(args[i]);
    if (!same) continue;
    for (Py_ssize_t i = 0; i < nargs; ++i) slots[order[i]] = args[i];
    warn_older(op, order);
    return true;
  }
  return false;
}

// Raises PyTorch's error for parameters without a value or default.
[[noreturn]] static void raise_missing(const Op &op, PyObject **slots) {
  int count = 0;
  std::string names;
  for (size_t i = 0; i < op.params.size(); ++i) {
    if (slots[i] || !op.params[i].required) continue;
    const std::string name = PyUnicode_AsUTF8(op.params[i].name);
    names += (count++ ? ", \"" : "\"") + (name == "self" ? "input" : name) + "\"";
  }
  raise_type(text(op.name, "() missing ", count, " required positional arguments: ", names));
}

// Fills slots (borrowed references) from a vectorcall. `held` owns objects that had to be created.
void parse(const Op &op, PyObject *const *args, Py_ssize_t nargs, Keywords *keywords, PyObject **slots, Ref *held) {
  const int n = static_cast<int>(op.params.size());
  for (int i = 0; i < n; ++i) slots[i] = nullptr;
  int positional = 0;
  while (positional < n && !op.params[positional].keyword_only) ++positional;
  if (op.varargs && nargs > op.vararg_index) {
    // x.view(2, 3): the ints from vararg_index on form one list
    PyObject *first = args[op.vararg_index];
    const bool looks_like_ints = !PyTuple_Check(first) && !PyList_Check(first) && first != Py_None &&
                                 PyIndex_Check(first) && !PyBool_Check(first);
    if (looks_like_ints && (nargs - op.vararg_index > 1 || op.vararg_index + 1 == positional)) {
      bool all = nargs > positional;
      if (!all) {
        all = true;
        for (Py_ssize_t k = op.vararg_index; k < nargs; ++k)
          all = all && PyIndex_Check(args[k]) && !PyBool_Check(args[k]);
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
  if (nargs > positional && fits_older(op, args, nargs, slots)) nargs = 0;
  if (nargs > positional)
    raise_type(op.name + "() takes " + std::to_string(positional) + " positional arguments but " +
               std::to_string(nargs) + " were given");
  for (Py_ssize_t i = 0; i < nargs; ++i) slots[i] = args[i];
  if (PyObject *kwnames = keywords->names) {
    const Py_ssize_t nk = PyTuple_GET_SIZE(kwnames);
    for (Py_ssize_t k = 0; k < nk; ++k) {
      PyObject *key = PyTuple_GET_ITEM(kwnames, k);
      PyObject *value = keywords->values[k];
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
        if (op.takes_out && PyUnicode_CompareWithASCIIString(key, "out") == 0) {
          keywords->out = value;
          continue;
        }
        raise_type(op.name + "() got an unexpected keyword argument '" + PyUnicode_AsUTF8(key) + "'");
      }
      if (slots[hit]) raise_type(op.name + "() got multiple values for argument '" + PyUnicode_AsUTF8(key) + "'");
      slots[hit] = value;
    }
  }
  for (int i = 0; i < n; ++i) {
    if (slots[i]) continue;
    if (op.params[i].required) raise_missing(op, slots);
    slots[i] = op.params[i].fallback;
  }
}

}  // namespace msa

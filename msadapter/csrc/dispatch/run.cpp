// Runs a parsed call: out of place or in place, recorded or not.
#include "internal.h"

namespace msa {

// ---------------------------------------------------------------- running
static PyObject *plain_object(const Op &op, int i, const Operand &o, PyObject *original) {
  switch (op.params[i].type) {
    case ParamType::kTensor:
    case ParamType::kTensorOrScalar:
      if (o.kind == Arg::kTensor) {
        if (is_tensor(original) && unwrap(original) == o.tensor) {
          Py_INCREF(original);
          return original;
        }
        return wrap(o.tensor);
      }
      Py_INCREF(original);
      return original;
    case ParamType::kTensors: {
      if (o.kind == Arg::kNone) {
        Py_INCREF(Py_None);
        return Py_None;
      }
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
    case ParamType::kFloat:
      if (o.kind == Arg::kScalar && original == Py_None) return PyFloat_FromDouble(o.scalar.d);
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

static Results run_body(const Op &op, const Operand *v, PyObject **slots) {
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

static bool any_requires_grad(const Op &op, const Operand *v) {
  for (const Formula &f : op.formulas)
    for (int i : f.params) {
      const Operand &o = v[i];
      if (o.kind == Arg::kTensor && requires_grad(o.tensor)) return true;
      for (auto &t : o.tensors)
        if (t && requires_grad(t)) return true;
    }
  return false;
}

// Whether any operand requires grad, differentiable or not. A write that cannot be recorded is refused then.
static bool anything_requires_grad(const Operand *v, int n) {
  for (int i = 0; i < n; ++i) {
    if (v[i].kind == Arg::kTensor && requires_grad(v[i].tensor)) return true;
    for (auto &t : v[i].tensors)
      if (t && requires_grad(t)) return true;
  }
  return false;
}

// Returns a tensor without memory, for formulas that use only shape and type.
static TensorPtr shape_of(const TensorPtr &t) {
  return std::make_shared<MsTensor>(t->data_type(), t->shape(), mindspore::device::DeviceAddressPtr());
}

// A subscript is one node here, but several views in PyTorch. The node gets the name of the last one.
static const char *last_view(const Operand &spec) {
  const char *name = "AliasBackward0";
  for (size_t i = 0; i + 3 < spec.ints.size(); i += 4)
    name = spec.ints[i] == 0 ? "SelectBackward0" : spec.ints[i] == 1 ? "SliceBackward0" : "UnsqueezeBackward0";
  return name;
}

// Creates the node with its edges and saved inputs. `before` holds the operands before type promotion and casts.
static std::shared_ptr<OpNode> make_node(const Op &op, const Operand *before, PyObject **slots, size_t outputs) {
  auto node = BackwardNode::Create<OpNode>(&op, outputs);
  if (op.node_name == "RegionBackward0") node->rename(last_view(before[1]));
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
    } else {
      node->add_next_edge(Edge());  // a number or None has no edge, but keeps its position among the inputs
    }
  }
  // Only what is needed by the formulas of inputs that require grad is saved.
  std::vector<uint8_t> keep(n, 0);  // 1: shape and type only, 2: the values
  for (const Formula &f : op.formulas) {
    bool wanted = false;
    for (int p : f.params)
      for (int e = 0; node->inputs[p].edge >= 0 && e < node->inputs[p].count; ++e)
        wanted = wanted || node->next_edges()[node->inputs[p].edge + e].is_defined();
    if (!wanted) continue;
    for (auto &need : f.needs)
      if (need.kind == Need::kParam) keep[need.index] = std::max<uint8_t>(keep[need.index], need.shape_only ? 1 : 2);
  }
  for (int i = 0; i < n; ++i) {
    if (!keep[i]) continue;
    const Operand &o = before[i];
    if (o.kind == Arg::kTensor && keep[i] == 1)
      node->shapes.emplace_back(i, shape_of(o.tensor));
    else if (o.kind == Arg::kTensor)
      node->saved.emplace_back(i, SavedTensor(o.tensor, false));
    else if (o.kind == Arg::kTensors) {
      std::vector<SavedTensor> l;
      for (auto &t : o.tensors) l.emplace_back(t, false);
      node->saved_lists.emplace_back(i, std::move(l));
    } else {
      node->plain.emplace_back(i, checked(plain_object(op, i, o, slots[i])));
    }
  }
  return node;
}

static bool can_require_grad(const TensorPtr &t) {
  const DType d = from_ms(t->data_type());
  return is_floating(d) || is_complex(d);
}

static void attach(const Op &op, const std::shared_ptr<OpNode> &node, const Tensors &results) {
  for (size_t i = 0; i < results.size(); ++i) {
    node->add_output_metadata(results[i]);
    if (can_require_grad(results[i])) set_history(results[i], node, i);
  }
  if (op.saves_result)
    for (auto &r : results) node->results.emplace_back(r, true);
}

static Ref wrap_results(const Op &op, Results &r) {
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

// Whether the first operand is in memory that the kernels can access. True if there is no operand.
static bool on_host(const Operand &o) {
  const TensorPtr &t = o.tensor || o.tensors.empty() ? o.tensor : o.tensors[0];
  return !t || on_cpu(t);
}

// Runs the C++ body. New tensors get the device of the first operand.
static bool call_native(const Op &op, const Operand *v, PyObject **slots, Tensors *out) {
  const int tag = v[0].tensor ? device_tag(v[0].tensor) : 0;
  DeviceScope scope(tag);
  ShapeOnly shapes(tag == kMetaTag);
  return op.native_body(v, slots, out);
}

void resolve_kernel(Op &op) {
  if (!op.kernel && !op.kernel_name.empty()) op.kernel = find_operator(op.kernel_name);
}

// Casts the floating point tensors of a call as autocast asks. Returns true if something changed.
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
      for (auto &t : v[i].tensors)
        if (t && from_ms(t->data_type()) == DType::F32) target = DType::F32;
    }
  }
  auto cast = [&](TensorPtr &t) {
    if (!t || !eligible(t) || from_ms(t->data_type()) == target) return;
    Ref r = checked(PyObject_CallFunctionObjArgs(table_function("_autocast_cast"), checked(wrap(t)).get(),
                                                 dtype_object(target), nullptr));
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
  Operands copy(v, op.promote != Promote::kNone ? n : 0);
  Operand *run = v;
  if (op.promote != Promote::kNone) {
    promote(op, copy.data());
    run = copy.data();
  }
  Results r;
  if (op.native_body && fast_path() && !shape_only() && on_host(run[0]) && call_native(op, run, slots, &r.tensors)) {
    r.single = r.tensors.size() == 1;
  } else if (op.body) {
    r = run_body(op, run, slots);
  } else {
    r.tensors = run_operator(op.kernel, run, n);
    r.single = r.tensors.size() == 1;
  }
  if (r.python) return r.python;
  for (auto &t : r.tensors)
    for (int i = 0; i < n; ++i)
      // The body may return its operand itself
      if (!op.view && v[i].kind == Arg::kTensor && v[i].tensor == t) t = alias_of(t);
  if (op.view)
    for (auto &t : r.tensors) {
      if (t == v[0].tensor) t = alias_of(t);
      if (t->data_type() != v[0].tensor->data_type() && !can_require_grad(t))
        continue;  // a view of the bytes as integers has no history
      set_view(t, v[0].tensor,
               !grad_enabled() ? ViewKind::kNoGrad
               : r.single      ? ViewKind::kNormal
                               : ViewKind::kMultiOutput);
    }
  if (record) attach(op, make_node(op, v, slots, r.tensors.size()), r.tensors);
  return wrap_results(op, r);
}

// PyTorch allows these operators to write to expanded tensors.
static bool writes_overlapping(const Op &op) {
  static const std::unordered_set<std::string> names = {"zero", "fill", "masked_fill", "index_put", "index_fill"};
  return names.count(op.name) != 0;
}

// Operators that write by index refuse operands that share memory with the written tensor.
static void refuse_shared_operands(const Op &op, const Operand *v, int n) {
  static const std::unordered_set<std::string> names = {"_scatter",     "scatter_add",    "scatter_reduce",
                                                        "index_put",    "index_copy",     "index_add",
                                                        "index_reduce", "_masked_scatter"};
  if (!names.count(op.name)) return;
  const TensorPtr &self = v[0].tensor;
  for (int i = 1; i < n; ++i) {
    if (v[i].kind != Arg::kTensor) continue;
    check_overlap(self, v[i].tensor);
    const bool same =
        v[i].tensor->device_address() == self->device_address() && offset_of(v[i].tensor) == offset_of(self);
    if (same && view_of(self).numel > 0 && v[i].tensor->shape() == self->shape() &&
        strides_of(v[i].tensor) == strides_of(self))
      fail(
          "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
          "location. Please clone() the tensor before performing the operation.");
  }
}

static void check_result_cast(DType from, DType to) {
  auto category = [](DType d) { return d == DType::Bool ? 0 : is_integral(d) ? 1 : is_floating(d) ? 2 : 3; };
  if (category(from) > category(to))
    fail("result type ", dtype_name(from), " can't be cast to the desired output type ", dtype_name(to));
}

Ref run_inplace(Op &op, Operand *v, PyObject **slots) {
  const int n = static_cast<int>(op.params.size());
  TensorPtr self = v[0].tensor;
  const bool recorded = anything_requires_grad(v, n);
  if (writes_overlapping(op))
    check_history(self, recorded);
  else
    check_inplace(self, recorded);
  if (op.body) refuse_shared_operands(op, v, n);
  std::vector<Ref> hold;
  const bool record = op.differentiable && grad_enabled() && any_requires_grad(op, v);
  const DType self_dtype = from_ms(self->data_type());
  Operands copy(v, n);
  std::shared_ptr<OpNode> node;
  if (record) {
    if (op.saves_self) {  // the formulas use the value from before the write
      TensorPtr old = run1("Clone", {Operand::of(self)});
      if (requires_grad(self)) {
        Edge e = edge_of(self);
        set_history(old, e.grad_node, e.input_index);
      }
      copy[0].tensor = old;
    }
    node = make_node(op, copy.data(), slots, 1);
  }
  if (op.promote != Promote::kNone) promote(op, copy.data());
  TensorPtr result;
  if (!op.body && op.kernel->kernel && op.kernel->kernel->elementwise)
    for (int i = 1; i < n; ++i)
      if (v[i].kind == Arg::kTensor) check_overlap(self, v[i].tensor);
  const bool direct =
      !op.body && op.kernel->kernel && op.kernel->kernel->elementwise && copy[0].tensor == self && on_cpu(self);
  if (direct) {
    Dims shape = self->shape();
    for (int i = 0; i < n; ++i)
      if (copy[i].kind == Arg::kTensor) {
        const auto &s = copy[i].tensor->shape();
        bool fits = s.size() <= shape.size();
        for (size_t k = 0; fits && k < s.size(); ++k)
          fits = s[s.size() - 1 - k] == 1 || s[s.size() - 1 - k] == shape[shape.size() - 1 - k];
        if (!fits) {
          Tensor a = view_of(self), b = view_of(copy[i].tensor);
          fail("output with shape ", shape, " doesn't match the broadcast shape ", broadcast_shapes({&a, &b}));
        }
      }
    result = run_operator(op.kernel, copy.data(), n, &self)[0];
  } else {
    Results r;
    if (op.body)
      r = run_body(op, copy.data(), slots);
    else
      r.tensors = run_operator(op.kernel, copy.data(), n);
    if (r.python || r.tensors.empty()) fail(op.name, "_: the operator has no in-place form");
    result = r.tensors[0];
  }
  if (result != self) {
    check_result_cast(from_ms(result->data_type()), self_dtype);
    if (result->shape() != self->shape())
      fail("output with shape ", self->shape(), " doesn't match the broadcast shape ", result->shape());
    if (is_meta(result) && !is_meta(self)) throw NotImplementedError("Cannot copy out of meta tensor; no data!");
    if (on_cpu(self)) {
      ShapeOnly shapes(is_meta(self));
      copy_into(view_of(self), view_of(result));
    } else
      run1("InplaceCopy", {Operand::of(self), Operand::of(result), Operand::of(false)});
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
}  // namespace msa

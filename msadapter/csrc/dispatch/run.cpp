// Runs a parsed call: out of place or in place, recorded or not.
#include <algorithm>

#include "../autograd/below.h"
#include "../device/ascend_limits.h"
#include "../kernels/category.h"
#include "rare_facts.h"
#include "recording.h"

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
      if (o.kind == Arg::kScalar && (original == Py_None || is_tensor(original))) return PyFloat_FromDouble(o.scalar.d);
      break;
    case ParamType::kScalar:
      if (o.kind == Arg::kScalar && is_tensor(original)) {
        switch (o.scalar.kind) {
          case Scalar::kBool: return PyBool_FromLong(o.scalar.i);
          case Scalar::kInt:
            return o.scalar.is_unsigned ? PyLong_FromUnsignedLongLong(static_cast<uint64_t>(o.scalar.i))
                                        : PyLong_FromLongLong(o.scalar.i);
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

// Whether an argument holds a tensor where the schema has numbers.
static bool has_tensor_for_number(const Param &p, PyObject *o) {
  switch (p.type) {
    case ParamType::kFloat:
    case ParamType::kScalar:
    case ParamType::kInt: return is_tensor(o);
    case ParamType::kInts: {
      if (!PyTuple_Check(o) && !PyList_Check(o)) return is_tensor(o);
      for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(o); ++k)
        if (is_tensor(PySequence_Fast_GET_ITEM(o, k))) return true;
      return false;
    }
    default: return false;
  }
}

void numbers_for_tensors(const Op &op, PyObject **slots, std::vector<Ref> *held) {
  for (int i = 0; i < static_cast<int>(op.params.size()); ++i) {
    if (!has_tensor_for_number(op.params[i], slots[i])) continue;
    Operand number;
    convert(op, i, slots[i], &number);
    held->push_back(checked(plain_object(op, i, number, slots[i])));
    slots[i] = held->back().get();
  }
}

// The device of an operator's arguments, or that of the surrounding code if no tensor is among them.
static int tag_of_arguments(PyObject *const *objects, int n) {
  int tag = -1;
  for (int i = 0; i < n; ++i)
    each_tensor_in(objects[i], [&](const TensorPtr &t) { tag = std::max(tag, device_tag(t)); });
  return tag < 0 ? scope_tag() : tag;
}

static Ref call_function(const Op &op, PyObject *body, PyObject **objects) {
  const int n = static_cast<int>(op.params.size());
  OwnCodeScope scope(has_accelerator() ? tag_of_arguments(objects, n) : 0);
  const Py_ssize_t nk = op.keyword_names ? PyTuple_GET_SIZE(op.keyword_names) : 0;
  return checked(PyObject_Vectorcall(body, objects, n - nk, nk ? op.keyword_names : nullptr));
}

Ref call_body(const Op &op, PyObject **objects) { return call_function(op, op.body, objects); }

// Whether a tensor has another layout than the strided one, such as torch.zeros(2, layout=torch.sparse_coo). Its
// numbers are in Python attributes, so the Python object is the result.
static bool in_another_layout(PyObject *o) {
  static PyObject *const name = PyUnicode_InternFromString("_layout_name");
  return Py_TYPE(o) != tensor_type && _PyType_Lookup(Py_TYPE(o), name);
}

static Results run_body(const Op &op, PyObject *body, const Operand *v, PyObject **slots) {
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
    AutocastPause pause(true);
    r = call_function(op, body, objects);
  }
  Results out;
  const TensorPtr made = is_tensor(r.get()) ? unwrap(r.get()) : nullptr;
  const bool leaf =
      made && requires_grad(made) && accumulator(made) && !inference_mode() && !anything_requires_grad(v, n);
  if (leaf || (is_tensor(r.get()) && in_another_layout(r.get()))) {
    out.python = r;  // a leaf that the body has made is known to its node by this object
  } else if (is_tensor(r.get())) {
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

// Whether an operand is a normal tensor, or a number that stands for one. Operators on tensors of inference mode alone
// are not recorded, as in PyTorch.
static bool any_outside_inference(const Op &op, const Operand *v) {
  for (size_t i = 0; i < op.params.size(); ++i) {
    const Operand &o = v[i];
    if (o.kind == Arg::kTensor && !is_inference(o.tensor)) return true;
    if (o.kind == Arg::kScalar && op.params[i].type == ParamType::kTensorOrScalar) return true;
    for (auto &t : o.tensors)
      if (t && !is_inference(t)) return true;
  }
  return false;
}

bool any_requires_grad(const Op &op, const Operand *v) {
  bool inference = false;
  auto required = [&](const TensorPtr &t) {
    if (!requires_grad(t)) return false;
    const bool normal = is_recorded(t);
    inference = inference || !normal;
    return normal;
  };
  for (const Formula &f : op.formulas)
    for (int i : f.params) {
      const Operand &o = v[i];
      if (o.kind == Arg::kTensor && required(o.tensor)) return true;
      for (auto &t : o.tensors)
        if (t && required(t)) return true;
    }
  return inference && any_outside_inference(op, v);
}

bool anything_requires_grad(const Operand *v, int n) {
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
  const RegionItems items(spec.ints);
  if (!items.size()) return "AliasBackward0";
  switch (items[items.size() - 1].kind) {
    case RegionItem::kSelect: return "SelectBackward0";
    case RegionItem::kSlice: return "SliceBackward0";
    default: return "UnsqueezeBackward0";
  }
}

// Adds an edge to the history of each differentiable operand. `before` holds the operands before type promotion and
// casts.
static void add_edges(const Op &op, const Operand *before, OpNode *node) {
  for (size_t i = 0; i < op.params.size(); ++i) {
    if (!op.params[i].differentiable) continue;
    auto &in = node->inputs[i];
    const Operand &o = before[i];
    if (o.kind == Arg::kTensor) {
      in.tensor = true;
      in.edge = static_cast<int>(node->next_edges().size());
      in.sizes = o.tensor->shape();
      in.dtype = from_ms(o.tensor->data_type());
      if (has_accelerator()) in.tag = device_tag(o.tensor);
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
}

// What is kept of each parameter: nothing, shape and type, or the values.
enum Kept : uint8_t { kNothing, kShape, kValues };

// Whether an input whose gradient a formula gives requires grad.
static bool is_wanted(const Formula &f, const OpNode &node) {
  for (int p : f.params)
    for (int e = 0; node.inputs[p].edge >= 0 && e < node.inputs[p].count; ++e)
      if (node.next_edges()[node.inputs[p].edge + e].is_defined()) return true;
  return false;
}

// Only what is needed by the formulas of inputs that require grad is kept.
static void choose_kept(const Op &op, const OpNode &node, uint8_t *keep) {
  std::fill_n(keep, op.params.size(), kNothing);
  for (const Formula &f : op.formulas) {
    if (!is_wanted(f, node)) continue;
    for (auto &need : f.needs)
      if (need.kind == Need::kParam)
        keep[need.index] = std::max<uint8_t>(keep[need.index], need.shape_only ? kShape : kValues);
  }
}

static void save(const Op &op, const Operand *before, PyObject **slots, OpNode *node) {
  uint8_t keep[kMaxParams];
  choose_kept(op, *node, keep);
  for (int i = 0; i < static_cast<int>(op.params.size()); ++i) {
    if (keep[i] == kNothing) continue;
    const Operand &o = before[i];
    if (o.kind == Arg::kTensor && keep[i] == kShape) {
      node->shapes.emplace_back(i, shape_of(o.tensor));
    } else if (o.kind == Arg::kTensor) {
      node->saved.emplace_back(i, SavedTensor(o.tensor, false));
    } else if (o.kind == Arg::kTensors) {
      std::vector<SavedTensor> l;
      for (auto &t : o.tensors) l.emplace_back(t, false);
      node->saved_lists.emplace_back(i, std::move(l));
    } else {
      node->plain.emplace_back(i, checked(plain_object(op, i, o, slots[i])));
    }
  }
}

static bool holds(Op::NodeCase::Kind kind, const Operand &value, PyObject *given) {
  switch (kind) {
    case Op::NodeCase::kTensor: return value.kind == Arg::kTensor;
    case Op::NodeCase::kNumber: return value.kind == Arg::kScalar;
    case Op::NodeCase::kGiven: return given && given != Py_None;
    case Op::NodeCase::kOneDim: return value.kind == Arg::kTensor && value.tensor->shape().size() == 1;
    case Op::NodeCase::kTwoDims: return value.kind == Arg::kTensor && value.tensor->shape().size() == 2;
    default: return given && (PyTuple_Check(given) || PyList_Check(given));
  }
}

static bool fits(const Op::NodeCase &one, const Operand *v, PyObject **slots) {
  return std::all_of(one.conditions.begin(), one.conditions.end(),
                     [&](const auto &c) { return holds(c.first, v[c.second], slots[c.second]); });
}

static void choose_name(const Op &op, const Operand *v, PyObject **slots, OpNode *node) {
  if (op.chain_of_views) return node->rename(last_view(v[1]));
  for (const auto &one : op.node_cases)
    if (fits(one, v, slots)) return node->rename(one.name);
}

std::shared_ptr<OpNode> make_node(const Op &op, const Operand *before, PyObject **slots, size_t outputs) {
  auto node = Node::make<OpNode>(&op, outputs);
  choose_name(op, before, slots, node.get());
  node->inputs.resize(op.params.size());
  add_edges(op, before, node.get());
  save(op, before, slots, node.get());
  return node;
}

// Whether a formula that the backward will use reads this result.
static bool reads_result(const Op &op, const OpNode &node, size_t result) {
  if (!op.read_results[result]) return false;
  for (const Formula &f : op.formulas)
    for (const Need &need : f.needs)
      if (need.kind == Need::kResult && need.index == static_cast<int>(result) && is_wanted(f, node)) return true;
  return false;
}

static bool can_require_grad(const TensorPtr &t) {
  const DType d = from_ms(t->data_type());
  return is_floating(d) || is_complex(d);
}

void attach(const Op &op, const std::shared_ptr<OpNode> &node, const Tensors &results) {
  node->set_output_size(results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    node->add_output_metadata(results[i]);
    if (can_require_grad(results[i])) set_history(results[i], node, i);
  }
  // The others, such as the values of a dropout, need not live until the backward.
  for (size_t i = 0; i < std::min(results.size(), op.read_results.size()); ++i)
    node->results.push_back(reads_result(op, *node, i) ? SavedTensor(results[i], true) : SavedTensor());
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
static bool in_host_memory(const Operand &o) {
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
  if (op.kernel || op.kernel_name.empty()) return;
  op.kernel = find_operator(op.kernel_name);
  for (auto &entry : op.with_number)
    if (!entry.name.empty()) entry.kernel = find_operator(entry.name);
}

static bool any_off_host(const Op &op, const Operand *v) {
  return has_accelerator() && any_tensor(v, op.params.size(), [](const TensorPtr &t) { return !on_cpu(t); });
}

const Operator *mapping_for_number(const Op &op, const Operand *v) {
  if (op.with_number.empty()) return nullptr;
  const bool there = any_off_host(op, v);
  if (fast_path() && !there) return nullptr;  // our kernels take numbers
  for (auto &entry : op.with_number)
    if (entry.kernel && v[entry.param].kind == Arg::kScalar && v[entry.param].scalar.kind != Scalar::kComplex &&
        (!there || runs_on_accelerator(*entry.kernel)))
      return entry.kernel;
  return nullptr;
}

static const Operator *mapping(const Op &op, const Operand *v) {
  const Operator *with_number = mapping_for_number(op, v);
  return with_number ? with_number : op.kernel;
}

// Computes the results with the body for an NPU, if there is one that takes the call. Complex numbers are computed on
// the host.
static bool run_npu_body(const Op &op, const Operand *v, PyObject **slots, Results *r) {
  if (!op.npu_body || !any_off_host(op, v) || shape_only()) return false;
  const auto other = [](const TensorPtr &t) { return is_meta(t) || is_complex(from_ms(t->data_type())); };
  if (any_tensor(v, op.params.size(), other)) return false;
  *r = run_body(op, op.npu_body, v, slots);
  if (r->python.get() != Py_NotImplemented) return true;
  *r = Results();
  return false;
}

// Computes the results with the Python body or one kernel.
static Results run_declared(const Op &op, Operand *v, PyObject **slots) {
  Results r;
  if (run_npu_body(op, v, slots, &r)) return r;
  if (op.body) return run_body(op, op.body, v, slots);
  r.tensors = run_operator(mapping(op, v), v, static_cast<int>(op.params.size()));
  r.single = r.tensors.size() == 1;
  return r;
}

// Computes the results with the C++ body if it handles the call, else as declared.
static Results computed(const Op &op, Operand *v, PyObject **slots) {
  Results r;
  if (op.native_body && fast_path() && !shape_only() && scope_tag() == 0 && in_host_memory(v[0]) &&
      call_native(op, v, slots, &r.tensors)) {
    r.single = r.tensors.size() == 1;
    return r;
  }
  return run_declared(op, v, slots);
}

// A body may return its operand, or a view of a tensor that it has made (`rows.reshape(...)`). The result is then
// another tensor on the same memory, which is no view: a body is one operation to the caller, who may write to its
// result.
static void separate_results(const Op &op, const Operand *v, Results *r) {
  const int n = static_cast<int>(op.params.size());
  for (auto &t : r->tensors) {
    bool operand = false;
    for (int i = 0; i < n; ++i) operand = operand || (v[i].kind == Arg::kTensor && v[i].tensor == t);
    if (operand || (t && is_view(t)))
      t = alias_of(t);
    else if (inference_mode() && t)
      mark_inference(t);
  }
}

void set_view_of(const TensorPtr &view, const TensorPtr &base, PyObject *base_object, bool single) {
  const ViewKind kind = !grad_enabled() ? ViewKind::kNoGrad : single ? ViewKind::kNormal : ViewKind::kMultiOutput;
  // A view of the bytes as integers has no history.
  if (view->data_type() == base->data_type() || can_require_grad(view)) set_view(view, base, kind, base_object);
}

// Below the graph there are no views: the call that a __torch_dispatch__ answers makes its result one.
static void mark_views(const TensorPtr &base, PyObject *base_object, Results *r) {
  for (auto &t : r->tensors) {
    if (t == base) t = alias_of(t);
    if (!python_dispatch().inside) set_view_of(t, base, base_object, r->single);
  }
}

// The limits of an operator without type promotion, whose elements have the type of the first tensor.
static void check_limits_of_operands(const Op &op, const Operand *v) {
  for (size_t i = 0; i < op.params.size(); ++i)
    if (v[i].kind == Arg::kTensor) return check_limits(op, v, from_ms(v[i].tensor->data_type()));
}

// A copy of complex numbers as real ones loses their imaginary parts. PyTorch warns of that once, except for bool.
static void warn_of_lost_parts(const TensorPtr &from, DType to) {
  if (!from || is_complex(to) || to == DType::Bool || !is_complex(from_ms(from->data_type()))) return;
  warn_once("Casting complex values to real discards the imaginary part");
}

Ref run_functional(Op &op, Operand *v, PyObject **slots, bool autocast) {
  if (op.converted >= 0) warn_of_lost_parts(v[op.converted].tensor, v[1].dtype);
  std::vector<Ref> hold;
  if (autocast && autocasts(op)) apply_autocast(op, v, slots, &hold);
  const bool record = op.differentiable && grad_enabled() && any_requires_grad(op, v);
  // A hook gets the operands before the result is computed. A checkpoint thus ends its recomputation before the last
  // operator whose operands it needs.
  std::shared_ptr<OpNode> node;
  if (record && !saved_hooks_stack().empty()) node = make_node(op, v, slots, 1);
  const bool promotes = op.promote != Promote::kNone;
  if (op.limited && !promotes) check_limits_of_operands(op, v);
  Operands copy(v, promotes ? static_cast<int>(op.params.size()) : 0);
  if (promotes) promote(op, copy.data());
  Results r = computed(op, promotes ? copy.data() : v, slots);
  if (r.python) return r.python;
  if (op.view)
    mark_views(v[0].tensor, is_tensor(slots[0]) ? slots[0] : nullptr, &r);
  else
    separate_results(op, v, &r);
  if (record) attach(op, node ? node : make_node(op, v, slots, r.tensors.size()), r.tensors);
  return wrap_results(op, r);
}

static void refuse_shared_operand(const TensorPtr &self, const TensorPtr &operand) {
  check_overlap(self, operand);
  const bool same = operand->device_address() == self->device_address() && offset_of(operand) == offset_of(self);
  if (same && geometry_of(self).numel > 0 && operand->shape() == self->shape() &&
      strides_of(operand) == strides_of(self))
    fail(
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
        "location. Please clone() the tensor before performing the operation.");
}

// Refuses operands that share memory with the tensor that is written.
static void refuse_shared_operands(const Operand *v, int n) {
  for (int i = 1; i < n; ++i)
    if (v[i].kind == Arg::kTensor) refuse_shared_operand(v[0].tensor, v[i].tensor);
}

void refuse_shared_arguments(PyObject **slots, int n) {
  const TensorPtr self = unwrap(slots[0]);
  bool recorded = requires_grad(self);
  for (int i = 1; i < n; ++i) recorded = recorded || (is_tensor(slots[i]) && requires_grad(unwrap(slots[i])));
  check_inplace(self, recorded);
  for (int i = 1; i < n; ++i)
    if (is_tensor(slots[i])) refuse_shared_operand(self, unwrap(slots[i]));
}

static void warn_expanded(const Op &op, const TensorPtr &self) {
  const Tensor v = geometry_of(self);
  bool expanded = false;
  for (int d = 0; d < v.ndim; ++d) expanded = expanded || (v.strides[d] == 0 && v.sizes[d] > 1);
  if (!expanded) return;
  const std::string message = text("Use of ", op.name,
                                   "_ on expanded tensors is deprecated. Please clone() the tensor before performing "
                                   "this operation. This also applies to advanced indexing.");
  if (PyErr_WarnEx(PyExc_UserWarning, message.c_str(), 1) < 0) throw PythonError{};
}

static void check_result_cast(DType from, DType to) {
  if (category(from) > category(to))
    fail("result type ", dtype_name(from), " can't be cast to the desired output type ", dtype_name(to));
}

static void check_written_shape(const TensorPtr &self, const Operand *v, int n) {
  const Dims &shape = self->shape();
  for (int i = 0; i < n; ++i) {
    if (v[i].kind != Arg::kTensor) continue;
    const Dims &s = v[i].tensor->shape();
    bool fits = s.size() <= shape.size();
    for (size_t k = 0; fits && k < s.size(); ++k)
      fits = s[s.size() - 1 - k] == 1 || s[s.size() - 1 - k] == shape[shape.size() - 1 - k];
    if (fits) continue;
    Tensor a = geometry_of(self), b = geometry_of(v[i].tensor);
    fail("output with shape ", shape, " doesn't match the broadcast shape ", broadcast_shapes({&a, &b}));
  }
}

bool elementwise(const Op &op) { return !op.body && op.kernel->kernel && op.kernel->kernel->elementwise; }

// A copy without history, which a __torch_dispatch__ may make.
static TensorPtr copy_before_write(const TensorPtr &t) {
  if (!answered_in_python(t)) return run1("Clone", {Operand::of(t)});
  NoGrad guard;
  return unwrap(checked(PyObject_CallMethod(checked(wrap(t)).get(), "clone", nullptr)).get());
}

std::shared_ptr<OpNode> make_inplace_node(const Op &op, Operand *v, PyObject **slots) {
  if (op.saves_self) {
    const TensorPtr self = v[0].tensor;
    TensorPtr old = copy_before_write(self);
    if (requires_grad(self)) {
      Edge e = edge_of(self);
      set_history(old, e.grad_node, e.input_index);
    }
    v[0].tensor = old;
  }
  return make_node(op, v, slots, 1);
}

// MindSpore's operator that writes into `self` in an NPU's memory, if it has one that takes this call. Operands have
// been promoted, so a result of another dtype has operands of another dtype.
static const Operator *writer(const Op &op, const TensorPtr &self, const Operand *v, int n) {
  if (op.writers.empty() || v[0].tensor != self || !any_off_host(op, v) || is_meta(self)) return nullptr;
  if (from_ms(self->data_type()) == DType::Bool || is_complex(from_ms(self->data_type()))) return nullptr;
  const auto found = op.writers.find(mapping(op, v)->name);
  if (found == op.writers.end()) return nullptr;
  const Operator *own = find_operator(found->second);
  return runs_on_accelerator(*own) && !why_not_on_npu(*own, v, n) ? own : nullptr;
}

// What an in-place call computes: `self` where the kernel wrote there at once, else a tensor to be copied into it.
static TensorPtr computed_inplace(const Op &op, const TensorPtr &self, Operand *v, PyObject **slots, int n) {
  if (elementwise(op) && v[0].tensor == self && on_cpu(self)) {
    check_written_shape(self, v, n);
    return run_operator(op.kernel, v, n, &self)[0];
  }
  if (const Operator *own = writer(op, self, v, n)) {
    check_written_shape(self, v, n);
    run_operator(own, v, n);
    return self;
  }
  const Results r = run_declared(op, v, slots);
  if (r.python || r.tensors.empty()) fail(op.name, "_: the operator has no in-place form");
  return r.tensors[0];
}

static void copy_result(const TensorPtr &self, const TensorPtr &result, DType self_dtype) {
  check_result_cast(from_ms(result->data_type()), self_dtype);
  if (result->shape() != self->shape())
    fail("output with shape ", self->shape(), " doesn't match the broadcast shape ", result->shape());
  if (is_meta(result) && !is_meta(self)) throw NotImplementedError("Cannot copy out of meta tensor; no data!");
  ShapeOnly shapes(is_meta(self));
  copy_tensor(self, result);
}

void record_inplace(const Op &op, const TensorPtr &self, const TensorPtr &result, const std::shared_ptr<OpNode> &node) {
  rebase_history(self, node);
  if (!op.saves_result || !reads_result(op, *node, 0)) return;
  // A saved result without the history of its node would have no part in second derivatives.
  const TensorPtr written = alias_of(result);
  set_history(written, node, 0);
  node->results.clear();
  node->results.emplace_back(written, true);
}

Ref run_inplace(Op &op, Operand *v, PyObject **slots) {
  const int n = static_cast<int>(op.params.size());
  const TensorPtr self = v[0].tensor;
  if (op.converted >= 0) warn_of_lost_parts(v[op.converted].tensor, from_ms(self->data_type()));
  const bool recorded = anything_requires_grad(v, n);
  if (op.writes_expanded) {
    if (rare_facts(op).warns_expanded) warn_expanded(op, self);
    check_history(self, recorded);
  } else {
    check_inplace(self, recorded);
  }
  if (op.separate_operands) refuse_shared_operands(v, n);
  const DType self_dtype = from_ms(self->data_type());
  Operands copy(v, n);
  std::shared_ptr<OpNode> node;
  if (op.differentiable && grad_enabled() && any_requires_grad(op, v)) node = make_inplace_node(op, copy.data(), slots);
  if (op.promote != Promote::kNone)
    promote(op, copy.data());
  else if (op.limited)
    check_limits_of_operands(op, v);
  if (elementwise(op))
    for (int i = 1; i < n; ++i)
      if (v[i].kind == Arg::kTensor) check_overlap(self, v[i].tensor);
  const TensorPtr result = computed_inplace(op, self, copy.data(), slots, n);
  if (result != self) copy_result(self, result, self_dtype);
  if (!python_dispatch().inside) self->BumpVersion();  // else the call that a __torch_dispatch__ answers counts it
  if (node) record_inplace(op, self, result, node);
  return Ref::borrow(slots[0]);
}

}  // namespace msa

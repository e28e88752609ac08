#include "graph.h"

#include <atomic>
#include <mutex>
#include <typeinfo>

#include "below.h"

namespace msa {

using ag::AutoGradMetaData;
using mindspore::InputType;

PyObject *table_function(const char *name) {
  static PyObject *ops = nullptr;
  if (!ops) {
    Ref m = checked(PyImport_ImportModule("msadapter.ops"));
    ops = m.release();
  }
  Ref f = checked(PyObject_GetAttrString(ops, name));
  return f.get();  // the module keeps the function alive
}

// What a thread without the interpreter's lock was the last to own. A thread of MindSpore's queue must not wait for the
// lock, because the thread that has it may wait for the queue. The next thread with the lock that makes a node or a
// view drops these.
namespace {
std::mutex late_lock;
std::vector<PyObject *> late_objects;
std::vector<BackwardNode *> late_nodes;
std::atomic<bool> any_late{false};

template <class T>
void drop_later(std::vector<T *> *list, T *owned) {
  if (!Py_IsInitialized()) return;  // Python has ended, and with it its objects
  std::lock_guard<std::mutex> guard(late_lock);
  list->push_back(owned);
  any_late.store(true, std::memory_order_release);
}

struct Deleter : BackwardNode {
  static void run(BackwardNode *node) { CustomDeleter(node); }
};

void drop_late() {
  if (!any_late.load(std::memory_order_acquire) || !PyGILState_Check()) return;
  std::vector<PyObject *> objects;
  std::vector<BackwardNode *> nodes;
  {
    std::lock_guard<std::mutex> guard(late_lock);
    objects.swap(late_objects);
    nodes.swap(late_nodes);
    any_late.store(false, std::memory_order_release);
  }
  for (PyObject *o : objects) Py_DECREF(o);
  for (BackwardNode *n : nodes) Deleter::run(n);
}
}  // namespace

uint64_t Node::next_sequence() {
  thread_local uint64_t n = 0;
  drop_late();
  return n++;
}

Node::~Node() { drop_python(); }
void Node::destroy(BackwardNode *node) {
  if (PyGILState_Check()) return CustomDeleter(node);
  drop_later(&late_nodes, node);
}
void Node::drop_python() { python = nullptr; }

mindspore::ValuePtrList Node::CallBackward(const mindspore::ValuePtrList &grads) {
  Tensors in;
  for (auto &g : grads) in.push_back(g ? g->cast<TensorPtr>() : nullptr);
  Tensors out = apply(in);
  return mindspore::ValuePtrList(out.begin(), out.end());
}

// ---------------------------------------------------------------- metadata
namespace {

// What the graph knows of a tensor, beyond what MindSpore's class has. MindSpore's own class for views cannot be
// extended, so it is not used.
class Meta final : public AutoGradMetaData {
 public:
  explicit Meta(InputType type) : AutoGradMetaData(type) {}
  ~Meta() override {
    if (PyGILState_Check()) return;
    if (base_object) drop_later(&late_objects, base_object.release());
    if (own_object) drop_later(&late_objects, own_object.release());
  }
  TensorPtr base;        // set for views only
  Ref base_object;       // a weak reference to the Python object of the base, or null
  Ref own_object;        // of a base: a weak reference to the object that was made for its views, or null
  uint32_t version = 0;  // the version of the memory when the node of the view was made
  ViewKind kind = ViewKind::kNormal;
  bool inference = false;  // made under inference mode
};

AutoGradMetaData *meta(const TensorPtr &t) { return static_cast<AutoGradMetaData *>(t->auto_grad_meta_data().get()); }
Meta *own_meta(const TensorPtr &t) {
  auto *m = t->auto_grad_meta_data().get();
  return m && typeid(*m) == typeid(Meta) ? static_cast<Meta *>(m) : nullptr;
}
Meta *view_meta(const TensorPtr &t) {
  Meta *m = own_meta(t);
  return m && m->base ? m : nullptr;
}
AutoGradMetaData *ensure_meta(const TensorPtr &t, InputType type) {
  if (!meta(t)) t->set_auto_grad_meta_data(std::make_shared<Meta>(type));
  return meta(t);
}

thread_local bool inference_on = false;
std::atomic<bool> any_inference{false};  // whether a tensor was ever made under inference mode

}  // namespace

bool is_view(const TensorPtr &t) { return view_meta(t) != nullptr; }
TensorPtr base_of(const TensorPtr &t) {
  Meta *v = view_meta(t);
  return v ? v->base : nullptr;
}
PyObject *base_object(const TensorPtr &t) {
  Meta *v = view_meta(t);
  if (!v) Py_RETURN_NONE;
  PyObject *o = v->base_object ? PyWeakref_GetObject(v->base_object.get()) : Py_None;
  if (o == Py_None) {  // the program has dropped it; all views share one new object
    auto *m = ensure_meta(v->base, InputType::kUnkown);
    Meta *own = typeid(*m) == typeid(Meta) ? static_cast<Meta *>(m) : nullptr;
    o = own && own->own_object ? PyWeakref_GetObject(own->own_object.get()) : Py_None;
    if (o == Py_None) {
      Ref made = checked(wrap(v->base));
      if (own) own->own_object = checked(PyWeakref_NewRef(made.get(), nullptr));
      return made.release();
    }
  }
  Py_INCREF(o);
  return o;
}

bool inference_mode() { return inference_on; }
void set_inference_mode(bool on) { inference_on = on; }
bool is_inference(const TensorPtr &t) {
  if (!any_inference.load(std::memory_order_relaxed)) return false;
  Meta *m = own_meta(t);
  return m && m->inference;
}
void mark_inference(const TensorPtr &t) {
  if (meta(t) && !own_meta(t)) return;
  static_cast<Meta *>(ensure_meta(t, InputType::kUnkown))->inference = true;
  any_inference.store(true, std::memory_order_relaxed);
}

static BackwardNode *raw_node(const TensorPtr &t) {
  auto *m = meta(t);
  return m ? m->UnsafeGetGradNodeImpl().get() : nullptr;
}
size_t output_index(const TensorPtr &t) {
  auto *m = meta(t);
  return m ? m->output_index() : 0;
}
static bool is_accumulator(const BackwardNode *n) {
  auto *node = dynamic_cast<const Node *>(n);
  return node && node->is_accumulate();
}

// A view is stale if its memory has been written since its node was made.
static bool view_is_stale(const TensorPtr &t, const Meta *v) { return v->version != version_of(t); }

// The requires_grad that the user has set on a leaf.
static bool own_requirement(const AutoGradMetaData *m) {
  return m->input_type() != InputType::kOpOutput && m->AutoGradMetaData::requires_grad();
}

bool requires_grad(const TensorPtr &t) {
  auto *m = meta(t);
  if (!m) return false;
  const BackwardNode *node = raw_node(t);
  if ((node && !is_accumulator(node)) || own_requirement(m)) return true;
  TensorPtr base = base_of(t);
  return base && requires_grad(base);
}

bool is_leaf(const TensorPtr &t) {
  const BackwardNode *n = raw_node(t);
  return !n || is_accumulator(n);
}

Node *only_owned_node(const TensorPtr &t) {
  auto *m = own_meta(t);
  if (!m) return nullptr;
  const BackwardNodePtr node = m->UnsafeGetGradNodeImpl();
  return node.use_count() == 2 ? dynamic_cast<Node *>(node.get()) : nullptr;  // the tensor's, and this one
}

AccumulateGrad *accumulator(const TensorPtr &t) {
  auto *n = raw_node(t);
  return n && is_accumulator(n) ? static_cast<AccumulateGrad *>(n) : nullptr;
}

std::shared_ptr<AccumulateGrad> make_accumulator(const TensorPtr &t) {
  auto *m = ensure_meta(t, InputType::kInput);
  auto node = m->UnsafeGetGradNodeImpl();
  if (node && is_accumulator(node.get())) return std::static_pointer_cast<AccumulateGrad>(node);
  auto acc = Node::make<AccumulateGrad>(t);
  acc->add_output_metadata(t);
  m->set_grad_node(acc);
  return acc;
}

void renew_accumulator(const TensorPtr &t) {
  AccumulateGrad *old = accumulator(t);
  if (!old) return;
  auto made = Node::make<AccumulateGrad>(t);
  made->add_output_metadata(t);
  made->take_over(old);
  meta(t)->set_grad_node(made);
}

void set_requires_grad(const TensorPtr &t, bool value) {
  if (!is_leaf(t))
    fail("you can only change requires_grad flags of leaf variables.",
         value ? ""
               : " If you want to use a computed variable in a subgraph that doesn't require differentiation use "
                 "var_no_grad = var.detach().");
  const DType d = from_ms(t->data_type());
  if (value && !is_floating(d) && !is_complex(d)) fail("only Tensors of floating point dtype can require gradients");
  if (value && is_inference(t) && !inference_mode())
    fail("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  if (!value && !meta(t)) return;
  if (value) make_accumulator(t);
  meta(t)->set_input_type(InputType::kInput);
  meta(t)->set_requires_grad(value);
}

// Messages use short names: "Mul" for "MulBackward0", and "Lines" for a Function's "LinesBackward".
std::string short_name(const BackwardNodePtr &node) {
  if (!node) return "a function";
  const std::string &n = node->name();
  const size_t at = n.rfind("Backward");
  return at != std::string::npos && (at + 8 == n.size() || n.compare(at, n.npos, "Backward0") == 0) ? n.substr(0, at)
                                                                                                    : n;
}

// Refuses views whose history cannot record a write to themselves, or (`indirect`) to their base.
static void check_creation(const Meta *v, bool indirect) {
  if (v->kind == ViewKind::kNormal) return;
  auto node = v->UnsafeGetGradNodeImpl();
  if (node && is_accumulator(node.get())) node = nullptr;
  const bool inference = v->kind == ViewKind::kInference;
  const bool unrecorded = inference || v->kind == ViewKind::kNoGrad;
  const std::string mode = inference ? "inference mode and " : "no_grad mode and ";
  std::string who = "A view was created in " + mode;
  if (node) {
    who = text("Output ", static_cast<int64_t>(v->output_index()), " of ", short_name(node), " is a view ");
    who += unrecorded ? "of a view which was created in " + mode : std::string("and ");
  }
  who += indirect ? "its base or another view of its base has been modified inplace" : "is being modified inplace";
  who += inference ? " in normal mode." : node && !unrecorded ? "." : " with grad mode enabled.";
  switch (v->kind) {
    case ViewKind::kMultiOutput:
      fail(who,
           " This view is the output of a function that returns multiple views. Such functions do not allow the output "
           "views to be modified inplace. You should replace the inplace operation by an out-of-place one.");
    case ViewKind::kNoGrad:
    case ViewKind::kInference:
      fail(who,
           " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by "
           "moving both the view and the inplace either both inside the ",
           inference ? "inference_mode" : "no_grad",
           " block (if you don't want the inplace to be tracked) or both outside (if you want the inplace to be "
           "tracked).");
    default:
      fail(who,
           " This view was created inside a custom Function (or because an input was returned as-is) and the autograd "
           "logic to handle view+inplace would override the custom backward associated with the custom Function, "
           "leading "
           "to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the custom "
           "Function.");
  }
}

// A tensor that retains its gradient gets the gradient of its newest value.
static void move_retained(const BackwardNodePtr &from, size_t index, const NodePtr &to) {
  auto *old = dynamic_cast<Node *>(from.get());
  if (!old || old == to.get() || !old->has_hooks() || old->is_accumulate()) return;
  auto hook = old->hooks().retain_grad.find(index);
  if (hook == old->hooks().retain_grad.end()) return;
  to->hooks().retain_grad[0] = hook->second;
  old->hooks().retain_grad.erase(hook);
}

// The history of a view after a write is that of as_strided, which needs memory.
static void refuse_written_view(const TensorPtr &t) {
  if (has_object(t))
    throw NotImplementedError(
        "The gradient of a view after an in-place write, for a class with __torch_dispatch__, is not supported "
        "(docs/coverage.md)");
}

BackwardNodePtr grad_fn(const TensorPtr &t) {
  auto *m = meta(t);
  if (!m) return nullptr;
  if (auto *v = view_meta(t)) {
    const TensorPtr base = v->base;
    if (is_leaf(t) && !requires_grad(base)) return nullptr;
    if (view_is_stale(t, v)) {
      check_creation(v, true);
      refuse_written_view(t);
      NodePtr node = view_of_base(t, base);
      node->add_next_edge(edge_of(base));
      node->add_output_metadata(t);
      move_retained(v->UnsafeGetGradNodeImpl(), v->output_index(), node);
      v->set_grad_node(node);
      v->set_output_index(0);
      v->set_input_type(InputType::kOpOutput);
      v->set_requires_grad(true);
      v->version = version_of(t);
    }
  }
  auto node = m->UnsafeGetGradNodeImpl();
  return node && is_accumulator(node.get()) ? nullptr : node;
}

Edge edge_of(const TensorPtr &t) {
  if (!requires_grad(t)) return Edge();
  if (auto fn = grad_fn(t)) return Edge(fn, meta(t)->output_index());
  // A view made under no_grad has no edge to its base
  return own_requirement(meta(t)) ? Edge(make_accumulator(t), 0) : Edge();
}

void set_history(const TensorPtr &out, const BackwardNodePtr &node, size_t index) {
  auto *m = ensure_meta(out, InputType::kOpOutput);
  m->set_grad_node(node);
  m->set_input_type(InputType::kOpOutput);
  m->set_requires_grad(true);
  m->set_output_index(index);
  if (Meta *v = view_meta(out)) v->version = version_of(out);
}

void forget_history(const TensorPtr &t) {
  const bool inference = is_inference(t);
  if (accumulator(t))
    meta(t)->set_requires_grad(false);  // the leaf keeps its gradient
  else
    t->set_auto_grad_meta_data(nullptr);
  if (inference) mark_inference(t);
}

void share_leaf(const TensorPtr &t, const TensorPtr &leaf) {
  auto *m = ensure_meta(t, InputType::kInput);
  m->set_grad_node(make_accumulator(leaf));
  m->set_input_type(InputType::kInput);
  m->set_requires_grad(true);
}

void set_view(const TensorPtr &view, const TensorPtr &of, ViewKind kind, PyObject *of_object) {
  drop_late();
  if (is_inference(of)) return mark_inference(view);  // such a view has no history
  Meta *outer = view_meta(of);
  if (inference_on) kind = ViewKind::kInference;
  if (outer && outer->kind != ViewKind::kNormal && kind == ViewKind::kNormal) kind = outer->kind;
  auto m = std::make_shared<Meta>(InputType::kUnkown);
  m->base = outer ? outer->base : of;
  m->kind = kind;
  m->version = version_of(view);
  if (outer)
    m->base_object = outer->base_object;
  else if (of_object)
    m->base_object = checked(PyWeakref_NewRef(of_object, nullptr));
  view->set_auto_grad_meta_data(m);
}

void check_history(const TensorPtr &t, bool recorded) {
  if (is_inference(t) && !inference_on)
    fail(
        "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal "
        "tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details.");
  if (!recorded || !grad_enabled()) return;
  if (auto *m = view_meta(t)) {
    check_creation(m, false);
    if (requires_grad(t) && is_leaf(m->base))
      fail("a view of a leaf Variable that requires grad is being used in an in-place operation.");
  }
  if (requires_grad(t) && is_leaf(t))
    fail("a leaf Variable that requires grad is being used in an in-place operation.");
}

void check_inplace(const TensorPtr &t, bool recorded) {
  check_history(t, recorded);
  const Tensor v = geometry_of(t);
  for (int d = 0; d < v.ndim && v.numel > 0; ++d)
    if (v.strides[d] == 0 && v.sizes[d] > 1)
      fail(
          "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
          "Please clone() the tensor before performing the operation.");
}

void rebase_history(const TensorPtr &t, const NodePtr &node) {
  node->add_output_metadata(t);
  if (Meta *v = view_meta(t)) {
    const TensorPtr base = v->base;
    refuse_written_view(t);
    NodePtr slices = copy_slices(t, base, node);
    slices->add_output_metadata(base);
    move_retained(meta(base) ? meta(base)->UnsafeGetGradNodeImpl() : nullptr, output_index(base), slices);
    set_history(base, slices, 0);
    v->version = version_of(t) - 1;
    grad_fn(t);  // the view is stale, so its node is made again from the base
    return;
  }
  if (meta(t)) move_retained(meta(t)->UnsafeGetGradNodeImpl(), output_index(t), node);
  set_history(t, node, 0);
}

void become_view(const TensorPtr &t, const TensorPtr &made) {
  check_history(t, requires_grad(t));
  auto node = raw_node(made) ? std::static_pointer_cast<Node>(meta(made)->UnsafeGetGradNodeImpl()) : nullptr;
  TensorPtr geometry = alias_of(made);
  before_change(t);
  t->set_shape(geometry->shape());
  t->set_storage_info(geometry->storage_info());
  t->BumpVersion();
  if (!grad_enabled() || !node) return;
  if (Meta *v = view_meta(t)) {  // its base was not written, but from now on it has the new sizes and strides
    v->version = version_of(t) - 1;
    grad_fn(t);
    return;
  }
  if (meta(t)) move_retained(meta(t)->UnsafeGetGradNodeImpl(), output_index(t), node);
  set_history(t, node, meta(made)->output_index());
}

// ---------------------------------------------------------------- accumulation
TensorPtr add_gradients(const TensorPtr &a, const TensorPtr &b) {
  if ((grad_enabled() && (requires_grad(a) || requires_grad(b))) || answered_in_python(a) || has_object(b)) {
    return unwrap(checked(PyObject_CallFunctionObjArgs(table_function("add"), checked(wrap(a)).get(),
                                                       checked(wrap(b)).get(), nullptr))
                      .get());
  }
  static const Operator *op = find_operator("AddExt");
  Operand args[3] = {Operand::of(a), Operand::of(b), Operand::of(static_cast<int64_t>(1))};
  return run_operator(op, args, 3)[0];
}

void AccumulateGrad::remember(PyObject *leaf) {
  if (object_ && PyWeakref_GetObject(object_.get()) == leaf) return;
  object_ = checked(PyWeakref_NewRef(leaf, nullptr));
}
void AccumulateGrad::take_over(AccumulateGrad *other) {
  if (other->has_hooks()) {
    take_hooks(other);
    other->hooks() = hooks();            // the hooks of the tensor run in both nodes
    hooks().pre = hooks().post = Ref();  // those of the old node stay with it
  }
  grad = std::move(other->grad);
  object_ = std::move(other->object_);
}
PyObject *AccumulateGrad::object() const {
  TensorPtr t = leaf_.lock();
  PyObject *o = object_ ? PyWeakref_GetObject(object_.get()) : Py_None;
  if (o == Py_None && t) return wrap(t);
  Py_INCREF(o);
  return o;
}

// A copy of a gradient with the strides of its leaf, if these are dense. It is recorded where a graph is.
static TensorPtr copied_gradient(const TensorPtr &g, const TensorPtr &leaf) {
  const Dims strides = strides_of(leaf);
  const bool keep = is_dense(leaf->shape(), strides);
  TensorPtr fresh = new_tensor(from_ms(leaf->data_type()), leaf->shape().data(), static_cast<int>(leaf->shape().size()),
                               keep ? strides.data() : nullptr);
  if (grad_enabled())
    checked(PyObject_CallMethod(checked(wrap(fresh)).get(), "copy_", "O", checked(wrap(g)).get()));
  else
    copy_tensor(fresh, g);
  return fresh;
}

// The sum of `have` and a further gradient, or a first gradient, where a __torch_dispatch__ answers operators on it.
static Ref accumulated_in_python(const Ref &have, const TensorPtr &g) {
  Ref object = checked(wrap(g));
  if (!have) return checked(PyObject_CallMethod(object.get(), grad_enabled() ? "clone" : "detach", nullptr));
  return checked(PyObject_CallMethod(have.get(), grad_enabled() ? "add" : "add_", "O", object.get()));
}

Tensors AccumulateGrad::apply(const Tensors &grads) {
  TensorPtr leaf = leaf_.lock();
  const TensorPtr &g = grads[0];
  if (leaf && !is_leaf(leaf)) fail("leaf variable has been moved into the graph interior");
  if (!g || !leaf || !requires_grad(leaf)) return {};
  if (AccumulateGrad *now = accumulator(leaf); now && now != this) return now->apply(grads);
  if (has_object(g) || (grad && has_object(unwrap(grad.get())))) {
    grad = accumulated_in_python(grad, g);
    return {};
  }
  const bool graph = grad_enabled();
  if (grad) {
    TensorPtr have = unwrap(grad.get());
    if (graph) {
      grad = checked(wrap(add_gradients(have, g)));
      return {};
    }
    static const Operator *op = find_operator("AddExt");
    Operand args[3] = {Operand::of(have), Operand::of(g), Operand::of(static_cast<int64_t>(1))};
    Tensors r = run_operator(op, args, 3, &have);
    have->BumpVersion();
    return {};
  }
  // The gradient is used without a copy only if nothing else refers to it and it has the strides of the leaf. Hooks
  // that run after this node get the same tensor, as in PyTorch. On an NPU, MindSpore's queue refers to its memory
  // until the operator has been launched, so the gradient may be copied there.
  const bool alone = !graph && g.use_count() <= (has_post_hooks() ? 2 : 1) && g->device_address().use_count() <= 1;
  const bool same_layout =
      strides_of(g) == strides_of(leaf) && offset_of(g) == 0 && g->data_type() == leaf->data_type();
  if (alone && same_layout) {
    g->set_auto_grad_meta_data(nullptr);
    grad = checked(wrap(g));
    return {};
  }
  grad = checked(wrap(copied_gradient(g, leaf)));
  return {};
}

}  // namespace msa

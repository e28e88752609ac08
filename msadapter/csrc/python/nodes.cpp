// The Python type of graph nodes, and the node of torch.autograd.Function.
#include "arguments.h"

namespace msa {

PyTypeObject *node_type = nullptr;

namespace {

struct NodeObject {
  PyObject_HEAD BackwardNodePtr *node;
  PyObject *dict;
};

Node *ours(PyObject *o) { return dynamic_cast<Node *>(reinterpret_cast<NodeObject *>(o)->node->get()); }

// One Python class per kind of node: type(x.grad_fn).__name__ is "AddBackward0".
PyObject *class_for(const std::string &name) {
  static std::unordered_map<std::string, PyObject *> classes;
  auto it = classes.find(name);
  if (it != classes.end()) return it->second;
  PyObject *c = PyObject_CallFunction(reinterpret_cast<PyObject *>(&PyType_Type), "s(O){s:s}", name.c_str(), node_type,
                                      "__module__", "torch.autograd.graph");
  if (!c) throw PythonError{};
  return classes[name] = c;
}

// A gradient of shape `from` can be summed to `to`.
bool reducible(const Dims &from, const Dims &to) {
  if (from.size() < to.size()) return false;
  for (size_t i = 0; i < to.size(); ++i) {
    const int64_t have = from[from.size() - to.size() + i];
    if (to[i] != have && to[i] != 1) return false;
  }
  return true;
}

// The node of a torch.autograd.Function. The context object is the Python object of the node.
class FunctionNode final : public Node {
 public:
  FunctionNode(const std::string &name, size_t outputs, PyObject *ctx, PyObject *backward)
      : Node(name, outputs), ctx_(Ref::borrow(ctx)), backward_(Ref::borrow(backward)) {}
  Tensors apply(const Tensors &grads) override {
    Ref g = checked(PyTuple_New(grads.size()));
    for (size_t i = 0; i < grads.size(); ++i) {
      PyObject *e = grads[i] ? wrap(grads[i]) : Py_None;
      if (!grads[i]) Py_INCREF(e);
      PyTuple_SET_ITEM(g.get(), i, e);
    }
    // The context refers to its node only while backward runs, because otherwise they would keep each other alive.
    Ref self = checked(node_object(shared_from_this()));
    Ref r = checked(PyObject_CallFunctionObjArgs(backward_.get(), ctx_.get(), self.get(), g.get(), nullptr));
    Tensors out;
    Ref seq = checked(PySequence_Fast(r.get(), "backward must return a tuple"));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(seq.get()); ++i) {
      PyObject *e = PySequence_Fast_GET_ITEM(seq.get(), i);
      TensorPtr t = e == Py_None ? nullptr : unwrap(e);
      if (t && static_cast<size_t>(i) < meta.size()) {
        if (!reducible(t->shape(), meta[i].first))
          fail("Function ", name(), " returned an invalid gradient at index ", static_cast<int64_t>(i), " - got ",
               t->shape(), " but expected shape compatible with ", meta[i].first);
        t = reduce_to(t, meta[i].first, meta[i].second);
      }
      out.push_back(t);
    }
    return out;
  }
  bool runs_without_gradient() const override { return true; }
  void Release() override {
    for (auto &s : saved) s.reset();
    released = true;
  }
  PyObject *ctx() const { return ctx_.get(); }
  std::vector<SavedTensor> saved;
  bool released = false;
  std::vector<std::pair<Dims, DType>> meta;  // per edge
 private:
  Ref ctx_, backward_;
};

// A node whose gradients a Python function computes from a tuple of gradients, one for each output.
class CalledNode final : public Node {
 public:
  CalledNode(const std::string &name, size_t outputs, PyObject *function)
      : Node(name, outputs), function_(Ref::borrow(function)) {}
  Tensors apply(const Tensors &grads) override {
    Ref given = checked(PyTuple_New(grads.size()));
    for (size_t i = 0; i < grads.size(); ++i) PyTuple_SET_ITEM(given.get(), i, python_tensor(grads[i]).release());
    Ref r = checked(PyObject_CallFunctionObjArgs(function_.get(), given.get(), nullptr));
    Ref seq = checked(PySequence_Fast(r.get(), "the function of a node must return a sequence"));
    Tensors out;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(seq.get()); ++i) {
      PyObject *e = PySequence_Fast_GET_ITEM(seq.get(), i);
      out.push_back(e == Py_None ? nullptr : arg_tensor(e));
    }
    return out;
  }
  bool single_use() const override { return false; }
  bool runs_without_gradient() const override { return true; }

 private:
  Ref function_;
};

// make_called_node(name, function, inputs, outputs) -> node. Its gradients go to `inputs`, tensors that require grad.
// Its first outputs are the tensors `outputs`, whose history it becomes; a number stands for outputs that are no
// tensors here.
PyObject *make_called_node(PyObject *, PyObject *const *a, Py_ssize_t n) {
  return guarded([&] {
    expect(n, 4);
    Ref inputs = checked(PySequence_Fast(a[2], "inputs must be a sequence"));
    const bool counted = PyLong_Check(a[3]);
    Ref outputs = counted ? Ref() : checked(PySequence_Fast(a[3], "outputs must be a sequence or a number"));
    const size_t count = counted ? static_cast<size_t>(int_from(a[3])) : PySequence_Fast_GET_SIZE(outputs.get());
    auto node = Node::make<CalledNode>(PyUnicode_AsUTF8(a[0]), count, a[1]);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(inputs.get()); ++i)
      node->add_next_edge(edge_of(arg_tensor(PySequence_Fast_GET_ITEM(inputs.get(), i))));
    for (size_t i = 0; !counted && i < count; ++i) {
      TensorPtr t = arg_tensor(PySequence_Fast_GET_ITEM(outputs.get(), i));
      node->add_output_metadata(t);
      set_history(t, node, i);
    }
    return node_object(node);
  });
}

constexpr const char *EDGES = "msadapter.function_edges";

// Returns the histories of a Function's arguments. They are taken before forward runs, because an in-place write in
// forward must not change them.
PyObject *function_edges(PyObject *, PyObject *arguments) {
  try {
    Ref inputs = checked(PySequence_Fast(arguments, "function_edges takes a sequence"));
    auto edges = std::make_unique<std::vector<Edge>>();
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(inputs.get()); ++i) {
      PyObject *o = PySequence_Fast_GET_ITEM(inputs.get(), i);
      edges->push_back(is_tensor(o) ? edge_of(unwrap(o)) : Edge());
    }
    Ref capsule = checked(PyCapsule_New(edges.get(), EDGES, [](PyObject *c) {
      delete static_cast<std::vector<Edge> *>(PyCapsule_GetPointer(c, EDGES));
    }));
    edges.release();
    return capsule.release();
  } catch (...) {
    translate_exception();
    return nullptr;
  }
}

// The node holds the tensors that a Function has saved. The context gets them with function_saved.
PyObject *make_function_node(PyObject *, PyObject *const *a, Py_ssize_t n) {
  // (name, ctx, backward, inputs, outputs, saved, dirty, edges of the inputs)  -> node capsule object
  try {
    if (n != 8) throw TypeError("make_function_node takes 8 arguments");
    auto *edges = static_cast<std::vector<Edge> *>(PyCapsule_GetPointer(a[7], EDGES));
    if (!edges) throw PythonError{};
    Ref inputs = checked(PySequence_Fast(a[3], "")), outputs = checked(PySequence_Fast(a[4], "")),
        saved = checked(PySequence_Fast(a[5], "")), written = checked(PySequence_Fast(a[6], ""));
    auto node = Node::make<FunctionNode>(PyUnicode_AsUTF8(a[0]), PySequence_Fast_GET_SIZE(outputs.get()), a[1], a[2]);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(inputs.get()); ++i) {
      PyObject *o = PySequence_Fast_GET_ITEM(inputs.get(), i);
      node->add_next_edge(edges->at(i));
      if (!is_tensor(o)) {
        node->meta.emplace_back(Dims{}, DType::F32);
        continue;
      }
      TensorPtr t = unwrap(o);
      node->meta.emplace_back(t->shape(), from_ms(t->data_type()));
    }
    std::unordered_set<MsTensor *> made;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(outputs.get()); ++i) {
      PyObject *o = PySequence_Fast_GET_ITEM(outputs.get(), i);
      if (!is_tensor(o)) continue;
      TensorPtr t = unwrap(o);
      made.insert(t.get());
      const DType d = from_ms(t->data_type());
      bool dirty = false;  // the same object; PySequence_Contains would compare the elements
      for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(written.get()); ++k)
        dirty = dirty || PySequence_Fast_GET_ITEM(written.get(), k) == o;
      node->add_output_metadata(t);
      if (!is_floating(d) && !is_complex(d)) continue;
      if (dirty && is_view(t))
        rebase_history(t, node);
      else
        set_history(t, node, i);
    }
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(saved.get()); ++i) {
      PyObject *o = PySequence_Fast_GET_ITEM(saved.get(), i);
      TensorPtr t = o == Py_None ? nullptr : unwrap(o);
      node->saved.emplace_back(t, t && made.count(t.get()));
    }
    return node_object(node);
  } catch (...) {
    translate_exception();
    return nullptr;
  }
}
PyObject *function_saved(PyObject *, PyObject *o) {  // node -> tuple of saved tensors
  try {
    auto *f = dynamic_cast<FunctionNode *>(ours(o));
    if (!f) throw TypeError("not the node of a Function");
    Ref r = checked(PyTuple_New(f->saved.size()));
    for (size_t i = 0; i < f->saved.size(); ++i) {
      TensorPtr t = f->saved[i].unpack(f);
      PyObject *e = t ? wrap(t) : Py_None;
      if (!t) Py_INCREF(e);
      PyTuple_SET_ITEM(r.get(), i, e);
    }
    return r.release();
  } catch (...) {
    translate_exception();
    return nullptr;
  }
}
PyObject *node_context(PyObject *, PyObject *o) {
  auto *f = dynamic_cast<FunctionNode *>(ours(o));
  PyObject *r = f ? f->ctx() : Py_None;
  Py_INCREF(r);
  return r;
}

// The objects that this one keeps alive. Hooks of the node often refer to the node again. They belong to this object
// only if nothing else, for example a tensor or another node, keeps the node.
int node_traverse(PyObject *o, visitproc visit, void *arg) {
  auto *n = reinterpret_cast<NodeObject *>(o);
  Py_VISIT(Py_TYPE(o));
  Py_VISIT(n->dict);
  if (!n->node || n->node->use_count() != 1) return 0;
  auto *mine = dynamic_cast<Node *>(n->node->get());
  return mine ? visit_references(mine, visit, arg) : 0;
}
int node_clear(PyObject *o) {
  auto *n = reinterpret_cast<NodeObject *>(o);
  Py_CLEAR(n->dict);
  if (!n->node || n->node->use_count() != 1) return 0;
  if (auto *mine = dynamic_cast<Node *>(n->node->get()); mine && mine->has_hooks()) mine->hooks() = HookSet();
  return 0;
}

void node_dealloc(PyObject *o) {
  PyObject_GC_UnTrack(o);
  auto *n = reinterpret_cast<NodeObject *>(o);
  if (auto *mine = dynamic_cast<Node *>(n->node->get()))
    if (mine->python == o) mine->python = nullptr;
  Py_XDECREF(n->dict);
  delete n->node;
  PyTypeObject *t = Py_TYPE(o);
  t->tp_free(o);
  Py_DECREF(t);
}
PyObject *node_name(PyObject *o, PyObject *) {
  const auto &node = *reinterpret_cast<NodeObject *>(o)->node;
  const bool prefixed = node->IsLeaf() || node->name() == "CopyBackwards";  // PyTorch writes these two by hand
  return PyUnicode_FromFormat("%s%s", prefixed ? "torch::autograd::" : "", node->name().c_str());
}
// node(*gradients): the gradients of its inputs, one of them alone or a tuple
PyObject *node_call(PyObject *o, PyObject *arguments, PyObject *keywords) {
  return guarded([&]() -> PyObject * {
    if (keywords && PyDict_Size(keywords)) throw TypeError("keyword arguments are not supported");
    Node *node = ours(o);
    check(node != nullptr, "a node that MindSpore recorded itself cannot be called");
    const Py_ssize_t n = PyTuple_GET_SIZE(arguments);
    if (n != static_cast<Py_ssize_t>(node->output_size()))
      throw TypeError(text("expected ", static_cast<int64_t>(node->output_size()), " arguments, got ",
                           static_cast<int64_t>(n), " instead"));
    Tensors grads;
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject *g = PyTuple_GET_ITEM(arguments, i);
      if (g != Py_None && !is_tensor(g))
        throw TypeError(text("argument ", static_cast<int64_t>(i), " is not a Variable"));
      grads.push_back(g == Py_None ? nullptr : unwrap(g));
    }
    const Tensors out = node->apply(grads);
    Ref r = checked(PyTuple_New(out.size()));
    for (size_t i = 0; i < out.size(); ++i) PyTuple_SET_ITEM(r.get(), i, python_tensor(out[i]).release());
    return out.size() == 1 ? Ref::borrow(PyTuple_GET_ITEM(r.get(), 0)).release() : r.release();
  });
}
// (shape, dtype) of each output of the recorded operation, which are the inputs of the node
PyObject *node_input_metadata(PyObject *o, PyObject *) {
  return guarded([&] {
    auto &all = (*reinterpret_cast<NodeObject *>(o)->node)->mutable_metadata();
    Ref r = checked(PyList_New(all.size()));
    for (size_t i = 0; i < all.size(); ++i) {
      Ref entry = all[i].dtype() ? checked(Py_BuildValue("(NO)", int_tuple(all[i].shape()),
                                                         dtype_object(from_ms(all[i].dtype()->type_id()))))
                                 : Ref::borrow(Py_None);
      PyList_SET_ITEM(r.get(), i, entry.release());
    }
    return r.release();
  });
}
PyObject *node_next(PyObject *o, void *) {
  try {
    auto &edges = (*reinterpret_cast<NodeObject *>(o)->node)->next_edges();
    Ref r = checked(PyTuple_New(edges.size()));
    for (size_t i = 0; i < edges.size(); ++i) {
      Ref n = edges[i].is_defined() ? checked(node_object(edges[i].grad_node)) : Ref::borrow(Py_None);
      PyTuple_SET_ITEM(r.get(), i, Py_BuildValue("(On)", n.get(), static_cast<Py_ssize_t>(edges[i].input_index)));
    }
    return r.release();
  } catch (...) {
    translate_exception();
    return nullptr;
  }
}
PyObject *node_variable(PyObject *o, void *) {
  auto *acc = dynamic_cast<AccumulateGrad *>(ours(o));
  if (!acc) {
    PyErr_SetString(PyExc_AttributeError, "variable");
    return nullptr;
  }
  return acc->object();
}
// hooks(kind, output_index): the OrderedDict whose values are called. The kinds are tensor_pre, retain_grad, pre, post
// and post_accumulate. Handles hold weak references to it, which Python's plain dict does not have.
PyObject *node_hooks(PyObject *o, PyObject *args) {
  const char *kind;
  Py_ssize_t index = 0;
  if (!PyArg_ParseTuple(args, "s|n", &kind, &index)) return nullptr;
  Node *n = ours(o);
  if (!n) {
    PyErr_SetString(PyExc_NotImplementedError,
                    "hooks on nodes that MindSpore recorded itself are not supported (docs/coverage.md)");
    return nullptr;
  }
  const std::string k = kind;
  HookSet &h = n->hooks();
  Ref *slot = k == "tensor_pre" ? &h.tensor_pre[index]
              : k == "pre"      ? &h.pre
              : k == "post"     ? &h.post
                                : &h.post_accumulate;
  if (!*slot) *slot = Ref(PyODict_New());
  Py_INCREF(slot->get());
  return slot->get();
}
PyObject *node_retain(PyObject *o, PyObject *args) {  // (output index, callable)
  Py_ssize_t index;
  PyObject *f;
  if (!PyArg_ParseTuple(args, "nO", &index, &f)) return nullptr;
  Node *n = ours(o);
  if (n) n->hooks().retain_grad[index] = Ref::borrow(f);
  Py_RETURN_NONE;
}
PyObject *node_set_sequence(PyObject *o, PyObject *value) {
  const unsigned long long n = PyLong_AsUnsignedLongLong(value);
  if (PyErr_Occurred()) return nullptr;
  Node *node = ours(o);
  if (!node) {
    PyErr_SetString(PyExc_NotImplementedError,
                    "_set_sequence_nr: a node of MindSpore's own is not supported (docs/coverage.md)");
    return nullptr;
  }
  node->set_sequence(n);
  Py_RETURN_NONE;
}
PyObject *node_sequence(PyObject *o, PyObject *) {
  Node *n = ours(o);
  return PyLong_FromUnsignedLongLong(n ? n->sequence() : (*reinterpret_cast<NodeObject *>(o)->node)->seq_id());
}
PyObject *node_needs(PyObject *o, PyObject *) {  // the edges whose gradients the running backward needs
  Node *n = ours(o);
  const size_t m = n->next_edges().size();
  PyObject *r = PyTuple_New(m);
  for (size_t i = 0; i < m; ++i) {
    PyObject *b = n->needs(i) ? Py_True : Py_False;
    Py_INCREF(b);
    PyTuple_SET_ITEM(r, i, b);
  }
  return r;
}
PyObject *node_will_execute(PyObject *o, PyObject *) {
  try {
    return PyBool_FromLong(will_execute(*reinterpret_cast<NodeObject *>(o)->node));
  } catch (...) {
    translate_exception();
    return nullptr;
  }
}
PyObject *node_meta(PyObject *o, void *) {
  // The dict belongs to the node, because the Python object may be destroyed and created again. MindSpore's nodes have
  // no place for it.
  if (Node *mine = ours(o)) {
    if (!mine->metadata) mine->metadata = Ref(PyDict_New());
    Py_XINCREF(mine->metadata.get());
    return mine->metadata.get();
  }
  auto *n = reinterpret_cast<NodeObject *>(o);
  if (!n->dict) n->dict = PyDict_New();
  Py_XINCREF(n->dict);
  return n->dict;
}

// ---------------------------------------------------------------- saved values
// A saved tensor of a node, before its hooks unpack it. It keeps the node alive.
struct SavedObject {
  PyObject_HEAD BackwardNodePtr *node;
  SavedTensor *saved;
};
PyTypeObject *saved_type = nullptr;

void saved_dealloc(PyObject *o) {
  delete reinterpret_cast<SavedObject *>(o)->node;
  PyTypeObject *t = Py_TYPE(o);
  t->tp_free(o);
  Py_DECREF(t);
}
PyObject *saved_new(PyTypeObject *, PyObject *, PyObject *) {
  PyErr_SetString(PyExc_RuntimeError, "Trying to create a SavedTensor object from Python is forbidden.");
  return nullptr;
}
PyObject *saved_register_hooks(PyObject *o, PyObject *const *a, Py_ssize_t n) {
  return guarded([&]() -> PyObject * {
    if (n != 2 || !PyCallable_Check(a[0]) || !PyCallable_Check(a[1]))
      throw TypeError(
          "register_hooks(): incompatible function arguments. It takes two callables: a hook that packs a tensor, and "
          "one that unpacks it.");
    reinterpret_cast<SavedObject *>(o)->saved->register_hooks(a[0], a[1]);
    Py_RETURN_NONE;
  });
}
PyMethodDef saved_methods[] = {
    {"register_hooks", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(saved_register_hooks)), METH_FASTCALL,
     "register_hooks(pack_hook, unpack_hook)"},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot saved_slots[] = {{Py_tp_dealloc, reinterpret_cast<void *>(saved_dealloc)},
                             {Py_tp_new, reinterpret_cast<void *>(saved_new)},
                             {Py_tp_methods, saved_methods},
                             {0, nullptr}};
PyType_Spec saved_spec = {"torch._C._autograd.SavedTensor", sizeof(SavedObject), 0, Py_TPFLAGS_DEFAULT, saved_slots};

// The saved tensor itself for raw=true, else the tensor that it unpacks to.
Ref saved_value(Node *node, SavedTensor *saved, bool raw) {
  if (!raw) return python_tensor(saved->unpack(node));
  if (saved->released()) saved->unpack(node);  // raises the error of a graph that has been freed
  Ref o = checked(saved_type->tp_alloc(saved_type, 0));
  auto *made = reinterpret_cast<SavedObject *>(o.get());
  made->node = new BackwardNodePtr(node->shared_from_this());
  made->saved = saved;
  return o;
}
Ref saved_values(Node *node, std::vector<SavedTensor> *all, bool raw) {
  Ref r = checked(PyTuple_New(all->size()));
  for (size_t i = 0; i < all->size(); ++i) PyTuple_SET_ITEM(r.get(), i, saved_value(node, &(*all)[i], raw).release());
  return r;
}

// The value that an operator's node keeps under this name: a parameter, or a result. Null if there is none.
Ref saved_by_name(OpNode *node, PyObject *name, bool raw) {
  const auto &params = node->op->params;
  for (size_t i = 0; i < params.size(); ++i) {
    if (PyUnicode_Compare(params[i].name, name) != 0) continue;
    const int number = static_cast<int>(i);
    for (auto &s : node->saved)
      if (s.first == number) return saved_value(node, &s.second, raw);
    for (auto &l : node->saved_lists)
      if (l.first == number) return saved_values(node, &l.second, raw);
    for (auto &p : node->plain)
      if (p.first == number && !raw) return p.second;
  }
  const Py_ssize_t length = PyUnicode_GetLength(name);
  if (!node->op->saves_result || length < 6) return Ref();
  for (size_t i = 0; i < node->results.size(); ++i) {
    if (!node->op->read_results[i]) continue;
    const std::string own = node->output_size() == 1 ? "result" : text("result", static_cast<int64_t>(i));
    if (PyUnicode_CompareWithASCIIString(name, own.c_str()) == 0) return saved_value(node, &node->results[i], raw);
  }
  return Ref();
}

// node_saved(node, name, raw): what the node keeps for its backward under this name, or NotImplemented
PyObject *node_saved(PyObject *, PyObject *const *a, Py_ssize_t n) {
  return guarded([&]() -> PyObject * {
    expect(n, 3);
    const bool raw = a[2] == Py_True;
    Node *node = ours(a[0]);
    if (auto *f = dynamic_cast<FunctionNode *>(node)) {
      if (PyUnicode_CompareWithASCIIString(a[1], "tensors") == 0) {
        if (f->released)
          fail(
              "Trying to backward through the graph a second time (or directly access saved tensors after they have "
              "already been freed). Saved intermediate values of the graph are freed when you call .backward() or "
              "autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or "
              "if you need to access saved tensors after calling backward.");
        return saved_values(f, &f->saved, raw).release();
      }
    } else if (auto *op = dynamic_cast<OpNode *>(node)) {
      if (Ref r = saved_by_name(op, a[1], raw)) return r.release();
    }
    Py_RETURN_NOTIMPLEMENTED;
  });
}

PyMethodDef node_methods[] = {
    {"name", node_name, METH_NOARGS, "kind of the node"},
    {"_input_shapes_and_dtypes", node_input_metadata, METH_NOARGS, nullptr},
    {"_hooks", node_hooks, METH_VARARGS, nullptr},
    {"_retain", node_retain, METH_VARARGS, nullptr},
    {"_sequence_nr", node_sequence, METH_NOARGS, nullptr},
    {"_set_sequence_nr", node_set_sequence, METH_O, "the place among nodes that are ready: larger ones run earlier"},
    {"_will_execute", node_will_execute, METH_NOARGS, "whether the running backward reaches it"},
    {"_needs", node_needs, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef node_getset[] = {{"next_functions", node_next, nullptr, "(node, index) of every input", nullptr},
                             {"variable", node_variable, nullptr, "leaf of an AccumulateGrad", nullptr},
                             {"metadata", node_meta, nullptr, "dict for the user", nullptr},
                             {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot node_slots[] = {{Py_tp_dealloc, reinterpret_cast<void *>(node_dealloc)},
                            {Py_tp_traverse, reinterpret_cast<void *>(node_traverse)},
                            {Py_tp_clear, reinterpret_cast<void *>(node_clear)},
                            {Py_tp_call, reinterpret_cast<void *>(node_call)},
                            {Py_tp_methods, node_methods},
                            {Py_tp_getset, node_getset},
                            {0, nullptr}};
PyType_Spec node_spec = {
    "torch.autograd.graph.Node", sizeof(NodeObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_HAVE_GC, node_slots};

PyObject *node_class(PyObject *, PyObject *name) {  // the Python class of the nodes with this name
  return guarded([&] {
    const char *text = PyUnicode_AsUTF8(name);
    if (!text) throw PythonError{};
    return Ref::borrow(class_for(text)).release();
  });
}

PyMethodDef nodes_functions[] = {
    {"node_class", node_class, METH_O, nullptr},
    {"function_edges", function_edges, METH_O, nullptr},
    {"make_function_node", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(make_function_node)),
     METH_FASTCALL, nullptr},
    {"function_saved", function_saved, METH_O, nullptr},
    {"make_called_node", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(make_called_node)), METH_FASTCALL,
     nullptr},
    {"node_context", node_context, METH_O, nullptr},
    {"node_saved", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(node_saved)), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int visit_references(Node *node, visitproc visit, void *arg) {
  Py_VISIT(node->metadata.get());
  if (auto *f = dynamic_cast<FunctionNode *>(node)) Py_VISIT(f->ctx());
  if (!node->has_hooks()) return 0;
  HookSet &h = node->hooks();
  for (auto &entry : h.tensor_pre) Py_VISIT(entry.second.get());
  for (auto &entry : h.retain_grad) Py_VISIT(entry.second.get());
  Py_VISIT(h.pre.get());
  Py_VISIT(h.post.get());
  Py_VISIT(h.post_accumulate.get());
  return 0;
}

PyObject *node_object(const BackwardNodePtr &node) {
  auto *mine = dynamic_cast<Node *>(node.get());
  if (mine && mine->python) {
    Py_INCREF(mine->python);
    return mine->python;
  }
  auto *c = reinterpret_cast<PyTypeObject *>(class_for(node->name()));
  PyObject *o = c->tp_alloc(c, 0);
  if (!o) throw PythonError{};
  auto *n = reinterpret_cast<NodeObject *>(o);
  n->node = new BackwardNodePtr(node);
  n->dict = nullptr;
  if (mine) mine->python = o;
  return o;
}

BackwardNodePtr node_from(PyObject *o) {
  if (!PyObject_TypeCheck(o, node_type)) return nullptr;
  return *reinterpret_cast<NodeObject *>(o)->node;
}

bool init_nodes(PyObject *module) {
  node_type = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&node_spec));
  saved_type = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&saved_spec));
  if (!node_type || !saved_type || PyModule_AddFunctions(module, nodes_functions) < 0) return false;
  Py_INCREF(node_type);
  Py_INCREF(saved_type);
  if (PyModule_AddObject(module, "SavedTensor", reinterpret_cast<PyObject *>(saved_type)) < 0) return false;
  return PyModule_AddObject(module, "Node", reinterpret_cast<PyObject *>(node_type)) == 0;
}

}  // namespace msa

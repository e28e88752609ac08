// Functions of `_C` about autograd: gradients of leaves, backward passes, hooks of saved tensors, the grad mode, views.
#include "../autograd/below.h"
#include "arguments.h"

namespace msa {
namespace {

MSA_FUNCTION(get_grad) {
  return guarded([&]() -> PyObject * {
    (void)n;
    auto *acc = accumulator(arg_tensor(a[0]));
    if (!acc || !acc->grad) Py_RETURN_NONE;
    Py_INCREF(acc->grad.get());
    return acc->grad.get();
  });
}
// set_grad(t, grad | None) -> whether the node of the leaf holds the gradient
MSA_FUNCTION(set_grad) {
  return guarded([&]() -> PyObject * {
    expect(n, 2);
    TensorPtr t = arg_tensor(a[0]);
    if (!is_leaf(t)) Py_RETURN_FALSE;
    auto acc = a[1] == Py_None ? nullptr : make_accumulator(t);
    auto *have = accumulator(t);
    if (have) have->grad = a[1] == Py_None ? Ref() : Ref::borrow(a[1]);
    (void)acc;
    Py_RETURN_TRUE;
  });
}
MSA_FUNCTION(grad_accumulator) {
  return guarded([&] {
    (void)n;
    auto acc = make_accumulator(arg_tensor(a[0]));
    acc->remember(a[0]);
    return node_object(acc);
  });
}
MSA_FUNCTION(gradient_edge) {  // (node, output index) of a tensor that requires grad
  return guarded([&]() -> PyObject * {
    (void)n;
    Edge e = edge_of(arg_tensor(a[0]));
    if (!e.is_defined()) Py_RETURN_NONE;
    Ref node = checked(node_object(e.grad_node));
    return Py_BuildValue("(On)", node.get(), static_cast<Py_ssize_t>(e.input_index));
  });
}
Tensors tensors_from(PyObject *o) {
  Ref seq = checked(PySequence_Fast(o, "expected a sequence of tensors"));
  Tensors r;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(seq.get()); ++i) {
    PyObject *e = PySequence_Fast_GET_ITEM(seq.get(), i);
    r.push_back(e == Py_None ? nullptr : arg_tensor(e));
  }
  return r;
}
// The edges of tensors, and of pairs (node, output index).
std::vector<Edge> edges_from(PyObject *o) {
  Ref seq = checked(PySequence_Fast(o, "expected a sequence of tensors or gradient edges"));
  std::vector<Edge> r;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(seq.get()); ++i) {
    PyObject *e = PySequence_Fast_GET_ITEM(seq.get(), i);
    BackwardNodePtr node = PyTuple_Check(e) && PyTuple_GET_SIZE(e) >= 2 ? node_from(PyTuple_GET_ITEM(e, 0)) : nullptr;
    if (!node) {
      r.push_back(edge_of(arg_tensor(e)));
      continue;
    }
    const size_t index = PyLong_AsSize_t(PyTuple_GET_ITEM(e, 1));
    if (PyErr_Occurred()) throw PythonError{};
    if (index >= node->output_size()) fail("the node ", node->name(), " has no output ", static_cast<int64_t>(index));
    r.emplace_back(node, index);
  }
  return r;
}
// backward(roots, gradients, inputs, keep_graph, create_graph, allow_unreachable, accumulate)
MSA_FUNCTION(backward) {
  return guarded([&]() -> PyObject * {
    expect(n, 7);
    BackwardOptions o;
    o.keep_graph = PyObject_IsTrue(a[3]);
    o.create_graph = PyObject_IsTrue(a[4]);
    o.allow_unreachable = PyObject_IsTrue(a[5]);
    o.accumulate = PyObject_IsTrue(a[6]);
    Tensors r = run_backward(edges_from(a[0]), tensors_from(a[1]), edges_from(a[2]), o);
    Ref t = checked(PyTuple_New(r.size()));
    for (size_t i = 0; i < r.size(); ++i) {
      PyObject *e = Py_None;
      if (r[i])
        e = wrap(r[i]);
      else
        Py_INCREF(e);
      PyTuple_SET_ITEM(t.get(), i, e);
    }
    return t.release();
  });
}
constexpr const char *PASS = "msadapter.open_pass";

OpenPass *open_pass_of(PyObject *capsule) {
  auto *pass = static_cast<OpenPass *>(PyCapsule_GetPointer(capsule, PASS));
  if (!pass) throw PythonError{};
  return pass;
}
// open_pass(roots, on_leaf, keep_graph) -> pass, into which feed_pass puts gradients one after the other
MSA_FUNCTION(open_pass) {
  return guarded([&] {
    expect(n, 3);
    auto pass = std::make_unique<OpenPass>(edges_from(a[0]), a[1], PyObject_IsTrue(a[2]));
    Ref capsule = checked(PyCapsule_New(
        pass.get(), PASS, [](PyObject *c) { delete static_cast<OpenPass *>(PyCapsule_GetPointer(c, PASS)); }));
    pass.release();
    return capsule.release();
  });
}
// feed_pass(pass, edges of roots, gradients)
MSA_FUNCTION(feed_pass) {
  return guarded([&]() -> PyObject * {
    expect(n, 3);
    open_pass_of(a[0])->feed(edges_from(a[1]), tensors_from(a[2]));
    Py_RETURN_NONE;
  });
}
// reached_nodes(roots, nodes): those of the nodes that can be reached from the roots
MSA_FUNCTION(reached_nodes_) {
  return guarded([&] {
    expect(n, 2);
    Ref seq = checked(PySequence_Fast(a[1], "expected a sequence of nodes"));
    std::vector<BackwardNodePtr> nodes;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(seq.get()); ++i) {
      nodes.push_back(node_from(PySequence_Fast_GET_ITEM(seq.get(), i)));
      if (!nodes.back()) throw TypeError("expected a node");
    }
    const std::vector<bool> reached = reached_nodes(edges_from(a[0]), nodes);
    Ref r = checked(PyList_New(0));
    for (size_t i = 0; i < reached.size(); ++i)
      if (reached[i] && PyList_Append(r.get(), PySequence_Fast_GET_ITEM(seq.get(), i)) < 0) throw PythonError{};
    return r.release();
  });
}
MSA_FUNCTION(py_queue_callback) {
  return guarded([&]() -> PyObject * {
    (void)n;
    queue_callback(a[0]);
    Py_RETURN_NONE;
  });
}
MSA_FUNCTION(push_saved_hooks) {
  return guarded([&]() -> PyObject * {
    expect(n, 2);
    saved_hooks_stack().push_back(a[0] == Py_None ? SavedHooks{} : SavedHooks{Ref::borrow(a[0]), Ref::borrow(a[1])});
    Py_RETURN_NONE;
  });
}
MSA_FUNCTION(pop_saved_hooks) {
  return guarded([&]() -> PyObject * {
    (void)a;
    (void)n;
    if (saved_hooks_stack().empty()) fail("there are no hooks of saved tensors to remove");
    saved_hooks_stack().pop_back();
    Py_RETURN_NONE;
  });
}
MSA_FUNCTION(saved_hooks_count) {
  (void)a;
  (void)n;
  return PyLong_FromSize_t(saved_hooks_stack().size());
}
MSA_FUNCTION(current_task_) {
  (void)a;
  (void)n;
  return PyLong_FromLongLong(current_task());
}
MSA_FUNCTION(current_task_keeps_graph_) {
  return guarded([&] {
    (void)a;
    (void)n;
    return PyBool_FromLong(current_task_keeps_graph());
  });
}
MSA_FUNCTION(execution_order_) {
  return guarded([&] {
    (void)a;
    (void)n;
    const auto nodes = execution_order();
    Ref r = checked(PyList_New(nodes.size()));
    for (size_t i = 0; i < nodes.size(); ++i) PyList_SET_ITEM(r.get(), i, checked(node_object(nodes[i])).release());
    return r.release();
  });
}
MSA_FUNCTION(inference_mode_) {  // whether this thread is in inference mode
  (void)a;
  (void)n;
  return PyBool_FromLong(inference_mode());
}
MSA_FUNCTION(set_inference_mode_) {
  return guarded([&]() -> PyObject * {
    expect(n, 1);
    set_inference_mode(a[0] == Py_True);
    Py_RETURN_NONE;
  });
}
MSA_FUNCTION(is_inference_) {
  return guarded([&] {
    expect(n, 1);
    return PyBool_FromLong(is_inference(arg_tensor(a[0])));
  });
}
// mark_inference(t): t was made under inference mode outside the table
MSA_FUNCTION(mark_inference_) {
  return guarded([&]() -> PyObject * {
    expect(n, 1);
    mark_inference(arg_tensor(a[0]));
    Py_RETURN_NONE;
  });
}
MSA_FUNCTION(is_grad_enabled) {
  (void)a;
  (void)n;
  const PythonDispatch &dispatch = python_dispatch();
  return PyBool_FromLong(dispatch.inside ? dispatch.asked_grad : grad_enabled());
}
MSA_FUNCTION(set_grad_enabled) {
  (void)n;
  if (PythonDispatch &dispatch = python_dispatch(); dispatch.inside) {  // nothing is recorded there
    dispatch.asked_grad = a[0] == Py_True;
    Py_RETURN_NONE;
  }
  mindspore::pynative::GradState::Get().set_grad_flag(true);
  mindspore::pynative::GradState::Get().set_enable_grad(a[0] == Py_True);
  Py_RETURN_NONE;
}
MSA_FUNCTION(is_view_) {
  return guarded([&] {
    (void)n;
    return PyBool_FromLong(is_view(arg_tensor(a[0])));
  });
}
// mark_view(view, of): autograd's view relation for tensors made outside the table
MSA_FUNCTION(mark_view) {
  return guarded([&]() -> PyObject * {
    expect(n, 3);
    set_view(arg_tensor(a[0]), arg_tensor(a[1]), static_cast<ViewKind>(PyLong_AsLong(a[2])), a[1]);
    Py_RETURN_NONE;
  });
}
// set_version(t, number): the version that in-place writes count
MSA_FUNCTION(set_version) {
  return guarded([&]() -> PyObject * {
    expect(n, 2);
    const TensorPtr t = arg_tensor(a[0]);
    const int64_t number = int_from(a[1]);
    check(number >= 0, "Cannot set a version_counter to a value below 0: ", number);
    if (is_inference(t)) fail("Inference tensors do not track version counter.");
    auto counter = t->version();  // a copy, which shares the number
    counter.set_version_value(static_cast<uint32_t>(number));
    Py_RETURN_NONE;
  });
}
MSA_FUNCTION(renew_accumulator_) {  // the tensor's memory has changed: it is another leaf of graphs from now on
  return guarded([&]() -> PyObject * {
    expect(n, 1);
    renew_accumulator(arg_tensor(a[0]));
    Py_RETURN_NONE;
  });
}
MSA_FUNCTION(strip_autograd) {  // detach_()
  return guarded([&]() -> PyObject * {
    (void)n;
    forget_history(arg_tensor(a[0]));
    Py_RETURN_NONE;
  });
}

PyMethodDef gradients_functions[] = {MSA_ENTRY("get_grad", get_grad),
                                     MSA_ENTRY("set_grad", set_grad),
                                     MSA_ENTRY("grad_accumulator", grad_accumulator),
                                     MSA_ENTRY("gradient_edge", gradient_edge),
                                     MSA_ENTRY("backward", backward),
                                     MSA_ENTRY("open_pass", open_pass),
                                     MSA_ENTRY("feed_pass", feed_pass),
                                     MSA_ENTRY("reached_nodes", reached_nodes_),
                                     MSA_ENTRY("queue_callback", py_queue_callback),
                                     MSA_ENTRY("push_saved_hooks", push_saved_hooks),
                                     MSA_ENTRY("pop_saved_hooks", pop_saved_hooks),
                                     MSA_ENTRY("saved_hooks_count", saved_hooks_count),
                                     MSA_ENTRY("current_graph_task_id", current_task_),
                                     MSA_ENTRY("current_graph_task_keeps_graph", current_task_keeps_graph_),
                                     MSA_ENTRY("current_graph_task_execution_order", execution_order_),
                                     MSA_ENTRY("is_inference_mode_enabled", inference_mode_),
                                     MSA_ENTRY("set_inference_mode", set_inference_mode_),
                                     MSA_ENTRY("is_inference", is_inference_),
                                     MSA_ENTRY("mark_inference", mark_inference_),
                                     MSA_ENTRY("is_grad_enabled", is_grad_enabled),
                                     MSA_ENTRY("set_grad_enabled", set_grad_enabled),
                                     MSA_ENTRY("is_view", is_view_),
                                     MSA_ENTRY("mark_view", mark_view),
                                     MSA_ENTRY("set_version", set_version),
                                     MSA_ENTRY("renew_accumulator", renew_accumulator_),
                                     MSA_ENTRY("strip_autograd", strip_autograd),
                                     {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool init_gradients(PyObject *module) { return PyModule_AddFunctions(module, gradients_functions) == 0; }

}  // namespace msa

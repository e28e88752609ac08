// The backward pass. It runs nodes in the reverse order of their recording, and hooks in PyTorch's order.
#include <algorithm>
#include <atomic>
#include <queue>

#include "../device/trace.h"
#include "below.h"
#include "graph.h"

namespace msa {

namespace {

struct Task {
  std::unordered_map<BackwardNode *, Tensors> buffers;
  std::unordered_map<BackwardNode *, int> dependencies;
  std::unordered_set<BackwardNode *> wanted;  // nodes on a path to a requested input
  bool restrict_to_wanted = false;
  std::unordered_map<BackwardNode *, std::vector<std::pair<size_t, size_t>>>
      captures;  // node -> (output, input position)
  Tensors captured;
  std::vector<Ref> callbacks;
  int64_t id = 0;
  bool keep_graph = false;
  std::vector<Edge> roots;
  Ref on_leaf;  // called with a leaf and its gradient in place of accumulation, or null
};

thread_local std::vector<Task *> running;

bool executes(const Task &task, BackwardNode *node) { return !task.restrict_to_wanted || task.wanted.count(node) != 0; }

// MindSpore's own nodes ask this class which parts of the graph run.
class EngineFace final : public ag::AutoDiffInterface {
 public:
  bool IsInExecGraph(const BackwardNodePtr &node) const override {
    return running.empty() || executes(*running.back(), node.get());
  }
  void AddNodeToExecGraph(const BackwardNodePtr &) override {}
  size_t CurrentAutoDiffEngineId() override { return running.size(); }
};

uint64_t order_of(BackwardNode *n) {
  auto *ours = dynamic_cast<Node *>(n);
  return ours ? ours->order() : n->seq_id();
}

struct Later {
  bool operator()(const std::pair<uint64_t, BackwardNodePtr> &a, const std::pair<uint64_t, BackwardNodePtr> &b) const {
    return a.first < b.first;
  }
};
using Queue =
    std::priority_queue<std::pair<uint64_t, BackwardNodePtr>, std::vector<std::pair<uint64_t, BackwardNodePtr>>, Later>;

using Counts = std::unordered_map<BackwardNode *, int>;

// How many edges lead to each node that can be reached from the roots, and to the roots themselves.
Counts count_dependencies(const std::vector<Edge> &roots) {
  Counts dependencies;
  std::unordered_set<BackwardNode *> seen;
  std::vector<BackwardNode *> stack;
  for (auto &e : roots)
    if (seen.insert(e.grad_node.get()).second) {
      dependencies[e.grad_node.get()] = 0;
      stack.push_back(e.grad_node.get());
    }
  while (!stack.empty()) {
    BackwardNode *n = stack.back();
    stack.pop_back();
    for (auto &e : n->next_edges()) {
      if (!e.is_defined()) continue;
      dependencies[e.grad_node.get()]++;
      if (seen.insert(e.grad_node.get()).second) stack.push_back(e.grad_node.get());
    }
  }
  return dependencies;
}

// The roots that no other root leads to.
Queue ready_roots(const std::vector<Edge> &roots, const Counts &dependencies) {
  Queue ready;
  std::unordered_set<BackwardNode *> queued;
  for (auto &e : roots)
    if (dependencies.at(e.grad_node.get()) == 0 && queued.insert(e.grad_node.get()).second)
      ready.emplace(order_of(e.grad_node.get()), e.grad_node);
  return ready;
}

// A node is wanted if a requested input can be reached from it. The search is depth first and remembers its results.
void mark_wanted(const std::vector<Edge> &roots, Task *task) {
  std::unordered_map<BackwardNode *, bool> done;
  for (auto &c : task->captures) task->wanted.insert(c.first);
  struct Frame {
    BackwardNode *node;
    size_t next;
  };
  for (auto &r : roots) {
    std::vector<Frame> stack{{r.grad_node.get(), 0}};
    if (done.count(r.grad_node.get())) continue;
    done[r.grad_node.get()] = true;
    while (!stack.empty()) {
      Frame &f = stack.back();
      const auto &edges = f.node->next_edges();
      if (f.next < edges.size()) {
        BackwardNode *child = edges[f.next++].grad_node.get();
        if (child && !done.count(child)) {
          done[child] = true;
          stack.push_back({child, 0});
        }
        continue;
      }
      for (auto &e : edges)
        if (e.is_defined() && task->wanted.count(e.grad_node.get())) task->wanted.insert(f.node);
      stack.pop_back();
    }
  }
}

Ref to_tuple(const Tensors &t) {
  Ref r = checked(PyTuple_New(static_cast<Py_ssize_t>(t.size())));
  for (size_t i = 0; i < t.size(); ++i) {
    PyObject *o = t[i] ? wrap(t[i]) : Py_None;
    if (o == Py_None) Py_INCREF(o);
    PyTuple_SET_ITEM(r.get(), i, o);
  }
  return r;
}
// Calls every function in the dict. It works on a copy, because hooks may remove themselves.
template <class F>
void for_each_hook(const Ref &dict, F f) {
  if (!dict || PyDict_Size(dict.get()) == 0) return;
  Ref values = checked(PyDict_Values(dict.get()));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values.get()); ++i) f(PyList_GET_ITEM(values.get(), i));
}

std::string name_of(PyObject *hook) {
  Ref name(PyObject_GetAttrString(hook, "__name__"));
  if (!name) PyErr_Clear();
  return name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : "<unknown>";
}

// Returns the gradient that a hook gives in place of `before`. It must have the same type and size.
TensorPtr hook_result(PyObject *hook, PyObject *result, const TensorPtr &before) {
  if (!before) fail("can't replace a None gradient with a non-None value");
  if (!is_tensor(result)) {
    PyErr_Format(PyExc_TypeError, "expected Variable, but hook returned '%s'", Py_TYPE(result)->tp_name);
    throw PythonError{};
  }
  TensorPtr r = unwrap(result);
  if (r->data_type() == before->data_type() && r->shape() == before->shape()) return r;
  const std::string who = name_of(hook);
  if (r->data_type() != before->data_type())
    fail("hook '", who, "' has changed the type of value (was torch.", dtype_name(from_ms(before->data_type())),
         "Tensor got torch.", dtype_name(from_ms(r->data_type())), "Tensor)");
  fail("hook '", who, "' has changed the size of value");
}

// Takes over what a hook of a node returned: None leaves the gradients unchanged, a tuple has one for each of them.
void take_results(PyObject *hook, PyObject *result, Tensors *grads) {
  if (result == Py_None) return;
  if (!PyTuple_Check(result)) {
    PyErr_Format(PyExc_TypeError, "expected tuple, but hook returned '%s'", Py_TYPE(result)->tp_name);
    throw PythonError{};
  }
  const Py_ssize_t n = PyTuple_GET_SIZE(result);
  if (n != static_cast<Py_ssize_t>(grads->size()))
    fail("hook '", name_of(hook), "' has returned an incorrect number of values (got ", static_cast<int64_t>(n),
         ", but expected ", static_cast<int64_t>(grads->size()), ")");
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject *e = PyTuple_GET_ITEM(result, i);
    (*grads)[i] = e == Py_None ? nullptr : hook_result(hook, e, (*grads)[i]);
  }
}

// A hook of an output that got no gradient is called with None, as in PyTorch.
void run_tensor_hooks(HookSet &hooks, Tensors *grads) {
  for (auto &h : hooks.tensor_pre) {
    if (h.first >= grads->size()) continue;
    TensorPtr &grad = (*grads)[h.first];
    for_each_hook(h.second, [&](PyObject *f) {
      Ref g = grad ? checked(wrap(grad)) : Ref::borrow(Py_None);
      Ref r = checked(PyObject_CallFunctionObjArgs(f, g.get(), nullptr));
      if (r.get() == Py_None) return;
      grad = hook_result(f, r.get(), grad);
    });
  }
  for (auto &h : hooks.retain_grad)
    if (h.first < grads->size() && (*grads)[h.first])
      checked(PyObject_CallFunctionObjArgs(h.second.get(), checked(wrap((*grads)[h.first])).get(), nullptr));
}

Tensors call_node(BackwardNode *node, Node *ours, Tensors *grads) {
  TraceScope trace;
  if (tracing) trace.begin(ours && ours->is_accumulate() ? "torch::autograd::" : "", node->name(), "cpu_op");
  if (ours) {
    int tag = 0;
    for (auto &g : *grads)
      if (g && !has_object(g)) tag = std::max(tag, device_tag(g));
    DeviceScope scope(tag);  // new tensors of a node go to the device of its gradients
    ShapeOnly shapes(tag == kMetaTag);
    Tensors local;
    local.swap(*grads);  // from here on only the node holds the gradients
    return ours->apply(local);
  }
  mindspore::ValuePtrList in(grads->begin(), grads->end());
  for (size_t i = 0; i < in.size(); ++i)
    if (!in[i] && i < node->mutable_metadata().size() && !node->mutable_metadata()[i].is_default()) {
      auto &m = node->mutable_metadata()[i];
      TensorPtr z = new_tensor(from_ms(m.dtype()->type_id()), m.shape());
      zero_tensor(z);
      in[i] = z;
    }
  auto out = node->PostProcess(node->CallBackward(in));
  Tensors r;
  for (auto &v : out) r.push_back(v && v->isa<MsTensor>() ? v->cast<TensorPtr>() : nullptr);
  return r;
}

void evaluate(BackwardNode *node, Tensors grads, Task *task, const BackwardOptions &o, Queue *ready) {
  auto *ours = dynamic_cast<Node *>(node);
  TraceScope trace;
  if (tracing) trace.begin("autograd::engine::evaluate_function: ", node->name(), "cpu_op");
  if (ours && ours->has_hooks()) run_tensor_hooks(ours->hooks(), &grads);
  auto cap = task->captures.find(node);
  if (cap != task->captures.end())
    for (auto &c : cap->second)
      if (c.first < grads.size()) task->captured[c.second] = grads[c.first];
  if (task->restrict_to_wanted) {
    bool goes_on = o.accumulate && cap != task->captures.end();
    for (auto &e : node->next_edges()) goes_on = goes_on || (e.is_defined() && task->wanted.count(e.grad_node.get()));
    if (!goes_on) return;
  }
  // Without any gradient, only the node of a Function runs, but hooks are called with None for every node.
  auto has_gradient = [&] { return std::any_of(grads.begin(), grads.end(), [](auto &g) { return g != nullptr; }); };
  const bool hooked = ours && ours->has_hooks();
  if (hooked)
    for_each_hook(ours->hooks().pre, [&](PyObject *f) {
      take_results(f, checked(PyObject_CallFunctionObjArgs(f, to_tuple(grads).get(), nullptr)).get(), &grads);
    });
  Tensors kept;
  const bool post = ours && ours->has_post_hooks();
  if (post) kept = grads;
  const bool to_program = task->on_leaf && ours && ours->is_accumulate();
  if (to_program) {
    auto *acc = static_cast<AccumulateGrad *>(ours);
    if (hooked && ours->hooks().post_accumulate && PyDict_Size(ours->hooks().post_accumulate.get()) > 0) {
      PyErr_SetString(PyExc_NotImplementedError,
                      "hooks after the accumulation of a gradient, such as those of DistributedDataParallel, are not "
                      "supported in a pass of torch.distributed.autograd (docs/coverage.md)");
      throw PythonError{};
    }
    if (acc->leaf() && has_gradient())
      checked(PyObject_CallFunctionObjArgs(task->on_leaf.get(), checked(acc->object()).get(),
                                           checked(wrap(grads[0])).get(), nullptr));
  }
  Tensors out;
  if (to_program)
    out = {};
  else if (has_gradient() || (ours && ours->runs_without_gradient()))
    out = call_node(node, ours, &grads);
  else
    out.resize(node->next_edges().size());
  if (hooked && ours->is_accumulate() && !to_program) {
    auto *acc = static_cast<AccumulateGrad *>(ours);
    if (acc->leaf())
      for_each_hook(ours->hooks().post_accumulate, [&](PyObject *f) {
        Ref r = checked(PyObject_CallFunctionObjArgs(f, checked(acc->object()).get(), nullptr));
        if (r.get() != Py_None) fail("Tensor post accumulate grad hooks should return None.");
      });
  }
  if (post)
    for_each_hook(ours->hooks().post, [&](PyObject *f) {
      take_results(
          f, checked(PyObject_CallFunctionObjArgs(f, to_tuple(out).get(), to_tuple(kept).get(), nullptr)).get(), &out);
    });
  if (!o.keep_graph) node->Release();
  const auto &edges = node->next_edges();
  check(out.size() >= edges.size() || edges.empty(), "function ", node->name(),
        " returned an incorrect number of gradients (expected ", static_cast<int64_t>(edges.size()), ", got ",
        static_cast<int64_t>(out.size()), ")");
  for (size_t i = 0; i < edges.size(); ++i) {
    const Edge &e = edges[i];
    if (!e.is_defined()) continue;
    BackwardNode *next = e.grad_node.get();
    const bool last = --task->dependencies[next] == 0;
    if (executes(*task, next)) {
      Tensors &buffer = task->buffers[next];
      if (buffer.size() <= e.input_index) buffer.resize(std::max<size_t>(e.input_index + 1, next->output_size()));
      TensorPtr &slot = buffer[e.input_index];
      if (out[i]) slot = slot ? add_gradients(slot, out[i]) : std::move(out[i]);
      if (last) ready->emplace(order_of(next), e.grad_node);
    }
  }
}

// The running pass of this thread. Hooks of saved tensors that are pushed or popped in it have no effect outside.
struct Running {
  explicit Running(Task *t) : hooks(saved_hooks_stack()) { running.push_back(t); }
  ~Running() {
    running.pop_back();
    saved_hooks_stack().swap(hooks);
  }
  std::vector<SavedHooks> hooks;
};

void put_gradient(const Edge &e, const TensorPtr &gradient, Task *task) {
  Tensors &buffer = task->buffers[e.grad_node.get()];
  if (buffer.size() <= e.input_index) buffer.resize(std::max<size_t>(e.input_index + 1, e.grad_node->output_size()));
  TensorPtr &slot = buffer[e.input_index];
  slot = slot ? add_gradients(slot, gradient) : gradient;
}

// Runs the nodes that are ready, and those that become ready.
void run_ready(Task *task, const BackwardOptions &o, Queue *ready) {
  while (!ready->empty()) {
    BackwardNodePtr node = ready->top().second;
    ready->pop();
    auto it = task->buffers.find(node.get());
    Tensors grads;
    if (it != task->buffers.end()) {
      grads = std::move(it->second);
      task->buffers.erase(it);
    }
    if (grads.size() < node->output_size()) grads.resize(node->output_size());
    if (!executes(*task, node.get())) continue;
    evaluate(node.get(), std::move(grads), task, o, ready);
  }
  for (size_t i = 0; i < task->callbacks.size(); ++i) checked(PyObject_CallNoArgs(task->callbacks[i].get()));
}

const std::shared_ptr<EngineFace> &engine_face() {
  static auto face = std::make_shared<EngineFace>();
  return face;
}

std::atomic<int64_t> tasks{0};

}  // namespace

bool Node::needs(size_t edge) const {
  const auto &e = next_edges_[edge];
  if (!e.is_defined()) return false;
  return running.empty() || executes(*running.back(), e.grad_node.get());
}

void queue_callback(PyObject *f) {
  if (running.empty()) fail("Final callbacks can only be installed during backward pass.");
  running.front()->callbacks.push_back(Ref::borrow(f));
}

bool will_execute(const BackwardNodePtr &node) {
  if (running.empty()) fail("_will_engine_execute_node can only be called during the backward pass");
  const Task &task = *running.back();
  if (task.restrict_to_wanted && !task.captured.empty() && task.captures.count(node.get()) &&
      !task.captures.at(node.get()).empty() && node->IsLeaf())
    fail(
        "A leaf node was passed to _will_engine_execute_node but we are currently running autograd.grad(). This is "
        "currently not supported.");
  return task.dependencies.count(node.get()) && executes(task, node.get());
}

int64_t current_task() { return running.empty() ? -1 : running.back()->id; }
bool current_task_keeps_graph() {
  if (running.empty()) fail("_get_current_graph_task_keep_graph can only be called during the backward pass");
  return running.back()->keep_graph;
}

std::vector<BackwardNodePtr> execution_order() {
  if (running.empty()) fail("_current_graph_task_execution_order should only be called during the backward pass");
  const Task &task = *running.back();
  Counts dependencies = count_dependencies(task.roots);
  Queue ready = ready_roots(task.roots, dependencies);
  std::vector<BackwardNodePtr> order;
  while (!ready.empty()) {
    BackwardNodePtr node = ready.top().second;
    ready.pop();
    if (!executes(task, node.get())) continue;
    order.push_back(node);
    for (auto &e : node->next_edges())
      if (e.is_defined() && --dependencies[e.grad_node.get()] == 0)
        ready.emplace(order_of(e.grad_node.get()), e.grad_node);
  }
  return order;
}

Tensors run_backward(const std::vector<Edge> &roots, const Tensors &gradients, const std::vector<Edge> &inputs,
                     const BackwardOptions &o) {
  Task task;
  task.id = tasks++;
  task.keep_graph = o.keep_graph;
  task.roots = roots;
  for (size_t i = 0; i < roots.size(); ++i) {
    check(roots[i].is_defined(), "element ", static_cast<int64_t>(i),
          " of tensors does not require grad and does not have a grad_fn");
    put_gradient(roots[i], gradients[i], &task);
  }
  task.captured.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    check(inputs[i].is_defined(), "One of the differentiated Tensors does not require grad");
    auto &places = task.captures[inputs[i].grad_node.get()];
    if (!o.accumulate) places.emplace_back(inputs[i].input_index, i);
  }
  task.dependencies = count_dependencies(roots);
  if (!inputs.empty()) {
    task.restrict_to_wanted = true;
    mark_wanted(roots, &task);
  }
  Queue ready = ready_roots(roots, task.dependencies);
  {
    Running guard(&task);
    ag::AutoDiffGuard auto_diff(engine_face());
    GradMode mode(o.create_graph);
    run_ready(&task, o, &ready);
  }
  if (!o.allow_unreachable && !o.accumulate)
    for (size_t i = 0; i < task.captured.size(); ++i)
      check(task.captured[i] != nullptr, "The differentiated Tensor at index ", static_cast<int64_t>(i),
            " appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior.");
  return task.captured;
}

struct OpenPass::State {
  Task task;
  BackwardOptions options;
};

OpenPass::OpenPass(const std::vector<Edge> &roots, PyObject *on_leaf, bool keep_graph)
    : state_(std::make_unique<State>()) {
  Task &task = state_->task;
  task.id = tasks++;
  task.keep_graph = state_->options.keep_graph = keep_graph;
  task.roots = roots;
  task.on_leaf = Ref::borrow(on_leaf);
  task.dependencies = count_dependencies(roots);
}

OpenPass::~OpenPass() = default;

void OpenPass::feed(const std::vector<Edge> &edges, const Tensors &gradients) {
  Task &task = state_->task;
  Queue ready;
  std::unordered_set<BackwardNode *> queued;
  for (size_t i = 0; i < edges.size(); ++i) {
    BackwardNode *node = edges[i].grad_node.get();
    auto found = task.dependencies.find(node);
    check(found != task.dependencies.end(), "a gradient for ", node->name(), ", which is not a root of the pass");
    if (gradients[i]) put_gradient(edges[i], gradients[i], &task);
    if (found->second == 0 && queued.insert(node).second) ready.emplace(order_of(node), edges[i].grad_node);
  }
  Running guard(&task);
  ag::AutoDiffGuard auto_diff(engine_face());
  GradMode mode(false);
  run_ready(&task, state_->options, &ready);
  task.callbacks.clear();
}

std::vector<bool> reached_nodes(const std::vector<Edge> &roots, const std::vector<BackwardNodePtr> &nodes) {
  const Counts reached = count_dependencies(roots);
  std::vector<bool> r;
  for (auto &node : nodes) r.push_back(reached.count(node.get()) != 0);
  return r;
}

}  // namespace msa

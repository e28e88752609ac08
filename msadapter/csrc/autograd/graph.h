// The autograd graph. It uses MindSpore's BackwardNode and AutoGradMetaData, with PyTorch's rules.
#pragma once
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "../device/operators.h"

namespace msa {

namespace ag = mindspore::pynative::autograd;
using ag::BackwardNode;
using ag::BackwardNodePtr;
using ag::Edge;

// Python hooks of one node. Every dict maps an id to a callable and is shared with the Python handles.
struct HookSet {
  std::map<size_t, Ref> tensor_pre;   // per output
  std::map<size_t, Ref> retain_grad;  // per output: callable(grad)
  Ref pre, post, post_accumulate;
};

// Base class of every node that this package records.
class Node : public BackwardNode {
 public:
  Node(const std::string &name, size_t outputs) : BackwardNode(name, outputs) {}
  ~Node() override;
  // Creates a node. It has Python objects, so it is destroyed with the interpreter's lock held. The last owner of a
  // tensor and its node may be a thread of MindSpore's queue of operators.
  template <class Derived, class... Args>
  static std::shared_ptr<Derived> make(Args &&...args) {
    return std::shared_ptr<Derived>(new Derived(std::forward<Args>(args)...), destroy);
  }
  // grads has one entry for each output; null means that no gradient arrived. Returns one gradient for each edge.
  virtual Tensors apply(const Tensors &grads) = 0;
  mindspore::ValuePtrList CallBackward(const mindspore::ValuePtrList &grads) override;
  mindspore::ValuePtrList PostProcess(const mindspore::ValuePtrList &g) override { return g; }
  virtual bool is_accumulate() const { return false; }
  virtual bool single_use() const { return true; }              // whether the first backward frees the saved values
  virtual bool runs_without_gradient() const { return false; }  // whether apply() is called if no gradient arrived
  HookSet &hooks() {
    if (!hooks_) hooks_ = std::make_unique<HookSet>();
    return *hooks_;
  }
  bool has_hooks() const { return hooks_ != nullptr; }
  void take_hooks(Node *other) { hooks_ = std::move(other->hooks_); }
  bool has_post_hooks() const { return hooks_ && hooks_->post && PyDict_Size(hooks_->post.get()) > 0; }
  uint64_t order() const { return is_accumulate() ? UINT64_MAX : sequence_; }
  uint64_t sequence() const { return sequence_; }
  void set_sequence(uint64_t n) { sequence_ = n; }  // nodes with a larger number run earlier
  bool needs(size_t edge) const;                    // whether the running backward needs the gradient of this edge
  PyObject *python = nullptr;                       // borrowed: the Python object of the node, while it exists
  Ref metadata;                                     // a dict in which Python code keeps values of its own, or null

  void drop_python();

 private:
  std::unique_ptr<HookSet> hooks_;
  uint64_t sequence_ = next_sequence();
  static uint64_t next_sequence();
  static void destroy(BackwardNode *node);
};
using NodePtr = std::shared_ptr<Node>;

// The node of a leaf. It adds to `.grad`, in place unless a graph of the gradient is recorded. A leaf that gets other
// memory gets another node too; what reaches the old one goes on to the new one, which has the gradient and the hooks.
class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(const TensorPtr &leaf) : Node("AccumulateGrad", 1), leaf_(leaf) {}
  bool IsLeaf() override { return true; }
  bool is_accumulate() const override { return true; }
  bool single_use() const override { return false; }
  Tensors apply(const Tensors &grads) override;
  TensorPtr leaf() const { return leaf_.lock(); }
  Ref grad;  // Python tensor or null
  // Returns the Python object of the leaf that the user holds, or a new object if there is none. It is a new reference.
  PyObject *object() const;
  void remember(PyObject *leaf);
  void take_over(AccumulateGrad *other);  // the gradient, the hooks and the Python object of the leaf

 private:
  std::weak_ptr<MsTensor> leaf_;
  Ref object_;  // weakref
};

PyObject *table_function(const char *name);  // borrowed: msadapter.ops.<name>

// ---- metadata of a tensor
bool requires_grad(const TensorPtr &t);
void set_requires_grad(const TensorPtr &t, bool value);  // leaves only
bool is_leaf(const TensorPtr &t);
BackwardNodePtr grad_fn(
    const TensorPtr &t);  // null for leaves; made again for a view after an in-place write to its memory
// The node of a tensor if nothing else keeps it alive, else null.
Node *only_owned_node(const TensorPtr &t);
AccumulateGrad *accumulator(const TensorPtr &t);  // null unless the tensor has one
std::shared_ptr<AccumulateGrad> make_accumulator(const TensorPtr &t);
void renew_accumulator(const TensorPtr &t);  // nothing happens unless the tensor has one
Edge edge_of(const TensorPtr &t);            // undefined when no gradient is required
void set_history(const TensorPtr &out, const BackwardNodePtr &node, size_t index);
void forget_history(const TensorPtr &t);                     // detach_()
void share_leaf(const TensorPtr &t, const TensorPtr &leaf);  // the gradients of t go to leaf
bool is_view(const TensorPtr &t);
TensorPtr base_of(const TensorPtr &t);  // null if not a view
// The Python object of the base that the user holds, a new object if there is none, or None if `t` is not a view. It is
// a new reference.
PyObject *base_object(const TensorPtr &t);
enum class ViewKind { kNormal, kNoGrad, kMultiOutput, kCustom, kInference };
// Records that `view` is a view of `of`, or of the base of `of` if that is a view itself. `of_object` is the Python
// object of `of`, or null if it is not known.
void set_view(const TensorPtr &view, const TensorPtr &of, ViewKind kind, PyObject *of_object);
// Inference mode of this thread, and the tensors that were made under it. They have no version and no history.
bool inference_mode();
void set_inference_mode(bool on);
bool is_inference(const TensorPtr &t);
// Whether the tensor lets an operator be recorded. One of inference mode that requires grad does not do so by itself.
inline bool is_recorded(const TensorPtr &t) { return requires_grad(t) && !is_inference(t); }
void mark_inference(const TensorPtr &t);
// Checks PyTorch's rules for in-place writes and throws its errors. `recorded`: some operand requires grad. The first
// function checks the history only.
void check_history(const TensorPtr &t, bool recorded);
void check_inplace(const TensorPtr &t, bool recorded);
// Refuses a write to a tensor that shares only a part of its memory with `read`, as PyTorch does.
void check_overlap(const TensorPtr &written, const TensorPtr &read);
// Called after an in-place write that `node` has recorded. The gradient of the written tensor enters this node.
void rebase_history(const TensorPtr &t, const NodePtr &node);
// `t` takes the sizes, strides and history of `made`, which is a view of it.
void become_view(const TensorPtr &t, const TensorPtr &made);
inline uint32_t version_of(const TensorPtr &t) { return t->version().current_version(); }

size_t output_index(const TensorPtr &t);              // the number of this tensor among the results of its node
std::string short_name(const BackwardNodePtr &node);  // "MulBackward0" is "Mul" in messages

NodePtr view_of_base(const TensorPtr &view, const TensorPtr &base);
NodePtr copy_slices(const TensorPtr &view, const TensorPtr &base, const NodePtr &inner);

// ---- saved tensors
struct SavedHooks {
  Ref pack, unpack;
};
std::vector<SavedHooks> &saved_hooks_stack();

class SavedTensor {
 public:
  SavedTensor() = default;
  SavedTensor(const TensorPtr &t, bool is_output);
  // Replaces the tensor by pack(tensor). RuntimeError if there is no tensor, or if it has hooks.
  void register_hooks(PyObject *pack, PyObject *unpack);
  bool released() const { return released_; }
  bool has_hooks() const { return static_cast<bool>(packed_); }
  // `owner` is the node that saved the tensor; the saved output of a node has this node as its history.
  TensorPtr unpack(const Node *owner) const;
  void reset();

 private:
  TensorPtr data_;
  bool is_output_ = false, is_leaf_ = false, requires_grad_ = false;
  size_t output_index_ = 0;
  uint32_t version_ = 0;
  Ref packed_, unpack_hook_;
  std::weak_ptr<BackwardNode> node_;
  bool defined_ = false, released_ = false;

  void pack(const SavedHooks &hooks);
};

// ---- running
struct BackwardOptions {
  bool keep_graph = false, create_graph = false, allow_unreachable = true, accumulate = true;
};
// Returns the gradients of `inputs` (null where unreachable), empty when inputs is empty.
Tensors run_backward(const std::vector<Edge> &roots, const Tensors &gradients, const std::vector<Edge> &inputs,
                     const BackwardOptions &o);
// A backward pass whose gradients arrive one after the other, because some of them come from other processes. A node
// runs when all edges that lead to it from the given roots have been followed. Leaves do not accumulate into `.grad`:
// `on_leaf` is called with the leaf and its gradient.
class OpenPass {
 public:
  OpenPass(const std::vector<Edge> &roots, PyObject *on_leaf, bool keep_graph);
  ~OpenPass();
  // Adds gradients to edges of roots and runs every node that has become ready.
  void feed(const std::vector<Edge> &edges, const Tensors &gradients);

 private:
  struct State;
  std::unique_ptr<State> state_;
};
// Which of the nodes can be reached from the roots.
std::vector<bool> reached_nodes(const std::vector<Edge> &roots, const std::vector<BackwardNodePtr> &nodes);
void queue_callback(PyObject *f);
bool will_execute(const BackwardNodePtr &node);  // whether the running pass reaches this node
int64_t current_task();                          // the number of the running pass, or -1
bool current_task_keeps_graph();
std::vector<BackwardNodePtr> execution_order();  // the nodes that the running pass has yet to run, in order
// Returns the sum. It writes to `a` only if nobody but the engine uses it.
TensorPtr add_gradients(const TensorPtr &a, const TensorPtr &b);

// The Python object of a node. It is the same object as long as it exists.
PyObject *node_object(const BackwardNodePtr &node);
BackwardNodePtr node_from(PyObject *o);  // null if it is not a node
// Visits the Python objects that a node refers to, for Python's collector of cycles.
int visit_references(Node *node, visitproc visit, void *arg);
extern PyTypeObject *node_type;

}  // namespace msa

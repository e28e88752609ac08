// A tensor that a node keeps for its backward, with the checks and hooks of unpacking.
#include "below.h"
#include "graph.h"
#include "written_view.h"

namespace msa {

WrittenView &written_view() {
  thread_local WrittenView view;
  return view;
}

std::vector<SavedHooks> &saved_hooks_stack() {
  thread_local std::vector<SavedHooks> stack;
  return stack;
}

SavedTensor::SavedTensor(const TensorPtr &t, bool is_output) : defined_(t != nullptr) {
  if (!t) return;
  if (is_inference(t))
    fail(
        "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
        "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it "
        "in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`.");
  is_output_ = is_output;
  version_ = version_of(t);
  requires_grad_ = msa::requires_grad(t);
  is_leaf_ = msa::is_leaf(t);
  if (is_output) output_index_ = output_index(t);
  data_ = is_output ? without_history(t) : t;  // the result itself would keep its own node alive
  auto &stack = saved_hooks_stack();
  if (stack.empty() || !stack.back().pack) return;
  const SavedHooks hooks = stack.back();
  pack(hooks);
}

// A hook gets an input with its history, as in PyTorch, and a result without it.
void SavedTensor::pack(const SavedHooks &hooks) {
  if (!is_output_ && requires_grad_ && !is_leaf_) {
    node_ = grad_fn(data_);
    output_index_ = output_index(data_);
  }
  NoGrad guard;
  const uint32_t before = version_of(data_);
  packed_ = checked(PyObject_CallFunctionObjArgs(hooks.pack.get(), checked(wrap(data_)).get(), nullptr));
  if (version_of(data_) != before) {
    packed_ = Ref();
    fail(
        "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can not be "
        "modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if you need "
        "to perform in-place operations on the input to a pack hook.");
  }
  unpack_hook_ = hooks.unpack;
  if (!(is_leaf_ && requires_grad_)) data_ = nullptr;  // a leaf is kept, because it has the gradient
}

void SavedTensor::register_hooks(PyObject *pack_hook, PyObject *unpack_hook) {
  if (!defined_) fail("Calling register_hooks on a saved tensor with value None is forbidden");
  if (released_)
    fail(
        "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are "
        "freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through "
        "the graph a second time or if you need to access saved variables after calling backward.");
  if (packed_)
    fail(
        "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is "
        "allowed at a time.");
  pack({Ref::borrow(pack_hook), Ref::borrow(unpack_hook)});
}

void SavedTensor::reset() {
  data_ = nullptr;
  packed_ = Ref();
  unpack_hook_ = Ref();
  released_ = true;
}

TensorPtr SavedTensor::unpack(const Node *owner) const {
  if (!defined_) return nullptr;
  if (released_)
    fail(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
        "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
        "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
        "saved tensors after calling backward.");
  const BackwardNodePtr self = const_cast<Node *>(owner)->shared_from_this();
  auto set_history_of_result = [&](const TensorPtr &result) {
    const WrittenView &view = written_view();
    if (view.writer == owner)
      set_history(result, view.history, 0);
    else
      set_history(result, self, output_index_);
  };
  if (packed_) {
    Ref r = checked(PyObject_CallFunctionObjArgs(unpack_hook_.get(), packed_.get(), nullptr));
    if (!is_tensor(r.get())) {
      PyErr_SetString(PyExc_TypeError, "Output of saved tensor unpack_hook expected to be a Tensor");
      throw PythonError{};
    }
    TensorPtr u = unwrap(r.get());
    if (!requires_grad_) return u;
    if (is_leaf_ && data_ && data_->device_address() == u->device_address()) return data_;
    TensorPtr a = alias_of(u);
    if (is_leaf_ && data_)
      share_leaf(a, data_);
    else if (is_output_)
      set_history_of_result(a);
    else if (auto n = node_.lock())
      set_history(a, n, output_index_);
    return a;
  }
  if (!is_output_ && !is_leaf_ && !grad_fn(data_))
    fail(
        "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_(). This is not supported, "
        "please use "
        "out-of-place `.detach()` instead");
  if (version_of(data_) != version_)
    fail("one of the variables needed for gradient computation has been modified by an inplace operation: [", "torch.",
         dtype_name(from_ms(data_->data_type())), "Tensor ", data_->shape(), "]",
         is_output_ ? text(", which is output ", static_cast<int64_t>(output_index_), " of ", short_name(self), ",")
                    : std::string(","),
         " is at version ", static_cast<int64_t>(version_of(data_)), "; expected version ",
         static_cast<int64_t>(version_),
         " instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
         "torch.autograd.set_detect_anomaly(True, check_nan=False).");
  if (is_output_ && requires_grad_) {
    TensorPtr a = without_history(data_);
    set_history_of_result(a);
    return a;
  }
  return data_;
}

}  // namespace msa

// A tensor that a node keeps for its backward, with the checks and hooks of unpacking.
#include "graph.h"

namespace msa {

std::vector<SavedHooks> &saved_hooks_stack() {
  thread_local std::vector<SavedHooks> stack;
  return stack;
}

SavedTensor::SavedTensor(const TensorPtr &t, bool is_output) : defined_(t != nullptr) {
  if (!t) return;
  is_output_ = is_output;
  version_ = version_of(t);
  requires_grad_ = msa::requires_grad(t);
  is_leaf_ = msa::is_leaf(t);
  auto &stack = saved_hooks_stack();
  if (!stack.empty() && stack.back().pack) {
    SavedHooks h = stack.back();
    // A hook gets an input with its history, as in PyTorch. A result is passed without history, because it would keep
    // its own node alive.
    TensorPtr raw = is_output ? alias_of(t) : t;
    if (!is_output && requires_grad_ && !is_leaf_) {
      node_ = grad_fn(t);
      output_index_ = output_index(t);
    }
    if (is_leaf_ && requires_grad_) data_ = t;
    NoGrad guard;
    packed_ = checked(PyObject_CallFunctionObjArgs(h.pack.get(), checked(wrap(raw)).get(), nullptr));
    unpack_hook_ = h.unpack;
    return;
  }
  if (is_output) {
    output_index_ = output_index(t);
    data_ = alias_of(t);  // the tensor itself would keep its own node alive
  } else {
    data_ = t;
  }
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
  auto self = const_cast<Node *>(owner)->shared_from_this();
  if (packed_) {
    Ref r = checked(PyObject_CallFunctionObjArgs(unpack_hook_.get(), packed_.get(), nullptr));
    if (!is_tensor(r.get())) {
      PyErr_SetString(PyExc_TypeError, "Output of saved tensor unpack_hook expected to be a Tensor");
      throw PythonError{};
    }
    TensorPtr u = unwrap(r.get());
    if (!requires_grad_) return u;
    if (is_leaf_ && data_) return data_->device_address() == u->device_address() ? data_ : u;
    TensorPtr a = alias_of(u);
    if (is_output_)
      set_history(a, self, output_index_);
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
    TensorPtr a = alias_of(data_);
    set_history(a, self, output_index_);
    return a;
  }
  return data_;
}

}  // namespace msa

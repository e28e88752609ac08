// The checks of out=: PyTorch's errors for calls that cannot be recorded, and for results that share memory.
#include "internal.h"

namespace msa {
namespace {

// Whether a tensor among the arguments of a composite requires grad, also in lists.
bool any_argument_requires_grad(const Op &op, PyObject **slots) {
  bool required = false;
  for (size_t i = 0; i < op.params.size(); ++i)
    each_tensor_in(slots[i], [&](const TensorPtr &t) { required = required || requires_grad(t); });
  return required;
}

void check_history(const Op &op, const Operand *v, PyObject **slots, PyObject *out) {
  if (!op.differentiable || !grad_enabled()) return;
  bool required = v ? any_requires_grad(op, v) : any_argument_requires_grad(op, slots);
  each_tensor_in(out, [&](const TensorPtr &t) { required = required || requires_grad(t); });
  if (required)
    fail(op.name,
         "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
         "requires grad.");
}

}  // namespace

void check_out(const Op &op, const Operand *v, PyObject **slots, PyObject *out) {
  check_history(op, v, slots, out);
  // What is no tensor is refused when the results are written.
  each_tensor_in(out, [&](const TensorPtr &t) {
    check_inplace(t, op.composite && requires_grad(t));
    if (!v || (op.promote == Promote::kNone && !op.separate_operands)) return;
    for (int i = 0; i < static_cast<int>(op.params.size()); ++i)
      if (v[i].kind == Arg::kTensor) check_overlap(t, v[i].tensor);
  });
}

}  // namespace msa

// How calls are recorded: run.cpp does it for the calls that it computes, and for those that a __torch_dispatch__
// answers.
#pragma once
#include "internal.h"

namespace msa {

// Whether any operand requires grad, differentiable or not. A write that cannot be recorded is refused then.
bool anything_requires_grad(const Operand *v, int n);
std::shared_ptr<OpNode> make_node(const Op &op, const Operand *before, PyObject **slots, size_t outputs);
// The node of an in-place call. Formulas that read `self` get a copy of it from before the write, as does `v`.
std::shared_ptr<OpNode> make_inplace_node(const Op &op, Operand *v, PyObject **slots);
void attach(const Op &op, const std::shared_ptr<OpNode> &node, const Tensors &results);
void record_inplace(const Op &op, const TensorPtr &self, const TensorPtr &result, const std::shared_ptr<OpNode> &node);
// Makes a result a view of the first operand. `single` is false for operators that return several views.
void set_view_of(const TensorPtr &view, const TensorPtr &base, PyObject *base_object, bool single);

}  // namespace msa

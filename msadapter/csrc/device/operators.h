// Calls operators by their names. On the CPU they run a kernel of this package, if there is one. All others go through
// MindSpore's own dispatch.
#pragma once
#include "mindspore_operators.h"
#include "transfer.h"

namespace msa {

// Runs without recording gradients. If the kernel is elementwise, it writes its results directly to `destination`.
Tensors run_operator(const Operator *op, const Operand *args, int n, const TensorPtr *destination = nullptr);
TensorPtr run1(const char *name, std::initializer_list<Operand> args);

// Whether operators on the CPU call our kernels directly. False with MSADAPTER_FAST=0: every operator then goes through
// MindSpore's dispatch, as on an accelerator.
bool fast_path();
void set_fast_path(bool on);

}  // namespace msa

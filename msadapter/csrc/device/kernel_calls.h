// Calls of the CPU kernels of this package with tensors of MindSpore.
#pragma once
#include "operand.h"

namespace msa {

// Runs a kernel, which may be null if the operator `name` has none: that raises NotImplementedError. With
// `destination`, result 0 is written there.
Tensors run_kernel(const char *name, const KernelInfo *kernel, const Operand *args, int n,
                   const TensorPtr *destination);

}  // namespace msa

// Elementwise reductions of tensors from several ranks.
#pragma once
#include "../kernels/dtype.h"

namespace msa {

enum class Reduction : uint8_t { Sum, Average, Product, Min, Max, And, Or, Xor };

// Whether combine() has this reduction of this type.
bool combinable(DType dtype, Reduction reduction);

// target[i] is the reduction of parts[r][i] over all ranks r, in their order. 16-bit floats are added in float32 and
// rounded once. `target` may be one of the parts.
void combine(DType dtype, Reduction reduction, void *target, const void *const *parts, int ranks, int64_t count);

}  // namespace msa

// The categories of element types in PyTorch's type promotion.
#pragma once
#include "dtype.h"

namespace msa {

// 0 for bool, 1 for integers, 2 for floats, 3 for complex numbers. The common type of two types has the higher of their
// categories.
inline int category(DType d) { return d == DType::Bool ? 0 : is_integral(d) ? 1 : is_floating(d) ? 2 : 3; }

}  // namespace msa

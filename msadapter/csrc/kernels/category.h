// The order in which kinds of numbers give way to each other in torch's type promotion.
#pragma once
#include "dtype.h"

namespace msa {

// 0 bool, 1 integral, 2 floating, 3 complex: a type never turns into one of a lower category.
inline int category(DType d) { return d == DType::Bool ? 0 : is_integral(d) ? 1 : is_floating(d) ? 2 : 3; }

}  // namespace msa

// The instructions of fused programs (fused_pointwise.cpp).
#pragma once
#include <string>
#include <vector>

namespace msa {

// Their names, each at the place that is its code.
const std::vector<std::string> &fused_instructions();

}  // namespace msa

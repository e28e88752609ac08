// The instructions of fused programs (fused_pointwise.cpp).
#pragma once
#include <string>
#include <vector>

namespace msa {

// The names of the instructions. The position of a name is the code of the instruction.
const std::vector<std::string> &fused_instructions();

}  // namespace msa

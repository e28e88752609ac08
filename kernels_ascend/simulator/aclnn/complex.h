// Complex tensors are moved and converted, and computed with by few operators. An operator takes one only if it says so
// (Takes); otherwise the call is refused when it is planned, not by its task, whose failure would stop the device.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "objects.h"

namespace sim {
// The complex arguments of the operator that is planned in this thread which it has not said to take, with their names.
std::vector<std::pair<const aclTensor *, std::string>> &UntakenComplex();
}  // namespace sim

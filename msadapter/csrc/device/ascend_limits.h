// The calls that PyTorch allows and MindSpore's operators for an NPU do not support.
#pragma once
#include <map>

#include "mindspore_operators.h"

namespace msa {

// Why MindSpore's operator for the NPU does not take these operands, or null if it does. Such a call is computed on the
// host. docs/ascend.md lists these cases.
const char *why_not_on_npu(const Operator &op, const Operand *args, int n);

// Every MindSpore operator with such a limit, and what it does not take.
std::vector<std::pair<std::string, std::string>> npu_limits();

// How often operators of NPU tensors were computed on the host since the start of the process: by operator and by what
// MindSpore's operator does not take, which is empty if MindSpore has no such operator.
using HostCalls = std::map<std::pair<std::string, std::string>, int64_t>;
HostCalls &host_calls();
// Counts work that is done on the host, and says so once for each operator and reason. `reason` is what the NPU's
// operator does not take, or null if there is no operator.
void note_host_call(const std::string &name, const char *reason);

}  // namespace msa

// Faults that a test asks for: "kind@number" with commas between them, in MSADAPTER_SIMULATED_NPU_FAULTS or by
// SimulatedNpuInjectFaults. The number counts from 1, from the moment the fault is asked for.
//
//   oom@3            the third allocation of device memory fails
//   ecc@10           the tenth task ends with an uncorrectable error of several bits of the memory
//   uce@10           the tenth task ends with an uncorrectable memory error
//   kernel@10        the tenth task ends with an exception of a core
//   hccl_timeout@2   the second collective waits until its time is over
//   link@2           the second collective ends with a lost link
#pragma once
#include <string>

#include "status.h"

namespace sim {
enum class Event { kAllocation, kTask, kCollective };

// Counts an event. Returns the name of the fault that is due now, or "".
std::string FaultDue(Event event);

// Throws the Failure of a fault of a task.
[[noreturn]] void RaiseFault(const std::string &kind);
}  // namespace sim

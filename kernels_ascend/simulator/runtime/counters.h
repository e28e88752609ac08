// How often something happened in this process: tests and the benchmark page read these numbers by name.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>

namespace sim {
// The counter of a name, such as "tasks", "copies host to device" or an operator's name. It exists from the first use.
std::atomic<int64_t> &Counter(const std::string &name);
}  // namespace sim

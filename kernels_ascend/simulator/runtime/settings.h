// The simulated NPU's settings. Every environment variable that it reads is named in settings.cpp and described in
// docs/simulated_npu.md.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace sim {
struct Settings {
  size_t devices;       // how many devices there are
  size_t memory;        // bytes of memory of each device
  std::string chip;     // the name that aclrtGetSocName answers
  int log;              // 0 quiet, 1 operators and refusals, 2 also calls of the runtime, 3 also tasks
  bool synchronous;     // run a task in the thread that puts it on a stream
  int64_t delay_us;     // wait at random up to so many microseconds before each task
  uint64_t delay_seed;  // the seed of these delays
  bool poison;          // fill fresh memory with bytes that are not-a-number in every floating type
  bool host_access;     // let the host read and write device memory (a debugging aid, never right)
  std::string faults;   // faults to inject, see faults.h
  double hccl_timeout;  // seconds that a rank waits for the others in a collective
  double hccl_connect;  // seconds that a rank waits for the others when a communicator is made
  size_t hccl_slot;     // bytes of the pieces into which a message is cut
};
const Settings &TheSettings();

// Whether the simulated chip computes bfloat16 and later features (Ascend910B, Ascend910_93), or is an older one.
bool ChipHasBfloat16();
}  // namespace sim

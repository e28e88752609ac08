#include "doorbell.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <chrono>

#include "../kernels/machine.h"

namespace msa {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void ring_others(Doorbell *bells, int ranks, int rank) {
  for (int r = 0; r < ranks; ++r) {
    if (r == rank) continue;
    // Ordered with `sleeping`: a process that falls asleep after this sees the new number
    bells[r].rings.fetch_add(1);
    if (bells[r].sleeping.load()) syscall(SYS_futex, &bells[r].rings, FUTEX_WAKE, 1 << 30, nullptr, nullptr, 0);
  }
}

void wait_awake(int ranks) {
  static const int processors = [] {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  }();
  if (ranks > processors) {
    sched_yield();
  } else {
    relax();
  }
}

void sleep_on(Doorbell &bell, uint32_t seen, double seconds) {
  timespec limit{static_cast<time_t>(seconds), static_cast<long>((seconds - static_cast<time_t>(seconds)) * 1e9)};
  bell.sleeping.fetch_add(1);
  syscall(SYS_futex, &bell.rings, FUTEX_WAIT, seen, &limit, nullptr, 0);
  bell.sleeping.fetch_sub(1);
}

}  // namespace msa

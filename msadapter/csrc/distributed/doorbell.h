// How processes that share memory wait for each other: a counter that is rung after every change, and slept on.
#pragma once
#include <atomic>
#include <cstdint>

namespace msa {

struct alignas(64) Doorbell {
  std::atomic<uint32_t> rings;
  std::atomic<uint32_t> sleeping;
};

// Rings the bells of all ranks but one's own.
void ring_others(Doorbell *bells, int ranks, int rank);

double seconds_now();
// Sleeps until the bell has rung since `seen`, at most so long; 0: only gives way.
void sleep_on(Doorbell &bell, uint32_t seen, double seconds);
constexpr double kBusy = 0.002;     // seconds for the others' next chunk, once something has moved
constexpr double kAwake = 0.00002;  // seconds before sleeping: waking costs about as much

// Calls pass() (whether anything moved) until done(), or until nothing has moved for `patience` seconds; whether it is
// done. Once something has moved, it waits a little longer for the rest.
template <class Done, class Pass>
bool attend(Doorbell &own, double patience, Done done, Pass pass) {
  double last = seconds_now();
  for (;;) {
    const uint32_t seen = own.rings.load(std::memory_order_acquire);
    const bool moved = pass();
    if (done()) return true;
    const double now = seconds_now(), idle = now - last;
    if (moved) {
      last = now;
      if (patience < kBusy) patience = kBusy;
    } else if (idle > patience) {
      return false;
    } else {
      sleep_on(own, seen, idle < kAwake ? 0 : patience - idle);
    }
  }
}

}  // namespace msa

// How processes with shared memory wait for each other: they sleep on a counter that is increased after every change.
#pragma once
#include <atomic>
#include <cstdint>

namespace msa {

struct alignas(64) Doorbell {
  std::atomic<uint32_t> rings;
  std::atomic<uint32_t> sleeping;
};

// Increases the counters of all other ranks and wakes them.
void ring_others(Doorbell *bells, int ranks, int rank);

double seconds_now();
// Sleeps until the counter differs from `seen`, but not longer than this.
void sleep_on(Doorbell &bell, uint32_t seen, double seconds);
// Waits for a moment without sleeping. It yields the processor if this process may not have one for each rank, because
// another rank may need this one. Otherwise it keeps it: a yield would give it to other programs for milliseconds.
void wait_awake(int ranks);
constexpr double kBusy = 0.002;     // seconds to wait actively for the next chunk, once something has moved
constexpr double kAwake = 0.00002;  // seconds to wait actively before sleeping, because waking up takes about as long

// Calls pass(), which returns whether anything moved, until done() is true or nothing has moved for `patience`
// seconds. Returns done(). Once something has moved, it waits a little longer for the rest.
template <class Done, class Pass>
bool attend(Doorbell &own, int ranks, double patience, Done done, Pass pass) {
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
    } else if (idle < kAwake) {
      wait_awake(ranks);
    } else {
      sleep_on(own, seen, patience - idle);
    }
  }
}

}  // namespace msa

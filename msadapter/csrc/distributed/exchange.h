// Collectives between the processes of one machine, through shared memory.
//
// Every rank owns a few slots of this memory. A tensor is sent in chunks of the size of a slot. A rank fills its slot
// and increases its counter of published chunks; the others read (and reduce) from the slot and increase their
// counters of consumed chunks; the slot is filled again when all have consumed it. A chunk fits into a cache, so a
// tensor is read from and written to main memory once. Only advance() waits, and for a limited time.
#pragma once
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "combine.h"
#include "doorbell.h"

namespace msa {

class Exchange;

// The shared memory of a group, seen by one of its ranks.
class SharedSlots {
 public:
  static constexpr int kSlots = 2;
  static size_t bytes_for(int ranks, int64_t slot_bytes);
  // Maps `file` (bytes_for bytes, zero at first). The file descriptor may be closed afterwards.
  SharedSlots(int file, int ranks, int rank, int64_t slot_bytes);
  ~SharedSlots();
  SharedSlots(const SharedSlots &) = delete;
  SharedSlots &operator=(const SharedSlots &) = delete;

  const int ranks, rank;
  const int64_t slot_bytes;

  // Collectives of a group run in the order in which they were started. Both functions throw std::runtime_error after
  // a failure.
  void start(std::shared_ptr<Exchange> exchange);
  // Returns whether this collective has ended. It moves data until nothing has moved for `patience` seconds.
  bool advance(const Exchange &wanted, double patience);
  // Its memory will be freed, so no later collective of this group can work
  void give_up(const Exchange &unfinished);

 private:
  friend class Exchange;
  struct alignas(64) Line {
    std::atomic<uint64_t> published, consumed, signature;
  };
  char *slot(int of, uint64_t chunk) const {
    return slots_ + (of * kSlots + static_cast<int64_t>(chunk % kSlots)) * slot_bytes;
  }

  bool pass(const Exchange &wanted);  // makes one step and returns whether anything moved
  void end_first();

  char *memory_ = nullptr, *slots_ = nullptr;
  Doorbell *bells_ = nullptr;
  Line *lines_ = nullptr;
  uint64_t operations_ = 0;
  std::deque<std::shared_ptr<Exchange>> queue_;
  std::mutex mutex_;
  std::string broken_;
};

// One collective of one rank.
class Exchange {
 public:
  virtual ~Exchange() = default;
  bool ended() const { return ended_.load(std::memory_order_acquire); }

 protected:
  Exchange(SharedSlots &slots, int kind, uint64_t bytes, int detail);
  virtual bool step() = 0;  // goes one chunk further if possible, and returns whether anything was done
  virtual bool complete() const = 0;

  // Chunks are numbered from 0 within the collective.
  bool may_fill(uint64_t chunk) const;  // whether all ranks have consumed the former chunk in this slot
  // Whether this rank has published the chunk; throws if it runs another collective
  bool filled(int by, uint64_t chunk);
  char *own_slot(uint64_t chunk) const { return slots_.slot(slots_.rank, chunk); }
  const char *slot_of(int rank, uint64_t chunk) const { return slots_.slot(rank, chunk); }
  void publish(uint64_t chunks);  // this many chunks of this collective are now published
  void consume(uint64_t chunks);  // this many chunks are no longer needed
  int ranks() const { return slots_.ranks; }
  int rank() const { return slots_.rank; }

  SharedSlots &slots_;

 private:
  friend class SharedSlots;
  uint64_t base_ = 0;
  const uint64_t signature_;
  std::atomic<bool> ended_{false};
};

std::shared_ptr<Exchange> make_all_reduce(SharedSlots &slots, void *data, int64_t count, DType dtype,
                                          Reduction reduction);
// `output` gets this rank's part of the reduction of `input`. counts[r] is the number of elements in the part of rank
// r.
std::shared_ptr<Exchange> make_reduce_scatter(SharedSlots &slots, void *output, const void *input,
                                              std::vector<int64_t> counts, DType dtype, Reduction reduction);
// `output` gets the inputs of all ranks, one after the other. counts[r] is the number of bytes of rank r. `input` may
// be this rank's part of `output`.
std::shared_ptr<Exchange> make_all_gather(SharedSlots &slots, void *output, const void *input,
                                          std::vector<int64_t> counts);
std::shared_ptr<Exchange> make_broadcast(SharedSlots &slots, void *data, int64_t bytes, int root);

}  // namespace msa

// Collectives between the processes of one machine, through shared memory.
//
// Every rank owns a few cards and slots of this memory. It writes a card for each collective, with its signature and,
// if they fit, its data. The others read it when the rank has increased its counter of published parts. Larger data
// follows in chunks of the size of a slot: a rank fills its slot and increases the counter; the others read (and
// reduce) from the slot and increase their counters of consumed chunks; the slot is filled again when all have
// consumed it. A chunk fits into a cache, so a tensor is read from and written to main memory once. Only advance()
// waits, and for a limited time.
#pragma once
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "combine.h"
#include "doorbell.h"
#include "signature.h"

namespace msa {

class Exchange;

// The shared memory of a group, seen by one of its ranks.
class SharedSlots {
 public:
  static constexpr int kSlots = 2;
  static constexpr int kCards = 8;  // a rank may be this many collectives ahead of the others
  static constexpr int64_t kCardBytes = 1 << 16;
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
    std::atomic<uint64_t> published, consumed;
  };
  struct alignas(64) Card {
    Signature signature;
    char data[kCardBytes];
  };
  char *slot(int of, uint64_t chunk) const {
    return slots_ + (of * kSlots + static_cast<int64_t>(chunk % kSlots)) * slot_bytes;
  }
  Card &card(int of, uint64_t operation) const { return cards_[of * kCards + operation % kCards]; }

  bool pass(const Exchange &wanted);  // makes one step and returns whether anything moved
  void end_first();
  bool all_consumed(uint64_t count) const;

  char *memory_ = nullptr, *slots_ = nullptr;
  Doorbell *bells_ = nullptr;
  Line *lines_ = nullptr;
  Card *cards_ = nullptr;
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
  const Signature &signature() const { return signature_; }
  // The rank whose signature does not agree, the number of ranks if the sizes of the parts do not, or -1.
  int differing() const { return differing_; }
  const Signature &theirs() const { return theirs_; }

 protected:
  enum class Hears { All, Root, Nobody };  // whose signatures this rank waits for and compares
  Exchange(SharedSlots &slots, const Signature &signature, Hears hears = Hears::All);

  virtual void write_card(char * /*room*/) {}  // data for the card of this rank
  // Goes one chunk further if possible, and returns whether anything was done. Before agreed() it may only send.
  virtual bool move() = 0;
  virtual bool finished() const = 0;

  bool agreed() const { return agreed_; }
  const char *card_of(int rank) const { return slots_.card(rank, number_).data; }

  // Chunks are numbered from 0 within the collective.
  bool may_fill(uint64_t chunk) const;  // whether all ranks have consumed the former chunk in this slot
  bool filled(int by, uint64_t chunk) const;
  char *own_slot(uint64_t chunk) const { return slots_.slot(slots_.rank, chunk); }
  const char *slot_of(int rank, uint64_t chunk) const { return slots_.slot(rank, chunk); }
  void publish(uint64_t chunks);  // this many chunks of this collective are now published
  void consume(uint64_t chunks);  // this many chunks are no longer needed
  int ranks() const { return slots_.ranks; }
  int rank() const { return slots_.rank; }

  SharedSlots &slots_;

 private:
  friend class SharedSlots;
  bool step();
  bool complete() const { return posted_ && agreed_ && finished(); }
  bool post();
  bool agree();

  const Signature signature_;
  const Hears hears_;
  uint64_t number_ = 0, base_ = 0;
  bool posted_ = false, agreed_;
  int differing_ = -1;
  Signature theirs_;
  std::atomic<bool> ended_{false};
};

// Memory of one rank's part of a collective.
struct Part {
  char *data;
  int64_t bytes;
};

std::shared_ptr<Exchange> make_barrier(SharedSlots &slots, const Signature &signature);
std::shared_ptr<Exchange> make_all_reduce(SharedSlots &slots, const Signature &signature, void *data, int64_t count,
                                          DType dtype, Reduction reduction);
// `output` gets this rank's part of the reduction of `input`. counts[r] is the number of elements in the part of rank
// r. They may overlap.
std::shared_ptr<Exchange> make_reduce_scatter(SharedSlots &slots, const Signature &signature, void *output,
                                              const void *input, const std::vector<int64_t> &counts, DType dtype,
                                              Reduction reduction);
// outputs[r] gets the input of rank r. `input` may overlap the outputs.
std::shared_ptr<Exchange> make_all_gather(SharedSlots &slots, const Signature &signature, std::vector<Part> outputs,
                                          const void *input);
// outputs[r] gets what rank r has as its inputs[this rank]. They may overlap.
std::shared_ptr<Exchange> make_all_to_all(SharedSlots &slots, const Signature &signature, std::vector<Part> outputs,
                                          std::vector<Part> inputs);
// Whether the root of a broadcast of this many bytes can end it before the others have begun it.
inline bool broadcast_is_early(int64_t bytes) { return bytes <= SharedSlots::kCardBytes; }
std::shared_ptr<Exchange> make_broadcast(SharedSlots &slots, const Signature &signature, void *data, int64_t bytes,
                                         int root);

}  // namespace msa

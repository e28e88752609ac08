// Large messages between the processes of one machine, through shared memory.
//
// Every ordered pair of ranks has a ring of slots. A message is sent in chunks, and messages follow one another in the
// order in which the sender started them. The receiver names a message by its number in the ring and may ask for
// messages in another order; messages in front of the wanted one are copied aside. Only advance() waits, and for a
// limited time.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "doorbell.h"

namespace msa {

// A message that is being sent or received, seen by its sender or its receiver.
struct Transfer {
  char *data;
  uint64_t bytes, number;
  uint64_t moved = 0;
  std::atomic<bool> ended{false};
  Transfer(void *d, uint64_t n, uint64_t k) : data(static_cast<char *>(d)), bytes(n), number(k) {}
};
using TransferPtr = std::shared_ptr<Transfer>;

class Channels {
 public:
  static constexpr uint64_t kSlots = 8;
  static constexpr uint64_t kChunk = 1 << 16;  // bytes of a slot
  static size_t bytes_for(int ranks);
  // Maps bytes_for bytes of `file` from `offset` (a multiple of the page size). They must be zero at first.
  Channels(int file, int64_t offset, int ranks, int rank);
  ~Channels();
  Channels(const Channels &) = delete;
  Channels &operator=(const Channels &) = delete;

  const int ranks, rank;

  // All functions throw std::runtime_error after a failure. The number of a message counts the sender's messages in
  // the ring.
  TransferPtr send(int to, const void *data, uint64_t bytes);
  TransferPtr receive(int from, void *data, uint64_t bytes, uint64_t number);
  // Returns whether all transfers have ended. It moves data until nothing has moved for `patience` seconds.
  bool advance(const std::vector<TransferPtr> &wanted, double patience);
  void give_up(const Transfer &unfinished);  // its memory will be freed, so no later transfer can work

 private:
  struct Slot {
    uint64_t number, bytes;  // of the message
    char padding[48];
    char data[kChunk];
  };
  struct alignas(64) Pair {
    std::atomic<uint64_t> written;
    char padding[56];
    std::atomic<uint64_t> read;
    char more[56];
    Slot slots[kSlots];
  };
  struct Outbox {
    std::deque<TransferPtr> waiting;
    uint64_t numbers = 0;
  };
  struct Inbox {
    std::map<uint64_t, TransferPtr> expected;
    std::map<uint64_t, std::vector<char>> aside;
  };
  Pair &pair(int from, int to) const { return pairs_[from * ranks + to]; }
  bool push(int to);
  bool pull(int from);
  bool pass();
  void check_whole() const;

  Doorbell *bells_ = nullptr;
  Pair *pairs_ = nullptr;
  std::vector<Outbox> out_;
  std::vector<Inbox> in_;
  std::mutex mutex_;
  std::string broken_;
};

}  // namespace msa

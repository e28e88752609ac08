// Large messages between the processes of one machine, through memory that all of them map.
//
// Every ordered pair of ranks has a ring of slots for messages and one for the parts of collectives. A message travels
// in chunks, in the order in which the sender started; the receiver names it by its number in the ring, so it may ask
// for messages in another order: what lies in front is put aside. Only advance() waits, for as long as it is told.
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

enum class Ring : uint8_t { Messages, Collectives };

// A message on its way, as its sender or its receiver sees it.
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
  // Maps bytes_for bytes of `file` from `offset` (a multiple of the page size), zeros at first.
  Channels(int file, int64_t offset, int ranks, int rank);
  ~Channels();
  Channels(const Channels &) = delete;
  Channels &operator=(const Channels &) = delete;

  const int ranks, rank;

  // All throw std::runtime_error after a failure. A sender's number counts the messages that it has put into the ring.
  TransferPtr send(Ring ring, int to, const void *data, uint64_t bytes);
  TransferPtr receive(Ring ring, int from, void *data, uint64_t bytes, uint64_t number);
  TransferPtr receive_next(int from, void *data, uint64_t bytes);  // of collectives: in the order of the calls
  // Whether all have ended; moves everything that can be moved until nothing has for `patience` seconds.
  bool advance(const std::vector<TransferPtr> &wanted, double patience);
  void give_up(const Transfer &unfinished);  // its memory may go: nothing later can work

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
    uint64_t numbers = 0;
  };
  Pair &pair(int ring, int from, int to) const { return pairs_[(ring * ranks + from) * ranks + to]; }
  bool push(int ring, int to);
  bool pull(int ring, int from);
  bool pass();
  void check_whole() const;

  Doorbell *bells_ = nullptr;
  Pair *pairs_ = nullptr;
  std::vector<Outbox> out_[2];
  std::vector<Inbox> in_[2];
  std::mutex mutex_;
  std::string broken_;
};

}  // namespace msa

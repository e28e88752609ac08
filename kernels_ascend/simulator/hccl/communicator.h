// A group of processes of one machine that exchange device memory. What one rank gives to the others passes through
// shared memory, in pieces of the size of a slot. Every call waits for the other ranks, at most until the time-out of
// the settings; then it throws Failure(kCollectiveTimeout), as a device reports a notify that never came.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "../runtime/status.h"

namespace sim {
constexpr Status kCollectiveTimeout = 507048;  // ACL_ERROR_RT_FFTS_PLUS_TIMEOUT

enum class Combining { kSum = 0, kProduct = 1, kLargest = 2, kSmallest = 3 };  // the numbers of HcclReduceOp

struct Message {
  int kind;  // 0 send, 1 receive: HcclSendRecvType
  void *buffer;
  uint64_t count;
  int type;  // HcclDataType
  uint32_t peer;
};

class Communicator {
 public:
  // Waits until all ranks have joined. Throws Failure(kCollectiveTimeout).
  static Communicator *Join(const std::string &meeting_place, uint32_t rank, uint32_t size, const std::string &name);
  // The communicator of this process with a name, for operators that are given a group. Throws Failure.
  static Communicator *Find(const std::string &name);
  static void Forget(Communicator *one);

  uint32_t rank() const { return rank_; }
  uint32_t size() const { return size_; }
  const std::string &name() const { return name_; }

  // Addresses are those through which the simulator reaches the memory. `type` is a DataType.
  void Barrier();
  void Broadcast(char *buffer, uint64_t bytes, uint32_t root);
  void AllGather(const char *from, char *to, uint64_t bytes);
  // The result is written on the rank `root`, or on all if root is the number of ranks.
  void Reduce(const char *from, char *to, uint64_t count, int type, Combining how, uint32_t root);
  // Rank r gives send(r) to each rank, and takes receive(r) from it: addresses and numbers of bytes.
  using Place = std::function<std::pair<char *, uint64_t>(uint32_t)>;
  void AllToAll(const Place &send, const Place &receive);
  // Each rank reduces its own part: from(r) is what goes to rank r, all parts of this rank have `count` elements.
  void ReduceScatter(const Place &from, char *to, uint64_t count, int type, Combining how);
  // Sends and receives, in any order between different ranks and in the given order between two.
  void Exchange(const std::vector<Message> &messages);

 private:
  struct Shared;
  struct Mailbox;
  class Patience;
  template <class F, class G>
  void InPieces(uint64_t bytes, F put, G take);
  void Meet();
  char *Slot(uint32_t rank) { return slots_ + rank * slot_; }
  char *Letter(uint32_t from, uint32_t to) { return letters_ + (from * size_ + to) * slot_; }
  Mailbox &Box(uint32_t from, uint32_t to);

  uint32_t rank_ = 0, size_ = 1;
  std::string name_;
  size_t slot_ = 0;
  Shared *shared_ = nullptr;
  Mailbox *boxes_ = nullptr;
  char *slots_ = nullptr, *letters_ = nullptr;
  uint64_t exchanges_ = 0;
  std::mutex mutex_;  // collectives of one communicator run one after the other, whatever streams they are on
};

// to[i] = to[i] combined with from[i].
void Combine(int type, Combining how, char *to, const char *from, uint64_t count);
}  // namespace sim

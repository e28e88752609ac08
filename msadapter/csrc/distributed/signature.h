// Signatures: what the ranks of a group tell each other about the collective that they run.
#pragma once
#include <cstdint>
#include <vector>

#include "../kernels/dtype.h"

namespace msa {

enum class Collective : uint8_t {
  None,
  AllReduce,
  ReduceScatter,
  AllGather,
  AllToAll,
  Barrier,
  Reduce,
  Broadcast,
  Gather,
  Scatter
};
constexpr int kCollectives = 10;
const char *collective_name(Collective kind);  // "ALLREDUCE" ...

// The facts that a program states about a collective. Facts that it does not have keep their defaults.
struct Facts {
  Collective kind = Collective::None;
  int dtype = -1;      // DType, or -1 without a tensor
  int reduction = -1;  // the number of a ReduceOp
  int root = -1;
  uint64_t same = 0;  // a number that is the same on all ranks, such as the number of elements
  // Sums of flow() over what this rank sends and over what it expects to receive.
  uint64_t sent = 0, received = 0;
};

struct Signature {
  uint8_t kind = 0, dtype = 0, reduction = 0, padding = 0;  // dtype and reduction are counted from 1
  uint32_t sequence = 0;                                    // the number of the operation in the group
  uint32_t root = 0, more_padding = 0;                      // counted from 1
  uint64_t same = 0;
  uint64_t rooted = 0;  // a hash of the operations with a root before this one
  uint64_t sent = 0, received = 0;

  bool agrees(const Signature &other) const;  // whether all is equal but what each rank sends and receives
};
static_assert(sizeof(Signature) == 48, "a signature has no hidden padding, because its bytes are sent");

// A number for the bytes that one rank sends to another, such that the sums of different exchanges differ.
uint64_t flow(int sender, int receiver, uint64_t bytes);
uint64_t flow_to_all(int sender, const std::vector<int64_t> &bytes);
uint64_t flow_from_all(int receiver, const std::vector<int64_t> &bytes);
uint64_t hash_of(const std::vector<int64_t> &numbers);

// Compares the signatures of the ranks; of(rank) is a pointer, null for a rank that is not asked. Returns -1 if they
// agree, the rank whose operation differs from `own`, or the number of ranks if these do not agree about the sizes of
// the parts that they send to each other.
template <class Of>
int disagreeing(const Signature &own, int ranks, Of of) {
  uint64_t difference = 0;
  for (int r = 0; r < ranks; ++r) {
    const Signature *one = of(r);
    if (!one) continue;
    if (!own.agrees(*one)) return r;
    difference += one->sent - one->received;
  }
  return difference ? ranks : -1;
}

// What a rank has begun in a group, as far as its next signatures depend on it.
class Ledger {
 public:
  explicit Ledger(int rank) : rank_(rank) {}
  // early: some ranks can end the operation before others have begun it. Then the signature is not sent to all ranks.
  Signature sign(const Facts &facts, uint32_t sequence, bool early);
  // The number of the last operation that this rank may have ended before others have begun it, or 0.
  uint32_t unconfirmed() const { return unconfirmed_; }

 private:
  const int rank_;
  uint64_t rooted_ = 0;
  uint32_t unconfirmed_ = 0;
};

}  // namespace msa

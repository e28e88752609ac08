#include "signature.h"

namespace msa {
namespace {

constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;

// The remainder of the division by kPrime, to which 2^61 is 1.
uint64_t reduced(unsigned __int128 x) {
  x = (x & kPrime) + (x >> 61);
  const auto sum = static_cast<uint64_t>((x & kPrime) + (x >> 61));
  return sum >= kPrime ? sum - kPrime : sum;
}

uint64_t times(uint64_t a, uint64_t b) { return reduced(static_cast<unsigned __int128>(a) * b); }

uint64_t mixed(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

}  // namespace

const char *collective_name(Collective kind) {
  static const char *names[kCollectives] = {"",        "ALLREDUCE", "REDUCE_SCATTER", "ALLGATHER", "ALLTOALL",
                                            "BARRIER", "REDUCE",    "BROADCAST",      "GATHER",    "SCATTER"};
  return names[static_cast<int>(kind)];
}

bool Signature::agrees(const Signature &other) const {
  return kind == other.kind && dtype == other.dtype && reduction == other.reduction && sequence == other.sequence &&
         root == other.root && same == other.same && rooted == other.rooted;
}

uint64_t flow(int sender, int receiver, uint64_t bytes) {
  const auto all = static_cast<unsigned __int128>(bytes) << 40 | static_cast<uint64_t>(sender) << 20 |
                   static_cast<uint64_t>(receiver);
  const uint64_t x = reduced(all);
  const uint64_t square = times(x, x);
  return times(times(square, square), x);
}

uint64_t flow_to_all(int sender, const std::vector<int64_t> &bytes) {
  uint64_t sum = 0;
  for (size_t r = 0; r < bytes.size(); ++r) sum += flow(sender, static_cast<int>(r), bytes[r]);
  return sum;
}

uint64_t flow_from_all(int receiver, const std::vector<int64_t> &bytes) {
  uint64_t sum = 0;
  for (size_t r = 0; r < bytes.size(); ++r) sum += flow(static_cast<int>(r), receiver, bytes[r]);
  return sum;
}

uint64_t hash_of(const std::vector<int64_t> &numbers) {
  uint64_t hash = numbers.size();
  for (int64_t number : numbers) hash = mixed(hash, static_cast<uint64_t>(number));
  return hash;
}

Signature Ledger::sign(const Facts &facts, uint32_t sequence, bool early) {
  Signature s;
  s.kind = static_cast<uint8_t>(facts.kind);
  s.dtype = static_cast<uint8_t>(facts.dtype + 1);
  s.reduction = static_cast<uint8_t>(facts.reduction + 1);
  s.sequence = sequence;
  s.root = static_cast<uint32_t>(facts.root + 1);
  s.same = facts.same;
  s.sent = facts.sent;
  s.received = facts.received;
  if (early) {
    for (uint64_t part :
         {uint64_t{s.kind}, uint64_t{s.dtype}, uint64_t{s.reduction}, uint64_t{sequence}, uint64_t{s.root}, s.same})
      rooted_ = mixed(rooted_, part);
    const bool from_root = facts.kind == Collective::Broadcast || facts.kind == Collective::Scatter;
    if ((rank_ == facts.root) == from_root) unconfirmed_ = sequence;
  } else {
    s.rooted = rooted_;
    rooted_ = 0;
    unconfirmed_ = 0;
  }
  return s;
}

}  // namespace msa

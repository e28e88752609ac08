#include "exchange.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace msa {
namespace {

constexpr int kChunkBits = 32;  // bits of a counter for the chunk; the number of the collective is in the bits above
constexpr int64_t kAlign = 64;

int64_t chunks_of(int64_t bytes, int64_t chunk) { return (bytes + chunk - 1) / chunk; }

enum Kind { kAllReduce = 1, kReduceScatter, kAllGather, kBroadcast };
const char *kind_name(uint64_t signature) {
  static const char *names[] = {"nothing", "all_reduce", "reduce_scatter", "all_gather", "broadcast"};
  return names[std::min<uint64_t>(signature >> 56, 4)];
}

}  // namespace

size_t SharedSlots::bytes_for(int ranks, int64_t slot_bytes) {
  return ranks * (sizeof(Doorbell) + sizeof(Line) + kSlots * static_cast<size_t>(slot_bytes));
}

SharedSlots::SharedSlots(int file, int ranks, int rank, int64_t slot_bytes)
    : ranks(ranks), rank(rank), slot_bytes(slot_bytes) {
  void *p = mmap(nullptr, bytes_for(ranks, slot_bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (p == MAP_FAILED)
    throw std::runtime_error(std::string("mapping the memory of a process group failed: ") + std::strerror(errno));
  memory_ = static_cast<char *>(p);
  bells_ = reinterpret_cast<Doorbell *>(memory_);
  lines_ = reinterpret_cast<Line *>(bells_ + ranks);
  slots_ = reinterpret_cast<char *>(lines_ + ranks);
}

SharedSlots::~SharedSlots() { munmap(memory_, bytes_for(ranks, slot_bytes)); }

void SharedSlots::start(std::shared_ptr<Exchange> exchange) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!broken_.empty()) throw std::runtime_error(broken_);
  exchange->base_ = operations_++ << kChunkBits;
  queue_.push_back(std::move(exchange));
}

void SharedSlots::end_first() {
  Exchange &first = *queue_.front();
  const uint64_t next = first.base_ + (uint64_t{1} << kChunkBits);
  lines_[rank].published.store(next, std::memory_order_release);
  lines_[rank].consumed.store(next, std::memory_order_release);
  first.ended_.store(true, std::memory_order_release);
  queue_.pop_front();
}

bool SharedSlots::pass(const Exchange &wanted) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (wanted.ended()) return true;
  if (!broken_.empty()) throw std::runtime_error(broken_);
  try {
    Exchange &first = *queue_.front();  // `wanted`, or a collective before it
    const bool moved = !first.complete() && first.step(), over = first.complete();
    if (over) end_first();
    if (moved || over) ring_others(bells_, ranks, rank);
    return moved || over;
  } catch (const std::exception &e) {
    broken_ = e.what();
    throw;
  }
}

bool SharedSlots::advance(const Exchange &wanted, double patience) {
  return attend(bells_[rank], patience, [&] { return wanted.ended(); }, [&] { return pass(wanted); });
}

void SharedSlots::give_up(const Exchange &unfinished) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (unfinished.ended()) return;
  queue_.clear();
  broken_ = "an earlier collective of this process group was given up before it had ended";
}

Exchange::Exchange(SharedSlots &slots, int kind, uint64_t bytes, int detail)
    : slots_(slots),
      signature_(static_cast<uint64_t>(kind) << 56 | static_cast<uint64_t>(detail) << 48 | (bytes & 0xFFFFFFFFFFFF)) {}

bool Exchange::may_fill(uint64_t chunk) const {
  // a slot of the former collective is free when all ranks have finished that collective
  const uint64_t needed = base_ + (chunk < SharedSlots::kSlots ? 0 : chunk - SharedSlots::kSlots + 1);
  for (int r = 0; r < ranks(); ++r)
    if (r != rank() && slots_.lines_[r].consumed.load(std::memory_order_acquire) < needed) return false;
  return true;
}

bool Exchange::filled(int by, uint64_t chunk) {
  const auto &line = slots_.lines_[by];
  if (line.published.load(std::memory_order_acquire) < base_ + chunk + 1) return false;
  const uint64_t theirs = line.signature.load(std::memory_order_relaxed);
  // The rank may have published for the next collective already, if it needed nothing more from this one.
  if (chunk == 0 && line.published.load(std::memory_order_acquire) >> kChunkBits == base_ >> kChunkBits &&
      theirs != signature_)
    throw std::runtime_error(std::string("rank ") + std::to_string(by) + " of the group runs " + kind_name(theirs) +
                             " of " + std::to_string(theirs & 0xFFFFFFFFFFFF) + " bytes where rank " +
                             std::to_string(rank()) + " runs " + kind_name(signature_) + " of " +
                             std::to_string(signature_ & 0xFFFFFFFFFFFF) +
                             " bytes (or the dtype, the reduction or the root differ)");
  return true;
}

void Exchange::publish(uint64_t chunks) {
  auto &line = slots_.lines_[rank()];
  if (chunks == 1) line.signature.store(signature_, std::memory_order_relaxed);
  line.published.store(base_ + chunks, std::memory_order_release);
}
void Exchange::consume(uint64_t chunks) {
  slots_.lines_[rank()].consumed.store(base_ + chunks, std::memory_order_release);
}

namespace {

int detail_of(DType dtype, Reduction reduction) { return static_cast<int>(dtype) * 8 + static_cast<int>(reduction); }

// Two ranks publish their tensors, and each adds the other's slot to its own tensor.
class AllReduceOfTwo final : public Exchange {
 public:
  AllReduceOfTwo(SharedSlots &slots, void *data, int64_t count, DType dtype, Reduction reduction)
      : Exchange(slots, kAllReduce, count * item_size(dtype), detail_of(dtype, reduction)),
        data_(static_cast<char *>(data)),
        bytes_(count * item_size(dtype)),
        dtype_(dtype),
        reduction_(reduction),
        chunks_(chunks_of(bytes_, slots.slot_bytes)) {}

 private:
  int64_t size(uint64_t chunk) const {
    return std::min<int64_t>(slots_.slot_bytes, bytes_ - chunk * slots_.slot_bytes);
  }
  bool complete() const override { return done_ == chunks_; }
  bool step() override {
    bool moved = false;
    if (sent_ < chunks_ && may_fill(sent_)) {
      std::memcpy(own_slot(sent_), data_ + sent_ * slots_.slot_bytes, size(sent_));
      publish(++sent_);
      moved = true;
    }
    const int other = 1 - rank();
    if (done_ < sent_ && filled(other, done_)) {
      char *own = data_ + done_ * slots_.slot_bytes;
      const void *parts[2];
      parts[rank()] = own;
      parts[other] = slot_of(other, done_);
      combine(dtype_, reduction_, own, parts, 2, size(done_) / item_size(dtype_));
      consume(++done_);
      moved = true;
    }
    return moved;
  }
  char *data_;
  const int64_t bytes_;
  const DType dtype_;
  const Reduction reduction_;
  const uint64_t chunks_;
  uint64_t sent_ = 0, done_ = 0;
};

// Chunk 2j carries each rank's tensor, and chunk 2j + 1 the part of the result that the rank has reduced.
class AllReduce final : public Exchange {
 public:
  AllReduce(SharedSlots &slots, void *data, int64_t count, DType dtype, Reduction reduction)
      : Exchange(slots, kAllReduce, count * item_size(dtype), detail_of(dtype, reduction)),
        data_(static_cast<char *>(data)),
        bytes_(count * item_size(dtype)),
        dtype_(dtype),
        reduction_(reduction),
        rounds_(chunks_of(bytes_, slots.slot_bytes)) {}

 private:
  int64_t size(uint64_t round) const {
    return std::min<int64_t>(slots_.slot_bytes, bytes_ - round * slots_.slot_bytes);
  }
  // the bytes [begin, end) of a round that a rank reduces
  std::pair<int64_t, int64_t> part(uint64_t round, int of) const {
    const int64_t total = size(round), each = (total / ranks() + kAlign) / kAlign * kAlign;
    return {std::min(of * each, total), std::min((of + 1) * each, total)};
  }
  bool complete() const override { return round_ == rounds_; }
  bool step() override {
    char *data = data_ + round_ * slots_.slot_bytes;
    if (phase_ == 0) {
      if (!may_fill(2 * round_)) return false;
      std::memcpy(own_slot(2 * round_), data, size(round_));
      publish(2 * round_ + 1);
      phase_ = 1;
      return true;
    }
    if (phase_ == 1) return reduce(data);
    const auto [done, pending] = copy(data);
    if (pending == 0) {
      consume(2 * round_ + 2);
      copied_.assign(ranks(), false);
      phase_ = 0;
      ++round_;
    }
    return done;
  }
  bool reduce(char *data) {
    for (int r = 0; r < ranks(); ++r)
      if (r != rank() && !filled(r, 2 * round_)) return false;
    if (!may_fill(2 * round_ + 1)) return false;
    const auto [begin, end] = part(round_, rank());
    std::vector<const void *> parts(ranks());
    for (int r = 0; r < ranks(); ++r) parts[r] = slot_of(r, 2 * round_) + begin;
    combine(dtype_, reduction_, data + begin, parts.data(), ranks(), (end - begin) / item_size(dtype_));
    std::memcpy(own_slot(2 * round_ + 1) + begin, data + begin, end - begin);
    consume(2 * round_ + 1);
    publish(2 * round_ + 2);
    phase_ = 2;
    return true;
  }
  std::pair<bool, int> copy(char *data) {
    bool done = false;
    int pending = 0;
    for (int r = 0; r < ranks(); ++r) {
      if (r == rank() || copied_[r]) continue;
      if (!filled(r, 2 * round_ + 1)) {
        ++pending;
        continue;
      }
      const auto [begin, end] = part(round_, r);
      std::memcpy(data + begin, slot_of(r, 2 * round_ + 1) + begin, end - begin);
      copied_[r] = done = true;
    }
    return {done, pending};
  }
  char *data_;
  const int64_t bytes_;
  const DType dtype_;
  const Reduction reduction_;
  const uint64_t rounds_;
  uint64_t round_ = 0;
  int phase_ = 0;
  std::vector<bool> copied_ = std::vector<bool>(ranks(), false);
};

// A chunk carries a piece of every other rank's part. Each rank adds up the pieces of its own part.
class ReduceScatter final : public Exchange {
 public:
  ReduceScatter(SharedSlots &slots, void *output, const void *input, std::vector<int64_t> counts, DType dtype,
                Reduction reduction)
      : Exchange(slots, kReduceScatter, total(counts) * item_size(dtype), detail_of(dtype, reduction)),
        output_(static_cast<char *>(output)),
        input_(static_cast<const char *>(input)),
        dtype_(dtype),
        reduction_(reduction),
        piece_(slots.slot_bytes / ranks() / kAlign * kAlign) {
    int64_t largest = 0, place = 0;
    for (int64_t count : counts) {
      starts_.push_back(place);
      sizes_.push_back(count * item_size(dtype));
      place += sizes_.back();
      largest = std::max(largest, sizes_.back());
    }
    chunks_ = chunks_of(largest, piece_);
  }

 private:
  static int64_t total(const std::vector<int64_t> &counts) {
    int64_t n = 0;
    for (int64_t c : counts) n += c;
    return n;
  }
  int64_t size(uint64_t chunk, int of) const { return std::clamp<int64_t>(sizes_[of] - chunk * piece_, 0, piece_); }
  bool complete() const override { return done_ == chunks_; }
  bool step() override {
    bool moved = false;
    if (sent_ < chunks_ && may_fill(sent_)) {
      for (int to = 0; to < ranks(); ++to)
        if (to != rank())
          std::memcpy(own_slot(sent_) + to * piece_, input_ + starts_[to] + sent_ * piece_, size(sent_, to));
      publish(++sent_);
      moved = true;
    }
    if (done_ < sent_ && all_filled()) {
      std::vector<const void *> parts(ranks());
      for (int r = 0; r < ranks(); ++r)
        parts[r] = r == rank() ? input_ + starts_[r] + done_ * piece_ : slot_of(r, done_) + rank() * piece_;
      combine(dtype_, reduction_, output_ + done_ * piece_, parts.data(), ranks(),
              size(done_, rank()) / item_size(dtype_));
      consume(++done_);
      moved = true;
    }
    return moved;
  }
  bool all_filled() {
    for (int r = 0; r < ranks(); ++r)
      if (r != rank() && !filled(r, done_)) return false;
    return true;
  }
  char *output_;
  const char *input_;
  const DType dtype_;
  const Reduction reduction_;
  const int64_t piece_;
  std::vector<int64_t> starts_, sizes_;
  uint64_t chunks_ = 0, sent_ = 0, done_ = 0;
};

// Ranks with data publish it, and all others copy it. A rank follows each sender independently.
class Copies final : public Exchange {
 public:
  // sizes: the number of bytes that each rank publishes, and where they are written
  Copies(SharedSlots &slots, Kind kind, int detail, const char *source, std::vector<char *> targets,
         std::vector<int64_t> sizes)
      : Exchange(slots, kind, total(sizes), detail),
        source_(source),
        targets_(std::move(targets)),
        sizes_(std::move(sizes)),
        done_(ranks(), 0) {
    for (int r = 0; r < ranks(); ++r) most_ = std::max(most_, needed(r));
    done_[rank()] = needed(rank());
  }

 private:
  static int64_t total(const std::vector<int64_t> &sizes) {
    int64_t n = 0;
    for (int64_t s : sizes) n += s;
    return n;
  }
  uint64_t needed(int of) const { return chunks_of(sizes_[of], slots_.slot_bytes); }
  int64_t size(uint64_t chunk, int of) const {
    return std::min<int64_t>(slots_.slot_bytes, sizes_[of] - chunk * slots_.slot_bytes);
  }
  bool complete() const override { return sent_ == needed(rank()) && consumed_ == most_; }
  bool step() override {
    bool moved = false;
    if (sent_ < needed(rank()) && may_fill(sent_)) {
      std::memcpy(own_slot(sent_), source_ + sent_ * slots_.slot_bytes, size(sent_, rank()));
      publish(++sent_);
      moved = true;
    }
    uint64_t consumed = most_;
    for (int r = 0; r < ranks(); ++r) {
      if (done_[r] == needed(r)) continue;
      if (filled(r, done_[r])) {
        std::memcpy(targets_[r] + done_[r] * slots_.slot_bytes, slot_of(r, done_[r]), size(done_[r], r));
        ++done_[r];
        moved = true;
      }
      if (done_[r] < needed(r)) consumed = std::min(consumed, done_[r]);
    }
    if (consumed != consumed_) consume(consumed_ = consumed);
    return moved;
  }
  const char *source_;
  std::vector<char *> targets_;
  std::vector<int64_t> sizes_;
  std::vector<uint64_t> done_;
  uint64_t most_ = 0, sent_ = 0, consumed_ = 0;
};

}  // namespace

std::shared_ptr<Exchange> make_all_reduce(SharedSlots &slots, void *data, int64_t count, DType dtype,
                                          Reduction reduction) {
  if (slots.ranks == 2) return std::make_shared<AllReduceOfTwo>(slots, data, count, dtype, reduction);
  return std::make_shared<AllReduce>(slots, data, count, dtype, reduction);
}

std::shared_ptr<Exchange> make_reduce_scatter(SharedSlots &slots, void *output, const void *input,
                                              std::vector<int64_t> counts, DType dtype, Reduction reduction) {
  return std::make_shared<ReduceScatter>(slots, output, input, std::move(counts), dtype, reduction);
}

std::shared_ptr<Exchange> make_all_gather(SharedSlots &slots, void *output, const void *input,
                                          std::vector<int64_t> counts) {
  std::vector<char *> targets;
  char *place = static_cast<char *>(output);
  for (int64_t size : counts) {
    targets.push_back(place);
    place += size;
  }
  if (targets[slots.rank] != input) std::memcpy(targets[slots.rank], input, counts[slots.rank]);
  return std::make_shared<Copies>(slots, kAllGather, 0, static_cast<const char *>(input), std::move(targets),
                                  std::move(counts));
}

std::shared_ptr<Exchange> make_broadcast(SharedSlots &slots, void *data, int64_t bytes, int root) {
  std::vector<int64_t> sizes(slots.ranks, 0);
  sizes[root] = bytes;
  std::vector<char *> targets(slots.ranks, static_cast<char *>(data));
  return std::make_shared<Copies>(slots, kBroadcast, root, static_cast<const char *>(data), std::move(targets),
                                  std::move(sizes));
}

}  // namespace msa

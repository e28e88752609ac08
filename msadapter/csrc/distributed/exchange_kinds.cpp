// The collectives that exchange.h declares.
#include <algorithm>
#include <cstring>

#include "exchange.h"

namespace msa {
namespace {

constexpr int64_t kAlign = 64;
constexpr int64_t kReducedByAll = 1 << 19;  // bytes of all ranks up to which each rank reduces everything

int64_t chunks_of(int64_t bytes, int64_t chunk) { return (bytes + chunk - 1) / chunk; }

bool overlap(const Part &a, const Part &b) { return a.data < b.data + b.bytes && b.data < a.data + a.bytes; }

void copy(void *to, const void *from, int64_t bytes) {
  if (bytes) std::memcpy(to, from, bytes);  // the memory of an empty tensor is null
}

// Two ranks publish their tensors, and each adds the other's slot to its own tensor.
class AllReduceOfTwo final : public Exchange {
 public:
  AllReduceOfTwo(SharedSlots &slots, const Signature &signature, void *data, int64_t count, DType dtype,
                 Reduction reduction)
      : Exchange(slots, signature),
        data_(static_cast<char *>(data)),
        bytes_(count * item_size(dtype)),
        dtype_(dtype),
        reduction_(reduction),
        chunks_(chunks_of(bytes_, slots.slot_bytes)) {}

 private:
  int64_t size(uint64_t chunk) const {
    return std::min<int64_t>(slots_.slot_bytes, bytes_ - chunk * slots_.slot_bytes);
  }
  bool finished() const override { return done_ == chunks_; }
  bool move() override {
    bool moved = false;
    if (sent_ < chunks_ && may_fill(sent_)) {
      copy(own_slot(sent_), data_ + sent_ * slots_.slot_bytes, size(sent_));
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
  AllReduce(SharedSlots &slots, const Signature &signature, void *data, int64_t count, DType dtype, Reduction reduction)
      : Exchange(slots, signature),
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
  bool finished() const override { return round_ == rounds_; }
  bool move() override {
    char *data = data_ + round_ * slots_.slot_bytes;
    if (phase_ == 0) {
      if (!may_fill(2 * round_)) return false;
      copy(own_slot(2 * round_), data, size(round_));
      publish(2 * round_ + 1);
      phase_ = 1;
      return true;
    }
    if (phase_ == 1) return reduce(data);
    const auto [done, pending] = copy_results(data);
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
    copy(own_slot(2 * round_ + 1) + begin, data + begin, end - begin);
    consume(2 * round_ + 1);
    publish(2 * round_ + 2);
    phase_ = 2;
    return true;
  }
  std::pair<bool, int> copy_results(char *data) {
    bool done = false;
    int pending = 0;
    for (int r = 0; r < ranks(); ++r) {
      if (r == rank() || copied_[r]) continue;
      if (!filled(r, 2 * round_ + 1)) {
        ++pending;
        continue;
      }
      const auto [begin, end] = part(round_, r);
      copy(data + begin, slot_of(r, 2 * round_ + 1) + begin, end - begin);
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
  ReduceScatter(SharedSlots &slots, const Signature &signature, void *output, const void *input,
                const std::vector<int64_t> &counts, DType dtype, Reduction reduction)
      : Exchange(slots, signature),
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
    const char *own = input_ + starts_[rank()];
    if (output_ != own && overlap({output_, sizes_[rank()]}, {const_cast<char *>(input_), place})) {
      aside_.assign(input_, input_ + place);
      input_ = aside_.data();
    }
  }

 private:
  int64_t size(uint64_t chunk, int of) const { return std::clamp<int64_t>(sizes_[of] - chunk * piece_, 0, piece_); }
  bool finished() const override { return done_ == chunks_; }
  bool move() override {
    bool moved = false;
    if (sent_ < chunks_ && may_fill(sent_)) {
      for (int to = 0; to < ranks(); ++to)
        if (to != rank()) copy(own_slot(sent_) + to * piece_, input_ + starts_[to] + sent_ * piece_, size(sent_, to));
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
  std::vector<char> aside_;  // a copy of the input, if the output would overwrite what is still to be sent
  const DType dtype_;
  const Reduction reduction_;
  const int64_t piece_;
  std::vector<int64_t> starts_, sizes_;
  uint64_t chunks_ = 0, sent_ = 0, done_ = 0;
};

// Ranks with data publish it, and all others copy it. A rank follows each sender independently.
class Copies final : public Exchange {
 public:
  // targets[r]: where what rank r publishes is written
  Copies(SharedSlots &slots, const Signature &signature, const void *source, std::vector<Part> targets)
      : Exchange(slots, signature),
        source_(static_cast<const char *>(source)),
        targets_(std::move(targets)),
        done_(ranks(), 0) {
    for (int r = 0; r < ranks(); ++r) most_ = std::max(most_, needed(r));
    done_[rank()] = needed(rank());
  }

 private:
  uint64_t needed(int of) const { return chunks_of(targets_[of].bytes, slots_.slot_bytes); }
  int64_t size(uint64_t chunk, int of) const {
    return std::min<int64_t>(slots_.slot_bytes, targets_[of].bytes - chunk * slots_.slot_bytes);
  }
  bool finished() const override { return sent_ == needed(rank()) && consumed_ == most_; }
  bool move() override {
    bool moved = false;
    if (sent_ < needed(rank()) && may_fill(sent_)) {
      copy(own_slot(sent_), source_ + sent_ * slots_.slot_bytes, size(sent_, rank()));
      publish(++sent_);
      moved = true;
    }
    uint64_t consumed = most_;
    for (int r = 0; r < ranks(); ++r) {
      if (done_[r] == needed(r)) continue;
      if (filled(r, done_[r])) {
        copy(targets_[r].data + done_[r] * slots_.slot_bytes, slot_of(r, done_[r]), size(done_[r], r));
        ++done_[r];
        moved = true;
      }
      if (done_[r] < needed(r)) consumed = std::min(consumed, done_[r]);
    }
    if (consumed != consumed_) consume(consumed_ = consumed);
    return moved;
  }
  const char *source_;
  const std::vector<Part> targets_;
  std::vector<uint64_t> done_;
  uint64_t most_ = 0, sent_ = 0, consumed_ = 0;
};

// Every rank has a part for each other one. A chunk carries a piece for each of them.
class AllToAll final : public Exchange {
 public:
  AllToAll(SharedSlots &slots, const Signature &signature, std::vector<Part> outputs, std::vector<Part> inputs)
      : Exchange(slots, signature),
        outputs_(std::move(outputs)),
        inputs_(std::move(inputs)),
        on_card_(aligned_share(SharedSlots::kCardBytes)),
        piece_(aligned_share(slots.slot_bytes)),
        done_(ranks(), 0) {
    if (overlapping()) set_aside();
    const Part &own = inputs_[rank()];
    if (own.bytes == outputs_[rank()].bytes)  // else the signatures differ
      copy(outputs_[rank()].data, own.data, own.bytes);
    for (int r = 0; r < ranks(); ++r)
      if (r != rank()) chunks_ = std::max(chunks_, needed(inputs_[r]));
  }

 private:
  static constexpr uint64_t kAll = 0xFFFFFFFE;  // more chunks than any collective has

  int64_t aligned_share(int64_t bytes) const { return bytes / ranks() / kAlign * kAlign; }
  // the chunks that a part needs; small parts are on the cards
  uint64_t needed(const Part &part) const { return part.bytes <= on_card_ ? 0 : chunks_of(part.bytes, piece_); }
  int64_t size(uint64_t chunk, const Part &part) const {
    return std::clamp<int64_t>(part.bytes - static_cast<int64_t>(chunk) * piece_, 0, piece_);
  }
  bool overlapping() const {
    for (const Part &o : outputs_)
      for (const Part &i : inputs_)
        if (overlap(o, i)) return true;
    return false;
  }
  void set_aside() {
    int64_t place = 0;
    for (const Part &part : inputs_) place += part.bytes;
    aside_.resize(place);
    place = 0;
    for (Part &part : inputs_) {
      copy(aside_.data() + place, part.data, part.bytes);
      part.data = aside_.data() + place;
      place += part.bytes;
    }
  }

  void write_card(char *room) override {
    for (int to = 0; to < ranks(); ++to)
      if (to != rank() && needed(inputs_[to]) == 0) copy(room + to * on_card_, inputs_[to].data, inputs_[to].bytes);
  }
  bool finished() const override { return sent_ == chunks_ && received_; }
  bool move() override {
    bool moved = false;
    if (sent_ < chunks_ && may_fill(sent_)) {
      for (int to = 0; to < ranks(); ++to)
        if (to != rank() && sent_ < needed(inputs_[to]))
          copy(own_slot(sent_) + to * piece_, inputs_[to].data + sent_ * piece_, size(sent_, inputs_[to]));
      publish(++sent_);
      moved = true;
    }
    if (agreed() && !received_) moved = receive() || moved;
    return moved;
  }
  bool receive() {
    bool moved = false;
    uint64_t consumed = kAll;
    for (int from = 0; from < ranks(); ++from) {
      if (from == rank()) continue;
      const Part &target = outputs_[from];
      if (needed(target) == 0) {
        if (done_[from]) continue;
        copy(target.data, card_of(from) + rank() * on_card_, target.bytes);
        done_[from] = 1;
        moved = true;
        continue;
      }
      if (done_[from] < needed(target) && filled(from, done_[from])) {
        copy(target.data + done_[from] * piece_, slot_of(from, done_[from]) + rank() * piece_,
             size(done_[from], target));
        ++done_[from];
        moved = true;
      }
      if (done_[from] < needed(target)) consumed = std::min(consumed, done_[from]);
    }
    // Who waits for nothing more must not hold up the parts for others.
    if (consumed != consumed_) consume(consumed_ = consumed);
    received_ = consumed == kAll;
    return moved;
  }
  std::vector<Part> outputs_, inputs_;
  const int64_t on_card_, piece_;
  std::vector<char> aside_;
  std::vector<uint64_t> done_;  // chunks by sender
  uint64_t chunks_ = 0, sent_ = 0, consumed_ = 0;
  bool received_ = false;
};

class Barrier final : public Exchange {
 public:
  Barrier(SharedSlots &slots, const Signature &signature) : Exchange(slots, signature) {}

 private:
  bool finished() const override { return true; }
  bool move() override { return false; }
};

// Data that fits the cards: each rank writes its own and reads those of the others, and no rank waits for a second
// step.
class OnCards : public Exchange {
 public:
  OnCards(SharedSlots &slots, const Signature &signature, const void *source, int64_t bytes, Hears hears = Hears::All)
      : Exchange(slots, signature, hears), source_(source), bytes_(bytes) {}

 private:
  void write_card(char *room) override { copy(room, source_, bytes_); }
  bool finished() const override { return done_; }
  bool move() override {
    if (!agreed()) return false;
    read();
    return done_ = true;
  }
  virtual void read() = 0;
  const void *source_;
  const int64_t bytes_;
  bool done_ = false;
};

// Each rank reduces the same elements of all cards: all of them, or its own part.
class CardReduction final : public OnCards {
 public:
  CardReduction(SharedSlots &slots, const Signature &signature, void *output, const void *input, int64_t bytes,
                int64_t start, int64_t count, DType dtype, Reduction reduction)
      : OnCards(slots, signature, input, bytes),
        output_(output),
        start_(start),
        count_(count),
        dtype_(dtype),
        reduction_(reduction) {}

 private:
  void read() override {
    std::vector<const void *> parts(ranks());
    for (int r = 0; r < ranks(); ++r) parts[r] = card_of(r) + start_;
    combine(dtype_, reduction_, output_, parts.data(), ranks(), count_);
  }
  void *output_;
  const int64_t start_, count_;
  const DType dtype_;
  const Reduction reduction_;
};

class CardCopies final : public OnCards {
 public:
  // targets[r]: where the data of rank r is written
  CardCopies(SharedSlots &slots, const Signature &signature, const void *source, std::vector<Part> targets)
      : OnCards(slots, signature, source, targets[slots.rank].bytes), targets_(std::move(targets)) {}

 private:
  void read() override {
    for (int r = 0; r < ranks(); ++r)
      if (r != rank()) copy(targets_[r].data, card_of(r), targets_[r].bytes);
  }
  const std::vector<Part> targets_;
};

// The root does not wait for the other ranks.
class CardBroadcast final : public OnCards {
 public:
  CardBroadcast(SharedSlots &slots, const Signature &signature, void *data, int64_t bytes, int root)
      : OnCards(slots, signature, data, slots.rank == root ? bytes : 0,
                slots.rank == root ? Hears::Nobody : Hears::Root),
        data_(data),
        bytes_(bytes),
        root_(root) {}

 private:
  void read() override {
    if (rank() != root_) copy(data_, card_of(root_), bytes_);
  }
  void *data_;
  const int64_t bytes_;
  const int root_;
};

}  // namespace

std::shared_ptr<Exchange> make_barrier(SharedSlots &slots, const Signature &signature) {
  return std::make_shared<Barrier>(slots, signature);
}

std::shared_ptr<Exchange> make_all_reduce(SharedSlots &slots, const Signature &signature, void *data, int64_t count,
                                          DType dtype, Reduction reduction) {
  const int64_t bytes = count * item_size(dtype);
  if (bytes <= SharedSlots::kCardBytes && bytes * slots.ranks <= kReducedByAll)
    return std::make_shared<CardReduction>(slots, signature, data, data, bytes, 0, count, dtype, reduction);
  if (slots.ranks == 2) return std::make_shared<AllReduceOfTwo>(slots, signature, data, count, dtype, reduction);
  return std::make_shared<AllReduce>(slots, signature, data, count, dtype, reduction);
}

std::shared_ptr<Exchange> make_reduce_scatter(SharedSlots &slots, const Signature &signature, void *output,
                                              const void *input, const std::vector<int64_t> &counts, DType dtype,
                                              Reduction reduction) {
  int64_t total = 0, before = 0;
  for (int r = 0; r < slots.ranks; ++r) {
    total += counts[r];
    if (r < slots.rank) before += counts[r];
  }
  const int64_t size = item_size(dtype);
  if (total * size <= SharedSlots::kCardBytes)
    return std::make_shared<CardReduction>(slots, signature, output, input, total * size, before * size,
                                           counts[slots.rank], dtype, reduction);
  return std::make_shared<ReduceScatter>(slots, signature, output, input, counts, dtype, reduction);
}

std::shared_ptr<Exchange> make_all_gather(SharedSlots &slots, const Signature &signature, std::vector<Part> outputs,
                                          const void *input) {
  int64_t largest = 0;
  for (const Part &part : outputs) largest = std::max(largest, part.bytes);
  const Part own = outputs[slots.rank];
  if (own.data != input && own.bytes) std::memmove(own.data, input, own.bytes);
  if (largest <= SharedSlots::kCardBytes)
    return std::make_shared<CardCopies>(slots, signature, own.data, std::move(outputs));
  return std::make_shared<Copies>(slots, signature, own.data, std::move(outputs));
}

std::shared_ptr<Exchange> make_all_to_all(SharedSlots &slots, const Signature &signature, std::vector<Part> outputs,
                                          std::vector<Part> inputs) {
  return std::make_shared<AllToAll>(slots, signature, std::move(outputs), std::move(inputs));
}

std::shared_ptr<Exchange> make_broadcast(SharedSlots &slots, const Signature &signature, void *data, int64_t bytes,
                                         int root) {
  if (broadcast_is_early(bytes)) return std::make_shared<CardBroadcast>(slots, signature, data, bytes, root);
  std::vector<Part> targets(slots.ranks, {static_cast<char *>(data), 0});
  targets[root].bytes = bytes;
  return std::make_shared<Copies>(slots, signature, data, std::move(targets));
}

}  // namespace msa

#include "channel.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace msa {

size_t Channels::bytes_for(int ranks) {
  return ranks * sizeof(Doorbell) + static_cast<size_t>(ranks) * ranks * sizeof(Pair);
}

Channels::Channels(int file, int64_t offset, int ranks, int rank) : ranks(ranks), rank(rank) {
  void *p = mmap(nullptr, bytes_for(ranks), PROT_READ | PROT_WRITE, MAP_SHARED, file, offset);
  if (p == MAP_FAILED)
    throw std::runtime_error(std::string("mapping the memory of a process group failed: ") + std::strerror(errno));
  bells_ = static_cast<Doorbell *>(p);
  pairs_ = reinterpret_cast<Pair *>(bells_ + ranks);
  out_.resize(ranks);
  in_.resize(ranks);
}

Channels::~Channels() { munmap(bells_, bytes_for(ranks)); }

void Channels::check_whole() const {
  if (!broken_.empty()) throw std::runtime_error(broken_);
}

TransferPtr Channels::send(int to, const void *data, uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  check_whole();
  Outbox &box = out_[to];
  auto transfer = std::make_shared<Transfer>(const_cast<void *>(data), bytes, box.numbers++);
  box.waiting.push_back(transfer);
  return transfer;
}

TransferPtr Channels::receive(int from, void *data, uint64_t bytes, uint64_t number) {
  std::lock_guard<std::mutex> lock(mutex_);
  check_whole();
  Inbox &box = in_[from];
  auto transfer = std::make_shared<Transfer>(data, bytes, number);
  auto early = box.aside.find(number);
  if (early != box.aside.end()) {
    if (early->second.size() > bytes) throw std::runtime_error("a message is longer than the tensor that receives it");
    std::memcpy(data, early->second.data(), early->second.size());
    transfer->moved = early->second.size();
    box.aside.erase(early);
  }
  if (transfer->moved == bytes)
    transfer->ended.store(true, std::memory_order_release);
  else
    box.expected[number] = transfer;
  return transfer;
}

bool Channels::push(int to) {
  Outbox &box = out_[to];
  Pair &p = pair(rank, to);
  const uint64_t written = p.written.load(std::memory_order_relaxed);
  if (written - p.read.load(std::memory_order_acquire) == kSlots) return false;
  Transfer &t = *box.waiting.front();
  Slot &slot = p.slots[written % kSlots];
  const uint64_t n = std::min(kChunk, t.bytes - t.moved);
  slot.number = t.number;
  slot.bytes = t.bytes;
  std::memcpy(slot.data, t.data + t.moved, n);
  t.moved += n;
  p.written.store(written + 1, std::memory_order_release);
  if (t.moved == t.bytes) {
    t.ended.store(true, std::memory_order_release);
    box.waiting.pop_front();
  }
  return true;
}

bool Channels::pull(int from) {
  Inbox &box = in_[from];
  Pair &p = pair(from, rank);
  const uint64_t read = p.read.load(std::memory_order_relaxed);
  if (p.written.load(std::memory_order_acquire) == read) return false;
  const Slot &slot = p.slots[read % kSlots];
  auto found = box.expected.find(slot.number);
  if (found != box.expected.end()) {
    Transfer &t = *found->second;
    if (slot.bytes != t.bytes)
      throw std::runtime_error("a message of " + std::to_string(slot.bytes) + " bytes was sent to a tensor of " +
                               std::to_string(t.bytes));
    const uint64_t n = std::min(kChunk, t.bytes - t.moved);
    std::memcpy(t.data + t.moved, slot.data, n);
    t.moved += n;
    if (t.moved == t.bytes) {
      t.ended.store(true, std::memory_order_release);
      box.expected.erase(found);
    }
  } else {  // no operation has asked for this message yet, but for a later one
    std::vector<char> &kept = box.aside[slot.number];
    const uint64_t n = std::min<uint64_t>(kChunk, slot.bytes - kept.size());
    kept.insert(kept.end(), slot.data, slot.data + n);
  }
  p.read.store(read + 1, std::memory_order_release);
  return true;
}

bool Channels::pass() {
  bool moved = false;
  for (int r = 0; r < ranks; ++r) {
    if (!out_[r].waiting.empty()) moved = push(r) || moved;
    if (!in_[r].expected.empty()) moved = pull(r) || moved;
  }
  return moved;
}

bool Channels::advance(const std::vector<TransferPtr> &wanted, double patience) {
  const auto done = [&] {
    return std::all_of(wanted.begin(), wanted.end(),
                       [](const TransferPtr &t) { return t->ended.load(std::memory_order_acquire); });
  };
  return attend(bells_[rank], ranks, patience, done, [&] {
    std::lock_guard<std::mutex> lock(mutex_);
    if (done()) return true;
    check_whole();
    try {
      const bool moved = pass();
      if (moved) ring_others(bells_, ranks, rank);
      return moved;
    } catch (const std::exception &e) {
      broken_ = e.what();
      throw;
    }
  });
}

void Channels::give_up(const Transfer &unfinished) {
  if (unfinished.ended.load(std::memory_order_acquire)) return;
  std::lock_guard<std::mutex> lock(mutex_);
  for (int r = 0; r < ranks; ++r) {
    out_[r].waiting.clear();
    in_[r].expected.clear();
  }
  broken_ = "an earlier message of this process group was given up before it had ended";
}

}  // namespace msa

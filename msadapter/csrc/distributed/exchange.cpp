#include "exchange.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace msa {
namespace {

// The bits of a counter for the parts of a collective: its card, then its chunks. Its number is in the bits above.
constexpr int kPartBits = 32;

}  // namespace

size_t SharedSlots::bytes_for(int ranks, int64_t slot_bytes) {
  return ranks * (sizeof(Doorbell) + sizeof(Line) + kCards * sizeof(Card) + kSlots * static_cast<size_t>(slot_bytes));
}

SharedSlots::SharedSlots(int file, int ranks, int rank, int64_t slot_bytes)
    : ranks(ranks), rank(rank), slot_bytes(slot_bytes) {
  void *p = mmap(nullptr, bytes_for(ranks, slot_bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (p == MAP_FAILED)
    throw std::runtime_error(std::string("mapping the memory of a process group failed: ") + std::strerror(errno));
  memory_ = static_cast<char *>(p);
  bells_ = reinterpret_cast<Doorbell *>(memory_);
  lines_ = reinterpret_cast<Line *>(bells_ + ranks);
  cards_ = reinterpret_cast<Card *>(lines_ + ranks);
  slots_ = reinterpret_cast<char *>(cards_ + static_cast<int64_t>(ranks) * kCards);
}

SharedSlots::~SharedSlots() { munmap(memory_, bytes_for(ranks, slot_bytes)); }

void SharedSlots::start(std::shared_ptr<Exchange> exchange) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!broken_.empty()) throw std::runtime_error(broken_);
  exchange->number_ = operations_++;
  exchange->base_ = exchange->number_ << kPartBits;
  queue_.push_back(std::move(exchange));
}

void SharedSlots::end_first() {
  Exchange &first = *queue_.front();
  const uint64_t next = first.base_ + (uint64_t{1} << kPartBits);
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
    const bool moved = first.step(), over = first.complete();
    if (over) end_first();
    if (moved || over) ring_others(bells_, ranks, rank);
    return moved || over;
  } catch (const std::exception &e) {
    broken_ = e.what();
    throw;
  }
}

bool SharedSlots::advance(const Exchange &wanted, double patience) {
  return attend(bells_[rank], ranks, patience, [&] { return wanted.ended(); }, [&] { return pass(wanted); });
}

void SharedSlots::give_up(const Exchange &unfinished) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (unfinished.ended()) return;
  queue_.clear();
  broken_ = "an earlier collective of this process group was given up before it had ended";
}

bool SharedSlots::all_consumed(uint64_t count) const {
  for (int r = 0; r < ranks; ++r)
    if (r != rank && lines_[r].consumed.load(std::memory_order_acquire) < count) return false;
  return true;
}

Exchange::Exchange(SharedSlots &slots, const Signature &signature, Hears hears)
    : slots_(slots), signature_(signature), hears_(hears), agreed_(hears == Hears::Nobody) {}

bool Exchange::step() {
  bool moved = false;
  if (!posted_) {
    if (!post()) return false;
    moved = true;
  }
  if (!agreed_) moved = agree() || moved;
  return (!finished() && move()) || moved;
}

bool Exchange::post() {
  // The card is free when all ranks have ended the operation that used it before.
  constexpr uint64_t before = SharedSlots::kCards - 1;
  if (number_ > before && !slots_.all_consumed((number_ - before) << kPartBits)) return false;
  auto &card = slots_.card(rank(), number_);
  write_card(card.data);
  card.signature = signature_;
  slots_.lines_[rank()].published.store(base_ + 1, std::memory_order_release);
  return posted_ = true;
}

bool Exchange::agree() {
  const auto heard = [&](int r) {
    return r != rank() && (hears_ == Hears::All || r + 1 == static_cast<int>(signature_.root));
  };
  for (int r = 0; r < ranks(); ++r)
    if (heard(r) && slots_.lines_[r].published.load(std::memory_order_acquire) <= base_) return false;
  differing_ = disagreeing(signature_, ranks(), [&](int r) -> const Signature * {
    return r == rank() ? &signature_ : heard(r) ? &slots_.card(r, number_).signature : nullptr;
  });
  if (differing_ >= 0) {
    if (differing_ < ranks()) theirs_ = slots_.card(differing_, number_).signature;
    throw std::runtime_error("the ranks of the group run different collectives");
  }
  return agreed_ = true;
}

bool Exchange::may_fill(uint64_t chunk) const {
  // a slot of the former collective is free when all ranks have finished that collective
  return slots_.all_consumed(base_ + (chunk < SharedSlots::kSlots ? 0 : chunk - SharedSlots::kSlots + 1));
}

bool Exchange::filled(int by, uint64_t chunk) const {
  return agreed_ && slots_.lines_[by].published.load(std::memory_order_acquire) > base_ + chunk + 1;
}

void Exchange::publish(uint64_t chunks) {
  slots_.lines_[rank()].published.store(base_ + 1 + chunks, std::memory_order_release);
}
void Exchange::consume(uint64_t chunks) {
  slots_.lines_[rank()].consumed.store(base_ + chunks, std::memory_order_release);
}

}  // namespace msa

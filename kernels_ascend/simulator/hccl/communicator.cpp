#include "communicator.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <thread>

#include "../aclnn/values.h"
#include "../runtime/settings.h"

namespace sim {
namespace {
constexpr size_t kPage = 4096;
size_t WholePages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

std::mutex g_mutex;
std::map<std::string, Communicator *> g_by_name;
}  // namespace

struct Communicator::Mailbox {
  std::atomic<uint64_t> put{0}, taken{0};  // pieces put into it, pieces taken out of it
};
struct Communicator::Shared {
  std::atomic<uint32_t> joined, waiting, round;
  std::atomic<uint64_t> longest[2];
};

// Waits in short steps, until a deadline.
class Communicator::Patience {
 public:
  Patience(double seconds, const Communicator &group, const char *what)
      : until_(Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))),
        group_(group),
        what_(what) {}
  void Wait() {
    if (++steps_ < 200) {
      sched_yield();
      return;
    }
    if (Clock::now() > until_) {
      throw Failure(kCollectiveTimeout, Format("rank %u of %u (%s) waited too long for the others in %s", group_.rank_,
                                               group_.size_, group_.name_.c_str(), what_));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  void Reset() { steps_ = 0; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point until_;
  const Communicator &group_;
  const char *what_;
  int steps_ = 0;
};

Communicator *Communicator::Join(const std::string &meeting_place, uint32_t rank, uint32_t size,
                                 const std::string &name) {
  auto made = std::make_unique<Communicator>();
  made->rank_ = rank;
  made->size_ = size;
  made->name_ = name.empty() ? meeting_place : name;
  made->slot_ = TheSettings().hccl_slot;
  const size_t head = kPage + WholePages(sizeof(Mailbox) * size * size);
  const size_t bytes = head + made->slot_ * size * (1 + size);
  const std::string path = "/" + meeting_place;
  const int file = shm_open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  struct stat status;
  if (file < 0 || fstat(file, &status) != 0 || status.st_uid != geteuid() ||
      ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    const std::string reason = strerror(errno);
    if (file >= 0) close(file);
    throw Failure(kNotSupported, "shared memory " + path + " cannot be used: " + reason);
  }
  void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (p == MAP_FAILED) throw Failure(kOutOfMemory, Format("%zu bytes of shared memory cannot be had", bytes));
  auto *base = static_cast<char *>(p);
  made->shared_ = reinterpret_cast<Shared *>(base);
  made->boxes_ = reinterpret_cast<Mailbox *>(base + kPage);
  made->slots_ = base + head;
  made->letters_ = made->slots_ + made->slot_ * size;
  made->shared_->joined.fetch_add(1);
  Patience patience(TheSettings().hccl_connect, *made, "making the communicator");
  try {
    while (made->shared_->joined < size) patience.Wait();
  } catch (const Failure &) {
    shm_unlink(path.c_str());
    throw;
  }
  made->Meet();
  if (rank == 0) shm_unlink(path.c_str());
  std::lock_guard<std::mutex> guard(g_mutex);
  Communicator *one = made.release();
  g_by_name[one->name_] = one;
  return one;
}

Communicator *Communicator::Find(const std::string &name) {
  std::lock_guard<std::mutex> guard(g_mutex);
  auto found = g_by_name.find(name);
  if (found == g_by_name.end()) Refuse("there is no communicator '%s'", name.c_str());
  return found->second;
}

// The communicator itself stays, because tasks on a stream may still use it.
void Communicator::Forget(Communicator *one) {
  std::lock_guard<std::mutex> guard(g_mutex);
  auto found = g_by_name.find(one->name_);
  if (found != g_by_name.end() && found->second == one) g_by_name.erase(found);
}

Communicator::Mailbox &Communicator::Box(uint32_t from, uint32_t to) { return boxes_[from * size_ + to]; }

void Communicator::Meet() {
  const uint32_t now = shared_->round;
  if (shared_->waiting.fetch_add(1) + 1 == size_) {
    shared_->waiting = 0;
    shared_->round.fetch_add(1);
    return;
  }
  Patience patience(TheSettings().hccl_timeout, *this, "a collective");
  while (shared_->round == now) patience.Wait();
}

// put(at, n) fills this rank's slot with the piece [at, at + n); then take(at, n) reads the slots.
template <class F, class G>
void Communicator::InPieces(uint64_t bytes, F put, G take) {
  std::lock_guard<std::mutex> guard(mutex_);
  for (uint64_t at = 0; at < bytes; at += slot_) {
    const uint64_t n = std::min<uint64_t>(slot_, bytes - at);
    put(at, n);
    Meet();
    take(at, n);
    Meet();
  }
}

void Communicator::Barrier() {
  std::lock_guard<std::mutex> guard(mutex_);
  Meet();
}

void Communicator::Broadcast(char *buffer, uint64_t bytes, uint32_t root) {
  InPieces(
      bytes,
      [&](uint64_t at, uint64_t n) {
        if (rank_ == root) memcpy(Slot(root), buffer + at, n);
      },
      [&](uint64_t at, uint64_t n) {
        if (rank_ != root) memcpy(buffer + at, Slot(root), n);
      });
}

void Communicator::AllGather(const char *from, char *to, uint64_t bytes) {
  InPieces(
      bytes, [&](uint64_t at, uint64_t n) { memcpy(Slot(rank_), from + at, n); },
      [&](uint64_t at, uint64_t n) {
        for (uint32_t r = 0; r < size_; ++r) memcpy(to + r * bytes + at, Slot(r), n);
      });
}

void Communicator::Reduce(const char *from, char *to, uint64_t count, int type, Combining how, uint32_t root) {
  const uint64_t item = SizeOf(type);
  InPieces(
      count * item, [&](uint64_t at, uint64_t n) { memcpy(Slot(rank_), from + at, n); },
      [&](uint64_t at, uint64_t n) {
        if (root != size_ && root != rank_) return;
        memcpy(to + at, Slot(0), n);
        for (uint32_t r = 1; r < size_; ++r) Combine(type, how, to + at, Slot(r), n / item);
      });
}

void Communicator::AllToAll(const Place &send, const Place &receive) {
  std::lock_guard<std::mutex> guard(mutex_);
  const uint64_t piece = slot_ / size_ / 64 * 64;
  uint64_t longest = 0;
  for (uint32_t r = 0; r < size_; ++r) longest = std::max({longest, send(r).second, receive(r).second});
  auto &most = shared_->longest[exchanges_++ % 2];  // the other one is reset while this one is in use
  for (uint64_t seen = most; seen < longest && !most.compare_exchange_weak(seen, longest);) {}
  Meet();
  longest = most;
  Meet();
  if (rank_ == 0) most = 0;
  for (uint64_t at = 0; at < longest; at += piece) {
    for (uint32_t r = 0; r < size_; ++r) {
      const auto [from, n] = send(r);
      if (at < n) memcpy(Slot(rank_) + r * piece, from + at, std::min(piece, n - at));
    }
    Meet();
    for (uint32_t r = 0; r < size_; ++r) {
      const auto [to, n] = receive(r);
      if (at < n) memcpy(to + at, Slot(r) + rank_ * piece, std::min(piece, n - at));
    }
    Meet();
  }
}

void Communicator::ReduceScatter(const Place &from, char *to, uint64_t count, int type, Combining how) {
  const uint64_t bytes = count * SizeOf(type);
  std::vector<char> parts(bytes * size_);
  AllToAll(from, [&](uint32_t r) { return std::make_pair(parts.data() + r * bytes, bytes); });
  memcpy(to, parts.data(), bytes);
  for (uint32_t r = 1; r < size_; ++r) Combine(type, how, to, parts.data() + r * bytes, count);
}

void Communicator::Exchange(const std::vector<Message> &messages) {
  std::lock_guard<std::mutex> guard(mutex_);
  struct Progress {
    uint64_t at = 0;
    bool done = false;
  };
  std::vector<Progress> all(messages.size());
  size_t left = messages.size();
  Patience patience(TheSettings().hccl_timeout, *this, "a send or receive");
  while (left > 0) {
    bool moved = false;
    std::vector<bool> busy(size_ * 2, false);
    for (size_t i = 0; i < messages.size(); ++i) {
      const Message &message = messages[i];
      const size_t lane = static_cast<size_t>(message.kind) * size_ + message.peer;
      if (all[i].done || busy[lane]) continue;
      busy[lane] = true;
      const uint64_t bytes = message.count * SizeOf(message.type), n = std::min<uint64_t>(slot_, bytes - all[i].at);
      char *place = static_cast<char *>(message.buffer) + all[i].at;
      const bool sends = message.kind == 0;
      Mailbox &box = sends ? Box(rank_, message.peer) : Box(message.peer, rank_);
      if ((box.put == box.taken) != sends) continue;
      if (sends) {
        memcpy(Letter(rank_, message.peer), place, n);
        box.put.fetch_add(1);
      } else {
        memcpy(place, Letter(message.peer, rank_), n);
        box.taken.fetch_add(1);
      }
      moved = true;
      all[i].at += n;
      all[i].done = all[i].at >= bytes;
      left -= all[i].done;
    }
    if (moved) {
      patience.Reset();
    } else {
      patience.Wait();
    }
  }
}

void Combine(int type, Combining how, char *to, const char *from, uint64_t count) {
  Tensor a, b;
  a.type = b.type = type;
  a.shape = b.shape = {static_cast<int64_t>(count)};
  a.stride = b.stride = {1};
  a.data = to;
  b.data = const_cast<char *>(from);
  aclTensor present;
  a.handle = b.handle = &present;
  Computed(IsFloating(type), [&](auto zero) {
    auto x = Read<decltype(zero)>(a);
    const auto y = Read<decltype(zero)>(b);
    for (size_t i = 0; i < x.size(); ++i) {
      switch (how) {
        case Combining::kSum: x[i] += y[i]; break;
        case Combining::kProduct: x[i] *= y[i]; break;
        case Combining::kLargest: x[i] = std::max(x[i], y[i]); break;
        case Combining::kSmallest: x[i] = std::min(x[i], y[i]); break;
      }
    }
    Write(a, x);
  });
}
}  // namespace sim

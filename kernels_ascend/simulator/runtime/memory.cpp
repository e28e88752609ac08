#include "memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "faults.h"
#include "settings.h"
#include "status.h"

namespace sim {
namespace {
constexpr size_t kPage = size_t(2) << 20;     // devices hand out memory in pages of 2 MB
constexpr uintptr_t kFirst = 0x12c000000000;  // where Ascend's addresses lie, so that a log shows what they are
constexpr size_t kAddressesPerByte = 16;      // reserved ranges need more addresses than there is memory
constexpr int kPoison = 0xff;                 // not-a-number in float16, bfloat16, float32 and float64

size_t Rounded(size_t bytes) { return (std::max(bytes, size_t(1)) + kPage - 1) / kPage * kPage; }

// The addresses of one device: which are free, which are taken.
struct Arena {
  std::mutex mutex;
  std::map<char *, size_t> open;  // free ranges
  std::map<char *, size_t> taken;
  size_t used = 0, peak = 0, allocations = 0;

  char *Take(size_t bytes) {
    for (auto it = open.begin(); it != open.end(); ++it) {
      if (it->second < bytes) continue;
      char *address = it->first;
      const size_t rest = it->second - bytes;
      open.erase(it);
      if (rest > 0) open[address + bytes] = rest;
      taken[address] = bytes;
      return address;
    }
    throw Failure(kOutOfMemory, Format("no %zu device addresses are free", bytes));
  }
  size_t Give(char *address) {
    auto it = taken.find(address);
    if (it == taken.end())
      throw Failure(kInvalidParameter, Format("%p was not handed out, or is free already", address));
    const size_t bytes = it->second;
    taken.erase(it);
    auto next = open.emplace(address, bytes).first;
    if (auto after = std::next(next); after != open.end() && address + next->second == after->first) {
      next->second += after->second;
      open.erase(after);
    }
    if (next != open.begin()) {
      auto before = std::prev(next);
      if (before->first + before->second == address) {
        before->second += next->second;
        open.erase(next);
      }
    }
    return bytes;
  }
};

struct Space {
  char *device;  // the addresses that programs see
  char *inside;  // the addresses through which the simulator reaches the same bytes
  size_t each;   // addresses of one device
  std::vector<std::unique_ptr<Arena>> arenas;
};

char *Map(void *where, size_t bytes, int protection) {
  void *p = mmap(where, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) {
    fprintf(stderr, "[simulated NPU] %zu bytes of addresses cannot be reserved (%s)\n", bytes, strerror(errno));
    abort();
  }
  return static_cast<char *>(p);
}

Space &TheSpace() {
  static Space *one = [] {
    auto *space = new Space;
    const size_t devices = TheSettings().devices;
    space->each = Rounded(TheSettings().memory) * kAddressesPerByte;
    const bool open = TheSettings().host_access;
    space->device =
        Map(reinterpret_cast<void *>(kFirst), space->each * devices, open ? PROT_READ | PROT_WRITE : PROT_NONE);
    space->inside = open ? space->device : Map(nullptr, space->each * devices, PROT_READ | PROT_WRITE);
    for (size_t i = 0; i < devices; ++i) {
      space->arenas.push_back(std::make_unique<Arena>());
      space->arenas.back()->open[space->device + i * space->each] = space->each;
    }
    return space;
  }();
  return *one;
}

int DeviceOf(const void *address) {
  if (!IsDevice(address)) throw Failure(kInvalidParameter, Format("%p does not lie on a device", address));
  return static_cast<int>((static_cast<const char *>(address) - TheSpace().device) / TheSpace().each);
}
Arena &ArenaOf(int device) { return *TheSpace().arenas.at(static_cast<size_t>(device)); }

// The mutex of the arena is held.
void Charge(Arena &arena, size_t bytes) {
  const size_t total = TheSettings().memory;
  if (FaultDue(Event::kAllocation) == "oom") throw Failure(kOutOfMemory, "an injected fault: out of device memory");
  if (arena.used + bytes > total) {
    throw Failure(kOutOfMemory, Format("out of device memory: %zu bytes were asked for, %zu of %zu are free", bytes,
                                       total - arena.used, total));
  }
  arena.used += bytes;
  arena.peak = std::max(arena.peak, arena.used);
  ++arena.allocations;
}
}  // namespace

bool IsDevice(const void *address) {
  const Space &space = TheSpace();
  const auto *p = static_cast<const char *>(address);
  return p >= space.device && p < space.device + space.each * space.arenas.size();
}

char *Reach(const void *address) {
  auto *p = const_cast<char *>(static_cast<const char *>(address));
  return IsDevice(address) ? p - TheSpace().device + TheSpace().inside : p;
}

void *Allocate(int device, size_t bytes) {
  Arena &arena = ArenaOf(device);
  std::lock_guard<std::mutex> guard(arena.mutex);
  const size_t whole = Rounded(bytes + 32);  // aclrtMalloc adds 32 bytes, because kernels read beyond the end
  Charge(arena, whole);
  char *address = arena.Take(whole);
  Refresh(address, whole);
  return address;
}

void Free(void *address) {
  Arena &arena = ArenaOf(DeviceOf(address));
  std::lock_guard<std::mutex> guard(arena.mutex);
  const size_t bytes = arena.Give(static_cast<char *>(address));
  arena.used -= std::min(arena.used, bytes);
  madvise(Reach(address), bytes, MADV_DONTNEED);
}

void *ReserveAddresses(int device, size_t bytes) {
  Arena &arena = ArenaOf(device);
  std::lock_guard<std::mutex> guard(arena.mutex);
  return arena.Take(Rounded(bytes));
}

void ReleaseAddresses(void *address) {
  Arena &arena = ArenaOf(DeviceOf(address));
  std::lock_guard<std::mutex> guard(arena.mutex);
  madvise(Reach(address), arena.Give(static_cast<char *>(address)), MADV_DONTNEED);
}

void TakeBytes(int device, size_t bytes) {
  Arena &arena = ArenaOf(device);
  std::lock_guard<std::mutex> guard(arena.mutex);
  Charge(arena, bytes);
}

void GiveBytes(int device, size_t bytes) {
  Arena &arena = ArenaOf(device);
  std::lock_guard<std::mutex> guard(arena.mutex);
  arena.used -= std::min(arena.used, bytes);
}

void Refresh(void *address, size_t bytes) {
  if (TheSettings().poison) {
    memset(Reach(address), kPoison, bytes);
  } else {
    madvise(Reach(address), bytes, MADV_DONTNEED);
  }
}

MemoryFigures FiguresOf(int device) {
  Arena &arena = ArenaOf(device);
  std::lock_guard<std::mutex> guard(arena.mutex);
  return {TheSettings().memory, arena.used, arena.peak, arena.allocations};
}

void ResetPeak(int device) {
  Arena &arena = ArenaOf(device);
  std::lock_guard<std::mutex> guard(arena.mutex);
  arena.peak = arena.used;
}
}  // namespace sim

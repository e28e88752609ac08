// libascendcl: memory and copies.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

#include "counters.h"
#include "memory.h"
#include "settings.h"
#include "status.h"
#include "stream.h"

using namespace sim;

namespace {
enum CopyKind { kHostToHost = 0, kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3 };
const char *const kKindNames[] = {"host to host", "host to device", "device to host", "device to device"};

void CheckCopy(const void *to, size_t room, const void *from, size_t bytes, int kind) {
  if (bytes > room) throw Failure(kInvalidParameter, Format("%zu bytes do not fit into %zu", bytes, room));
  if (kind < kHostToHost || kind > kDeviceToDevice) return;  // the default kind: the addresses decide
  const bool to_device = kind == kHostToDevice || kind == kDeviceToDevice;
  const bool from_device = kind == kDeviceToHost || kind == kDeviceToDevice;
  if (IsDevice(to) != to_device || IsDevice(from) != from_device) {
    throw Failure(kInvalidParameter, Format("a copy %s was asked for, from %p to %p: an address lies on the wrong side",
                                            kKindNames[kind], from, to));
  }
}
void CountCopy(const void *to, const void *from, size_t bytes) {
  const int kind = (IsDevice(to) ? kHostToDevice : kHostToHost) | (IsDevice(from) ? kDeviceToHost : kHostToHost);
  ++Counter(std::string("copies ") + kKindNames[kind]);
  Counter(std::string("bytes ") + kKindNames[kind]) += static_cast<int64_t>(bytes);
}
}  // namespace

// ---- device memory
SIM_API int aclrtMalloc(void **address, size_t bytes, int) {
  return Guarded([&] {
    *address = nullptr;
    *address = Allocate(CurrentDevice(), bytes);
    Log(2, "aclrtMalloc %zu -> %p", bytes, *address);
  });
}
SIM_API int aclrtMallocAlign32(void **address, size_t bytes, int policy) { return aclrtMalloc(address, bytes, policy); }
SIM_API int aclrtFree(void *address) {
  return Guarded([&] { Free(address); });
}
SIM_API int aclrtGetMemInfo(int, size_t *free_bytes, size_t *total) {
  const MemoryFigures figures = FiguresOf(CurrentDevice());
  *total = figures.total;
  *free_bytes = figures.total - figures.used;
  return kOk;
}

// ---- addresses that are reserved first, and memory that is mapped to them later
namespace {
struct Physical {
  size_t bytes;
  int device;
};
}  // namespace
SIM_API int aclrtReserveMemAddress(void **address, size_t bytes, size_t, void *, uint64_t) {
  return Guarded([&] { *address = ReserveAddresses(CurrentDevice(), bytes); });
}
SIM_API int aclrtReleaseMemAddress(void *address) {
  return Guarded([&] { ReleaseAddresses(address); });
}
SIM_API int aclrtMallocPhysical(void **handle, size_t bytes, const void *, uint64_t) {
  return Guarded([&] {
    TakeBytes(CurrentDevice(), bytes);
    *handle = new Physical{bytes, CurrentDevice()};
  });
}
SIM_API int aclrtFreePhysical(void *handle) {
  auto *physical = static_cast<Physical *>(handle);
  GiveBytes(physical->device, physical->bytes);
  delete physical;
  return kOk;
}
SIM_API int aclrtMapMem(void *address, size_t bytes, size_t, void *, uint64_t) {
  Refresh(address, bytes);
  return kOk;
}
SIM_API int aclrtUnmapMem(void *) { return kOk; }

// ---- host memory
SIM_API int aclrtMallocHost(void **address, size_t bytes) {
  *address = aligned_alloc(64, (std::max(bytes, size_t(1)) + 63) / 64 * 64);
  return *address != nullptr ? kOk : Report(kOutOfMemory, "out of host memory");
}
SIM_API int aclrtFreeHost(void *address) {
  free(address);
  return kOk;
}
SIM_API int halHostRegister(void *from, uint64_t, uint32_t, uint32_t, void **to) {
  if (to != nullptr) *to = from;
  return kOk;
}
SIM_API int halHostUnregister(void *, uint32_t) { return kOk; }

// ---- copies
SIM_API int aclrtMemcpy(void *to, size_t room, const void *from, size_t bytes, int kind) {
  return Guarded([&] {
    Log(2, "aclrtMemcpy %p <- %p, %zu bytes", to, from, bytes);
    CheckCopy(to, room, from, bytes, kind);
    CountCopy(to, from, bytes);
    memmove(Reach(to), Reach(from), bytes);
  });
}
SIM_API int aclrtMemcpyAsync(void *to, size_t room, const void *from, size_t bytes, int kind, void *stream) {
  Status status = kOk;
  const Status checked = Guarded([&] {
    Log(2, "aclrtMemcpyAsync %p <- %p, %zu bytes", to, from, bytes);
    CheckCopy(to, room, from, bytes, kind);
    CountCopy(to, from, bytes);
    status = Enqueue(ToStream(stream), [=] { memmove(Reach(to), Reach(from), bytes); }, "an asynchronous copy");
  });
  return checked != kOk ? checked : status;
}
SIM_API int aclrtMemset(void *address, size_t room, int32_t value, size_t bytes) {
  if (bytes > room) return Report(kInvalidParameter, "aclrtMemset beyond the end");
  memset(Reach(address), value, bytes);
  return kOk;
}
SIM_API int aclrtMemsetAsync(void *address, size_t room, int32_t value, size_t bytes, void *stream) {
  if (bytes > room) return Report(kInvalidParameter, "aclrtMemsetAsync beyond the end");
  return Enqueue(ToStream(stream), [=] { memset(Reach(address), value, bytes); }, "aclrtMemsetAsync");
}

// ---- an allocator of the program's own for the workspaces of graphs: accepted, never called
SIM_API void *aclrtAllocatorCreateDesc() { return new int(0); }
SIM_API int aclrtAllocatorDestroyDesc(void *description) {
  delete static_cast<int *>(description);
  return kOk;
}
SIM_API int aclrtAllocatorRegister(void *, void *) { return kOk; }
SIM_API int aclrtAllocatorUnregister(void *) { return kOk; }
SIM_API int aclrtAllocatorSetObjToDesc(void *, void *) { return kOk; }
SIM_API int aclrtAllocatorSetAllocFuncToDesc(void *, void *) { return kOk; }
SIM_API int aclrtAllocatorSetFreeFuncToDesc(void *, void *) { return kOk; }
SIM_API int aclrtAllocatorSetAllocAdviseFuncToDesc(void *, void *) { return kOk; }
SIM_API int aclrtAllocatorSetGetAddrFromBlockFuncToDesc(void *, void *) { return kOk; }

// ---- for tests: figures of a device: total, used, the highest used, how many allocations
SIM_API void SimulatedNpuMemory(int device, size_t figures[4]) {
  const MemoryFigures found = FiguresOf(device);
  figures[0] = found.total;
  figures[1] = found.used;
  figures[2] = found.peak;
  figures[3] = found.allocations;
}

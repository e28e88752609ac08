// Device memory. Its addresses lie in a range that the host may neither read nor write: code that treats a device
// address as a pointer dies by SIGSEGV, as it should. The simulator itself reaches the bytes through a second range.
#pragma once
#include <cstddef>

namespace sim {
// Whether an address lies on any simulated device.
bool IsDevice(const void *address);
// The address through which the simulator reaches a device address. A host address is returned as it is.
char *Reach(const void *address);

// Reserves device addresses with memory behind them. Throws Failure(kOutOfMemory).
void *Allocate(int device, size_t bytes);
// Frees what Allocate returned. Throws Failure if it did not.
void Free(void *address);

// Addresses without memory, and memory without addresses, as the virtual memory functions of the runtime hand them out.
void *ReserveAddresses(int device, size_t bytes);
void ReleaseAddresses(void *address);
void TakeBytes(int device, size_t bytes);
void GiveBytes(int device, size_t bytes);
// Fresh memory at addresses: zeros, or poison if the settings ask for it.
void Refresh(void *address, size_t bytes);

struct MemoryFigures {
  size_t total, used, peak, allocations;
};
MemoryFigures FiguresOf(int device);
void ResetPeak(int device);
}  // namespace sim

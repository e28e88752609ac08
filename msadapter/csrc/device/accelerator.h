// The accelerator that MindSpore drives, its memory, and copies of bytes between that memory and the host's. Everything
// here works on addresses; layouts and dtypes are handled above (transfer.h).
#pragma once
#include "../kernels/api.h"
#include "ir/tensor.h"

namespace msa {

// Whether MindSpore computes on an accelerator with memory of its own in this process. Set when the module is loaded.
extern bool separate_memory;
inline bool has_accelerator() { return separate_memory; }

// Raised in Python as torch.OutOfMemoryError.
struct OutOfMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The memory of one kind of device. Every call works on whole blocks of bytes; layouts and dtypes are handled above.
class Device {
 public:
  virtual ~Device() = default;
  virtual mindspore::device::DeviceType type() const = 0;
  // Memory that operators of the current stream may use. Throws OutOfMemory.
  virtual std::shared_ptr<mindspore::device::DeviceAddress> allocate(size_t bytes) = 0;
  // Copies. The addresses on the device come from data_pointer, so that no operator is still in MindSpore's queue.
  // These two wait until the bytes have arrived. Operators that were issued before are finished first.
  virtual void to_host(void *host, const void *device, size_t bytes) = 0;
  virtual void from_host(void *device, const void *host, size_t bytes) = 0;
  // These two go to the current stream and do not wait. The host's memory must be pinned.
  virtual void to_host_later(void *host, const void *device, size_t bytes) = 0;
  virtual void from_host_later(void *device, const void *host, size_t bytes) = 0;
  // Pinned memory of the host. It is released after the copies that use it.
  virtual std::shared_ptr<void> allocate_pinned(size_t bytes) = 0;
  virtual bool is_pinned(const void *host) const = 0;
  // The stream on which operators of this thread are put.
  virtual uint32_t current_stream() const = 0;
  // Waits until all issued operators have run.
  virtual void synchronise() = 0;
};

// Copies between the host and the accelerator since the start of the process.
struct CopyCounts {
  int64_t to_host = 0, from_host = 0, bytes_to_host = 0, bytes_from_host = 0;
};
CopyCounts &copy_counts();

// Finds out whether MindSpore computes on an accelerator. Called once, before the first tensor is made.
void find_accelerator();
// MindSpore's accelerator, or null if this process computes on the host only.
Device *accelerator();
// The tag of tensors in the accelerator's memory: 1 + the index of the device.
int accelerator_tag();

// While the device is stopped (torch.npu.stop_device), operators and copies on it raise RuntimeError.
void set_device_stopped(bool stopped);
void refuse_if_stopped();
// Waits until every operator in MindSpore's queue has been given to its stream.
void finish_queue();

}  // namespace msa

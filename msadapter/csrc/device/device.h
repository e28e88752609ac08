// Where tensors live: in the host's memory, or in that of an accelerator that MindSpore drives. Host code must not read
// or write an accelerator's memory. It copies through the functions below.
#pragma once
#include "bridge.h"

namespace msa {

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

// A dense tensor in host memory with the values of t: t itself if it is there already.
TensorPtr on_host(const TensorPtr &t);
// A tensor with the values of t on the device with this tag, with the strides of t if they are dense. With `later`, a
// copy from pinned memory does not wait, nor does a copy to the host, whose result is in pinned memory.
TensorPtr copy_to_device(const TensorPtr &t, int tag, bool later = false);
// Writes the values of `from`, converted and broadcast, into `to`. Either may be on either device. With `later`, a copy
// between the accelerator and pinned memory does not wait.
void copy_tensor(const TensorPtr &to, const TensorPtr &from, bool later = false);
// A tensor in pinned memory with the values of t, which is on the host, and whether a tensor is in such memory.
TensorPtr pinned_copy(const TensorPtr &t);
bool is_pinned(const TensorPtr &t);
void zero_tensor(const TensorPtr &t);
// While the device is stopped (torch.npu.stop_device), operators and copies on it raise RuntimeError.
void set_device_stopped(bool stopped);
void refuse_if_stopped();
// Waits until every operator in MindSpore's queue has been given to its stream.
void finish_queue();
// Must be called before the sizes, strides or memory of an existing tensor change. Operators that are still in the
// queue read them when it is their turn.
inline void before_change(const TensorPtr &t) {
  if (!on_cpu(t)) finish_queue();
}
// The address of the first element, on whichever device it is. Operators that are still queued run first.
void *data_pointer(const TensorPtr &t);

}  // namespace msa

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
  // Both wait until the bytes have arrived. Operators that were issued before are finished first.
  virtual void to_host(void *host, const void *device, size_t bytes) = 0;
  virtual void from_host(void *device, const void *host, size_t bytes) = 0;
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
// A tensor with the values of t on the device with this tag, with the strides of t if they are dense.
TensorPtr copy_to_device(const TensorPtr &t, int tag);
// Writes the values of `from`, converted and broadcast, into `to`. Either may be on either device.
void copy_tensor(const TensorPtr &to, const TensorPtr &from);
void zero_tensor(const TensorPtr &t);
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

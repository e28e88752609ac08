// Copies of tensors between the host's memory and the accelerator's, and within each. Host code must not read or write
// an accelerator's memory. It copies through these functions.
#pragma once
#include "bridge.h"

namespace msa {

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

}  // namespace msa

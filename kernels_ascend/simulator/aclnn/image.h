// What operators on images share: tensors of a batch, channels and one to three axes, in this order.
#pragma once
#include "values.h"

namespace sim {
// Refuses tensors whose format says that the channels come last.
inline void ChannelsFirst(const Tensor &tensor) {
  constexpr int kNhwc = 1, kNdhwc = 27;
  const int format = tensor ? tensor.handle->format : 0;
  if (format == kNhwc || format == kNdhwc) {
    Refuse("'%s' has the format %d, whose channels come last; this is not simulated", tensor.name, format);
  }
}
}  // namespace sim

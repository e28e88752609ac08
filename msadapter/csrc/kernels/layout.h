// Results in the memory format of an operand, which is channels last or contiguous.
#pragma once
#include "loops.h"

namespace msa {

// Whether PyTorch regards the strides of a batch of images or volumes as channels last.
inline bool channels_last(const Tensor &t) {
  if ((t.ndim != 4 && t.ndim != 5) || t.strides[1] == 0) return false;
  int64_t least = 0;
  for (int k = 0; k < t.ndim; ++k) {
    const int d = k == 0            ? 1
                  : k == t.ndim - 1 ? 0
                                    // channels, then the spatial dims from the last one on, then the batch
                                    : t.ndim - k;
    if (t.sizes[d] == 0 || t.strides[d] < least || (d == 0 && least == t.strides[1])) return false;
    least = t.strides[d] * std::max<int64_t>(t.sizes[d], 1);
  }
  return true;
}

// Whether the elements lie one after the other with the channels last. Dims of size 1 have no say.
inline bool dense_channels_last(const Tensor &t) {
  if (t.ndim != 4 && t.ndim != 5) return false;
  int64_t step = 1;
  for (int k = 0; k < t.ndim; ++k) {
    const int d = k == 0 ? 1 : k == t.ndim - 1 ? 0 : t.ndim - k;
    if (t.sizes[d] != 1 && t.strides[d] != step) return false;
    step *= t.sizes[d];
  }
  return true;
}

inline Tensor out_laid(Call &c, int index, DType dtype, const Dims &shape, bool last) {
  const int n = static_cast<int>(shape.size());
  if (!last || n < 4) return c.out(index, dtype, shape);
  Dims strides(n);
  int64_t step = 1;
  for (int k = 0; k < n; ++k) {
    const int d = k == 0 ? 1 : k == n - 1 ? 0 : n - k;
    strides[d] = step;
    step *= std::max<int64_t>(shape[d], 1);
  }
  return c.out(index, dtype, shape.data(), n, strides.data());
}

// A result for a kernel that writes contiguously to `work`. finish() converts it to the memory format.
struct LaidOut {
  Tensor out, work;
  LaidOut(Call &c, int index, DType dtype, const Dims &shape, bool last) : out(out_laid(c, index, dtype, shape, last)) {
    work = out.contiguous()
               ? out
               : contiguous_tensor(c.scratch(std::max<int64_t>(out.numel, 1) * item_size(dtype)), dtype, shape);
  }
  template <class T>
  T *ptr() const {
    return work.ptr<T>();
  }
  void finish() const {
    if (work.data != out.data) copy_into(out, work);
  }
};

}  // namespace msa

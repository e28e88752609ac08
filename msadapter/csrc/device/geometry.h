// Sizes, strides and offset of a view, counted in elements of its storage.
#pragma once
#include "bridge.h"

namespace msa {

// Strides of a row-major tensor without gaps.
inline Dims contiguous_strides(const Dims &sizes) {
  Dims strides(sizes.size());
  uint64_t step = 1;  // may wrap round if there are no elements, as in PyTorch
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = static_cast<int64_t>(step);
    step *= static_cast<uint64_t>(std::max<int64_t>(sizes[d], 1));
  }
  return strides;
}

// Turns a dim counted from the end into one counted from the start; false when there is no such dim.
inline bool wrap_dim(int64_t *dim, int64_t rank) {
  if (*dim < -rank || *dim >= rank) return false;
  if (*dim < 0) *dim += rank;
  return true;
}

// The stride of every `step`-th element. A step behind the end of the dim gives one element or none, so that the stride
// is never used; it wraps round, as in PyTorch.
inline int64_t stepped(int64_t stride, int64_t step) {
  return static_cast<int64_t>(static_cast<uint64_t>(stride) * static_cast<uint64_t>(step));
}

// The number of elements that a slice takes; `step` is positive.
inline int64_t slice_length(int64_t start, int64_t stop, int64_t step) {
  return stop <= start ? 0 : (stop - start - 1) / step + 1;
}

struct Geometry {
  Dims sizes, strides;
  int64_t offset = 0;

  static Geometry of(const TensorPtr &t) { return {t->shape(), strides_of(t), offset_of(t)}; }
  static Geometry contiguous(const Dims &sizes, int64_t offset) { return {sizes, contiguous_strides(sizes), offset}; }

  int64_t rank() const { return static_cast<int64_t>(sizes.size()); }
  void push(int64_t size, int64_t stride) {
    sizes.push_back(size);
    strides.push_back(stride);
  }
  void swap(int64_t a, int64_t b) {
    std::swap(sizes[a], sizes[b]);
    std::swap(strides[a], strides[b]);
  }
  void erase(int64_t dim) {
    sizes.erase(sizes.begin() + dim);
    strides.erase(strides.begin() + dim);
  }
  void insert(int64_t dim, int64_t size, int64_t stride) {
    sizes.insert(sizes.begin() + dim, size);
    strides.insert(strides.begin() + dim, stride);
  }
  // `length` elements along a dim, from `start` on, every `step`-th of them.
  void cut(int64_t dim, int64_t start, int64_t step, int64_t length) {
    offset += start * strides[dim];
    sizes[dim] = length;
    strides[dim] = stepped(strides[dim], step);
  }
  // A tensor of this geometry on the storage of `t`.
  TensorPtr on(const TensorPtr &t) const { return new_view(t, from_ms(t->data_type()), sizes, strides, offset); }
};

}  // namespace msa

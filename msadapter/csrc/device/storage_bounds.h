// Checks that sizes and strides stay inside of a storage. They may come from a file, so nothing here overflows.
#pragma once
#include "bridge.h"

namespace msa {

// The number of bytes from the start of the storage that sizes and strides need; 0 if there are no elements. Throws
// PyTorch's RuntimeError for negative numbers and for sizes that no 64-bit number holds.
inline int64_t storage_bytes(DType dtype, const Dims &sizes, const Dims &strides, int64_t offset) {
  check(sizes.size() == strides.size(), "mismatch in length of strides and shape");
  check(offset >= 0, "Tensor: invalid storage offset ", offset);
  bool fits = true, empty = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    fits = fits && sizes[d] >= 0 && strides[d] >= 0;
    empty = empty || sizes[d] == 0;
  }
  if (empty) {
    check(fits, "Storage size calculation overflowed with sizes=", sizes, " and strides=", strides);
    return 0;
  }
  Size count = 1, last = offset;
  for (size_t d = 0; fits && d < sizes.size(); ++d) {
    count *= sizes[d];
    last += Size(sizes[d] - 1) * strides[d];
  }
  const Size bytes = (last + 1) * static_cast<int64_t>(item_size(dtype));
  fits = fits && count.fits() && bytes.fits();
  check(fits, "Storage size calculation overflowed with sizes=", sizes, " and strides=", strides);
  return bytes.value();
}

// The number of bytes of these elements without gaps.
inline int64_t dense_bytes(DType dtype, const Dims &sizes) {
  Size bytes = static_cast<int64_t>(item_size(dtype));
  for (int64_t size : sizes) {
    bytes *= size;
    check(size >= 0 && bytes.fits(), "Storage size calculation overflowed with sizes=", sizes);
  }
  return bytes.value();
}

// Throws RuntimeError unless the sizes and strides stay inside of base's storage. A meta tensor has no storage to
// leave, and a view of a tensor whose storage was freed may need as much as that tensor does.
inline void check_inside_storage(const TensorPtr &base, DType dtype, const Dims &sizes, const Dims &strides,
                                 int64_t offset) {
  const int64_t need = storage_bytes(dtype, sizes, strides, offset);
  const auto &address = base->device_address();
  const int64_t have = address ? static_cast<int64_t>(address->GetSize()) : 0;
  if (need <= have || is_meta(base)) return;
  if (need <= storage_bytes(from_ms(base->data_type()), base->shape(), strides_of(base), offset_of(base))) return;
  fail("setStorage: sizes ", sizes, ", strides ", strides, ", storage offset ", offset, ", and itemsize ",
       static_cast<int64_t>(item_size(dtype)), " requiring a storage size of ", need,
       " are out of bounds for storage of size ", have);
}

}  // namespace msa

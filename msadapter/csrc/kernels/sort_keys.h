// Sorting by keys. Every element type is mapped to an unsigned integer with the same order, and nan comes last.
#pragma once
#include "reduce.h"

namespace msa {

// Sorts contiguous rows of n elements. The result is the positions of the elements in sorted order. The sort is stable.
class RowSorter {
 public:
  RowSorter(DType dtype, int64_t n, bool descending);
  // Writes the positions of the sorted row to order[0..n).
  void sort(const void *row, int64_t *order);
  // Writes the positions of k elements that no other precedes to order[0..k), in sorted order if `sorted`. Which of
  // several equal elements are chosen, and their order, is PyTorch's.
  void first(const void *row, int64_t k, bool sorted, int64_t *order);
  // Returns the position of element k of the sorted row, counted from 0.
  int64_t nth(const void *row, int64_t k);
  // The key of the element at this position of the row that was sorted last. Equal elements of a row have equal keys.
  uint64_t key(int64_t place) const { return narrow_ ? packed_[place] >> 32 : wide_[place].key; }

  // Whether this is the key of NaN in an ascending row.
  bool nan_key(uint64_t key) const {
    return is_floating(dtype_) && key == (item_size(dtype_) <= 4 ? 0xFFFFFFFFu : ~uint64_t(0));
  }

 private:
  struct Wide {
    uint64_t key;
    int64_t at;
  };
  template <class T>
  void pack(const T *p, uint64_t lowest);
  template <class T>
  void load_row(const T *p);
  void load(const void *row);
  DType dtype_;
  int64_t n_;
  bool descending_, narrow_;              // narrow_: the keys of the row are in packed_
  bool crowded_ = false;                  // whether the row has so few values that many elements are equal
  std::vector<uint64_t> packed_, spare_;  // key << 32 | position
  std::vector<Wide> wide_;
};

// Copies elements of a row, given by their positions.
void pick(const void *row, DType dtype, const int64_t *order, int64_t n, void *out);

}  // namespace msa

// Arithmetic of sizes, counts, strides and bytes that detects overflow. Every size that is computed from numbers of the
// user must be computed with it.
#pragma once
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace msa {

[[noreturn]] void size_overflow(const char *what);

// An integer that remembers whether a step of its computation left the range of int64_t. Formulas read as usual:
// `(Size(n) - 1) * stride + reach`. The result is read with value(), which throws RuntimeError after an overflow.
class Size {
 public:
  Size(int64_t value) : value_(value) {}  // implicit, because formulas contain plain numbers
  bool fits() const { return fits_; }
  int64_t value(const char *what = "a size") const {
    if (!fits_) size_overflow(what);
    return value_;
  }

  friend Size operator+(Size a, Size b) {
    Size r(0);
    r.fits_ = !__builtin_add_overflow(a.value_, b.value_, &r.value_) && a.fits_ && b.fits_;
    return r;
  }
  friend Size operator-(Size a, Size b) {
    Size r(0);
    r.fits_ = !__builtin_sub_overflow(a.value_, b.value_, &r.value_) && a.fits_ && b.fits_;
    return r;
  }
  friend Size operator*(Size a, Size b) {
    Size r(0);
    r.fits_ = !__builtin_mul_overflow(a.value_, b.value_, &r.value_) && a.fits_ && b.fits_;
    return r;
  }
  Size &operator+=(Size b) { return *this = *this + b; }
  Size &operator*=(Size b) { return *this = *this * b; }

 private:
  int64_t value_;
  bool fits_ = true;
};

// Computes the number of elements of these sizes. Returns false if no tensor can have that many. As in PyTorch, it also
// returns false if the product of the sizes before a size of 0 overflows.
inline bool count_elements(const int64_t *sizes, size_t ndim, int64_t *count) {
  uint64_t n = 1;
  bool fits = true;
  for (size_t d = 0; d < ndim; ++d) fits = !__builtin_mul_overflow(n, static_cast<uint64_t>(sizes[d]), &n) && fits;
  *count = static_cast<int64_t>(n);
  return fits && n <= static_cast<uint64_t>(INT64_MAX);
}
// The same, but throws RuntimeError instead of returning false.
inline int64_t element_count(const int64_t *sizes, size_t ndim) {
  int64_t n;
  if (!count_elements(sizes, ndim, &n)) size_overflow(nullptr);
  return n;
}
inline int64_t element_count(const std::vector<int64_t> &sizes) { return element_count(sizes.data(), sizes.size()); }

// The number of bytes of `count` elements. Throws RuntimeError if it does not fit 64 bits.
inline size_t byte_count(int64_t count, size_t item) {
  return static_cast<size_t>((Size(count) * static_cast<int64_t>(item)).value("the memory of an operator"));
}

// a + b, limited to the range of int64_t, for positions that are compared with sizes afterwards.
inline int64_t saturated_sum(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_add_overflow(a, b, &r) ? (b < 0 ? INT64_MIN : INT64_MAX) : r;
}

}  // namespace msa

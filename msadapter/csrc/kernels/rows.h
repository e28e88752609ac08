// Reductions over one contiguous row in the compute type, for softmax, norms, losses and attention. They keep many
// independent sums, so that the compiler can vectorise them and that rounding errors stay small.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include "half_blocks.h"
#include "loops.h"
#include "vec_math.h"

namespace msa::rows {

constexpr int kLanes = 32;

template <class C, class F>
inline C sum_of_block(int64_t n, F f) {
  C lane[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int l = 0; l < kLanes; ++l) lane[l] += f(i + l);
  for (int l = 0; i < n; ++i, ++l) lane[l] += f(i);
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) lane[l] += lane[l + half];
  return lane[0];
}

// The sum of f(i) for i in [0, n). Long rows are added by blocks, because the rounding errors of one long sum add up.
template <class C, class F>
inline C sum(int64_t n, F f) {
  constexpr int64_t kBlock = 1 << 16;
  if (n <= kBlock) return sum_of_block<C>(n, f);
  std::conditional_t<std::is_same_v<C, float>, double, C> total = 0;
  for (int64_t at = 0; at < n; at += kBlock)
    total += sum_of_block<C>(std::min(kBlock, n - at), [=](int64_t i) { return f(at + i); });
  return static_cast<C>(total);
}

// The largest f(i). NaN is skipped.
template <class C, class F>
inline C max(int64_t n, F f) {
  C lane[kLanes];
  std::fill(lane, lane + kLanes, -std::numeric_limits<C>::infinity());
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int l = 0; l < kLanes; ++l) {
      const C v = f(i + l);
      lane[l] = v > lane[l] ? v : lane[l];
    }
  for (; i < n; ++i) lane[0] = std::max(lane[0], static_cast<C>(f(i)));
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) lane[l] = lane[l + half] > lane[l] ? lane[l + half] : lane[l];
  return lane[0];
}

// dst[i] = f(i). Returns the sum of these numbers.
template <class C, class F>
inline C store_sum(C *dst, int64_t n, F f) {
  C lane[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int l = 0; l < kLanes; ++l) {
      const C e = f(i + l);
      dst[i + l] = e;
      lane[l] += e;
    }
  for (; i < n; ++i) {
    const C e = f(i);
    dst[i] = e;
    lane[0] += e;
  }
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) lane[l] += lane[l + half];
  return lane[0];
}
// dst[i] = exp(src[i] - shift). Returns the sum of these numbers.
template <class C>
inline C exp_sum(const C *src, C *dst, int64_t n, C shift) {
  return store_sum(dst, n, [=](int64_t i) { return vec::exp(src[i] - shift); });
}
template <class C>
inline C exp_sum(const C *src, int64_t n, C shift) {
  return sum<C>(n, [=](int64_t i) { return vec::exp(src[i] - shift); });
}

// Returns a row in its compute type: the row itself, or a copy in `buffer` if it has another type.
template <class T>
inline const compute_t<T> *widen(const T *row, [[maybe_unused]] compute_t<T> *buffer, [[maybe_unused]] int64_t n) {
  if constexpr (std::is_same_v<T, compute_t<T>>)
    return row;
  else {
    if constexpr (std::is_same_v<T, Half>)
      widen_half(buffer, row, n);
    else
      for (int64_t i = 0; i < n; ++i) buffer[i] = row[i];
    return buffer;
  }
}

// to[i] = f(i), computed in the compute type. `buffer` has n elements if the row has another type.
template <class T, class F>
inline void store(T *to, [[maybe_unused]] compute_t<T> *buffer, int64_t n, F f) {
  if constexpr (std::is_same_v<T, Half>) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) buffer[i] = f(i);  // f may read the same element of the buffer
    narrow_half(to, buffer, n);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = convert<T>(f(i));
  }
}

// Memory that one thread uses during its part of the work.
template <class C>
class Buffer {
 public:
  explicit Buffer(int64_t n) : bytes_(std::max<int64_t>(n, 1) * sizeof(C)), p_(static_cast<C *>(allocate(bytes_))) {}
  ~Buffer() { deallocate(p_, bytes_); }
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;
  operator C *() const { return p_; }
  C *get() const { return p_; }

 private:
  size_t bytes_;
  C *p_;
};

// Returns an optional operand in the compute type, or null if it is absent.
template <class C>
const C *parameter(Call &c, int i) {
  if (!c.has(i)) return nullptr;
  const Tensor t = c.cast(c.in(i), dtype_of<C>::value);
  return static_cast<const C *>(t.data);
}

// A result that is computed in the compute type and then converted to its own type.
template <class C>
class Stats {
 public:
  Stats(Call &c, int index, DType dtype, const Dims &shape) : out_(c.out(index, dtype, shape)), work_(out_) {
    if (dtype != dtype_of<C>::value)
      work_ = contiguous_tensor(c.scratch(std::max<int64_t>(out_.numel, 1) * sizeof(C)), dtype_of<C>::value, shape);
  }
  C *data() const { return static_cast<C *>(work_.data); }
  void finish() const {
    if (work_.data != out_.data) copy_into(out_, work_);
  }
  // The result that finish() has stored, converted back to the compute type.
  void round() const {
    finish();
    if (work_.data != out_.data) copy_into(work_, out_);
  }

 private:
  Tensor out_, work_;
};

// A tensor seen as [outer, n, inner] around one dim.
struct Split {
  int64_t outer = 1, n = 1, inner = 1;
  Split(const Tensor &t, int64_t dim) {
    if (t.ndim == 0) return;
    for (int d = 0; d < dim; ++d) outer *= t.sizes[d];
    n = t.sizes[dim];
    for (int d = static_cast<int>(dim) + 1; d < t.ndim; ++d) inner *= t.sizes[d];
  }
};
inline int64_t grain_for(int64_t row) { return std::max<int64_t>(1, 16384 / std::max<int64_t>(row, 1)); }

}  // namespace msa::rows

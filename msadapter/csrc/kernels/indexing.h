// Advanced indexing: index tensors over any dims of an operand, lowered to [outer][B offsets][inner].
#pragma once
#include <cmath>
#include <limits>

#include "loops.h"

namespace msa {

struct Axes {
  int n = 0;
  int64_t numel = 1;
  int64_t size[kMaxDims], stride[kMaxDims];  // bytes, innermost last
  void push(int64_t s, int64_t step) {
    numel *= s;
    if (s == 1) return;
    if (n && stride[n - 1] == step * s) {
      size[n - 1] *= s;
      stride[n - 1] = step;
      return;
    }
    size[n] = s;
    stride[n++] = step;
  }
  int64_t offset(int64_t flat) const {
    int64_t r = 0;
    for (int d = n - 1; d >= 0; --d) {
      r += flat % size[d] * stride[d];
      flat /= size[d];
    }
    return r;
  }
};

struct IndexPlan {
  Dims shape;                        // of the result
  Axes outer, inner;                 // dims of the operand before and after the index block
  int64_t count = 1;                 // B
  const int64_t *offsets = nullptr;  // bytes from the operand's start, one per index position
};

// A missing entry, or one of 9 dims of size 0 (MindSpore's way), stands for a full slice.
inline bool is_full_slice(const Tensor &t) { return t.ndim < 0 || (t.ndim == 9 && t.numel == 0); }

IndexPlan plan_index(Call &c, const Tensor &x, const std::vector<Tensor> &indices);
// One index vector on one dim (index_select and family); negative positions are errors.
IndexPlan plan_index_dim(Call &c, const Tensor &x, int64_t dim, const Tensor &index, const char *op);

enum class Combine { kAssign, kAdd, kMul, kMax, kMin };
void index_load(const IndexPlan &p, const Tensor &x, const Tensor &o);  // o: contiguous result
// values: contiguous [outer][B][inner] of dest's type, or one element for all (broadcast = true).
void index_store(const IndexPlan &p, const Tensor &dest, const void *values, bool broadcast, Combine how);
// Result 0 of an operator whose answer is a changed copy of `x` (or x itself for in-place calls).
Tensor changed_copy(Call &c, const Tensor &x);
// Row-major positions of the true elements: [dims][count], and the count.
int64_t true_positions(Call &c, const Tensor &mask, std::vector<int64_t *> *positions);
Tensor at_least_1d(const Tensor &t);

// The element that a reduction ("amax", "amin", "prod", else sum) starts from when the destination does not count.
template <class T>
T reduce_identity(const std::string &how) {
  if constexpr (is_complex_v<T>)
    return T(how == "prod" ? 1 : 0);
  else if constexpr (is_reduced_v<T>)
    return T(reduce_identity<float>(how));
  else {
    using L = std::numeric_limits<T>;
    if (how == "amax") return L::has_infinity ? static_cast<T>(-L::infinity()) : L::lowest();
    if (how == "amin") return L::has_infinity ? L::infinity() : L::max();
    return static_cast<T>(how == "prod" ? 1 : 0);
  }
}
// v / n as torch rounds it: integers towards minus infinity.
template <class T>
T divided(T v, int64_t n) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(std::floor(static_cast<double>(v) / static_cast<double>(n)));
  else
    return T(compute_t<T>(v) / compute_t<T>(static_cast<float>(n)));
}

}  // namespace msa

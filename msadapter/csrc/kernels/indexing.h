// Indexing with tensors. The operand is seen as [outer][B][inner]: the dims before the indexed ones, B index positions,
// and the dims after them. The index tensors are converted to B offsets in memory.
#pragma once
#include <cmath>
#include <limits>

#include "loops.h"
#include "wrapping.h"

namespace msa {

constexpr int64_t kCheckedRun = 1024;  // positions that stay in the L1 cache between their check and their use

// The largest of n positions. A negative one counts as larger than any size, so that one comparison finds both.
inline uint64_t largest_position(const int64_t *index, int64_t n) {
  uint64_t largest = 0;
  for (int64_t i = 0; i < n; ++i) largest = std::max(largest, static_cast<uint64_t>(index[i]));
  return largest;
}

struct Axes {
  int n = 0;
  int64_t numel = 1;
  int64_t size[kMaxDims], stride[kMaxDims];  // strides in bytes; the innermost dim is last
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
  Dims shape;                        // the sizes of the result
  Axes outer, inner;                 // the dims of the operand before and after the index positions
  int64_t count = 1;                 // B, the number of index positions
  const int64_t *offsets = nullptr;  // for each index position, the bytes from the start of the operand
};

// Plans x[indices]. A null entry stands for a full slice, and so does a tensor of nine dims of size 0, which is how
// MindSpore writes it.
inline bool is_full_slice(const Tensor &t) { return t.ndim < 0 || (t.ndim == 9 && t.numel == 0); }

IndexPlan plan_index(Call &c, const Tensor &x, const std::vector<Tensor> &indices);
// Plans an index vector on one dim, for index_select and similar operators. A negative position is an error.
IndexPlan plan_index_dim(Call &c, const Tensor &x, int64_t dim, const Tensor &index, const char *op);

enum class Combine { kAssign, kAdd, kMul, kMax, kMin };
void index_load(const IndexPlan &p, const Tensor &x, const Tensor &o);  // `o` is the contiguous result
// Writes values to the indexed elements of `dest`. They are contiguous [outer][B][inner] and have the type of `dest`.
// With `broadcast`, they are one element, which is written everywhere.
void index_store(const IndexPlan &p, const Tensor &dest, const void *values, bool broadcast, Combine how);
// Creates result 0 of an operator that returns a changed copy of `x`. In an in-place call it is `x` itself.
Tensor changed_copy(Call &c, const Tensor &x);
// Writes the positions of the true elements in row-major order, as one vector for each dim, and returns their number.
int64_t true_positions(Call &c, const Tensor &mask, std::vector<int64_t *> *positions);
Tensor at_least_1d(const Tensor &t);

// The first value of a reduction ("amax", "amin", "prod", or else a sum) that does not include the destination.
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
// v / n, rounded towards minus infinity for integers, as in PyTorch.
template <class T>
T divided(T v, int64_t n) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(std::floor(static_cast<double>(v) / static_cast<double>(n)));
  else
    return T(compute_t<T>(v) / compute_t<T>(static_cast<float>(n)));
}

}  // namespace msa

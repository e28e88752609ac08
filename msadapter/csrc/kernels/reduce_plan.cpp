// The geometry of reductions: the reduced dims, the shapes of results, the merged dims of the loops, and rows.
#include "reduce.h"

namespace msa {

std::vector<bool> dims_mask(const Dims &dims, int ndim) {
  std::vector<bool> mask(ndim, dims.empty());
  std::vector<bool> seen(std::max(ndim, 1), false);
  for (int64_t d : dims) {
    const int64_t w = wrap_dim(d, ndim);
    check(!seen[w], "dim ", w, " appears multiple times in the list of dims");
    seen[w] = true;
    if (ndim > 0) mask[w] = true;
  }
  return mask;
}

std::vector<bool> reduce_mask(const Call &c, int operand, int ndim) {
  return dims_mask(c.has(operand) ? c.ints(operand) : Dims{}, ndim);
}

Dims reduced_shape(const Tensor &t, const std::vector<bool> &mask, bool keepdim) {
  if (only_stored(t.dtype)) unsupported("reduce_cpu", t.dtype);
  Dims r;
  for (int d = 0; d < t.ndim; ++d) {
    if (!mask[d])
      r.push_back(t.sizes[d]);
    else if (keepdim)
      r.push_back(1);
  }
  return r;
}

int64_t reduced_count(const Tensor &t, const std::vector<bool> &mask) {
  int64_t n = 1;
  for (int d = 0; d < t.ndim; ++d)
    if (mask[d]) n *= t.sizes[d];
  return n;
}

namespace {
struct Axis {
  int64_t size, in, out;
};

int coalesce(std::vector<Axis> &axes, int64_t *size, int64_t *in, int64_t *out) {
  std::stable_sort(axes.begin(), axes.end(),
                   [](const Axis &a, const Axis &b) { return std::abs(a.in) < std::abs(b.in); });
  int n = 0;
  for (const Axis &a : axes) {
    if (n && a.in == in[n - 1] * size[n - 1] && (!out || a.out == out[n - 1] * size[n - 1])) {
      size[n - 1] *= a.size;
      continue;
    }
    size[n] = a.size;
    in[n] = a.in;
    if (out) out[n] = a.out;
    ++n;
  }
  if (n == 0) {
    size[0] = 1;
    in[0] = 0;
    if (out) out[0] = 0;
    n = 1;
  }
  return n;
}
}  // namespace

ReducePlan plan_reduction(const Tensor &t, const std::vector<bool> &mask) {
  ReducePlan p;
  std::vector<Axis> kept, reduced;
  const int64_t item = item_size(t.dtype);
  for (int d = t.ndim - 1; d >= 0; --d) {
    if (mask[d]) {
      p.reduced *= t.sizes[d];
      if (t.sizes[d] != 1) reduced.push_back({t.sizes[d], t.strides[d] * item, 0});
    } else {
      if (t.sizes[d] != 1) kept.push_back({t.sizes[d], t.strides[d] * item, p.outputs});
      p.outputs *= t.sizes[d];
    }
  }
  p.nkept = coalesce(kept, p.ksize, p.kin, p.kout);
  p.nreduced = coalesce(reduced, p.rsize, p.rin, nullptr);
  return p;
}

Tensor rows_seen(const Tensor &t, const std::vector<bool> &mask) {
  Dims sizes, strides;
  for (const bool reduced : {false, true})
    for (int d = 0; d < t.ndim; ++d)
      if (mask[d] == reduced) sizes.push_back(t.sizes[d]), strides.push_back(t.strides[d]);
  return make_view(t, sizes, strides);
}

Tensor rows_of(Call &c, const Tensor &t, const std::vector<bool> &mask, DType dtype) {
  return c.cast(rows_seen(t, mask), dtype);
}

Tensor rows_of(Call &c, const Tensor &t, int64_t dim, DType dtype) {
  std::vector<bool> mask(t.ndim, false);
  if (t.ndim > 0) mask[dim] = true;
  return rows_of(c, t, mask, dtype);
}

Tensor rows_view(const Tensor &rows, const Tensor &t, int64_t dim, int64_t len) {
  Dims sizes = t.shape(), strides(t.ndim);
  if (t.ndim > 0) sizes[dim] = len;
  int64_t step = len;
  for (int d = t.ndim - 1; d >= 0; --d) {
    if (d == dim) continue;
    strides[d] = step;
    step *= sizes[d];
  }
  if (t.ndim > 0) strides[dim] = 1;
  return make_view(rows, sizes, strides);
}

}  // namespace msa

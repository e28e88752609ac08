// cat, stack, tile, repeat, repeat_interleave, roll, flip, tril, triu.
#include "indexing.h"

namespace msa {
namespace {

Dims strides_of(const Tensor &t) { return Dims(t.strides, t.strides + t.ndim); }

// The part [from, from + size) of dim d.
Tensor part(const Tensor &t, int64_t d, int64_t from, int64_t size) {
  Dims sizes = t.shape();
  sizes[d] = size;
  return make_view(t, sizes, strides_of(t), from * t.strides[d]);
}

// o[i * K + k] = pieces[k][i]: K vectors side by side, as stack() in the last dim has them.
template <class T, int K>
void interleave(T *__restrict o, const T *const *pieces, int64_t begin, int64_t end) {
  const T *p[K];
  std::copy_n(pieces, K, p);
  for (int64_t i = begin; i < end; ++i)
    for (int k = 0; k < K; ++k) o[i * K + k] = p[k][i];
}
// Joins single elements of two to four pieces, if that is what concat_dense() is asked for.
bool interleaved(const Tensor &o, const std::vector<Tensor> &pieces, int64_t row) {
  const int64_t count = static_cast<int64_t>(pieces.size());
  if (count < 2 || count > 4 || row != count * item_size(o.dtype)) return false;
  for (const Tensor &t : pieces)
    if (t.numel * count != o.numel) return false;
  MSA_SWITCH_BYTES(o.dtype, ({
                     const T *from[4];
                     for (int64_t k = 0; k < count; ++k) from[k] = pieces[k].ptr<T>();
                     const auto join = count == 2 ? interleave<T, 2> : count == 3 ? interleave<T, 3> : interleave<T, 4>;
                     parallel_for(o.numel / count, 1 << 15,
                                  [&](int64_t b, int64_t e) { join(o.ptr<T>(), from, b, e); });
                   }));
  return true;
}

// Joins contiguous pieces with the same number of dims along `dim`. Piece k has width[k] bytes for each outer position.
void concat_dense(const Tensor &o, const std::vector<Tensor> &pieces, int64_t dim) {
  int64_t outer = 1, inner = item_size(o.dtype);
  for (int d = 0; d < dim; ++d) outer *= o.sizes[d];
  for (int d = static_cast<int>(dim) + 1; d < o.ndim; ++d) inner *= o.sizes[d];
  const int64_t row = inner * o.sizes[dim];
  if (interleaved(o, pieces, row)) return;
  parallel_for(outer, std::max<int64_t>(1, (1 << 18) / std::max<int64_t>(row, 1)), [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      char *to = o.ptr<char>() + i * row;
      for (const Tensor &t : pieces) {
        const int64_t bytes = t.sizes[dim] * inner;
        std::memcpy(to, t.ptr<char>() + i * bytes, bytes);
        to += bytes;
      }
    }
  });
}

MSA_KERNEL(Concat) {  // tensors, axis
  const std::vector<Tensor> &all = c.list(0);
  check(!all.empty(), "torch.cat(): expected a non-empty list of Tensors");
  std::vector<Tensor> pieces;
  for (const Tensor &t : all) {
    check(t.ndim > 0, "zero-dimensional tensor (at position ", &t - all.data(), ") cannot be concatenated");
    if (!(t.ndim == 1 && t.numel == 0)) pieces.push_back(t);  // as in PyTorch, empty vectors are ignored
  }
  const Tensor &first = pieces.empty() ? all[0] : pieces[0];
  const int64_t dim = wrap_dim(c.integer(1), first.ndim);
  Dims shape = first.shape();
  shape[dim] = 0;
  bool dense = true;
  for (size_t k = 0; k < pieces.size(); ++k) {
    const Tensor &t = pieces[k];
    check(t.ndim == first.ndim, "Tensors must have same number of dimensions: got ", first.ndim, " and ", t.ndim);
    for (int d = 0; d < t.ndim; ++d)
      check(d == dim || t.sizes[d] == first.sizes[d], "Sizes of tensors must match except in dimension ", dim,
            ". Expected size ", first.sizes[d], " but got size ", t.sizes[d], " for tensor number ", k,
            " in the list.");
    shape[dim] = (Size(shape[dim]) + t.sizes[dim]).value("the size of the result of cat");
    dense = dense && t.contiguous() && t.dtype == first.dtype;
  }
  Tensor o = c.out(0, first.dtype, shape);
  if (o.numel == 0) return;
  if (dense && (o.numel < 4096 || pieces.size() > 1)) {
    bool one_row = true;
    for (int d = 0; d < dim; ++d) one_row = one_row && shape[d] == 1;
    if (!one_row || o.numel < 65536) return concat_dense(o, pieces, dim);
  }
  int64_t at = 0;
  for (const Tensor &t : pieces) {
    if (t.numel) copy_into(part(o, dim, at, t.sizes[dim]), t);
    at += t.sizes[dim];
  }
}

MSA_KERNEL(StackExt) {  // tensors, dim
  const std::vector<Tensor> &all = c.list(0);
  check(!all.empty(), "stack expects a non-empty TensorList");
  const Tensor &first = all[0];
  const int64_t dim = wrap_dim(c.integer(1), first.ndim + 1);
  Dims shape = first.shape();
  shape.insert(shape.begin() + dim, static_cast<int64_t>(all.size()));
  Tensor o = c.out(0, first.dtype, shape);
  bool dense = true;
  std::vector<Tensor> pieces;
  for (size_t k = 0; k < all.size(); ++k) {
    check(all[k].same_shape(first), "stack expects each tensor to be equal size, but got ", first.shape(),
          " at entry 0 and ", all[k].shape(), " at entry ", k);
    dense = dense && all[k].contiguous() && all[k].dtype == first.dtype;
    Dims sizes = all[k].shape(), strides = strides_of(all[k]);
    sizes.insert(sizes.begin() + dim, 1);
    strides.insert(strides.begin() + dim, 1);
    pieces.push_back(make_view(all[k], sizes, strides));
  }
  if (o.numel == 0) return;
  if (dense) return concat_dense(o, pieces, dim);
  for (size_t k = 0; k < pieces.size(); ++k) copy_into(part(o, dim, static_cast<int64_t>(k), 1), pieces[k]);
}

// Repeats x repeats[d] times along dim d. If there are more numbers than dims, leading dims of size 1 are added.
void repeat(Call &c, const Tensor &x, Dims repeats) {
  Dims sizes = x.shape(), strides = strides_of(x);
  while (repeats.size() < sizes.size()) repeats.insert(repeats.begin(), 1);
  while (sizes.size() < repeats.size()) sizes.insert(sizes.begin(), 1), strides.insert(strides.begin(), 0);
  Dims shape, wide, from, to;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int64_t size = (Size(sizes[d]) * repeats[d]).value("the size of the result of repeat");
    check(repeats[d] >= 0, "Trying to create tensor with negative dimension ", size, ": ", repeats);
    shape.push_back(size);
  }
  Tensor o = c.out(0, x.dtype, shape);
  if (o.numel == 0) return;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (repeats[d] != 1) wide.push_back(repeats[d]), from.push_back(0), to.push_back(o.strides[d] * sizes[d]);
    if (sizes[d] != 1) wide.push_back(sizes[d]), from.push_back(strides[d]), to.push_back(o.strides[d]);
  }
  copy_into(make_view(o, wide, to), make_view(x, wide, from));
}
MSA_KERNEL(Tile) { repeat(c, c.in(0), c.ints(1)); }  // input, dims
MSA_KERNEL(Repeat) {                                 // input, repeats
  check(static_cast<int>(c.ints(1).size()) >= c.in(0).ndim,
        "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  repeat(c, c.in(0), c.ints(1));
}

Tensor flat(Call &c, const Tensor &x) {
  const Tensor t = c.contiguous(x);
  return make_view(t, {t.numel}, {1});
}

MSA_KERNEL(RepeatInterleaveInt) {  // input, repeats, dim, output_size
  const Tensor x = c.has(2) ? at_least_1d(c.in(0)) : flat(c, c.in(0));
  const int64_t dim = c.has(2) ? wrap_dim(c.integer(2), c.in(0).ndim) : 0, n = c.integer(1);
  check(n >= 0, "Repeats must be non-negative");
  Dims shape = x.shape(), wide = shape, from = strides_of(x);
  shape[dim] = (Size(shape[dim]) * n).value("the size of the result of repeat_interleave");
  Tensor o = c.out(0, x.dtype, shape);
  if (o.numel == 0) return;
  Dims to = strides_of(o);
  wide.insert(wide.begin() + dim + 1, n);
  from.insert(from.begin() + dim + 1, 0);
  to.insert(to.begin() + dim + 1, o.strides[dim]);
  to[dim] = o.strides[dim] * n;
  copy_into(make_view(o, wide, to), make_view(x, wide, from));
}

// The positions 0..n-1 of dim `dim`, each as often as its count.
Tensor repeated_positions(Call &c, const Tensor &repeats, int64_t n, int64_t dim) {
  check(repeats.ndim <= 1, "repeats must be 0-dim or 1-dim tensor");
  const Tensor r = c.cast(at_least_1d(repeats), DType::I64);
  check(r.numel == 1 || r.numel == n,
        "repeats must have the same size as input along dim, but got repeats.size(0) = ", r.numel, " and input.size(",
        dim, ") = ", n);
  if (repeats.dtype != DType::I32 && repeats.dtype != DType::I64) unsupported("repeat_interleave_cpu", repeats.dtype);
  Size total = 0;
  auto count = [&](int64_t i) { return r.ptr<int64_t>()[r.numel == 1 ? 0 : i]; };
  for (int64_t i = 0; i < n; ++i) {
    check(count(i) >= 0, "repeats can not be negative");
    total += count(i);
  }
  const int64_t size = total.value("the sum of the repeats");
  int64_t *p = c.scratch_of<int64_t>(std::max<int64_t>(size, 1)), k = 0;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < count(i); ++j) p[k++] = i;
  return contiguous_tensor(p, DType::I64, {size});
}

MSA_KERNEL(RepeatInterleaveTensor) {
  needs_values("repeat_interleave");  // input, repeats, dim, output_size
  const Tensor x = c.has(2) ? at_least_1d(c.in(0)) : flat(c, c.in(0));
  const int64_t dim = c.has(2) ? wrap_dim(c.integer(2), c.in(0).ndim) : 0;
  const Tensor index = repeated_positions(c, c.in(1), x.sizes[dim], c.has(2) ? c.integer(2) : 0);
  if (c.has(3)) check(c.integer(3) == index.numel, "allocated size does not match required size");
  const IndexPlan p = plan_index_dim(c, x, dim, index, "repeat_interleave");
  index_load(p, x, c.out(0, x.dtype, p.shape));
}
MSA_KERNEL(RepeatInterleaveGrad) {  // grad, repeats, dim
  const Tensor g = at_least_1d(c.in(0));
  const int64_t dim = wrap_dim(c.integer(2), g.ndim);
  const Tensor repeats = at_least_1d(c.in(1));
  int64_t n = repeats.numel;
  Dims shape = g.shape();
  if (n == 1)
    n = std::max<int64_t>(1, g.sizes[dim] / std::max<int64_t>(1, c.cast(repeats, DType::I64).ptr<int64_t>()[0]));
  shape[dim] = n;
  Tensor o = c.out(0, g.dtype, shape);
  fill_zero(o);
  const IndexPlan p = plan_index_dim(c, o, dim, repeated_positions(c, repeats, n, dim), "repeat_interleave");
  index_store(p, o, c.contiguous(g).data, false, Combine::kAdd);
}

void roll_dims(const Tensor &o, const Tensor &x, const Dims &shifts, const Dims &dims, size_t k) {
  if (k == dims.size()) return copy_into(o, x);
  const int64_t d = wrap_dim(dims[k], x.ndim), n = x.sizes[d];
  const int64_t s = n ? ((shifts[k] % n) + n) % n : 0;
  if (n - s > 0) roll_dims(part(o, d, s, n - s), part(x, d, 0, n - s), shifts, dims, k + 1);
  if (s > 0) roll_dims(part(o, d, 0, s), part(x, d, n - s, s), shifts, dims, k + 1);
}
MSA_KERNEL(Roll) {  // input, shifts, dims
  const Tensor &x = c.in(0);
  const Dims &shifts = c.ints(1);
  check(!shifts.empty(), "`shifts` required");
  Tensor o = c.out_like(0, x);
  if (x.numel == 0) return;
  if (!c.has(2) || c.ints(2).empty()) {
    check(shifts.size() == 1, "shifts and dimensions must align. shifts: ", shifts.size(), ", dims:0");
    return roll_dims(make_view(o, {o.numel}, {1}), flat(c, x), shifts, {0}, 0);
  }
  check(shifts.size() == c.ints(2).size(), "shifts and dimensions must align. shifts: ", shifts.size(),
        ", dims:", c.ints(2).size());
  // A dim may appear twice. Its shifts are added.
  Dims dims, sums;
  for (size_t k = 0; k < shifts.size(); ++k) {
    const int64_t d = wrap_dim(c.ints(2)[k], x.ndim);
    const auto at = std::find(dims.begin(), dims.end(), d);
    if (at != dims.end())
      sums[at - dims.begin()] = (Size(sums[at - dims.begin()]) + shifts[k]).value("the sum of the shifts of a dim");
    else
      dims.push_back(d), sums.push_back(shifts[k]);
  }
  if (x.ndim == 0) return copy_into(o, x);
  roll_dims(o, x, sums, dims, 0);
}

MSA_KERNEL(ReverseV2) {  // input, axis
  const Tensor &x = c.in(0);
  Tensor o = c.out_pointwise(0, x.dtype, {&x});
  Dims strides = strides_of(x);
  int64_t offset = 0;
  std::vector<bool> seen(std::max(x.ndim, 1), false);
  for (int64_t axis : c.ints(1)) {
    const int64_t d = wrap_dim(axis, x.ndim);
    check(!seen[d], "dim ", d, " appears multiple times in the list of dims");
    seen[d] = true;
    if (x.ndim == 0) continue;
    offset += (x.sizes[d] - 1) * strides[d];
    strides[d] = -strides[d];
  }
  if (x.numel) copy_into(o, make_view(x, x.shape(), strides, offset));
}

// Keeps columns [j0(i), j1(i)) of every row.
template <class F>
void triangle(Call &c, const char *op, F range) {
  check(c.in(0).ndim >= 2, op, ": input tensor must have at least 2 dimensions");
  const Tensor x = c.contiguous(c.in(0));
  Tensor o = c.out_like(0, x);
  const int64_t rows = x.size(-2), cols = x.size(-1), bytes = item_size(x.dtype);
  if (o.numel == 0) return;
  parallel_for(x.numel / cols, std::max<int64_t>(1, kGrain / cols), [&](int64_t b, int64_t e) {
    for (int64_t r = b; r < e; ++r) {
      int64_t j0, j1;
      range(r % rows, cols, &j0, &j1);
      j0 = std::clamp<int64_t>(j0, 0, cols);
      j1 = std::clamp<int64_t>(j1, j0, cols);
      char *to = o.ptr<char>() + r * cols * bytes;
      std::memset(to, 0, j0 * bytes);
      std::memcpy(to + j0 * bytes, x.ptr<char>() + (r * cols + j0) * bytes, (j1 - j0) * bytes);
      std::memset(to + j1 * bytes, 0, (cols - j1) * bytes);
    }
  });
}
MSA_KERNEL(TrilExt) {  // input, diagonal
  const int64_t k = c.integer(1);
  triangle(c, "tril", [k](int64_t i, int64_t, int64_t *j0, int64_t *j1) { *j0 = 0, *j1 = saturated_sum(k, i + 1); });
}
MSA_KERNEL(Triu) {  // input, diagonal
  const int64_t k = c.integer(1);
  triangle(c, "triu",
           [k](int64_t i, int64_t cols, int64_t *j0, int64_t *j1) { *j0 = saturated_sum(k, i), *j1 = cols; });
}

}  // namespace
}  // namespace msa

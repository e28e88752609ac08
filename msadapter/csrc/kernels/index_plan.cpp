// Converts index tensors to byte offsets.
#include "indexing.h"

namespace msa {

Tensor at_least_1d(const Tensor &t) { return t.ndim ? t : make_view(t, {1}, {1}); }

Tensor changed_copy(Call &c, const Tensor &x) {
  Tensor o = c.out_pointwise(0, x.dtype, {&x});
  if (o.data != x.data || x.numel == 0) copy_into(o, x);
  return o;
}

int64_t true_positions(Call &c, const Tensor &mask, std::vector<int64_t *> *positions) {
  const Tensor m = c.cast(mask, DType::Bool);
  const uint8_t *p = m.ptr<uint8_t>();  // any number other than 0 is true, see element()
  int64_t count = 0;
  for (int64_t i = 0; i < m.numel; ++i) count += p[i] != 0;
  if (!positions) return count;
  for (int d = 0; d < mask.ndim; ++d) positions->push_back(c.scratch_of<int64_t>(std::max<int64_t>(count, 1)));
  int64_t at[kMaxDims] = {0}, k = 0;
  for (int64_t i = 0; i < m.numel; ++i) {
    if (p[i]) {
      for (int d = 0; d < m.ndim; ++d) (*positions)[d][k] = at[d];
      ++k;
    }
    for (int d = m.ndim - 1; d >= 0; --d) {
      if (++at[d] < m.sizes[d]) break;
      at[d] = 0;
    }
  }
  return count;
}

namespace {

[[noreturn]] void out_of_bounds(int64_t i, int64_t dim, int64_t size) {
  if (size == 0) throw IndexError("index is out of bounds for dimension with size 0");
  throw IndexError(text("index ", i, " is out of bounds for dimension ", dim, " with size ", size));
}

struct Entry {
  int dim;
  Tensor index;
};

// Turns a mask into one index vector for each dim and drops full slices. Keeps the dim to which each entry belongs.
std::vector<Entry> entries_of(Call &c, const Tensor &x, const std::vector<Tensor> &indices) {
  std::vector<Entry> entries;
  int dim = 0;
  for (size_t k = 0; k < indices.size(); ++k) {
    const Tensor &t = indices[k];
    if (is_full_slice(t)) {
      ++dim;
      continue;
    }
    if (t.dtype == DType::Bool || t.dtype == DType::U8) {
      if (dim + t.ndim > x.ndim) throw IndexError(text("too many indices for tensor of dimension ", x.ndim));
      for (int d = 0; d < t.ndim; ++d)
        if (t.sizes[d] != x.sizes[dim + d])
          throw IndexError(text("The shape of the mask ", t.shape(), " at index ", d,
                                " does not match the shape of the indexed tensor ", x.shape(), " at index ", dim + d));
      std::vector<int64_t *> positions;
      const int64_t count = true_positions(c, t, &positions);
      for (int64_t *p : positions) entries.push_back({dim++, contiguous_tensor(p, DType::I64, {count})});
      continue;
    }
    if (t.dtype != DType::I64 && t.dtype != DType::I32)
      throw IndexError("tensors used as indices must be long, int, byte or bool tensors");
    entries.push_back({dim++, t});
  }
  if (dim > x.ndim) throw IndexError(text("too many indices for tensor of dimension ", x.ndim));
  return entries;
}

Dims broadcast_entries(const std::vector<Entry> &entries) {
  Dims r;
  bool ok = true;
  for (const Entry &e : entries) {
    const Tensor &t = e.index;
    if (t.ndim > static_cast<int>(r.size())) r.insert(r.begin(), t.ndim - r.size(), 1);
    const int shift = static_cast<int>(r.size()) - t.ndim;
    for (int d = 0; d < t.ndim; ++d) {
      if (r[d + shift] == 1)
        r[d + shift] = t.sizes[d];
      else
        ok = ok && (t.sizes[d] == 1 || t.sizes[d] == r[d + shift]);
    }
  }
  if (!ok) {
    std::string s = "shape mismatch: indexing tensors could not be broadcast together with shapes ";
    for (size_t i = 0; i < entries.size(); ++i) s += (i ? ", " : "") + text(entries[i].index.shape());
    throw IndexError(s);
  }
  return r;
}

}  // namespace

IndexPlan plan_index(Call &c, const Tensor &x, const std::vector<Tensor> &indices) {
  const std::vector<Entry> entries = entries_of(c, x, indices);
  IndexPlan p;
  const Dims block = broadcast_entries(entries);
  p.count = element_count(block);
  int64_t *offsets = c.scratch_of<int64_t>(std::max<int64_t>(p.count, 1));
  std::fill(offsets, offsets + p.count, 0);
  std::vector<bool> indexed(x.ndim, false);
  const int64_t item = item_size(x.dtype);
  for (const Entry &e : entries) {
    indexed[e.dim] = true;
    const Tensor flat = c.cast(expand(e.index, block), DType::I64);
    const int64_t *v = flat.ptr<int64_t>(), size = x.sizes[e.dim], step = x.strides[e.dim] * item;
    for (int64_t b = 0; b < p.count; ++b) {
      const int64_t i = v[b];
      if (i < -size || i >= size) out_of_bounds(i, e.dim, size);
      offsets[b] += (i < 0 ? i + size : i) * step;
    }
  }
  p.offsets = offsets;
  // The dims of the index replace neighbouring indexed dims in place. If the indexed dims are separated, they come
  // first.
  int first = x.ndim, last = -1;
  for (int d = 0; d < x.ndim; ++d)
    if (indexed[d]) first = std::min(first, d), last = d;
  bool together = true;
  for (int d = first; d <= last; ++d) together = together && indexed[d];
  const int before = together ? std::min(first, x.ndim) : 0;
  for (int d = 0; d < before; ++d) {
    p.outer.push(x.sizes[d], x.strides[d] * item);
    p.shape.push_back(x.sizes[d]);
  }
  p.shape.insert(p.shape.end(), block.begin(), block.end());
  for (int d = before; d < x.ndim; ++d) {
    if (indexed[d]) continue;
    p.inner.push(x.sizes[d], x.strides[d] * item);
    p.shape.push_back(x.sizes[d]);
  }
  return p;
}

IndexPlan plan_index_dim(Call &c, const Tensor &x, int64_t dim, const Tensor &index, const char *op) {
  IndexPlan p;
  const bool select = std::strcmp(op, "index_select") == 0, add = std::strcmp(op, "index_add") == 0;
  if (index.ndim > 1)
    throw IndexError(text(op, add ? "_" : "", "(): Index is supposed to be a vector, but got dim: ", index.ndim));
  if (index.dtype != DType::I64 && index.dtype != DType::I32) {
    if (add) fail("index_add_(): Expected dtype int32/int64 for index but got: ", dtype_name(index.dtype));
    fail(op, "(): Expected dtype int32 or int64 for index");
  }
  const int64_t item = item_size(x.dtype), size = x.sizes[dim], step = x.strides[dim] * item;
  for (int d = 0; d < dim; ++d) p.outer.push(x.sizes[d], x.strides[d] * item);
  for (int d = static_cast<int>(dim) + 1; d < x.ndim; ++d) p.inner.push(x.sizes[d], x.strides[d] * item);
  const Tensor flat = c.cast(at_least_1d(index), DType::I64);
  p.count = flat.numel;
  p.shape = x.shape();
  p.shape[dim] = p.count;
  int64_t *offsets = c.scratch_of<int64_t>(std::max<int64_t>(p.count, 1));
  const int64_t *v = flat.ptr<int64_t>();
  for (int64_t b = 0; b < p.count; ++b) {
    if (v[b] < 0 || v[b] >= size) {
      if (select) throw IndexError("index out of range in self");
      if (add) fail("index ", v[b], " is out of bounds for dimension ", dim, " with size ", size);
      out_of_bounds(v[b], dim, size);
    }
    offsets[b] = v[b] * step;
  }
  p.offsets = offsets;
  return p;
}

}  // namespace msa

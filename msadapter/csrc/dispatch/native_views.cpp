// C++ bodies of the most frequent views. They handle correct calls like the Python bodies, and leave everything else
// to these, which raise PyTorch's errors.
#include "../device/geometry.h"
#include "../device/storage_bounds.h"
#include "internal.h"

namespace msa {
namespace {

// Replaces a size of -1. False if the sizes do not fit n elements.
bool infer(Dims *sizes, int64_t n) {
  Size product = 1;
  int64_t hole = -1;
  for (size_t i = 0; i < sizes->size(); ++i) {
    if ((*sizes)[i] == -1) {
      if (hole >= 0) return false;
      hole = static_cast<int64_t>(i);
    } else if ((*sizes)[i] < 0) {
      return false;
    } else {
      product *= (*sizes)[i];
    }
  }
  if (!product.fits()) return false;
  int64_t known = product.value();
  if (hole >= 0) {
    if (known == 0 || n % known) return false;
    (*sizes)[hole] = n / known;
    known *= (*sizes)[hole];
  }
  return known == n;
}

// Computes the strides that give `sizes` on the same memory, if there are any.
bool strides_for(const Dims &old_sizes, const Dims &old_strides, const Dims &sizes, Dims *out) {
  out->assign(sizes.size(), 1);
  const int64_t n = element_count(old_sizes);
  if (n == 0) return false;  // rare, and PyTorch has a special rule for it
  int d = static_cast<int>(sizes.size()) - 1;
  int64_t base = old_strides.empty() ? 1 : old_strides.back(), chunk = 1, taken = 1;
  for (int k = static_cast<int>(old_sizes.size()) - 1; k >= 0; --k) {
    chunk *= old_sizes[k];
    if (k == 0 || (old_sizes[k - 1] != 1 && old_strides[k - 1] != chunk * base)) {
      while (d >= 0 && (taken < chunk || sizes[d] == 1)) {
        (*out)[d] = taken * base;
        taken *= sizes[d];
        --d;
      }
      if (taken != chunk) return false;
      if (k > 0) {
        base = old_strides[k - 1];
        chunk = taken = 1;
      }
    }
  }
  while (d >= 0) (*out)[d--] = 1;
  return true;
}

bool give(const TensorPtr &t, const Geometry &g, Tensors *out) {
  out->push_back(g.on(t));
  return true;
}

bool view(const Operand *v, PyObject **, Tensors *out) {
  if (v[1].kind != Arg::kInts) return false;
  const TensorPtr &t = v[0].tensor;
  Geometry g{v[1].ints, {}, offset_of(t)};
  if (!infer(&g.sizes, element_count(t->shape())) || !strides_for(t->shape(), strides_of(t), g.sizes, &g.strides))
    return false;
  return give(t, g, out);
}

bool region(const Operand *v, PyObject **, Tensors *out) {
  const TensorPtr &t = v[0].tensor;
  if (v[1].kind != Arg::kInts) return false;
  const Geometry from = Geometry::of(t);
  Geometry g{{}, {}, from.offset};
  size_t d = 0;
  const RegionItems items(v[1].ints);
  for (size_t i = 0; i < items.size(); ++i) {
    const RegionItem item = items[i];
    if (item.kind == RegionItem::kNewDim) {
      g.push(1, d < from.sizes.size() ? from.sizes[d] * from.strides[d] : 1);
      continue;
    }
    g.offset += item.start * from.strides[d];
    if (item.kind == RegionItem::kSlice) g.push(item.length, stepped(from.strides[d], item.step));
    ++d;
  }
  for (; d < from.sizes.size(); ++d) g.push(from.sizes[d], from.strides[d]);
  return give(t, g, out);
}

bool slice(const Operand *v, PyObject **, Tensors *out) {  // self, dim, start, end, step
  const TensorPtr &t = v[0].tensor;
  Geometry g = Geometry::of(t);
  int64_t d = v[1].scalar.i;
  const int64_t step = v[4].scalar.i;
  if (!wrap_dim(&d, g.rank()) || step <= 0) return false;
  const int64_t size = g.sizes[d];
  int64_t start = v[2].kind == Arg::kNone ? 0 : v[2].scalar.i, stop = v[3].kind == Arg::kNone ? size : v[3].scalar.i;
  start = start < 0 ? std::max<int64_t>(start + size, 0) : std::min(start, size);
  stop = stop < 0 ? std::max<int64_t>(stop + size, 0) : std::min(stop, size);
  g.cut(d, start, step, slice_length(start, stop, step));
  return give(t, g, out);
}

bool split_sizes(const Operand *v, PyObject **, Tensors *out) {  // self, sizes, dim
  const TensorPtr &t = v[0].tensor;
  Geometry g = Geometry::of(t);
  int64_t d = v[2].scalar.i;
  if (v[1].kind != Arg::kInts || !wrap_dim(&d, g.rank())) return false;
  if (v[1].ints.size() < 2) return false;  // the Python body handles a single part
  for (int64_t s : v[1].ints) {
    g.sizes[d] = s;
    give(t, g, out);
    g.offset += s * g.strides[d];
  }
  return true;
}

bool unbind(const Operand *v, PyObject **, Tensors *out) {
  const TensorPtr &t = v[0].tensor;
  Geometry g = Geometry::of(t);
  int64_t d = v[1].scalar.i;
  if (!wrap_dim(&d, g.rank())) return false;
  const int64_t count = g.sizes[d], step = g.strides[d];
  if (count < 2) return false;  // the Python body handles a single part
  g.erase(d);
  for (int64_t i = 0; i < count; ++i, g.offset += step) give(t, g, out);
  return true;
}

bool transpose(const Operand *v, PyObject **, Tensors *out) {
  const TensorPtr &t = v[0].tensor;
  Geometry g = Geometry::of(t);
  int64_t a = v[1].scalar.i, b = v[2].scalar.i;
  if (!wrap_dim(&a, g.rank()) || !wrap_dim(&b, g.rank())) return false;
  g.swap(a, b);
  return give(t, g, out);
}

bool t_(const Operand *v, PyObject **, Tensors *out) {
  const TensorPtr &t = v[0].tensor;
  if (t->shape().size() != 2) return false;
  Geometry g = Geometry::of(t);
  g.swap(0, 1);
  return give(t, g, out);
}

bool permute(const Operand *v, PyObject **, Tensors *out) {
  const TensorPtr &t = v[0].tensor;
  const Dims &order = v[1].ints;
  const Geometry from = Geometry::of(t);
  if (static_cast<int64_t>(order.size()) != from.rank()) return false;
  Geometry g{{}, {}, from.offset};
  uint32_t seen = 0;
  for (int64_t d : order) {
    if (!wrap_dim(&d, from.rank()) || (seen & (1u << d))) return false;
    seen |= 1u << d;
    g.push(from.sizes[d], from.strides[d]);
  }
  return give(t, g, out);
}

bool unsqueeze(const Operand *v, PyObject **, Tensors *out) {
  const TensorPtr &t = v[0].tensor;
  Geometry g = Geometry::of(t);
  int64_t d = v[1].scalar.i;
  if (!wrap_dim(&d, g.rank() + 1)) return false;
  g.insert(d, 1, d < g.rank() ? g.sizes[d] * g.strides[d] : 1);
  return give(t, g, out);
}

bool squeeze(const Operand *v, PyObject **, Tensors *out) {
  const TensorPtr &t = v[0].tensor;
  const Geometry from = Geometry::of(t);
  if (v[1].kind != Arg::kNone && v[1].kind != Arg::kInts) return false;
  uint32_t drop = v[1].kind == Arg::kNone ? ~0u : 0;
  for (int64_t d : v[1].ints) {
    if (!wrap_dim(&d, from.rank()) || (drop >> d & 1)) return false;
    drop |= 1u << d;
  }
  Geometry g{{}, {}, from.offset};
  for (int64_t d = 0; d < from.rank(); ++d)
    if (from.sizes[d] != 1 || !(drop >> d & 1)) g.push(from.sizes[d], from.strides[d]);
  return give(t, g, out);
}

bool as_strided(const Operand *v, PyObject **, Tensors *out) {  // self, size, stride, storage_offset
  const TensorPtr &t = v[0].tensor;
  if (v[1].kind != Arg::kInts || v[2].kind != Arg::kInts) return false;
  const Geometry g{v[1].ints, v[2].ints, v[3].kind == Arg::kNone ? offset_of(t) : v[3].scalar.i};
  for (int64_t stride : g.strides)
    if (stride < 0) return false;  // the Python body raises PyTorch's error
  check_inside_storage(t, from_ms(t->data_type()), g.sizes, g.strides, g.offset);
  return give(t, g, out);
}

bool select(const Operand *v, PyObject **, Tensors *out) {  // self, dim, index
  const TensorPtr &t = v[0].tensor;
  Geometry g = Geometry::of(t);
  int64_t d = v[1].scalar.i, i = v[2].scalar.i;
  if (!wrap_dim(&d, g.rank()) || !wrap_dim(&i, g.sizes[d])) return false;
  g.offset += i * g.strides[d];
  g.erase(d);
  return give(t, g, out);
}

bool expand(const Operand *v, PyObject **, Tensors *out) {  // self, size
  const TensorPtr &t = v[0].tensor;
  const Geometry from = Geometry::of(t);
  Geometry g{v[1].ints, Dims(v[1].ints.size(), 0), from.offset};
  const int64_t extra = g.rank() - from.rank();
  if (extra < 0) return false;
  for (int64_t i = 0; i < g.rank(); ++i) {
    if (i < extra) {
      if (g.sizes[i] < 0) return false;
      continue;
    }
    const int64_t s = from.sizes[i - extra];
    if (g.sizes[i] == -1) g.sizes[i] = s;
    if (g.sizes[i] < 0 || (g.sizes[i] != s && s != 1)) return false;
    g.strides[i] = s == 1 && g.sizes[i] != 1 ? 0 : from.strides[i - extra];
  }
  for (int64_t i = extra - 1; i >= 0 && from.rank() > 0;
       --i)  // a new dim of size 1 gets the stride that unsqueeze gives
    if (g.sizes[i] == 1) g.strides[i] = i + 1 < g.rank() ? g.sizes[i + 1] * g.strides[i + 1] : 1;
  return give(t, g, out);
}

}  // namespace

bool can_view(const TensorPtr &t, const Operand &asked) {
  if (asked.kind != Arg::kInts) return false;
  Dims sizes = asked.ints, strides;
  return infer(&sizes, element_count(t->shape())) && strides_for(t->shape(), strides_of(t), sizes, &strides);
}

const Table<NativeBody> &native_views() {
  static const Table<NativeBody> table = {
      {"view", view},
      {"transpose", transpose},
      {"t", t_},
      {"permute", permute},
      {"unsqueeze", unsqueeze},
      {"select", select},
      {"squeeze", squeeze},
      {"as_strided", as_strided},
      {"expand", expand},
      {"_region", region},
      {"_slice", slice},
      {"_split", split_sizes},
      {"_split_with_sizes", split_sizes},
      {"_unbind", unbind},
      {"_unsafe_view", view},
  };
  return table;
}

}  // namespace msa

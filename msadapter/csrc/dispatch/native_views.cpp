// C++ bodies of the most frequent views. They handle correct calls like the Python bodies, and leave everything else
// to these, which raise PyTorch's errors.
#include "../device/storage_bounds.h"
#include "internal.h"

namespace msa {
namespace {

int64_t elements(const Dims &d) {
  int64_t n = 1;
  for (auto s : d) n *= s;
  return n;
}

// Replaces a size of -1. False if the sizes do not fit n elements.
bool infer(Dims *sizes, int64_t n) {
  int64_t known = 1, hole = -1;
  for (size_t i = 0; i < sizes->size(); ++i) {
    if ((*sizes)[i] == -1) {
      if (hole >= 0) return false;
      hole = static_cast<int64_t>(i);
    } else if ((*sizes)[i] < 0) {
      return false;
    } else {
      known *= (*sizes)[i];
    }
  }
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
  const int64_t n = elements(old_sizes);
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

bool make(const TensorPtr &t, const Dims &sizes, const Dims &strides, int64_t offset, Tensors *out) {
  out->push_back(new_view(t, from_ms(t->data_type()), sizes, strides, offset));
  return true;
}

bool view(const Operand *v, PyObject **, Tensors *out) {
  if (v[1].kind != Arg::kInts) return false;
  const TensorPtr &t = v[0].tensor;
  Dims sizes = v[1].ints, strides;
  if (!infer(&sizes, elements(t->shape())) || !strides_for(t->shape(), strides_of(t), sizes, &strides)) return false;
  return make(t, sizes, strides, offset_of(t), out);
}

// Four numbers for each item: (0, index, 0, 0), (1, start, step, length), or (2, 0, 0, 0) for a new dim.
bool region(const Operand *v, PyObject **, Tensors *out) {
  const TensorPtr &t = v[0].tensor;
  const Dims &spec = v[1].ints, &have = t->shape();
  if (v[1].kind != Arg::kInts) return false;
  const Dims from = strides_of(t);
  Dims sizes, strides;
  int64_t offset = offset_of(t);
  size_t d = 0;
  for (size_t i = 0; i + 3 < spec.size(); i += 4) {
    if (spec[i] == 2) {
      sizes.push_back(1);
      strides.push_back(d < from.size() ? have[d] * from[d] : 1);
      continue;
    }
    offset += spec[i + 1] * from[d];
    if (spec[i] == 1) {
      sizes.push_back(spec[i + 3]);
      strides.push_back(from[d] * spec[i + 2]);
    }
    ++d;
  }
  sizes.insert(sizes.end(), have.begin() + d, have.end());
  strides.insert(strides.end(), from.begin() + d, from.end());
  return make(t, sizes, strides, offset, out);
}

bool slice(const Operand *v, PyObject **, Tensors *out) {
  const TensorPtr &t = v[0].tensor;
  const int64_t n = static_cast<int64_t>(t->shape().size());
  int64_t d = v[1].scalar.i;
  const int64_t step = v[4].scalar.i;
  if (d < -n || d >= n || step <= 0) return false;
  d += d < 0 ? n : 0;
  Dims sizes = t->shape(), strides = strides_of(t);
  const int64_t size = sizes[d];
  int64_t start = v[2].kind == Arg::kNone ? 0 : v[2].scalar.i, stop = v[3].kind == Arg::kNone ? size : v[3].scalar.i;
  start = start < 0 ? std::max<int64_t>(start + size, 0) : std::min(start, size);
  stop = stop < 0 ? std::max<int64_t>(stop + size, 0) : std::min(stop, size);
  const int64_t offset = offset_of(t) + start * strides[d];
  sizes[d] = (std::max<int64_t>(stop - start, 0) + step - 1) / step;
  strides[d] *= step;
  return make(t, sizes, strides, offset, out);
}

bool split_sizes(const Operand *v, PyObject **, Tensors *out) {
  const TensorPtr &t = v[0].tensor;
  const int64_t n = static_cast<int64_t>(t->shape().size());
  int64_t d = v[2].scalar.i;
  if (v[1].kind != Arg::kInts || d < -n || d >= n) return false;
  d += d < 0 ? n : 0;
  Dims sizes = t->shape();
  const Dims strides = strides_of(t);
  int64_t offset = offset_of(t);
  for (int64_t s : v[1].ints) {
    sizes[d] = s;
    make(t, sizes, strides, offset, out);
    offset += s * strides[d];
  }
  return true;
}

bool unbind(const Operand *v, PyObject **, Tensors *out) {
  const TensorPtr &t = v[0].tensor;
  const int64_t n = static_cast<int64_t>(t->shape().size());
  int64_t d = v[1].scalar.i;
  if (d < -n || d >= n) return false;
  d += d < 0 ? n : 0;
  Dims sizes = t->shape(), strides = strides_of(t);
  const int64_t count = sizes[d], step = strides[d];
  if (count < 2) return false;  // the Python body handles a single part
  sizes.erase(sizes.begin() + d);
  strides.erase(strides.begin() + d);
  for (int64_t i = 0; i < count; ++i) make(t, sizes, strides, offset_of(t) + i * step, out);
  return true;
}

bool transpose(const Operand *v, PyObject **, Tensors *out) {
  const TensorPtr &t = v[0].tensor;
  const int64_t n = static_cast<int64_t>(t->shape().size());
  int64_t a = v[1].scalar.i, b = v[2].scalar.i;
  if (a < -n || a >= n || b < -n || b >= n) return false;
  a += a < 0 ? n : 0;
  b += b < 0 ? n : 0;
  Dims sizes = t->shape(), strides = strides_of(t);
  std::swap(sizes[a], sizes[b]);
  std::swap(strides[a], strides[b]);
  return make(t, sizes, strides, offset_of(t), out);
}

bool t_(const Operand *v, PyObject **, Tensors *out) {
  const TensorPtr &t = v[0].tensor;
  if (t->shape().size() != 2) return false;
  Dims sizes = t->shape(), strides = strides_of(t);
  std::swap(sizes[0], sizes[1]);
  std::swap(strides[0], strides[1]);
  return make(t, sizes, strides, offset_of(t), out);
}

bool permute(const Operand *v, PyObject **, Tensors *out) {
  const TensorPtr &t = v[0].tensor;
  const int64_t n = static_cast<int64_t>(t->shape().size());
  const Dims &order = v[1].ints;
  if (static_cast<int64_t>(order.size()) != n) return false;
  Dims sizes(n), strides(n), from = strides_of(t);
  uint32_t seen = 0;
  for (int64_t i = 0; i < n; ++i) {
    int64_t d = order[i];
    if (d < -n || d >= n) return false;
    d += d < 0 ? n : 0;
    if (seen & (1u << d)) return false;
    seen |= 1u << d;
    sizes[i] = t->shape()[d];
    strides[i] = from[d];
  }
  return make(t, sizes, strides, offset_of(t), out);
}

bool unsqueeze(const Operand *v, PyObject **, Tensors *out) {
  const TensorPtr &t = v[0].tensor;
  const int64_t n = static_cast<int64_t>(t->shape().size()) + 1;
  int64_t d = v[1].scalar.i;
  if (d < -n || d >= n) return false;
  d += d < 0 ? n : 0;
  Dims sizes = t->shape(), strides = strides_of(t);
  const int64_t step = d < n - 1 ? sizes[d] * strides[d] : 1;
  sizes.insert(sizes.begin() + d, 1);
  strides.insert(strides.begin() + d, step);
  return make(t, sizes, strides, offset_of(t), out);
}

bool squeeze(const Operand *v, PyObject **, Tensors *out) {
  const TensorPtr &t = v[0].tensor;
  const Dims &have = t->shape(), from = strides_of(t);
  const int64_t n = static_cast<int64_t>(have.size());
  if (v[1].kind != Arg::kNone && v[1].kind != Arg::kInts) return false;
  uint32_t drop = v[1].kind == Arg::kNone ? ~0u : 0;
  for (int64_t d : v[1].ints) {
    if (d < -n || d >= n) return false;
    drop |= 1u << (d < 0 ? d + n : d);
  }
  Dims sizes, strides;
  for (int64_t d = 0; d < n; ++d) {
    if (have[d] == 1 && (drop >> d & 1)) continue;
    sizes.push_back(have[d]);
    strides.push_back(from[d]);
  }
  return make(t, sizes, strides, offset_of(t), out);
}

bool as_strided(const Operand *v, PyObject **, Tensors *out) {
  const TensorPtr &t = v[0].tensor;
  const Dims &sizes = v[1].ints, &strides = v[2].ints;
  const int64_t offset = v[3].kind == Arg::kNone ? offset_of(t) : v[3].scalar.i;
  if (v[1].kind != Arg::kInts || v[2].kind != Arg::kInts) return false;
  for (int64_t stride : strides)
    if (stride < 0) return false;  // the Python body raises PyTorch's error
  check_inside_storage(t, from_ms(t->data_type()), sizes, strides, offset);
  return make(t, sizes, strides, offset, out);
}

bool select(const Operand *v, PyObject **, Tensors *out) {
  const TensorPtr &t = v[0].tensor;
  const int64_t n = static_cast<int64_t>(t->shape().size());
  int64_t d = v[1].scalar.i, i = v[2].scalar.i;
  if (d < -n || d >= n) return false;
  d += d < 0 ? n : 0;
  Dims sizes = t->shape(), strides = strides_of(t);
  if (i < -sizes[d] || i >= sizes[d]) return false;
  i += i < 0 ? sizes[d] : 0;
  const int64_t offset = offset_of(t) + i * strides[d];
  sizes.erase(sizes.begin() + d);
  strides.erase(strides.begin() + d);
  return make(t, sizes, strides, offset, out);
}

bool expand(const Operand *v, PyObject **, Tensors *out) {
  const TensorPtr &t = v[0].tensor;
  const Dims &have = t->shape();
  Dims sizes = v[1].ints, from = strides_of(t);
  if (sizes.size() < have.size()) return false;
  const size_t extra = sizes.size() - have.size();
  Dims strides(sizes.size(), 0);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (i < extra) {
      if (sizes[i] < 0) return false;
      continue;
    }
    const int64_t s = have[i - extra];
    if (sizes[i] == -1) sizes[i] = s;
    if (sizes[i] < 0 || (sizes[i] != s && s != 1)) return false;
    strides[i] = s == 1 && sizes[i] != 1 ? 0 : from[i - extra];
  }
  return make(t, sizes, strides, offset_of(t), out);
}

}  // namespace

bool can_view(const TensorPtr &t, const Operand &asked) {
  if (asked.kind != Arg::kInts) return false;
  Dims sizes = asked.ints, strides;
  return infer(&sizes, elements(t->shape())) && strides_for(t->shape(), strides_of(t), sizes, &strides);
}

NativeBody native_view(const std::string &name) {
  static const std::unordered_map<std::string, NativeBody> table = {{"view", view},
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
                                                                    {"_unsafe_view", view}};
  auto it = table.find(name);
  return it == table.end() ? nullptr : it->second;
}

}  // namespace msa

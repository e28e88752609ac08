// index, index_put, index_select, index_add, index_copy, index_fill, index_reduce.
#include "indexing.h"

namespace msa {
namespace {

// Calls f(byte offset, position) for every contiguous run of `run` elements of the inner axes.
template <class F>
void inner_runs(const Axes &a, int64_t from_axis, int64_t *position, int64_t offset, int64_t run, F &f) {
  if (from_axis == a.n) {
    f(offset, *position);
    *position += run;
    return;
  }
  for (int64_t i = 0; i < a.size[from_axis]; ++i)
    inner_runs(a, from_axis + 1, position, offset + i * a.stride[from_axis], run, f);
}

// Removes the last of the inner axes if it is dense. Its length is the length of a run.
Axes split_run(const Axes &inner, int64_t item, int64_t *run) {
  Axes a = inner;
  *run = 1;
  if (a.n && a.stride[a.n - 1] == item) *run = a.size[--a.n];
  return a;
}

}  // namespace

namespace {

// Neighbours in memory among the index positions: elements [from, from + count) of the result of one outer position.
struct Neighbours {
  int64_t from, count;
};

// The runs of neighbours, if they are long enough for copies of whole runs to be faster, and else none.
std::vector<Neighbours> runs_of(const IndexPlan &p, int64_t item) {
  std::vector<Neighbours> runs;
  const size_t most = static_cast<size_t>(p.count / 8);
  for (int64_t k = 0; k < p.count && runs.size() <= most; ++k)
    if (k > 0 && p.offsets[k] == p.offsets[k - 1] + item)
      ++runs.back().count;
    else
      runs.push_back({k, 1});
  if (runs.size() > most) runs.clear();
  return runs;
}

}  // namespace

void index_load(const IndexPlan &p, const Tensor &x, const Tensor &o) {
  if (o.numel == 0) return;
  const int64_t item = item_size(x.dtype), inner = p.inner.numel;
  int64_t run;
  const Axes rest = split_run(p.inner, item, &run);
  const char *src = static_cast<const char *>(x.data);
  const std::vector<Neighbours> runs =
      inner == 1 && p.outer.numel > 8 && !shape_only() ? runs_of(p, item) : std::vector<Neighbours>();
  MSA_SWITCH_BYTES(
      x.dtype, ({
        T *dst = o.ptr<T>();
        parallel_for(p.outer.numel * p.count, std::max<int64_t>(1, kGrain / inner), [&](int64_t b, int64_t e) {
          for (int64_t i = b; i < e;) {  // one outer position after the other
            const int64_t first = i % p.count, n = std::min(p.count - first, e - i);
            const char *from = src + p.outer.offset(i / p.count);
            const int64_t *offsets = p.offsets + first;
            T *to = dst + i * inner;
            i += n;
            if (!runs.empty() && n == p.count) {
              for (const Neighbours &r : runs) std::memcpy(to + r.from, from + p.offsets[r.from], r.count * sizeof(T));
              continue;
            }
            if (inner == 1) {
              for (int64_t k = 0; k < n; ++k) to[k] = *reinterpret_cast<const T *>(from + offsets[k]);
              continue;
            }
            for (int64_t k = 0; k < n; ++k) {
              const char *s = from + offsets[k];
              T *d = to + k * inner;
              if (rest.n == 0) {
                std::memcpy(d, s, run * sizeof(T));
                continue;
              }
              int64_t position = 0;
              auto copy = [&](int64_t offset, int64_t at) { std::memcpy(d + at, s + offset, run * sizeof(T)); };
              inner_runs(rest, 0, &position, 0, run, copy);
            }
          }
        });
      }));
}

namespace {

// dst[i] = combine(dst[i], src[i]) for n elements. Steps are in bytes. A source step of 0 repeats one element.
using Row = void (*)(char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t n);

template <class T, class F>
void row(char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t n) {
  const F f;
  if (dst_step == sizeof(T) && src_step == sizeof(T)) {
    T *__restrict d = reinterpret_cast<T *>(dst);
    const T *__restrict s = reinterpret_cast<const T *>(src);
    for (int64_t i = 0; i < n; ++i) f(d[i], s[i]);
  } else {
    for (int64_t i = 0; i < n; ++i)
      f(*reinterpret_cast<T *>(dst + i * dst_step), *reinterpret_cast<const T *>(src + i * src_step));
  }
}
// The same for single elements: dst + offsets[i] receives source i.
using Points = void (*)(char *dst, const int64_t *offsets, const char *src, int64_t src_step, int64_t n);

template <class T, class F>
void points(char *dst, const int64_t *offsets, const char *src, int64_t src_step, int64_t n) {
  const F f;
  for (int64_t i = 0; i < n; ++i)
    f(*reinterpret_cast<T *>(dst + offsets[i]), *reinterpret_cast<const T *>(src + i * src_step));
}
struct Assign {
  template <class T>
  void operator()(T &a, T b) const {
    a = b;
  }
};
struct Add {
  template <class T>
  void operator()(T &a, T b) const {
    if constexpr (std::is_same_v<T, bool>)
      a = a || b;
    else
      a = T(wrapping_add<compute_t<T>>(a, b));
  }
};
struct Mul {
  template <class T>
  void operator()(T &a, T b) const {
    if constexpr (std::is_same_v<T, bool>)
      a = a && b;
    else
      a = T(wrapping_mul<compute_t<T>>(a, b));
  }
};
template <bool kMax>
struct Extreme {
  template <class T>
  void operator()(T &a, T b) const {
    if constexpr (is_complex_v<T>)
      fail("amax/amin are not defined for complex numbers");
    else {
      const compute_t<T> x = a, y = b;
      if ((kMax ? y > x : y < x) || y != y) a = b;
    }
  }
};

struct Loops {
  Row row;
  Points points;
};
template <class T, class F>
constexpr Loops loops() {
  return {row<T, F>, points<T, F>};
}
Loops loops_of(DType dtype, Combine how) {
  Loops r{};
  switch (how) {
    case Combine::kAssign: MSA_SWITCH_BYTES(dtype, (r = loops<T, Assign>())); break;
    case Combine::kAdd: MSA_SWITCH_ALL(dtype, "index_put", (r = loops<T, Add>())); break;
    case Combine::kMul: MSA_SWITCH_ALL(dtype, "index_reduce", (r = loops<T, Mul>())); break;
    case Combine::kMax: MSA_SWITCH_ALL(dtype, "index_reduce", (r = loops<T, Extreme<true>>())); break;
    case Combine::kMin: MSA_SWITCH_ALL(dtype, "index_reduce", (r = loops<T, Extreme<false>>())); break;
  }
  return r;
}

}  // namespace

// One thread visits all positions that share an element, in order. The work is therefore divided along outer and
// inner.
void index_store(const IndexPlan &p, const Tensor &dest, const void *values, bool broadcast, Combine how) {
  const int64_t inner = p.inner.numel, outer = p.outer.numel, item = item_size(dest.dtype);
  if (dest.numel == 0 || p.count == 0 || inner == 0 || outer == 0) return;
  const Loops combine = loops_of(dest.dtype, how);
  char *base = static_cast<char *>(dest.data);
  const char *source = static_cast<const char *>(values);
  const int64_t step = broadcast ? 0 : item;
  auto rows = [&](int64_t o, int64_t j0, int64_t j1) {
    const int64_t at = p.outer.offset(o);
    if (inner == 1) return combine.points(base + at, p.offsets, source + o * p.count * step, step, p.count);
    for (int64_t b = 0; b < p.count; ++b) {
      const char *v = broadcast ? source : source + ((o * p.count + b) * inner + j0) * item;
      char *d = base + at + p.offsets[b];
      if (p.inner.n <= 1)
        combine.row(d + (p.inner.n ? j0 * p.inner.stride[0] : 0), p.inner.n ? p.inner.stride[0] : item, v, step,
                    j1 - j0);
      else
        for (int64_t j = j0; j < j1; ++j) combine.row(d + p.inner.offset(j), item, v + (j - j0) * step, item, 1);
    }
  };
  if (outer >= num_threads() || inner < 128)
    parallel_for(outer, std::max<int64_t>(1, kGrain / (p.count * inner)), [&](int64_t b, int64_t e) {
      for (int64_t o = b; o < e; ++o) rows(o, 0, inner);
    });
  else
    parallel_for(inner, std::max<int64_t>(64, kGrain / (p.count * outer)), [&](int64_t b, int64_t e) {
      for (int64_t o = 0; o < outer; ++o) rows(o, b, e);
    });
}

namespace {

MSA_KERNEL(Index) {  // input, indices
  const IndexPlan p = plan_index(c, c.in(0), c.list(1));
  index_load(p, c.in(0), c.out(0, c.in(0).dtype, p.shape));
}
MSA_KERNEL_ALIAS(InnerIndex, Index)

MSA_POINTWISE_KERNEL(IndexPut) {  // input, indices, values, accumulate
  const Tensor o = changed_copy(c, c.in(0));
  const Tensor &v = c.in(2);
  const IndexPlan p = plan_index(c, o, c.list(1));
  const Combine how = c.flag(3) ? Combine::kAdd : Combine::kAssign;
  int lead = 0;  // the value may have additional leading dims of size one
  while (v.ndim - lead > static_cast<int>(p.shape.size()) && v.sizes[lead] == 1) ++lead;
  Tensor w = make_view(v, Dims(v.sizes + lead, v.sizes + v.ndim), Dims(v.strides + lead, v.strides + v.ndim));
  const int shift = static_cast<int>(p.shape.size()) - w.ndim;
  bool fits = shift >= 0;
  for (int d = 0; fits && d < w.ndim; ++d) fits = w.sizes[d] == 1 || w.sizes[d] == p.shape[d + shift];
  check(fits, "shape mismatch: value tensor of shape ", v.shape(), " cannot be broadcast to indexing result of shape ",
        p.shape);
  if (v.dtype != o.dtype)
    fail("Index put requires the source and destination dtypes match, got ", dtype_name(o.dtype),
         " for the destination and ", dtype_name(v.dtype), " for the source.");
  if (v.numel == 1)
    index_store(p, o, v.data, true, how);
  else
    index_store(p, o, c.contiguous(expand(w, p.shape)).data, false, how);
}
MSA_KERNEL_ALIAS(InplaceIndexPut, IndexPut)
MSA_KERNEL_ALIAS(InnerInplaceIndexPut, IndexPut)

// PyTorch's errors for positions in a tensor without elements, which differ from those in other tensors.
void check_select_of_nothing(Call &c, int64_t size, const Tensor &index) {
  if (index.numel == 0) return;
  check(size > 0, "index_select(): self indexing axis dim should be positive");
  const Tensor flat = c.cast(at_least_1d(index), DType::I64);
  for (int64_t i = 0; i < flat.numel; ++i)
    check(flat.ptr<int64_t>()[i] >= 0 && flat.ptr<int64_t>()[i] < size,
          "INDICES element is out of DATA bounds, id=", flat.ptr<int64_t>()[i], " axis_dim=", size);
}

MSA_KERNEL(IndexSelect) {  // input, dim, index
  const Tensor &x = c.in(0);
  const Tensor x1 = at_least_1d(x);
  const int64_t dim = wrap_dim(c.integer(1), x.ndim);
  if (x.ndim > 1 && x.numel == 0) check_select_of_nothing(c, x.sizes[dim], c.in(2));
  const IndexPlan p = plan_index_dim(c, x1, dim, c.in(2), "index_select");
  if (x.ndim == 0)
    check(p.count == 1, "index_select(): Index to scalar can have only 1 value, got ", p.count, " value(s)");
  index_load(p, x1, x.ndim ? c.out(0, x.dtype, p.shape) : at_least_1d(c.out(0, x.dtype, Dims{})));
}

[[noreturn]] void refuse_source(const Tensor &x, const Tensor &source) {
  fail("source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = ",
       x.shape(), " source.shape = ", source.shape());
}

// Returns the source as contiguous [outer][B][inner] in the type of the destination.
Tensor source_rows(Call &c, const IndexPlan &p, const Tensor &x, int64_t dim, const Tensor &source, const char *op) {
  const Tensor s = at_least_1d(source);
  const bool add = std::strcmp(op, "index_add") == 0;
  if (add && s.sizes[dim < s.ndim ? dim : 0] != p.count)
    fail("index_add_(): Number of indices (", p.count, ") should be equal to source.size(dim): (",
         s.sizes[dim < s.ndim ? dim : 0], "), for dim: ", dim);
  if (add && s.shape() != p.shape) refuse_source(x, source);
  if (s.sizes[dim < s.ndim ? dim : 0] != p.count)
    throw IndexError(text(op, "_(): Number of indices (", p.count, ") should be equal to source.size(dim): (",
                          s.sizes[dim < s.ndim ? dim : 0], "), for dim: ", dim));
  if (s.shape() != p.shape)
    fail(op, "(): Source/destination tensor must have same slice shapes. Destination slice shape: ", x.shape(),
         " at dimension ", dim, " and source slice shape: ", s.shape(), " at dimension ", dim, ".");
  return c.cast(s, x.dtype);
}

template <class T>
void times(const Tensor &o, const Tensor &x, const Scalar &alpha) {
  const compute_t<T> a = alpha.to<compute_t<T>>();
  map1<T, T>(o, x, [=](T v) {
    if constexpr (std::is_same_v<T, bool>)
      return v && a;
    else
      return T(wrapping_mul<compute_t<T>>(v, a));
  });
}

MSA_POINTWISE_KERNEL(IndexAddExt) {  // input, dim, index, source, alpha
  const Tensor o = at_least_1d(changed_copy(c, c.in(0)));
  const int64_t dim = wrap_dim(c.integer(1), c.in(0).ndim);
  if (c.in(3).dtype != o.dtype)
    fail("index_add_(): self (", dtype_name(o.dtype), ") and source (", dtype_name(c.in(3).dtype),
         ") must have the same scalar type");
  const IndexPlan p = plan_index_dim(c, o, dim, c.in(2), "index_add");
  if (c.in(0).ndim != c.in(3).ndim) refuse_source(c.in(0), c.in(3));
  Tensor s = source_rows(c, p, o, dim, c.in(3), "index_add");
  const bool scaled = c.has(4) && c.scalar(4).to<c128>() != c128(1);
  if (scaled) {
    Tensor w = contiguous_tensor(c.scratch(std::max<int64_t>(1, s.numel) * item_size(s.dtype)), s.dtype, s.shape());
    MSA_SWITCH_ALL(s.dtype, "index_add", (times<T>(w, s, c.scalar(4))));
    s = w;
  }
  index_store(p, o, s.data, false, Combine::kAdd);
}
MSA_KERNEL_ALIAS(InplaceIndexAddExt, IndexAddExt)

MSA_POINTWISE_KERNEL(IndexCopy) {  // input, dim, index, source
  const Tensor o = at_least_1d(changed_copy(c, c.in(0)));
  const int64_t dim = wrap_dim(c.integer(1), c.in(0).ndim);
  if (c.in(3).dtype != o.dtype)
    fail("index_copy_(): self and source expected to have the same dtype, but got (self) ", dtype_name(o.dtype),
         " and (source) ", dtype_name(c.in(3).dtype));
  const IndexPlan p = plan_index_dim(c, o, dim, c.in(2), "index_copy");
  index_store(p, o, source_rows(c, p, o, dim, c.in(3), "index_copy").data, false, Combine::kAssign);
}
MSA_KERNEL_ALIAS(InplaceIndexCopy, IndexCopy)

// As in PyTorch, negative positions count from the end.
Tensor wrapped(Call &c, const Tensor &index, int64_t size) {
  const Tensor v = c.cast(at_least_1d(index), DType::I64);
  Tensor r = contiguous_tensor(c.scratch_of<int64_t>(std::max<int64_t>(v.numel, 1)), DType::I64, v.shape());
  map1<int64_t, int64_t>(r, v, [=](int64_t i) { return i < 0 ? i + size : i; });
  return r;
}

MSA_POINTWISE_KERNEL(IndexFillScalar) {  // input, dim, index, value
  const Tensor o = at_least_1d(changed_copy(c, c.in(0)));
  const int64_t dim = wrap_dim(c.integer(1), c.in(0).ndim);
  if (c.in(2).dtype != DType::I64) throw IndexError("index_fill_(): Expected dtype int64 for index.");
  const IndexPlan p = plan_index_dim(c, o, dim, wrapped(c, c.in(2), o.sizes[dim]), "index_fill");
  MSA_SWITCH_ALL(o.dtype, "index_fill", ({
                   const T value = c.scalar(3).to<T>();
                   index_store(p, o, &value, true, Combine::kAssign);
                 }));
}
MSA_KERNEL_ALIAS(InplaceIndexFillScalar, IndexFillScalar)

MSA_POINTWISE_KERNEL(IndexFillTensor) {  // input, dim, index, value
  const Tensor o = at_least_1d(changed_copy(c, c.in(0)));
  const int64_t dim = wrap_dim(c.integer(1), c.in(0).ndim);
  check(c.in(3).ndim == 0, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ", c.in(3).ndim,
        " dimension(s).");
  const IndexPlan p = plan_index_dim(c, o, dim, wrapped(c, c.in(2), o.sizes[dim]), "index_fill");
  index_store(p, o, c.cast(c.in(3), o.dtype).data, true, Combine::kAssign);
}
MSA_KERNEL_ALIAS(InplaceIndexFillTensor, IndexFillTensor)

template <class T>
void divide_slice(const Tensor &slice, int64_t n) {
  map1<T, T>(slice, slice, [=](T v) { return divided(v, n); });
}

template <class T>
void index_reduce(Call &c, const IndexPlan &p, const Tensor &o, int64_t dim, const void *source) {
  const std::string &how = c.str(4);
  const bool include_self = c.flag(5);
  if (!include_self) {
    const T start = reduce_identity<T>(how);
    index_store(p, o, &start, true, Combine::kAssign);
  }
  index_store(p, o, source, false,
              how == "prod"   ? Combine::kMul
              : how == "amax" ? Combine::kMax
              : how == "amin" ? Combine::kMin
                              : Combine::kAdd);
  if (how != "mean") return;
  std::vector<int64_t> hits(o.sizes[dim], 0);
  const Tensor flat = c.cast(at_least_1d(c.in(2)), DType::I64);
  for (int64_t i = 0; i < flat.numel; ++i) ++hits[flat.ptr<int64_t>()[i]];
  for (int64_t i = 0; i < o.sizes[dim]; ++i) {
    const int64_t n = hits[i] + (include_self ? 1 : 0);
    if (hits[i] == 0 || n == 1) continue;
    Dims sizes = o.shape(), strides(o.strides, o.strides + o.ndim);
    sizes[dim] = 1;
    divide_slice<T>(make_view(o, sizes, strides, i * o.strides[dim]), n);
  }
}

MSA_POINTWISE_KERNEL(IndexReduce) {  // input, dim, index, source, reduce, include_self
  const Tensor o = at_least_1d(changed_copy(c, c.in(0)));
  const int64_t dim = wrap_dim(c.integer(1), c.in(0).ndim);
  const std::string &how = c.str(4);
  check(how == "prod" || how == "mean" || how == "amax" || how == "amin",
        "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got ", how, ".");
  const IndexPlan p = plan_index_dim(c, o, dim, c.in(2), "index_reduce");
  const Tensor s = source_rows(c, p, o, dim, c.in(3), "index_reduce");
  MSA_SWITCH_ALL(o.dtype, "index_reduce", (index_reduce<T>(c, p, o, dim, s.data)));
}

}  // namespace
}  // namespace msa

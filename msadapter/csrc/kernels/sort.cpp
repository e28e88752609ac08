// sort, argsort, topk, kthvalue, median, mode.
#include "sort_keys.h"

namespace msa {
namespace {

struct Rows {
  Tensor data;
  int64_t dim = 0, n = 1, count = 0, item = 0;
  const char *row(int64_t r) const { return data.ptr<char>() + r * n * item; }
};

Rows rows(Call &c, const Tensor &x, int64_t dim) {
  Rows r;
  r.dim = wrap_dim(dim, x.ndim);
  r.n = x.ndim ? x.sizes[r.dim] : 1;
  r.data = rows_of(c, x, r.dim, x.dtype);
  r.count = r.n ? x.numel / r.n : 0;
  r.item = item_size(x.dtype);
  return r;
}

// Calls f(sorter, row) for all rows, in parallel.
template <class F>
void each_row(const Rows &r, bool descending, F f) {
  if (is_complex(r.data.dtype)) fail("Sort does not support complex dtypes on CPU");
  parallel_for(r.count, std::max<int64_t>(1, kGrain / 8 / std::max<int64_t>(r.n, 1)), [&](int64_t b, int64_t e) {
    RowSorter sorter(r.data.dtype, r.n, descending);
    for (int64_t i = b; i < e; ++i) f(sorter, i);
  });
}

// A buffer for results of shape [count][len]. It is the memory of the result if the dim is the last one.
Tensor target(Call &c, const Tensor &o, const Rows &r, int64_t len) {
  if (r.dim == std::max(o.ndim - 1, 0)) return o;
  return contiguous_tensor(c.scratch(std::max<int64_t>(1, r.count * len) * item_size(o.dtype)), o.dtype,
                           {r.count, len});
}
void deliver(const Tensor &o, const Tensor &buffer, const Rows &r, int64_t len) {
  if (buffer.data != o.data && o.numel) copy_into(o, rows_view(buffer, o, r.dim, len));
}

// Sorts the last dim. `values` is null if only the positions are asked for.
void sort_rows(const Tensor &x, bool descending, const Tensor *values, const Tensor &indices) {
  const int64_t n = x.ndim ? x.size(-1) : 1, item = item_size(x.dtype);
  const int64_t grain = std::max<int64_t>(1, kGrain / 8 / n);
  parallel_for(x.numel / n, grain, [&](int64_t begin, int64_t end) {
    RowSorter sorter(x.dtype, n, descending);
    for (int64_t r = begin; r < end; ++r) {
      const char *row = x.ptr<char>() + r * n * item;
      int64_t *order = indices.ptr<int64_t>() + r * n;
      sorter.sort(row, order);
      if (values) pick(row, x.dtype, order, n, values->ptr<char>() + r * n * item);
    }
  });
}

// Sorts another dim, kColumns columns at a time: their elements are copied to rows, and the results back to columns. A
// copy of the whole operand and of the results would need as much memory again.
void sort_columns(const Tensor &x, int64_t dim, bool descending, const Tensor *values, const Tensor &indices) {
  constexpr int64_t kColumns = 16;  // a cache line of float32
  const int64_t n = x.sizes[dim], item = item_size(x.dtype);
  int64_t inner = 1;
  for (int d = static_cast<int>(dim) + 1; d < x.ndim; ++d) inner *= x.sizes[d];
  const int64_t blocks = (inner + kColumns - 1) / kColumns, outer = x.numel / (n * inner);
  parallel_for(outer * blocks, std::max<int64_t>(1, kGrain / 8 / (n * kColumns)), [&](int64_t begin, int64_t end) {
    const int64_t room = std::min(kColumns, inner) * n;
    std::vector<char> read(room * item), sorted(values ? room * item : 0);
    std::vector<int64_t> order(room);
    for (int64_t block = begin; block < end; ++block) {
      const int64_t column = block % blocks * kColumns, at = block / blocks * n * inner + column;
      const Dims shape{std::min(kColumns, inner - column), n}, strides{1, inner};
      const Tensor rows = contiguous_tensor(read.data(), x.dtype, shape),
                   positions = contiguous_tensor(order.data(), DType::I64, shape),
                   found = contiguous_tensor(sorted.data(), x.dtype, shape);
      copy_into(rows, make_view(x, shape, strides, at));
      sort_rows(rows, descending, values ? &found : nullptr, positions);
      if (values) copy_into(make_view(*values, shape, strides, at), found);
      copy_into(make_view(indices, shape, strides, at), positions);
    }
  });
}

void sort(Call &c, int64_t dim0, bool descending, bool with_values) {
  const Tensor x = c.contiguous(c.in(0));
  const int64_t dim = wrap_dim(dim0, x.ndim);
  const Tensor values = with_values ? c.out(0, x.dtype, x.shape()) : Tensor(),
               indices = c.out(with_values ? 1 : 0, DType::I64, x.shape());
  if (x.numel == 0) return;
  if (is_complex(x.dtype)) fail("Sort does not support complex dtypes on CPU");
  const Tensor *v = with_values ? &values : nullptr;
  if (dim == std::max(x.ndim - 1, 0))
    sort_rows(x, descending, v, indices);
  else
    sort_columns(x, dim, descending, v, indices);
}
MSA_KERNEL(SortExt) { sort(c, c.integer(1), c.flag(2), true); }  // input, dim, descending, stable (always)
MSA_KERNEL(ArgSort) { sort(c, c.integer(1), c.flag(2), false); }

MSA_KERNEL(TopkExt) {  // input, k, dim, largest, sorted
  const Tensor &x = c.in(0);
  const Rows r = rows(c, x, c.integer(2));
  const int64_t k = c.integer(1);
  check(k >= 0 && k <= r.n, "selected index k out of range");
  Dims shape = x.shape();
  if (x.ndim) shape[r.dim] = k;
  Tensor v = c.out(0, x.dtype, shape), i = c.out(1, DType::I64, shape);
  if (v.numel == 0) return;
  const Tensor vb = target(c, v, r, k), ib = target(c, i, r, k);
  each_row(r, c.flag(3), [&](RowSorter &s, int64_t row) {
    int64_t *order = ib.ptr<int64_t>() + row * k;
    s.first(r.row(row), k, c.flag(4), order);
    pick(r.row(row), x.dtype, order, k, vb.ptr<char>() + row * k * r.item);
  });
  deliver(v, vb, r, k);
  deliver(i, ib, r, k);
}

// Returns one element of every row. f(sorter, pointer to the row) returns its position.
template <class F>
void choose(Call &c, const Rows &r, bool keepdim, F f) {
  const Tensor &x = c.in(0);
  std::vector<bool> mask(x.ndim, false);
  if (x.ndim) mask[r.dim] = true;
  const Dims shape = reduced_shape(x, mask, keepdim);
  Tensor v = c.out(0, x.dtype, shape), i = c.out(1, DType::I64, shape);
  each_row(r, false, [&](RowSorter &s, int64_t k) {
    i.ptr<int64_t>()[k] = f(s, r.row(k));
    pick(r.row(k), x.dtype, i.ptr<int64_t>() + k, 1, v.ptr<char>() + k * r.item);
  });
}
void need_elements(const char *op, const Tensor &x, const Rows &r) {
  if (r.n == 0) throw IndexError(text(op, "(): Expected reduction dim ", r.dim, " to have non-zero size."));
  (void)x;
}

MSA_KERNEL(Kthvalue) {  // input, k, dim, keepdim
  const Rows r = rows(c, c.in(0), c.integer(2));
  const int64_t k = c.integer(1);
  need_elements("kthvalue", c.in(0), r);
  check(k >= 1 && k <= r.n, "kthvalue(): selected number k out of range for dimension ", r.dim);
  choose(c, r, c.flag(3), [&](RowSorter &s, const void *row) { return s.nth(row, k - 1); });
}

int64_t nan_count(const void *row, int64_t n, DType d, int64_t *first) {
  int64_t count = 0;
  if (!is_floating(d)) return 0;
  MSA_SWITCH_FLOAT(d, "median", ({
                     const T *p = static_cast<const T *>(row);
                     for (int64_t i = n - 1; i >= 0; --i) {
                       const compute_t<T> v = p[i];
                       if (v != v) ++count, *first = i;
                     }
                   }));
  return count;
}
// The lower median. If nan values are not skipped, a nan is the result.
int64_t middle(RowSorter &s, const void *row, int64_t n, DType d, bool skip_nan) {
  int64_t first = 0;
  const int64_t nans = nan_count(row, n, d, &first);
  if (nans && (!skip_nan || nans == n)) return first;
  return s.nth(row, (n - nans - 1) / 2);
}
void median_dim(Call &c, bool skip_nan) {  // input, dim, keepdim
  const Rows r = rows(c, c.in(0), c.integer(1));
  need_elements("median", c.in(0), r);
  choose(c, r, c.flag(2), [&](RowSorter &s, const void *row) { return middle(s, row, r.n, r.data.dtype, skip_nan); });
}
void median_all(Call &c, bool skip_nan) {  // input
  const Tensor x = c.contiguous(c.in(0));
  Tensor o = c.out(0, x.dtype, Dims{});
  if (x.numel == 0) {
    MSA_SWITCH_REAL(x.dtype, "median",
                    (*o.ptr<T>() = std::numeric_limits<T>::has_quiet_NaN || is_reduced_v<T>
                                       ? convert<T>(std::numeric_limits<double>::quiet_NaN())
                                       : std::numeric_limits<T>::lowest()));
    return;
  }
  RowSorter s(x.dtype, x.numel, false);
  const int64_t at = middle(s, x.data, x.numel, x.dtype, skip_nan);
  pick(x.data, x.dtype, &at, 1, o.data);
}
MSA_KERNEL(MedianDim) { median_dim(c, false); }
MSA_KERNEL(NanMedianDim) { median_dim(c, true); }
MSA_KERNEL(MedianExt) { median_all(c, false); }
MSA_KERNEL(NanMedian) { median_all(c, true); }

MSA_KERNEL(Mode) {  // input, dim, keepdim
  const Rows r = rows(c, c.in(0), c.integer(1));
  need_elements("mode", c.in(0), r);
  choose(c, r, c.flag(2), [&](RowSorter &s, const void *row) {
    std::vector<int64_t> order(r.n);
    s.sort(row, order.data());
    int64_t best = 0, longest = 0;
    for (int64_t i = 0; i < r.n;) {
      int64_t j = i + 1;
      while (j < r.n && s.key(j) == s.key(i) && !s.nan_key(s.key(i))) ++j;  // NaN does not equal NaN
      if (j - i > longest) longest = j - i, best = j - 1;
      i = j;
    }
    return order[best];
  });
}

}  // namespace
}  // namespace msa

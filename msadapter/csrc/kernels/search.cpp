// searchsorted, histograms, bincount, unique.
#include <tuple>

#include "indexing.h"
#include "sort_keys.h"
#include "stepwise.h"

namespace msa {
namespace {

// The first position in sorted s[0..n) at which v can be inserted (after equal values if `right`). NaN is largest.
template <class T>
int64_t place_of(const T *s, const int64_t *sorter, int64_t n, T v, bool right) {
  auto less = [](compute_t<T> a, compute_t<T> b) {
    if constexpr (is_floating_v<T>)
      return a < b || (b != b && a == a);
    else
      return a < b;
  };
  int64_t lo = 0, hi = n;
  while (lo < hi) {
    const int64_t mid = (lo + hi) / 2;
    const T m = s[sorter ? sorter[mid] : mid];
    if (right ? !less(v, m) : less(m, v))
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo;
}

MSA_KERNEL(SearchSorted) {  // sorted_sequence, values, sorter, dtype (int64 or int32), right
  const Tensor &s = c.in(0), &v = c.in(1);
  check(s.ndim >= 1, "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1");
  const DType dt = c.has(3) ? c.dtype(3) : DType::I64;
  Tensor o = c.out(0, dt, v.shape());
  if (v.numel == 0) return;
  const int64_t n = s.size(-1);
  if (s.ndim > 1) {
    bool fits = s.ndim == v.ndim;
    for (int d = 0; fits && d < s.ndim - 1; ++d) fits = s.sizes[d] == v.sizes[d];
    check(fits,
          "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
          "tensor and input "
          "value tensor must match, but we got boundaries tensor ",
          s.shape(), " and input value tensor ", v.shape());
  }
  const Tensor sc = c.contiguous(s), vc = c.cast(v, s.dtype), sorter = c.has(2) ? c.contiguous(c.in(2)) : Tensor();
  const int64_t per_row = s.ndim > 1 ? v.size(-1) : v.numel;
  int64_t *w = dt == DType::I64 ? o.ptr<int64_t>() : c.scratch_of<int64_t>(v.numel);
  MSA_SWITCH_REAL(s.dtype, "searchsorted_out_cpu", ({
                    parallel_for(v.numel, 4096, [&](int64_t b, int64_t e) {
                      for (int64_t i = b; i < e; ++i) {
                        const int64_t row = i / per_row * n;
                        w[i] = place_of<T>(sc.ptr<T>() + row, sorter.data ? sorter.ptr<int64_t>() + row : nullptr, n,
                                           vc.ptr<T>()[i], c.flag(4));
                      }
                    });
                  }));
  if (dt != DType::I64) copy_into(o, contiguous_tensor(w, DType::I64, v.shape()));
}

// The bin of v among bins of equal width in [low, high]. It is computed in the arithmetic of the element type, so that
// values at an edge fall into the same bin as in PyTorch. The caller puts the right edge into the last bin.
template <class T>
int64_t bin_of(double v, double low, double high, int64_t bins) {
  using S = std::conditional_t<std::is_integral_v<T>, double, stepwise_t<T>>;
  const S first = S(low), step = (S(v) - first) * S(static_cast<double>(bins));
  return static_cast<int64_t>(plain(step / (S(high) - first)));
}

// Adds the elements in [low, high] to the counts of their bins.
template <class T>
void count_bins(const T *p, int64_t n, double low, double high, std::vector<int64_t> *count) {
  const int64_t bins = static_cast<int64_t>(count->size());
  for (int64_t i = 0; i < n; ++i) {
    const double v = convert<double>(p[i]);
    if (v >= low && v <= high) ++(*count)[std::min(bin_of<T>(v, low, high, bins), bins - 1)];
  }
}
// The smallest and the largest of n > 0 elements. A NaN that is the first one is both.
template <class T>
std::pair<double, double> range_of(const T *p, int64_t n) {
  auto less = [](T a, T b) { return convert<double>(a) < convert<double>(b); };
  return {convert<double>(*std::min_element(p, p + n, less)), convert<double>(*std::max_element(p, p + n, less))};
}

MSA_KERNEL(HistcExt) {  // input, bins, min, max
  const Tensor &x = c.in(0);
  const int64_t bins = c.integer(1);
  check(bins > 0, "torch.histogram(): bins must be > 0, but got ", bins, " for dimension 0");
  double low = c.number(2), high = c.number(3);
  Tensor o = c.out(0, x.dtype, Dims{bins});
  fill_zero(o);
  const Tensor v = c.contiguous(x);
  if (low == high && v.numel > 0)
    MSA_SWITCH_REAL(x.dtype, "histogram_cpu", (std::tie(low, high) = range_of(v.ptr<T>(), v.numel)));
  if (low == high) low -= 1, high += 1;
  check(std::isfinite(low) && std::isfinite(high), "torch.histc: range of [", low, ", ", high, "] is not finite");
  check(low < high, "torch.histc: max must be larger than min");
  std::vector<int64_t> count(bins, 0);
  MSA_SWITCH_REAL(x.dtype, "histogram_cpu", (count_bins(v.ptr<T>(), v.numel, low, high, &count)));
  copy_into(o, contiguous_tensor(count.data(), DType::I64, {bins}));
}

MSA_KERNEL(BincountExt) {
  needs_values("bincount");  // input, weights, minlength
  const Tensor &x = c.in(0);
  MSA_SWITCH_INT(x.dtype, "bincount_cpu", (void)sizeof(T));  // refuses every other dtype
  check(x.ndim == 1, "bincount only supports 1-d non-negative integral inputs.");
  check(c.integer(2) >= 0, "minlength should be >= 0");
  const Tensor v = c.cast(x, DType::I64);
  const int64_t *p = v.ptr<int64_t>();
  int64_t n = c.integer(2);
  for (int64_t i = 0; i < v.numel; ++i) {
    check(p[i] >= 0, "bincount only supports 1-d non-negative integral inputs.");
    check(p[i] < INT64_MAX, "maximum value of input overflowed, it should be < ", INT64_MAX, " but got ", p[i]);
    n = std::max(n, p[i] + 1);
  }
  if (!c.has(1)) {
    Tensor o = c.out(0, DType::I64, Dims{n});
    fill_zero(o);
    for (int64_t i = 0; i < v.numel; ++i) ++o.ptr<int64_t>()[p[i]];
    return;
  }
  const Tensor &weights = c.in(1);
  check(weights.ndim == 1 && weights.numel == x.numel, "weights should be 1-d and have the same length as input");
  const DType dt = weights.dtype == DType::F32 ? DType::F32 : DType::F64;
  const Tensor w = c.cast(weights, dt);
  Tensor o = c.out(0, dt, Dims{n});
  fill_zero(o);
  MSA_SWITCH_FLOAT(dt, "bincount_cpu", ({
                     for (int64_t i = 0; i < v.numel; ++i) o.ptr<T>()[p[i]] = T(o.ptr<T>()[p[i]] + w.ptr<T>()[i]);
                   }));
}

// The last of the bins whose left edge is at most v, for v in [edges[0], edges[bins]]. Most often the edges have equal
// distances, and the bin or one beside it is where this would put v. Other edges are searched.
int64_t bin_among(const double *edges, int64_t bins, double scale, double v) {
  const int64_t guess = std::clamp<int64_t>(static_cast<int64_t>((v - edges[0]) * scale), 0, bins - 1);
  for (int64_t k = std::max<int64_t>(guess - 1, 0); k < std::min(guess + 2, bins); ++k)
    if (edges[k] <= v && v < edges[k + 1]) return k;
  return std::min<int64_t>(std::upper_bound(edges, edges + bins + 1, v) - edges - 1, bins - 1);
}

template <class T>
void count_among_edges(const Tensor &x, const double *edges, int64_t bins, const double *weight, double *count) {
  const T *p = x.ptr<T>();
  const double width = edges[bins] - edges[0], scale = width > 0 ? static_cast<double>(bins) / width : 0;
  std::vector<int64_t> whole(bins, 0);
  for (int64_t i = 0; i < x.numel; ++i) {
    const double v = static_cast<double>(p[i]);
    if (!(v >= edges[0] && v <= edges[bins])) continue;
    const int64_t k = bin_among(edges, bins, scale, v);
    if (weight)
      count[k] += weight[i];
    else
      ++whole[k];
  }
  if (!weight) std::copy(whole.begin(), whole.end(), count);
}

// histogram: input, edges (sorted, bins + 1 of them), weight? -> counts in the type of the input
MSA_KERNEL(HistogramEdges) {
  const Tensor x = c.contiguous(c.in(0)), edges = c.cast(c.in(1), DType::F64),
               w = c.has(2) ? c.cast(c.in(2), DType::F64) : Tensor();
  const int64_t bins = edges.numel - 1;
  Tensor o = c.out(0, x.dtype, Dims{bins});
  if (shape_only()) return;
  std::vector<double> count(bins, 0.0);
  MSA_SWITCH_REAL(
      x.dtype, "histogram_cpu",
      (count_among_edges<T>(x, edges.ptr<double>(), bins, w.data ? w.ptr<double>() : nullptr, count.data())));
  copy_into(o, contiguous_tensor(count.data(), DType::F64, {bins}));
}

// The edges of the bins in one dim, sorted.
struct Axis {
  const double *edges;
  int64_t bins;
  double scale;  // the bins per unit, if they are equally wide
};

// Adds the weights of points, or 1 for each, to the bins of a grid. A point outside of the grid is not counted.
template <class T>
void count_in_grid(const Tensor &x, const std::vector<Axis> &axes, const double *weight, double *count) {
  const int64_t dims = x.sizes[1];
  for (int64_t i = 0; i < x.sizes[0]; ++i) {
    const T *p = x.ptr<T>() + i * x.strides[0];
    int64_t at = 0, d = 0;
    for (; d < dims; ++d) {
      const Axis &a = axes[d];
      const double v = static_cast<double>(p[d * x.strides[1]]);
      if (!(v >= a.edges[0] && v <= a.edges[a.bins])) break;
      at = at * a.bins + bin_among(a.edges, a.bins, a.scale, v);
    }
    if (d == dims) count[at] += weight ? weight[i] : 1;
  }
}

// histogramdd: points [count, dims], the edges of each dim (sorted, bins + 1 of them), weight? -> the sums of weights
// in each bin of the grid, in the type of the points
MSA_KERNEL(HistogramGrid) {
  const Tensor &x = c.in(0);
  const Tensor w = c.has(2) ? c.cast(c.in(2), DType::F64) : Tensor();
  std::vector<Tensor> edges;
  Dims shape;
  for (const Tensor &e : c.list(1)) {
    edges.push_back(c.cast(e, DType::F64));
    shape.push_back(e.numel - 1);
  }
  const Tensor o = c.out(0, x.dtype, shape);
  if (shape_only()) return;
  std::vector<Axis> axes;
  for (const Tensor &e : edges) {
    const double *p = e.ptr<double>();
    const double width = p[e.numel - 1] - p[0];
    axes.push_back({p, e.numel - 1, width > 0 ? static_cast<double>(e.numel - 1) / width : 0});
  }
  std::vector<double> count(o.numel, 0.0);
  MSA_SWITCH_FLOAT(x.dtype, "histogramdd",
                   (count_in_grid<T>(x, axes, w.data ? w.ptr<double>() : nullptr, count.data())));
  copy_into(o, contiguous_tensor(count.data(), DType::F64, shape));
}

// ---- unique
struct Groups {
  int64_t *first = nullptr, size = 0;  // the position of one element of each of the groups
  std::vector<int64_t> inverse, counts;
};

// Results 1 (inverse) and 2 (counts). They are empty if not asked for.
void emit_groups(Call &c, const Groups &g, bool inverse, const Dims &inverse_shape, bool counts) {
  Tensor i = c.out(1, DType::I64, inverse ? inverse_shape : Dims{0});
  if (inverse) std::copy(g.inverse.begin(), g.inverse.end(), i.ptr<int64_t>());
  Tensor n = c.out(2, DType::I64, Dims{counts ? static_cast<int64_t>(g.counts.size()) : 0});
  if (counts) std::copy(g.counts.begin(), g.counts.end(), n.ptr<int64_t>());
}

// Groups neighbours that are equal, among n elements in the given order. order(i) is the position of element i, and
// same(a, b) compares the elements at two positions. The inverse is made if it is asked for. No branch depends on the
// values, which the processor could not predict.
template <class Order, class Same>
Groups group(Call &c, int64_t n, bool inverse, bool counts, Order order, Same same) {
  Groups g;
  g.first = c.scratch_of<int64_t>(n + 1);
  int64_t *begin = counts ? c.scratch_of<int64_t>(n + 1) : nullptr;
  if (inverse) g.inverse.resize(n);
  int64_t k = 0;  // groups so far
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = order(i);
    const bool fresh = i == 0 || !same(order(i - 1), at);
    g.first[k] = at;  // written again by the next element, unless this is the first one of a group
    if (begin) begin[k] = i;
    k += fresh;
    if (inverse) g.inverse[at] = k - 1;
  }
  g.size = k;
  for (int64_t i = 0; counts && i < k; ++i) g.counts.push_back((i + 1 < k ? begin[i + 1] : n) - begin[i]);
  return g;
}

template <class T>
bool equal(T a, T b) {
  if constexpr (is_reduced_v<T>)
    return static_cast<float>(a) == static_cast<float>(b);
  else
    return a == b;
}

template <class Order>
Groups groups_of(Call &c, const Tensor &x, bool inverse, bool counts, Order order) {
  Groups g;
  MSA_SWITCH_ALL(x.dtype, "unique",
                 (g = group(c, x.numel, inverse, counts, order, [p = x.ptr<T>()](int64_t a, int64_t b) {
                    return equal<T>(element<T>(p + a), element<T>(p + b));
                  })));
  return g;
}

// Result 0: the elements that differ from the one before them. They are counted first, so that no other memory is used.
template <class T>
void emit_changes(Call &c, const Tensor &v) {
  const T *p = v.ptr<T>();
  const int64_t n = v.numel;
  int64_t count = n > 0;
  for (int64_t i = 1; i < n; ++i) count += !equal<T>(element<T>(p + i - 1), element<T>(p + i));
  T *to = c.out(0, v.dtype, Dims{count}).ptr<T>();
  constexpr int64_t kBlock = 256;
  T found[kBlock];
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    int64_t k = 0;  // no branch depends on the values, as in group()
    for (int64_t i = begin; i < std::min(n, begin + kBlock); ++i) {
      found[k] = element<T>(p + i);
      k += i == 0 || !equal<T>(element<T>(p + i - 1), element<T>(p + i));
    }
    to = std::copy_n(found, k, to);
  }
}

void unique_flat(Call &c, const Tensor &x, bool sorted, bool inverse, bool counts) {
  const Tensor v = c.contiguous(x);
  Groups g;
  if (!sorted && !inverse && !counts) {
    MSA_SWITCH_ALL(x.dtype, "unique", (emit_changes<T>(c, v)));
    return emit_groups(c, g, false, x.shape(), false);
  }
  if (sorted) {
    int64_t *order = c.scratch_of<int64_t>(std::max<int64_t>(v.numel, 1));
    if (v.numel) RowSorter(v.dtype, v.numel, false).sort(v.data, order);
    g = groups_of(c, v, inverse, counts, [=](int64_t i) { return order[i]; });
  } else {
    g = groups_of(c, v, inverse, counts, [](int64_t i) { return i; });
  }
  Tensor o = c.out(0, x.dtype, Dims{g.size});
  pick(v.data, v.dtype, g.first, o.numel, o.data);
  emit_groups(c, g, inverse, x.shape(), counts);
}

// Compares slices of a dim as a whole.
void unique_slices(Call &c, const Tensor &x0, int64_t dim, bool sorted, bool inverse, bool counts) {
  const Tensor x = at_least_1d(x0);
  const int64_t n = x.sizes[dim], width = n ? x.numel / n : 0;
  Dims sizes = x.shape(), strides(x.strides, x.strides + x.ndim);
  std::rotate(sizes.begin(), sizes.begin() + dim, sizes.begin() + dim + 1);
  std::rotate(strides.begin(), strides.begin() + dim, strides.begin() + dim + 1);
  const Tensor v = c.contiguous(make_view(x, sizes, strides));
  std::vector<int64_t> order(n);
  for (int64_t i = 0; i < n; ++i) order[i] = i;
  Groups g;
  MSA_SWITCH_REAL_BOOL(x.dtype, "unique_dim", ({
                         const T *p = v.ptr<T>();
                         auto less = [&](int64_t a, int64_t b) {
                           for (int64_t j = 0; j < width; ++j) {
                             const compute_t<T> s = element<T>(p + a * width + j), t = element<T>(p + b * width + j);
                             if (s < t) return true;
                             if (s > t) return false;
                           }
                           return false;
                         };
                         if (sorted) std::stable_sort(order.begin(), order.end(), less);
                         g = group(
                             c, n, inverse, counts, [&](int64_t i) { return order[i]; },
                             [&](int64_t a, int64_t b) {
                               for (int64_t j = 0; j < width; ++j)
                                 if (!equal<T>(element<T>(p + a * width + j), element<T>(p + b * width + j)))
                                   return false;
                               return true;
                             });
                       }));
  const Tensor index = contiguous_tensor(g.first, DType::I64, {g.size});
  const IndexPlan p = plan_index_dim(c, x, dim, index, "unique_dim");
  index_load(p, x, c.out(0, x.dtype, p.shape));
  emit_groups(c, g, inverse, Dims{n}, counts);
}

MSA_KERNEL(Unique2) {
  needs_values("unique");  // input, sorted, return_inverse, return_counts
  unique_flat(c, c.in(0), true, c.flag(2), c.flag(3));
}
MSA_KERNEL(UniqueDim) {
  needs_values("unique");  // input, sorted, return_inverse, dim
  unique_slices(c, c.in(0), wrap_dim(c.integer(3), c.in(0).ndim), true, c.flag(2), true);
}
MSA_KERNEL(UniqueConsecutive) {
  needs_values("unique_consecutive");  // input, return_inverse, return_counts, dim
  if (c.has(3))
    unique_slices(c, c.in(0), wrap_dim(c.integer(3), c.in(0).ndim), false, c.flag(1), c.flag(2));
  else
    unique_flat(c, c.in(0), false, c.flag(1), c.flag(2));
}

// Whether each element of the first operand is among those of the second.
MSA_KERNEL(IsinTensor) {  // elements, test_elements, invert
  const Tensor &x = c.in(0);
  Tensor o = c.out(0, DType::Bool, x.shape());
  const Tensor v = c.contiguous(x), pool = c.contiguous(c.in(1));
  const bool invert = c.flag(2);
  MSA_SWITCH_REAL_BOOL(x.dtype, "isin_default_cpu", ({
                         std::vector<compute_t<T>> sorted;
                         for (int64_t i = 0; i < pool.numel; ++i) {
                           const compute_t<T> e = pool.ptr<T>()[i];
                           if (e == e) sorted.push_back(e);
                         }
                         std::sort(sorted.begin(), sorted.end());
                         for (int64_t i = 0; i < v.numel; ++i) {
                           const compute_t<T> e = v.ptr<T>()[i];
                           o.ptr<bool>()[i] = (e == e && std::binary_search(sorted.begin(), sorted.end(), e)) != invert;
                         }
                       }));
}

}  // namespace
}  // namespace msa

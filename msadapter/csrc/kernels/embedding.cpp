// Rows of a table by index, the gradient that adds them back, norm limits, one-hot.
#include "rows.h"

namespace msa {
namespace {

// Returns the indices as int64, after checking that each is a row of the table.
Tensor row_indices(Call &c, const Tensor &t, int64_t rows) {
  if (t.dtype != DType::I64 && t.dtype != DType::I32)
    fail(
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
        "torch.",
        t.dtype, "Tensor instead (while checking arguments for embedding)");
  const Tensor r = c.cast(t, DType::I64);
  for (int64_t i = 0; i < r.numel; ++i)
    if (r.ptr<int64_t>()[i] < 0 || r.ptr<int64_t>()[i] >= rows) throw IndexError("index out of range in self");
  return r;
}

template <class T>
void gather(const Tensor &idx, const Tensor &w, const Tensor &o) {
  const int64_t n = w.size(1), step = w.stride(0), inner = w.stride(1);
  const int64_t *at = idx.ptr<int64_t>();
  const T *from = w.ptr<T>();
  T *to = o.ptr<T>();
  parallel_for(idx.numel, rows::grain_for(n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T *row = from + at[i] * step;
      if (inner == 1)
        std::copy_n(row, n, to + i * n);
      else
        for (int64_t j = 0; j < n; ++j) to[i * n + j] = row[j * inner];
    }
  });
}

// Adds rows in the order of the indices, in the type of the table, as PyTorch does on a CPU. A 16-bit sum is
// therefore rounded at every addition. Threads divide the columns, so the result does not depend on their number.
template <class T>
void scatter_rows(const Tensor &grad, const Tensor &idx, const Tensor &o, int64_t padding, bool by_frequency) {
  using C = compute_t<T>;
  const int64_t n = o.size(1), count = idx.numel, table = o.size(0);
  const int64_t *at = idx.ptr<int64_t>();
  const T *g = grad.ptr<T>();
  T *to = o.ptr<T>();
  std::vector<int64_t> seen(by_frequency ? table : 0, 0);
  if (by_frequency)
    for (int64_t i = 0; i < count; ++i) ++seen[at[i]];
  const int64_t grain = std::max<int64_t>(8, rows::grain_for(count));
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    const int64_t width = end - begin;
    for (int64_t i = 0; i < count; ++i) {
      if (at[i] == padding) continue;
      const T *from = g + i * n + begin;
      T *dst = to + at[i] * n + begin;
      if (by_frequency) {
        const C scale = convert<C>(convert<T>(C(1) / static_cast<C>(seen[at[i]])));
        for (int64_t j = 0; j < width; ++j)
          dst[j] = convert<T>(convert<C>(dst[j]) + convert<C>(convert<T>(convert<C>(from[j]) * scale)));
      } else {
        for (int64_t j = 0; j < width; ++j) dst[j] = convert<T>(convert<C>(dst[j]) + convert<C>(from[j]));
      }
    }
  });
}

// Throws an error unless each index is a row of the table, and each bag begins among the indices or at their end.
void check_bags(const Tensor &idx, const Tensor &starts, int64_t table) {
  if (shape_only()) return;
  for (int64_t i = 0; i < idx.numel; ++i)
    check(idx.ptr<int64_t>()[i] >= 0 && idx.ptr<int64_t>()[i] < table,
          "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be ", idx.ptr<int64_t>()[i]);
  for (int64_t i = 0; i < starts.numel; ++i)
    check(starts.ptr<int64_t>()[i] >= 0 && starts.ptr<int64_t>()[i] <= idx.numel, "embedding_bag: offset ",
          starts.ptr<int64_t>()[i], " is outside of the ", idx.numel, " indices");
}

// o[b] = the sum of the rows of `w` in bag b, which has the indices from starts[b] up to those of the next bag, in
// their order. With `mean`, it is divided by their number. An empty bag gives zeros.
template <class T>
void bag_rows(const Tensor &idx, const Tensor &w, const int64_t *starts, bool mean, const Tensor &o) {
  const int64_t bags = o.size(0), n = o.size(1), step = w.stride(0), inner = w.stride(1);
  const int64_t *at = idx.ptr<int64_t>();
  parallel_for(bags, rows::grain_for(n * (idx.numel / std::max<int64_t>(bags, 1) + 1)), [&](int64_t b, int64_t e) {
    for (int64_t bag = b; bag < e; ++bag) {
      T *to = o.ptr<T>() + bag * n;
      const int64_t first = starts[bag], last = bag + 1 < bags ? starts[bag + 1] : idx.numel;
      std::fill_n(to, n, T(0));
      for (int64_t i = first; i < last; ++i) {
        const T *row = w.ptr<T>() + at[i] * step;
        if (inner == 1)
          for (int64_t j = 0; j < n; ++j) to[j] += row[j];
        else
          for (int64_t j = 0; j < n; ++j) to[j] += row[j * inner];
      }
      if (mean && last > first)
        for (int64_t j = 0; j < n; ++j) to[j] /= static_cast<T>(last - first);
    }
  });
}

// The gradient of bag_rows(): adds the gradient of each bag to the rows of `o` that it has, in the order of the
// indices. Threads divide the columns.
template <class T>
void add_bag_rows(const Tensor &idx, const Tensor &g, const int64_t *starts, bool mean, const Tensor &o) {
  const int64_t bags = g.size(0), n = o.size(1);
  const int64_t *at = idx.ptr<int64_t>();
  parallel_for(n, std::max<int64_t>(8, rows::grain_for(idx.numel)), [&](int64_t begin, int64_t end) {
    std::vector<T> share(end - begin);
    for (int64_t bag = 0; bag < bags; ++bag) {
      const int64_t first = starts[bag], last = bag + 1 < bags ? starts[bag + 1] : idx.numel;
      std::copy_n(g.ptr<T>() + bag * n + begin, end - begin, share.data());
      if (mean)
        for (T &v : share) v /= static_cast<T>(std::max<int64_t>(1, last - first));
      for (int64_t i = first; i < last; ++i) {
        T *to = o.ptr<T>() + at[i] * n + begin;
        for (int64_t j = 0; j < end - begin; ++j) to[j] += share[j];
      }
    }
  });
}

template <class T>
void renorm_rows(const Tensor &w, const Tensor &idx, double max_norm, double p) {
  std::vector<int64_t> list(idx.ptr<int64_t>(), idx.ptr<int64_t>() + idx.numel);
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  for (int64_t r : list) {
    T *row = w.ptr<T>() + r * w.stride(0);
    double norm = 0;
    for (int64_t j = 0; j < w.size(1); ++j) {
      const double v = std::abs(static_cast<double>(row[j * w.stride(1)]));
      if (std::isinf(p))
        norm = std::max(norm, v);
      else
        norm += p == 2 ? v * v : std::pow(v, p);
    }
    if (!std::isinf(p)) norm = p == 2 ? std::sqrt(norm) : std::pow(norm, 1 / p);
    if (norm <= max_norm) continue;
    const double scale = max_norm / (norm + 1e-7);
    for (int64_t j = 0; j < w.size(1); ++j)
      row[j * w.stride(1)] = convert<T>(static_cast<double>(row[j * w.stride(1)]) * scale);
  }
}

}  // namespace

MSA_KERNEL(Embedding) {  // indices, weight, padding_idx?, max_norm?, norm_type, scale_grad_by_freq
  const Tensor &w = c.in(1);
  check(w.ndim == 2, "'weight' must be 2-D");
  const Tensor idx = row_indices(c, c.in(0), w.size(0));
  Dims shape = idx.shape();
  shape.push_back(w.size(1));
  const Tensor o = c.out(0, w.dtype, shape);
  MSA_SWITCH_BYTES(w.dtype, (gather<T>(idx, w, o)));
}

MSA_KERNEL(EmbeddingBags) {  // weight (float32 or float64), indices, starts of the bags, mean
  const Tensor &w = c.in(0);
  const Tensor idx = c.cast(c.in(1), DType::I64), starts = c.cast(c.in(2), DType::I64);
  const Tensor o = c.out(0, w.dtype, Dims{starts.numel, w.size(1)});
  check_bags(idx, starts, w.size(0));
  MSA_SWITCH_(w.dtype, "embedding_bag",
              MSA_CASE(F32, float, (bag_rows<T>(idx, w, starts.ptr<int64_t>(), c.flag(3), o)))
                  MSA_CASE(F64, double, (bag_rows<T>(idx, w, starts.ptr<int64_t>(), c.flag(3), o))));
}

// gradient of the bags, indices, starts of the bags, rows of the weight, mean -> gradient of the weight
MSA_KERNEL(EmbeddingBagsGrad) {
  const Tensor g = c.contiguous(c.in(0)), idx = c.cast(c.in(1), DType::I64), starts = c.cast(c.in(2), DType::I64);
  const Tensor o = c.out(0, g.dtype, Dims{c.integer(3), g.size(1)});
  check_bags(idx, starts, o.size(0));
  fill_zero(o);
  MSA_SWITCH_(g.dtype, "embedding_bag_backward",
              MSA_CASE(F32, float, (add_bag_rows<T>(idx, g, starts.ptr<int64_t>(), c.flag(4), o)))
                  MSA_CASE(F64, double, (add_bag_rows<T>(idx, g, starts.ptr<int64_t>(), c.flag(4), o))));
}

MSA_KERNEL(EmbeddingDenseBackward) {  // grad, indices, num_weights, padding_idx?, scale_grad_by_freq
  const int64_t table = c.integer(2);
  const Tensor idx = row_indices(c, c.in(1), table), g = c.contiguous(c.in(0));
  const Tensor o = c.out(0, g.dtype, Dims{table, g.size(-1)});
  fill_zero(o);
  MSA_SWITCH_FLOAT_COMPLEX(g.dtype, "embedding_backward",
                           (scatter_rows<T>(g, idx, o, c.has(3) ? c.integer(3) : -1, c.flag(4))));
}

MSA_WRITING_KERNEL(EmbeddingRenorm) {  // weight (changed in place), indices, max_norm, norm_type
  const Tensor &w = c.in(0);
  const Tensor idx = row_indices(c, c.in(1), w.size(0));
  MSA_SWITCH_FLOAT(w.dtype, "embedding_renorm_", (renorm_rows<T>(w, idx, c.number(2), c.number(3))));
  c.out(0, DType::I64, Dims{0});
}

MSA_KERNEL(OneHotExt) {  // index, num_classes (-1: largest + 1), on_value, off_value, axis (last)
  if (c.in(0).dtype != DType::I64) fail("one_hot is only applicable to index tensor of type LongTensor.");
  const Tensor idx = c.contiguous(c.in(0));
  const int64_t *at = idx.ptr<int64_t>();
  int64_t low = 0, high = -1, classes = c.integer(1);
  for (int64_t i = 0; i < idx.numel; ++i) {
    low = std::min(low, at[i]);
    high = std::max(high, at[i]);
  }
  check(low >= 0, "Class values must be non-negative.");
  check(idx.numel > 0 || classes > 0, "Can not infer total number of classes from empty tensor.");
  if (classes == -1) classes = (Size(high) + 1).value("the number of classes");
  check(classes > 0, "num_classes should be positive");
  check(high < classes, "Class values must be smaller than num_classes.");
  Dims shape = idx.shape();
  shape.push_back(classes);
  const Tensor o = c.out(0, DType::I64, shape);
  fill_zero(o);
  for (int64_t i = 0; i < idx.numel; ++i) o.ptr<int64_t>()[i * classes + at[i]] = 1;
}

}  // namespace msa

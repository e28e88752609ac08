// var, std, vector norms, logsumexp.
#include "reduce.h"
#include "vec_math.h"

namespace msa {
namespace {

// ---- variance: the moments of blocks are computed and then merged in double
struct Moments {
  double n = 0, mean = 0, m2 = 0;
  void merge(double count, double average, double squares) {
    const double total = n + count, delta = average - mean;
    mean += delta * count / total;
    m2 += squares + delta * delta * n * count / total;
    n = total;
  }
};

constexpr int64_t kMomentBlock = 1024;

// part(at, k) returns the elements from `at` on, of which there are k, at most kMomentBlock.
template <class T, class Part>
Moments moments_of(int64_t n, Part part) {
  constexpr int L = 16;
  Moments m;
  for (int64_t at = 0; at < n; at += kMomentBlock) {
    const int64_t k = std::min(kMomentBlock, n - at);
    const T *q = part(at, k);
    T lane[L] = {};
    int64_t i = 0;
    for (; i + L <= k; i += L)
      for (int l = 0; l < L; ++l) lane[l] += q[i + l];
    double sum = 0;
    for (int l = 0; l < L; ++l) sum += lane[l], lane[l] = 0;
    for (; i < k; ++i) sum += q[i];
    const double mean = sum / static_cast<double>(k);
    const T centre = static_cast<T>(mean);
    for (i = 0; i + L <= k; i += L)
      for (int l = 0; l < L; ++l) lane[l] += (q[i + l] - centre) * (q[i + l] - centre);
    double squares = 0;
    for (int l = 0; l < L; ++l) squares += lane[l];
    for (; i < k; ++i) squares += static_cast<double>(q[i] - centre) * (q[i] - centre);
    const double off = mean - static_cast<double>(centre);  // the squares were computed relative to the rounded mean
    squares -= off * off * static_cast<double>(k);
    m.merge(static_cast<double>(k), mean, squares < 0 ? 0 : squares);  // rounding may leave less than nothing
  }
  return m;
}

// The means of `rows` rows of fewer than kShortRow elements, which follow one another, and the sums of the squared
// distances from them, computed as moments_of() does. A vector has elements of different rows.
template <class T>
void short_moments(const T *p, int64_t n, int64_t rows, double *mean, double *squares) {
  T centre[kShortRows];
  const double count = static_cast<double>(n);
  for (int64_t r = 0; r < rows; ++r) mean[r] = squares[r] = 0;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t r = 0; r < rows; ++r) mean[r] += p[r * n + i];
  for (int64_t r = 0; r < rows; ++r) {
    mean[r] /= count;
    centre[r] = static_cast<T>(mean[r]);
  }
  for (int64_t i = 0; i < n; ++i)
    for (int64_t r = 0; r < rows; ++r) {
      const T distance = p[r * n + i] - centre[r];
      squares[r] += static_cast<double>(distance) * distance;
    }
  for (int64_t r = 0; r < rows; ++r) {
    const double off = mean[r] - static_cast<double>(centre[r]), rest = squares[r] - off * off * count;
    squares[r] = rest < 0 ? 0 : rest;
  }
}

// Rows of a reduction that are read a few elements at a time and converted to C. A copy of the whole operand in this
// type would need more memory than the operand.
template <class C>
class RowReader {
 public:
  RowReader(const Tensor &x, const std::vector<bool> &mask) : x_(x), mask_(mask) {
    int64_t n = 1;
    for (int d = x.ndim - 1; d >= 0; --d) {
      if (!mask[d] || x.sizes[d] == 1) continue;
      if (n == 1) step_ = x.strides[d];
      near_ = near_ && x.strides[d] == step_ * n;
      n *= x.sizes[d];
    }
    near_ = near_ && (step_ == 1 || step_ == 2);
    MSA_SWITCH_FLOAT(x.dtype, "std", (load_ = load_run<T, C, ConvertTo<C>>));
  }
  // Whether the elements of each row are neighbours, as the real parts of complex numbers are too.
  bool near() const { return near_; }
  // Writes `count` elements of a row, from element `at` on.
  void read(int64_t row, int64_t at, int64_t count, C *to) const {
    int64_t offset = at * step_;
    for (int d = x_.ndim - 1; d >= 0; --d) {
      if (mask_[d]) continue;
      offset += row % x_.sizes[d] * x_.strides[d];
      row /= x_.sizes[d];
    }
    const int64_t item = item_size(x_.dtype);
    load_(to, x_.ptr<char>() + offset * item, step_ * item, count);
  }

 private:
  const Tensor &x_;
  const std::vector<bool> &mask_;
  int64_t step_ = 1;
  bool near_ = true;
  Load<C> load_ = nullptr;
};

void moments(Call &c, bool root, bool with_mean) {  // input, dim, correction, keepdim
  const Tensor &x = c.in(0);
  if (!is_floating(x.dtype)) fail("std and var only support floating point and complex dtypes");
  const auto mask = reduce_mask(c, 1, x.ndim);
  const double correction = c.number(2);
  const Dims shape = reduced_shape(x, mask, c.flag(3));
  const int64_t n = reduced_count(x, mask);
  Tensor o = c.out(0, x.dtype, shape), mean = with_mean ? c.out(1, x.dtype, shape) : Tensor();
  const DType wide = x.dtype == DType::F64 ? DType::F64 : DType::F32;
  const Tensor seen = rows_seen(x, mask);
  auto go = [&](auto tag) {
    using T = decltype(tag);
    const RowReader<T> reader(x, mask);
    const bool stored = seen.dtype == wide && seen.contiguous(), read = !stored && reader.near();
    const Tensor rows = read ? Tensor() : rows_of(c, x, mask, wide);
    const bool direct = o.dtype == wide;
    T *v = direct ? o.ptr<T>() : c.scratch_of<T>(o.numel + 1),
      *a = with_mean ? (direct ? mean.ptr<T>() : c.scratch_of<T>(o.numel + 1)) : nullptr;
    parallel_for(o.numel, std::max<int64_t>(1, kGrain / std::max<int64_t>(n, 1)), [&](int64_t b, int64_t e) {
      static_assert(kShortRows * kShortRow >= kMomentBlock);
      double average[kShortRows], squares[kShortRows];
      T buffer[kShortRows * kShortRow];
      const double free = std::max(static_cast<double>(n) - correction, 0.0);
      const T *p = rows.ptr<T>();
      for (int64_t first = b; first < e; first += kShortRows) {
        const int64_t count = std::min(kShortRows, e - first);
        if (n == 0) {
          std::fill_n(average, count, std::numeric_limits<double>::quiet_NaN());
          std::fill_n(squares, count, std::numeric_limits<double>::quiet_NaN());
        } else if (n < kShortRow) {
          for (int64_t r = 0; read && r < count; ++r) reader.read(first + r, 0, n, buffer + r * n);
          short_moments(read ? buffer : p + first * n, n, count, average, squares);
        } else {
          for (int64_t r = 0; r < count; ++r) {
            const Moments m = moments_of<T>(n, [&](int64_t at, int64_t k) -> const T * {
              if (!read) return p + (first + r) * n + at;
              reader.read(first + r, at, k, buffer);
              return buffer;
            });
            average[r] = m.mean;
            squares[r] = m.m2;
          }
        }
        for (int64_t r = 0; r < count; ++r) squares[r] /= free;
        for (int64_t r = 0; r < count; ++r) v[first + r] = static_cast<T>(root ? vec::sqrt(squares[r]) : squares[r]);
        for (int64_t r = 0; a && r < count; ++r) a[first + r] = static_cast<T>(average[r]);
      }
    });
    if (!direct) {
      copy_into(o, contiguous_tensor(v, wide, shape));
      if (a) copy_into(mean, contiguous_tensor(a, wide, shape));
    }
  };
  if (wide == DType::F64)
    go(0.0);
  else
    go(0.f);
}
MSA_KERNEL(Var) { moments(c, false, false); }
MSA_KERNEL(Std) { moments(c, true, false); }
MSA_KERNEL(VarMean) { moments(c, false, true); }
MSA_KERNEL(StdMean) { moments(c, true, true); }

// ---- norms
template <class A>
struct Size {
  template <class T>
  MSA_INLINE A operator()(T v) const {
    return std::abs(A(v));
  }
};
template <class A>
struct Count {
  template <class T>
  MSA_INLINE A operator()(T v) const {
    return A(v) != A(0);
  }
};

// Whether the elements are raised to the power `ord`, and the sum to 1 / ord, without a shorter way.
bool is_power(double ord) { return ord != 0 && ord != 1 && ord != 2 && std::isfinite(ord); }

template <class A, class In>
void norm_into(Call &c, const Tensor &x, const Tensor &o, const std::vector<bool> &mask, double ord) {
  constexpr Load<A> plain = std::is_same_v<A, In> ? nullptr : load_run<In, A, ConvertTo<A>>;
  const A inf = std::numeric_limits<A>::infinity();
  auto finish = [&](auto *w) {
    using W = std::decay_t<decltype(*w)>;
    if (ord == 2)
      for (int64_t i = 0; i < o.numel; ++i) w[i] = vec::sqrt(w[i]);
    else if (is_power(ord))
      for (int64_t i = 0; i < o.numel; ++i) w[i] = static_cast<W>(std::pow(static_cast<double>(w[i]), 1 / ord));
    if (std::isnan(ord) && x.numel > o.numel)  // fewer elements are their own norm, for every order
      std::fill_n(w, o.numel, std::numeric_limits<W>::quiet_NaN());
  };
  if (ord == 2)
    reduce_into<A, SquareSumStep>(c, x, o, mask, A(0), plain, finish);
  else if (ord == 0)
    reduce_into<A, SumStep>(c, x, o, mask, A(0), load_run<In, A, Count<A>>, finish);
  else if (ord == inf)
    reduce_into<A, MaxStep>(c, x, o, mask, A(0), load_run<In, A, Size<A>>, finish);
  else if (ord == -inf)
    reduce_into<A, MinStep>(c, x, o, mask, inf, load_run<In, A, Size<A>>, finish);
  else
    reduce_into<A, SumStep>(c, x, o, mask, A(0), load_run<In, A, Size<A>>, finish);
}

MSA_KERNEL(LinalgVectorNorm) {  // x, ord, dim, keepdim, dtype
  const double ord = c.number(1);
  const DType dt = c.has(4) ? c.dtype(4) : c.in(0).dtype;
  if (!is_floating(dt))
    fail("linalg.vector_norm: Expected a floating point or complex tensor as input. Got ", dtype_name(dt));
  Tensor x = c.in(0).dtype == dt ? c.in(0) : c.cast(c.in(0), dt);
  const auto mask = reduce_mask(c, 2, x.ndim);
  Tensor o = c.out(0, dt, reduced_shape(x, mask, c.flag(3)));
  if (is_power(ord)) {  // the absolute values are raised to the power first
    const DType wide = dt == DType::F64 ? DType::F64 : DType::F32;
    Tensor p = contiguous_tensor(c.scratch(std::max<int64_t>(x.numel, 1) * item_size(wide)), wide, x.shape());
    copy_into(p, x);
    if (wide == DType::F64)
      map1<double, double>(p, p, [=](double v) { return std::pow(std::abs(v), ord); });
    else
      map1<float, float>(p, p, [=](float v) { return std::pow(std::abs(v), static_cast<float>(ord)); });
    x = p;
  }
  switch (x.dtype) {
    case DType::F64: return norm_into<double, double>(c, x, o, mask, ord);
    case DType::F32: return norm_into<float, float>(c, x, o, mask, ord);
    case DType::BF16: return norm_into<float, BFloat16>(c, x, o, mask, ord);
    default: norm_into<float, Half>(c, x, o, mask, ord);
  }
}

// ---- log of the sum of exponentials
template <class T>
T log_sum_exp(const T *p, int64_t n) {
  constexpr int L = 16;
  T top = -std::numeric_limits<T>::infinity();
  for (int64_t i = 0; i < n; ++i) MaxStep()(top, p[i]);
  if (std::isinf(top)) return top;
  T lane[L] = {};
  double total = 0;
  int64_t i = 0;
  for (int64_t at = 0; at + L <= n; at += 4096) {
    for (; i + L <= std::min(n, at + 4096); i += L)
      for (int l = 0; l < L; ++l) lane[l] += vec::exp(p[i + l] - top);
    for (int l = 0; l < L; ++l) total += lane[l], lane[l] = 0;
  }
  for (; i < n; ++i) total += vec::exp(p[i] - top);
  return static_cast<T>(static_cast<double>(top) + std::log(total));
}

// The same for `rows` rows of fewer than kShortRow elements, which follow one another. A vector has elements of
// different rows.
template <class T>
void short_log_sum_exp(const T *p, int64_t n, int64_t rows, T *out) {
  T top[kShortRows];
  double total[kShortRows] = {};
  std::fill_n(top, rows, -std::numeric_limits<T>::infinity());
  for (int64_t i = 0; i < n; ++i)
    for (int64_t r = 0; r < rows; ++r) MaxStep()(top[r], p[r * n + i]);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t r = 0; r < rows; ++r) total[r] += vec::exp(p[r * n + i] - top[r]);
  for (int64_t r = 0; r < rows; ++r) {
    const T sum = static_cast<T>(static_cast<double>(top[r]) + vec::log(total[r]));
    out[r] = vec::abs(top[r]) == std::numeric_limits<T>::infinity() ? top[r] : sum;
  }
}

MSA_KERNEL(LogSumExp) {  // input, dim, keepdim
  const Tensor &x = c.in(0);
  if (!is_floating(x.dtype)) unsupported("logsumexp", x.dtype);
  const auto mask = reduce_mask(c, 1, x.ndim);
  Tensor o = c.out(0, x.dtype, reduced_shape(x, mask, c.flag(2)));
  const int64_t n = reduced_count(x, mask);
  const DType wide = x.dtype == DType::F64 ? DType::F64 : DType::F32;
  const Tensor rows = rows_of(c, x, mask, wide);
  auto go = [&](auto tag) {
    using T = decltype(tag);
    T *v = o.dtype == wide ? o.ptr<T>() : c.scratch_of<T>(o.numel + 1);
    parallel_for(o.numel, std::max<int64_t>(1, kGrain / 8 / std::max<int64_t>(n, 1)), [&](int64_t b, int64_t e) {
      const T *p = rows.ptr<T>();
      if (n < kShortRow)
        for (int64_t r = b; r < e; r += kShortRows) short_log_sum_exp(p + r * n, n, std::min(kShortRows, e - r), v + r);
      else
        for (int64_t r = b; r < e; ++r) v[r] = log_sum_exp(p + r * n, n);
    });
    if (o.dtype != wide) copy_into(o, contiguous_tensor(v, wide, o.shape()));
  };
  if (wide == DType::F64)
    go(0.0);
  else
    go(0.f);
}

}  // namespace
}  // namespace msa

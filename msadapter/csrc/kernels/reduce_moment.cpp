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

template <class T>
Moments moments_of(const T *p, int64_t n) {
  constexpr int64_t kBlock = 1024;
  constexpr int L = 16;
  Moments m;
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t k = std::min(kBlock, n - at);
    const T *q = p + at;
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

void moments(Call &c, bool root, bool with_mean) {  // input, dim, correction, keepdim
  const Tensor &x = c.in(0);
  if (!is_floating(x.dtype)) fail("std and var only support floating point and complex dtypes");
  const auto mask = reduce_mask(c, 1, x.ndim);
  const double correction = c.number(2);
  const Dims shape = reduced_shape(x, mask, c.flag(3));
  const int64_t n = reduced_count(x, mask);
  Tensor o = c.out(0, x.dtype, shape), mean = with_mean ? c.out(1, x.dtype, shape) : Tensor();
  const DType wide = x.dtype == DType::F64 ? DType::F64 : DType::F32;
  const Tensor rows = rows_of(c, x, mask, wide);
  auto go = [&](auto tag) {
    using T = decltype(tag);
    const bool direct = o.dtype == wide;
    T *v = direct ? o.ptr<T>() : c.scratch_of<T>(o.numel + 1),
      *a = with_mean ? (direct ? mean.ptr<T>() : c.scratch_of<T>(o.numel + 1)) : nullptr;
    parallel_for(o.numel, std::max<int64_t>(1, kGrain / std::max<int64_t>(n, 1)), [&](int64_t b, int64_t e) {
      for (int64_t r = b; r < e; ++r) {
        const Moments m = moments_of(rows.ptr<T>() + r * n, n);
        const double free = std::max(static_cast<double>(n) - correction, 0.0);
        const double var = n == 0 ? std::numeric_limits<double>::quiet_NaN() : m.m2 / free;
        v[r] = static_cast<T>(root ? std::sqrt(var) : var);
        if (a) a[r] = static_cast<T>(n == 0 ? std::numeric_limits<double>::quiet_NaN() : m.mean);
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
struct Square {
  template <class T>
  MSA_INLINE A operator()(T v) const {
    return A(v) * A(v);
  }
};
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

template <class A, class In>
void norm_of(const Tensor &x, const std::vector<bool> &mask, double ord, wide_t<A> *w) {
  const A inf = std::numeric_limits<A>::infinity();
  if (ord == 2)
    reduce_core<A, SumStep>(x, mask, w, A(0), load_run<In, A, Square<A>>);
  else if (ord == 0)
    reduce_core<A, SumStep>(x, mask, w, A(0), load_run<In, A, Count<A>>);
  else if (ord == inf)
    reduce_core<A, MaxStep>(x, mask, w, A(0), load_run<In, A, Size<A>>);
  else if (ord == -inf)
    reduce_core<A, MinStep>(x, mask, w, inf, load_run<In, A, Size<A>>);
  else
    reduce_core<A, SumStep>(x, mask, w, A(0), load_run<In, A, Size<A>>);
}

MSA_KERNEL(LinalgVectorNorm) {  // x, ord, dim, keepdim, dtype
  const double ord = c.number(1);
  const DType dt = c.has(4) ? c.dtype(4) : c.in(0).dtype;
  if (!is_floating(dt))
    fail("linalg.vector_norm: Expected a floating point or complex tensor as input. Got ", dtype_name(dt));
  Tensor x = c.in(0).dtype == dt ? c.in(0) : c.cast(c.in(0), dt);
  const auto mask = reduce_mask(c, 2, x.ndim);
  Tensor o = c.out(0, dt, reduced_shape(x, mask, c.flag(3)));
  const bool power = ord != 0 && ord != 1 && ord != 2 && std::isfinite(ord);
  if (power) {  // the absolute values are raised to the power first
    const DType wide = dt == DType::F64 ? DType::F64 : DType::F32;
    Tensor p = contiguous_tensor(c.scratch(std::max<int64_t>(x.numel, 1) * item_size(wide)), wide, x.shape());
    copy_into(p, x);
    if (wide == DType::F64)
      map1<double, double>(p, p, [=](double v) { return std::pow(std::abs(v), ord); });
    else
      map1<float, float>(p, p, [=](float v) { return std::pow(std::abs(v), static_cast<float>(ord)); });
    x = p;
  }
  double *w = c.scratch_of<double>(std::max<int64_t>(o.numel, 1));
  switch (x.dtype) {
    case DType::F64: norm_of<double, double>(x, mask, ord, w); break;
    case DType::F32: norm_of<float, float>(x, mask, ord, w); break;
    case DType::BF16: norm_of<float, BFloat16>(x, mask, ord, w); break;
    default: norm_of<float, Half>(x, mask, ord, w);
  }
  for (int64_t i = 0; i < o.numel; ++i) w[i] = ord == 2 ? std::sqrt(w[i]) : power ? std::pow(w[i], 1 / ord) : w[i];
  if (std::isnan(ord) && x.numel > o.numel)  // fewer elements are their own norm, for every order
    std::fill_n(w, o.numel, std::numeric_limits<double>::quiet_NaN());
  copy_into(o, contiguous_tensor(w, DType::F64, o.shape()));
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
      for (int64_t r = b; r < e; ++r) v[r] = log_sum_exp(rows.ptr<T>() + r * n, n);
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

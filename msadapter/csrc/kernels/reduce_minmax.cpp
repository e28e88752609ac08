// amax, amin, max/min along a dim with positions, argmax, argmin.
#include "reduce.h"

namespace msa {
namespace {

void check_not_empty(const char *op, const Tensor &x, const std::vector<bool> &mask, bool has_dim) {
  if (x.numel != 0) return;
  if (!has_dim)
    fail(op, "(): Expected reduction dim to be specified for input.numel() == 0.",
         op[0] == 'a' && op[1] == 'r' ? "" : " Specify the reduction dim with the 'dim' argument.");
  for (int d = 0; d < x.ndim; ++d)
    if (mask[d] && x.sizes[d] == 0)
      throw IndexError(text(op, "(): Expected reduction dim ", d, " to have non-zero size."));
}

template <class Acc, class Step>
void extreme_into(Call &c, const Tensor &x, const Tensor &o, const std::vector<bool> &mask, Load<Acc> load,
                  bool largest) {
  using L = std::numeric_limits<Acc>;
  const Acc low = L::has_infinity ? static_cast<Acc>(-L::infinity()) : L::lowest(),
            high = L::has_infinity ? L::infinity() : L::max();
  reduce_into<Acc, Step>(c, x, o, mask, largest ? low : high, load, [](auto *) {});
}

template <class Step>
void extreme(Call &c, const char *op, const std::vector<bool> &mask, bool keepdim, bool has_dim) {
  const Tensor &x = c.in(0);
  const bool largest = std::is_same_v<Step, MaxStep>;
  check_not_empty(op, x, mask, has_dim);
  Tensor o = c.out(0, x.dtype, reduced_shape(x, mask, keepdim));
  switch (x.dtype) {
    case DType::F32: return extreme_into<float, Step>(c, x, o, mask, nullptr, largest);
    case DType::F64: return extreme_into<double, Step>(c, x, o, mask, nullptr, largest);
    case DType::BF16:
      return extreme_into<float, Step>(c, x, o, mask, load_run<BFloat16, float, ConvertTo<float>>, largest);
    case DType::F16: return extreme_into<float, Step>(c, x, o, mask, load_run<Half, float, ConvertTo<float>>, largest);
    case DType::I64: return extreme_into<int64_t, Step>(c, x, o, mask, nullptr, largest);
    default:
      MSA_SWITCH_INT_BOOL(
          x.dtype, op, (extreme_into<int64_t, Step>(c, x, o, mask, load_run<T, int64_t, ConvertTo<int64_t>>, largest)));
  }
}
MSA_KERNEL(ReduceMax) {
  extreme<MaxStep>(c, "amax", reduce_mask(c, 1, c.in(0).ndim), c.flag(2), c.has(1) && !c.ints(1).empty());
}  // x, axis, keep_dims
MSA_KERNEL(ReduceMin) {
  extreme<MinStep>(c, "amin", reduce_mask(c, 1, c.in(0).ndim), c.flag(2), c.has(1) && !c.ints(1).empty());
}
MSA_KERNEL(Max) { extreme<MaxStep>(c, "max", dims_mask({}, c.in(0).ndim), false, false); }
MSA_KERNEL(Min) { extreme<MinStep>(c, "min", dims_mask({}, c.in(0).ndim), false, false); }

// The first k for which f(p[k]) is true, or n. It tests a block at a time, so that the compiler can vectorise it.
template <class T, class F>
int64_t first_where(const T *p, int64_t n, F f) {
  constexpr int L = 32;
  int64_t k = 0;
  for (; k + L <= n; k += L) {
    int hit = 0;
    for (int l = 0; l < L; ++l) hit |= f(p[k + l]);
    if (hit) break;
  }
  while (k < n && !f(p[k])) ++k;
  return k;
}

// The position of the first extremum of p[0..n). NaN counts as the extremum.
template <class T, bool kMax>
int64_t arg_row(const T *p, int64_t n) {
  using C = compute_t<T>;
  constexpr int L = 32;
  C best[L];
  int odd[L] = {};
  for (int l = 0; l < L; ++l) best[l] = p[0];
  int64_t i = 0;
  for (; i + L <= n; i += L)
    for (int l = 0; l < L; ++l) {
      const C v = p[i + l];
      best[l] = (kMax ? v > best[l] : v < best[l]) ? v : best[l];
      if constexpr (is_floating_v<T>) odd[l] |= v != v;
    }
  C top = best[0];
  int nan = top != top;
  for (int l = 0; l < L; ++l) {
    top = (kMax ? best[l] > top : best[l] < top) ? best[l] : top;
    nan |= odd[l];
  }
  for (; i < n; ++i) {
    const C v = p[i];
    if (kMax ? v > top : v < top) top = v;
    if constexpr (is_floating_v<T>) nan |= v != v;
  }
  if (nan) return first_where(p, n, [](T v) { return C(v) != C(v); });
  return first_where(p, n, [top](T v) { return C(v) == top; });
}

// The same for `rows` rows of fewer than kShortRow elements, which follow one another. A vector has elements of
// different rows.
template <class T, bool kMax>
void arg_short_rows(const T *p, int64_t n, int64_t rows, int64_t *index) {
  using C = compute_t<T>;
  using Place = std::conditional_t<sizeof(C) == 8, int64_t, std::conditional_t<sizeof(C) == 4, int32_t, int8_t>>;
  C top[kShortRows];
  Place at[kShortRows] = {};
  for (int64_t r = 0; r < rows; ++r) top[r] = element<T>(p + r * n);
  for (int64_t i = 1; i < n; ++i)
    for (int64_t r = 0; r < rows; ++r) {
      const C v = element<T>(p + r * n + i);
      const bool take = ((kMax ? v > top[r] : v < top[r]) | (v != v)) & (top[r] == top[r]);
      top[r] = take ? v : top[r];
      at[r] = take ? static_cast<Place>(i) : at[r];
    }
  for (int64_t r = 0; r < rows; ++r) index[r] = at[r];
}

template <bool kMax>
void arg_rows(const Tensor &rows, int64_t n, int64_t *index, void *values) {
  const int64_t count = n ? rows.numel / n : 0;
  MSA_SWITCH_REAL_BOOL(rows.dtype, kMax ? "max" : "min", ({
                         parallel_for(count, std::max<int64_t>(1, kGrain / n), [&](int64_t b, int64_t e) {
                           const T *p = rows.ptr<T>();
                           if (n < kShortRow)
                             for (int64_t r = b; r < e; r += kShortRows)
                               arg_short_rows<T, kMax>(p + r * n, n, std::min(kShortRows, e - r), index + r);
                           else
                             for (int64_t r = b; r < e; ++r) index[r] = arg_row<T, kMax>(p + r * n, n);
                           for (int64_t r = b; values && r < e; ++r) static_cast<T *>(values)[r] = p[r * n + index[r]];
                         });
                       }));
}

// The values and positions of the extrema along a dim.
template <bool kMax>
void extreme_dim(Call &c) {
  const Tensor &x = c.in(0);
  const int64_t dim = wrap_dim(c.integer(1), x.ndim);
  std::vector<bool> mask(x.ndim, false);
  if (x.ndim) mask[dim] = true;
  check_not_empty(kMax ? "max" : "min", x, mask, true);
  const Dims shape = reduced_shape(x, mask, c.flag(2));
  Tensor v = c.out(0, x.dtype, shape), i = c.out(1, DType::I64, shape);
  if (v.numel) arg_rows<kMax>(rows_of(c, x, mask, x.dtype), x.ndim ? x.sizes[dim] : 1, i.ptr<int64_t>(), v.data);
}
MSA_KERNEL(MaxDim) { extreme_dim<true>(c); }  // input, dim, keepdim
MSA_KERNEL(MinDim) { extreme_dim<false>(c); }

template <bool kMax>
void arg_extreme(Call &c) {
  const Tensor &x = c.in(0);
  const char *op = kMax ? "argmax" : "argmin";
  const Dims dims = c.has(1) ? Dims{c.integer(1)} : Dims{};
  const auto mask = dims_mask(dims, x.ndim);
  check_not_empty(op, x, mask, c.has(1));
  Tensor o = c.out(0, DType::I64, reduced_shape(x, mask, c.flag(2)));
  if (o.numel)
    arg_rows<kMax>(c.has(1) ? rows_of(c, x, mask, x.dtype) : c.contiguous(x), reduced_count(x, mask), o.ptr<int64_t>(),
                   nullptr);
}
MSA_KERNEL(ArgMaxExt) { arg_extreme<true>(c); }  // input, dim, keepdim
MSA_KERNEL(ArgMinExt) { arg_extreme<false>(c); }

}  // namespace
}  // namespace msa

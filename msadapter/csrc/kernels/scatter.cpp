// gather and scatter (assign, add, reduce) along one dim, with an index that has the same number of dims.
#include <limits>

#include "indexing.h"

namespace msa {
namespace {

[[noreturn]] void out_of_bounds(int64_t i, int64_t dim, int64_t size) {
  fail("index ", i, " is out of bounds for dimension ", dim, " with size ", size);
}

// Returns `t` with the shape of the index. The stride of `dim` is 0, because the index gives the positions along this
// dim.
Tensor along(const Tensor &t, const Tensor &index, int64_t dim) {
  Dims strides(t.strides, t.strides + t.ndim);
  strides[dim] = 0;
  return make_view(t, index.shape(), strides);
}
Tensor same_corner(const Tensor &t, const Tensor &index) {
  return make_view(t, index.shape(), Dims(t.strides, t.strides + t.ndim));
}

void check_index(const char *op, const Tensor &index) {
  if (index.numel && index.dtype != DType::I64 && index.dtype != DType::I32)
    fail(op, "(): Expected dtype int32/int64 for index");
}

// The index as int64. It keeps its strides, because an index that is expanded along a dim may be large.
Tensor positions_of(Call &c, const Tensor &index) {
  return index.dtype == DType::I64 ? index : c.cast(index, DType::I64);
}

// o[i] = x[index[i]] for a run of neighbours of the result and of the index. The positions are checked first, so that
// the compiler vectorises both loops.
template <class T>
void gather_run(T *__restrict o, const T *x, const int64_t *index, int64_t n, int64_t dim, int64_t size) {
  const bool inside = largest_position(index, n) < static_cast<uint64_t>(size);
  for (int64_t i = 0; !inside && i < n; ++i)
    if (static_cast<uint64_t>(index[i]) >= static_cast<uint64_t>(size)) out_of_bounds(index[i], dim, size);
  for (int64_t i = 0; i < n; ++i) o[i] = x[index[i]];
}

template <class T>
void gather_loop(const Tensor &o, const Tensor &x, const Tensor &index, int64_t dim) {
  const int64_t size = x.sizes[dim], step = x.strides[dim] * static_cast<int64_t>(sizeof(T));
  Loop<3>(index.shape(), {o, index, along(x, index, dim)}).run([&](char **p, const int64_t *s, int64_t n) {
    if (s[0] == sizeof(T) && s[1] == sizeof(int64_t) && s[2] == 0 && step == sizeof(T)) {
      for (int64_t at = 0; at < n; at += kCheckedRun)
        gather_run(reinterpret_cast<T *>(p[0]) + at, reinterpret_cast<const T *>(p[2]),
                   reinterpret_cast<const int64_t *>(p[1]) + at, std::min(kCheckedRun, n - at), dim, size);
      return;
    }
    for (int64_t i = 0; i < n; ++i) {
      const int64_t k = *reinterpret_cast<const int64_t *>(p[1] + i * s[1]);
      if (static_cast<uint64_t>(k) >= static_cast<uint64_t>(size)) out_of_bounds(k, dim, size);
      *reinterpret_cast<T *>(p[0] + i * s[0]) = *reinterpret_cast<const T *>(p[2] + i * s[2] + k * step);
    }
  });
}

MSA_KERNEL(GatherD) {  // x, dim, index
  const Tensor x = at_least_1d(c.in(0)), index0 = at_least_1d(c.in(2));
  const int64_t dim = wrap_dim(c.integer(1), c.in(0).ndim);
  check_index("gather", index0);
  Tensor o = c.out(0, x.dtype, c.in(2).shape());
  if (index0.numel == 0) return;
  check(x.ndim == index0.ndim, "Index tensor must have the same number of dimensions as input tensor");
  for (int d = 0; d < x.ndim; ++d)
    check(d == dim || index0.sizes[d] <= x.sizes[d], "Size does not match at dimension ", d, " expected index ",
          index0.shape(), " to be no larger than self ", x.shape(), " apart from dimension ", dim);
  const Tensor index = positions_of(c, index0);
  MSA_SWITCH_BYTES(x.dtype, (gather_loop<T>(at_least_1d(o), x, index, dim)));
}

// Calls f(destination element, source element) for every index position. The elements of the source have the type S and
// are converted. One thread visits all positions that may coincide: the work is divided along the largest other dim.
template <class T, class S = T, class F>
void scatter_loop(const Tensor &dest, const Tensor &index, const Tensor &src, int64_t dim, F f) {
  if (index.numel == 0) return;
  const int64_t size = dest.sizes[dim], step = dest.strides[dim] * static_cast<int64_t>(sizeof(T));
  const Tensor d = along(dest, index, dim);
  int cut = -1;
  for (int k = 0; k < index.ndim; ++k)
    if (k != dim && (cut < 0 || index.sizes[k] > index.sizes[cut])) cut = k;
  const int64_t n_cut = cut < 0 ? 1 : index.sizes[cut];
  parallel_for(n_cut, std::max<int64_t>(1, kGrain / (index.numel / n_cut)), [&](int64_t b, int64_t e) {
    auto part = [&](const Tensor &t) {
      if (cut < 0) return t;
      Dims sizes = t.shape();
      sizes[cut] = e - b;
      return make_view(t, sizes, Dims(t.strides, t.strides + t.ndim), b * t.strides[cut]);
    };
    const Tensor i = part(index);
    Loop<3>(i.shape(), {i, part(src), part(d)})
        .run(
            [&](char **p, const int64_t *s, int64_t n) {
              for (int64_t j = 0; j < n; ++j) {
                const int64_t k = *reinterpret_cast<const int64_t *>(p[0] + j * s[0]);
                if (static_cast<uint64_t>(k) >= static_cast<uint64_t>(size)) out_of_bounds(k, dim, size);
                f(*reinterpret_cast<T *>(p[2] + j * s[2] + k * step),
                  convert<T>(*reinterpret_cast<const S *>(p[1] + j * s[1])));
              }
            },
            std::numeric_limits<int64_t>::max());
  });
}

enum class Reduce { kAssign, kAdd, kMul, kMax, kMin, kMean };

Reduce reduce_of(const std::string &s) {
  if (s == "add" || s == "sum") return Reduce::kAdd;
  if (s == "multiply" || s == "prod") return Reduce::kMul;
  if (s == "amax") return Reduce::kMax;
  if (s == "amin") return Reduce::kMin;
  if (s == "mean") return Reduce::kMean;
  fail("reduce argument must be either sum, prod, mean, amax or amin, got ", s);
}

template <class T>
void combine_add(T &a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    a = a || b;
  else
    a = T(wrapping_add<compute_t<T>>(a, b));
}
template <class T>
void combine_mul(T &a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    a = a && b;
  else
    a = T(wrapping_mul<compute_t<T>>(a, b));
}
template <class T, bool kMax>
void combine_extreme(T &a, T b) {
  if constexpr (!is_complex_v<T>) {
    const compute_t<T> x = a, y = b;
    if ((kMax ? y > x : y < x) || y != y) a = b;
  }
}
template <class T>
void assign(T &a, T b) {
  a = b;
}

template <class T, class S = T>
void scatter_reduce(Call &c, const Tensor &o, const Tensor &index, const Tensor &src, int64_t dim, Reduce how,
                    bool include_self) {
  using Pointer = void (*)(T &, T);
  auto each = [&](Pointer f, const Tensor &s) { scatter_loop<T, S>(o, index, s, dim, f); };  // rare cases share a loop
  if (!include_self) {
    T start = reduce_identity<T>(how == Reduce::kMax   ? "amax"
                                 : how == Reduce::kMin ? "amin"
                                 : how == Reduce::kMul ? "prod"
                                                       : "sum");
    scatter_loop<T>(o, index, make_view(contiguous_tensor(&start, o.dtype, {1}), index.shape(), Dims(index.ndim, 0)),
                    dim, assign<T>);
  }
  switch (how) {
    case Reduce::kAssign: return each(assign<T>, src);
    case Reduce::kMul: return each(combine_mul<T>, src);
    case Reduce::kMax: return each(combine_extreme<T, true>, src);
    case Reduce::kMin: return each(combine_extreme<T, false>, src);
    default: scatter_loop<T, S>(o, index, src, dim, [](T &a, T b) { combine_add<T>(a, b); });
  }
  if (how != Reduce::kMean) return;
  Tensor counts = contiguous_tensor(c.scratch_of<int64_t>(o.numel), DType::I64, o.shape());
  for (int64_t i = 0; i < o.numel; ++i) counts.ptr<int64_t>()[i] = include_self ? 1 : 0;
  int64_t one = 1;
  const Tensor ones = make_view(contiguous_tensor(&one, DType::I64, {1}), index.shape(), Dims(index.ndim, 0));
  scatter_loop<int64_t>(counts, index, ones, dim, [](int64_t &a, int64_t b) { a += b; });
  map2<T, T, int64_t>(o, o, counts, [](T v, int64_t n) { return n > 1 ? divided(v, n) : v; });
}

struct Operands {
  Tensor o, index, src;
  int64_t dim;
};

// Checks shapes as PyTorch does. `src` is null if the source is a number.
Operands scatter_operands(Call &c, const char *op, const Tensor *src) {
  Operands r;
  const Tensor x = at_least_1d(c.in(0)), index = at_least_1d(c.in(2));
  r.dim = wrap_dim(c.integer(1), c.in(0).ndim);
  check_index(op, index);
  if (src && src->dtype != x.dtype) fail(op, "(): Expected self.dtype to be equal to src.dtype");
  if (index.numel) {
    check(index.ndim == x.ndim, "Index tensor must have the same number of dimensions as self tensor");
    const Tensor s = src ? at_least_1d(*src) : index;
    check(s.ndim == x.ndim, "Index tensor must have the same number of dimensions as src tensor");
    for (int d = 0; d < x.ndim; ++d)
      if ((d != r.dim && index.sizes[d] > x.sizes[d]) || index.sizes[d] > s.sizes[d])
        fail("Expected index ", index.shape(), " to be no larger than self ", x.shape(), " apart from dimension ",
             r.dim, src ? text(" and to be no larger size than src ", s.shape()) : std::string());
  }
  r.o = at_least_1d(changed_copy(c, c.in(0)));
  r.index = positions_of(c, index);
  if (src && index.numel) r.src = same_corner(at_least_1d(*src), r.index);
  return r;
}

#define MSA_SWITCH_ALL_BUT_HALF(D, OP, ...)                                                                        \
  MSA_SWITCH_(D, OP,                                                                                               \
              MSA_CASES_INT_(__VA_ARGS__) MSA_CASES_UINT_(__VA_ARGS__) MSA_CASE(F32, float, __VA_ARGS__) MSA_CASE( \
                  F64, double, __VA_ARGS__) MSA_CASES_COMPLEX_(__VA_ARGS__) MSA_CASE(Bool, bool, __VA_ARGS__))

void scatter_into(Call &c, const char *op, const Operands &r, Reduce how, bool include_self) {
  if (how == Reduce::kAssign) {
    MSA_SWITCH_BYTES(r.o.dtype, (scatter_loop<T>(r.o, r.index, r.src, r.dim, [](T &a, T b) { a = b; })));
    return;
  }
  if (r.o.dtype == DType::F16 || r.o.dtype == DType::BF16) {  // values at the same position are combined in float
    Tensor wide = contiguous_tensor(c.scratch_of<float>(r.o.numel), DType::F32, r.o.shape());
    copy_into(wide, r.o);
    if (r.o.dtype == DType::F16)
      scatter_reduce<float, Half>(c, wide, r.index, r.src, r.dim, how, include_self);
    else
      scatter_reduce<float, BFloat16>(c, wide, r.index, r.src, r.dim, how, include_self);
    return copy_into(r.o, wide);
  }
  MSA_SWITCH_ALL_BUT_HALF(r.o.dtype, op, (scatter_reduce<T>(c, r.o, r.index, r.src, r.dim, how, include_self)));
}

void scatter_tensor(Call &c, const char *op, Reduce how, bool include_self) {
  const Operands r = scatter_operands(c, op, &c.in(3));
  if (r.index.numel) scatter_into(c, op, r, how, include_self);
}

void scatter_number(Call &c, const char *op, Reduce how) {
  const Operands r = scatter_operands(c, op, nullptr);
  if (r.index.numel == 0) return;
  double bits[2];  // memory for one value of any type
  MSA_SWITCH_ALL(r.o.dtype, op, ({
                   const T v = c.scalar(3).to<T>();
                   std::memcpy(bits, &v, sizeof v);
                 }));
  const Tensor v = make_view(contiguous_tensor(bits, r.o.dtype, {1}), r.index.shape(), Dims(r.index.ndim, 0));
  scatter_into(c, op, {r.o, r.index, v, r.dim}, how, true);
}

// MindSpore's numbers for the reduction: 0 none, 1 add, 2 multiply.
Reduce reduce_enum(int64_t i) { return i == 0 ? Reduce::kAssign : i == 1 ? Reduce::kAdd : Reduce::kMul; }

MSA_POINTWISE_KERNEL(ScatterAddExt) { scatter_tensor(c, "scatter_add", Reduce::kAdd, true); }  // input, dim, index, src
MSA_KERNEL_ALIAS(InplaceScatterAdd, ScatterAddExt)
MSA_POINTWISE_KERNEL(Scatter) {  // input, dim, index, src, reduce
  scatter_tensor(c, "scatter", c.has(4) ? reduce_enum(c.integer(4)) : Reduce::kAssign, true);
}
MSA_KERNEL_ALIAS(InplaceScatterSrc, Scatter)
MSA_KERNEL_ALIAS(InplaceScatterSrcReduce, Scatter)
MSA_POINTWISE_KERNEL(ScatterValue) {  // input, dim, index, value, reduce
  scatter_number(c, "scatter", c.has(4) ? reduce_enum(c.integer(4)) : Reduce::kAssign);
}
MSA_KERNEL_ALIAS(InplaceScatterValue, ScatterValue)
MSA_KERNEL_ALIAS(InplaceScatterValueReduce, ScatterValue)
MSA_POINTWISE_KERNEL(ScatterReduce) {  // input, dim, index, src, reduce, include_self
  scatter_tensor(c, "scatter_reduce", reduce_of(c.str(4)), c.flag(5));
}

MSA_KERNEL(GatherDGradV2) {  // x, dim, index, dout
  const Tensor index = positions_of(c, at_least_1d(c.in(2))), g = at_least_1d(c.in(3));
  Tensor o = at_least_1d(c.out_like(0, c.in(0)));
  fill_zero(o);
  if (index.numel == 0) return;
  scatter_into(c, "gather_backward", {o, index, same_corner(g, index), wrap_dim(c.integer(1), c.in(0).ndim)},
               Reduce::kAdd, true);
}

}  // namespace
}  // namespace msa

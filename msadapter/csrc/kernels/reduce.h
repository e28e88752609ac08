// Reductions over any subset of dimensions of a strided operand.
//
// A reduction consists of a load, which converts a block of elements to the accumulator type Acc, and a step, which
// combines two values of this type. The load is a function pointer, so that the loops are compiled once for each Acc
// and not for each element type. Short runs of elements are accumulated in Acc, in several vectors. The results of the
// runs are accumulated in Wide, which is double for float and c128 for c64, so that float sums are at least as accurate
// as pairwise sums. The work is divided by sizes only, so the result does not depend on the number of threads.
#pragma once
#include <cmath>
#include <limits>
#include <utility>

#include "half_blocks.h"
#include "loops.h"
#include "wrapping.h"

namespace msa {

struct ReducePlan {
  int nkept = 0, nreduced = 0;                             // merged dims, innermost first
  int64_t ksize[kMaxDims], kin[kMaxDims], kout[kMaxDims];  // strides: kin and rin in bytes, kout in elements
  int64_t rsize[kMaxDims], rin[kMaxDims];
  int64_t outputs = 1, reduced = 1;
};

// Whether each dim is reduced. No list, or an empty one, means all dims. A dim that is named twice is PyTorch's error.
std::vector<bool> dims_mask(const Dims &dims, int ndim);
std::vector<bool> reduce_mask(const Call &c, int operand, int ndim);
Dims reduced_shape(const Tensor &t, const std::vector<bool> &mask, bool keepdim);
int64_t reduced_count(const Tensor &t, const std::vector<bool> &mask);
ReducePlan plan_reduction(const Tensor &t, const std::vector<bool> &mask);
// Returns a view of `t` whose last dims are the reduced ones.
Tensor rows_seen(const Tensor &t, const std::vector<bool> &mask);
// Returns `t` as a contiguous matrix whose columns are the reduced elements: [outputs][reduced]. It is the operand
// itself if it has this layout, and else a copy.
Tensor rows_of(Call &c, const Tensor &t, const std::vector<bool> &mask, DType dtype);
Tensor rows_of(Call &c, const Tensor &t, int64_t dim, DType dtype);
// Returns a view of a buffer [kept dims..., len] with its last dim moved to position `dim`, as in `t`.
Tensor rows_view(const Tensor &rows, const Tensor &t, int64_t dim, int64_t len);

#define MSA_INLINE __attribute__((always_inline)) inline

// The type in which a reduction adds and multiplies: wrapping_t for numbers, and the same for vectors of integers.
template <class V, class = void>
struct step_type {
  using type = wrapping_t<V>;
};
template <class V>
struct step_type<V, std::enable_if_t<std::is_integral_v<std::decay_t<decltype(std::declval<V &>()[0])>>>> {
  typedef uint64_t type __attribute__((vector_size(sizeof(V))));
  static_assert(sizeof(std::declval<V &>()[0]) == 8);
};
template <class V>
using step_t = typename step_type<V>::type;

// a = step(a, b), for numbers and for vectors of numbers. An element x of the operand is joined as b = step.of(x), and
// the result of other elements as it is.
struct PlainStep {
  template <class V>
  MSA_INLINE const V &of(const V &b) const {
    return b;
  }
};
struct SumStep : PlainStep {
  static constexpr int start = 0;
  template <class V>
  MSA_INLINE void operator()(V &a, const V &b) const {
    a = (V)((step_t<V>)a + (step_t<V>)b);
  }
};
// A sum in which NaN counts as 0. The sum itself may be NaN, of infinities.
struct NumberSumStep : SumStep {
  template <class V>
  MSA_INLINE V of(const V &b) const {
    if constexpr (is_complex_v<V>)
      return std::isnan(b.real()) || std::isnan(b.imag()) ? V(0) : b;
    else
      return b == b ? b : V{};
  }
};
struct SquareSumStep : SumStep {
  template <class V>
  MSA_INLINE V of(const V &b) const {
    return b * b;
  }
};
struct ProdStep : PlainStep {
  static constexpr int start = 1;
  template <class V>
  MSA_INLINE void operator()(V &a, const V &b) const {
    a = (V)((step_t<V>)a * (step_t<V>)b);
  }
};
// The result is NaN if any element is.
struct MaxStep : PlainStep {
  template <class V>
  MSA_INLINE void operator()(V &a, const V &b) const {
    a = ((b > a) | (b != b)) ? b : a;
  }
};
struct MinStep : PlainStep {
  template <class V>
  MSA_INLINE void operator()(V &a, const V &b) const {
    a = ((b < a) | (b != b)) ? b : a;
  }
};

template <class A>
struct wide_type {
  using type = A;
};
template <>
struct wide_type<float> {
  using type = double;
};
template <>
struct wide_type<c64> {
  using type = c128;
};
template <class A>
using wide_t = typename wide_type<A>::type;

// dst[i] = f(element i of a strided run).
template <class Acc>
using Load = void (*)(Acc *dst, const char *src, int64_t step, int64_t n);

template <class A>
struct ConvertTo {
  template <class T>
  MSA_INLINE A operator()(T v) const {
    return convert<A>(v);
  }
};

template <class In, class Acc, class F>
void load_run(Acc *__restrict dst, const char *src, int64_t step, int64_t n) {
  const F f;
  const In *p = reinterpret_cast<const In *>(src);
  if constexpr (std::is_same_v<In, Half> && std::is_same_v<F, ConvertTo<float>>)
    if (step == sizeof(Half)) return widen_half(dst, p, n);
  if (step == sizeof(In))
    for (int64_t i = 0; i < n; ++i) dst[i] = f(element<In>(p + i));
  else
    for (int64_t i = 0; i < n; ++i) dst[i] = f(element<In>(src + i * step));
}
// Reduces `in` to `out`, which is contiguous and has the kept dims in their order. It is compiled for float, double and
// int64 with every step, for c128 with sums and products, and for c64 with sums. `load` is null if the elements have
// the type Acc.
template <class Acc, class Step>
void reduce_core(const Tensor &in, const std::vector<bool> &mask, wide_t<Acc> *out, Acc identity, Load<Acc> load);

// Rows with fewer elements than this are reduced many at a time, because a row alone does not fill the vectors of the
// processor.
constexpr int64_t kShortRow = 32;
constexpr int64_t kShortRows = 64;  // how many of them are reduced together, at least

// Whether the reduced elements are short rows that follow one another, such as those of an (N, 3) matrix. There are at
// least kShortRows of them.
bool has_short_rows(const Tensor &in, const std::vector<bool> &mask);
// Reduces such rows. The result of so few elements has the type Acc and not Wide, which would give the same numbers.
template <class Acc, class Step>
void reduce_short(const Tensor &in, const std::vector<bool> &mask, Acc *out, Acc identity, Load<Acc> load);

// Reduces x to o, which has the kept dims in their order. finish(numbers) changes the results, in Acc or in Wide,
// before they are converted to the type of o.
template <class Acc, class Step, class F>
void reduce_into(Call &c, const Tensor &x, const Tensor &o, const std::vector<bool> &mask, Acc identity, Load<Acc> load,
                 F finish) {
  auto run = [&](auto zero, auto reduce) {
    using W = decltype(zero);
    const bool direct = o.dtype == dtype_of<W>::value;
    W *w = direct ? o.ptr<W>() : c.scratch_of<W>(std::max<int64_t>(o.numel, 1));
    reduce(x, mask, w, identity, load);
    if (shape_only()) return;
    finish(w);
    if (!direct) copy_into(o, contiguous_tensor(w, dtype_of<W>::value, o.shape()));
  };
  if constexpr (std::is_same_v<Acc, float>)
    if (has_short_rows(x, mask)) return run(Acc(), reduce_short<Acc, Step>);
  run(wide_t<Acc>(), reduce_core<Acc, Step>);
}

}  // namespace msa

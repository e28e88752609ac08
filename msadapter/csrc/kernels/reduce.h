// Reductions over any subset of dimensions of a strided operand.
//
// A reduction is a load (element -> Acc, in blocks, by pointer so that the loops exist once per Acc) and a
// step (Acc, Acc -> Acc). Short runs are accumulated in Acc with many vector lanes; the runs are added up in
// Wide (double for float), which keeps float sums at least as accurate as a cascade. Work is cut by sizes
// only, never by the number of threads, so results do not depend on it.
#pragma once
#include <cmath>
#include <limits>

#include "loops.h"

namespace msa {

struct ReducePlan {
  int nkept = 0, nreduced = 0;                             // coalesced, innermost first
  int64_t ksize[kMaxDims], kin[kMaxDims], kout[kMaxDims];  // kin, rin in bytes; kout in elements
  int64_t rsize[kMaxDims], rin[kMaxDims];
  int64_t outputs = 1, reduced = 1;
};

// Which dims are reduced: none or an empty list means all. Repeats raise torch's error.
std::vector<bool> dims_mask(const Dims &dims, int ndim);
std::vector<bool> reduce_mask(const Call &c, int operand, int ndim);
Dims reduced_shape(const Tensor &t, const std::vector<bool> &mask, bool keepdim);
int64_t reduced_count(const Tensor &t, const std::vector<bool> &mask);
ReducePlan plan_reduction(const Tensor &t, const std::vector<bool> &mask);
// Contiguous copy (or the operand itself) whose reduced dims are last: [outputs][reduced].
Tensor rows_of(Call &c, const Tensor &t, const std::vector<bool> &mask, DType dtype);
Tensor rows_of(Call &c, const Tensor &t, int64_t dim, DType dtype);
// Buffer [kept dims..., len] seen in the order of `t`'s dims (dim moved back in place).
Tensor rows_view(const Tensor &rows, const Tensor &t, int64_t dim, int64_t len);

#define MSA_INLINE __attribute__((always_inline)) inline

// a = step(a, b), for numbers and for vectors of them.
struct SumStep {
  static constexpr int start = 0;
  template <class V>
  MSA_INLINE void operator()(V &a, const V &b) const {
    a += b;
  }
};
struct ProdStep {
  static constexpr int start = 1;
  template <class V>
  MSA_INLINE void operator()(V &a, const V &b) const {
    a *= b;
  }
};
// Not-a-number wins and stays.
struct MaxStep {
  template <class V>
  MSA_INLINE void operator()(V &a, const V &b) const {
    a = ((b > a) | (b != b)) ? b : a;
  }
};
struct MinStep {
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
template <class A>
using wide_t = typename wide_type<A>::type;

// dst[i] = f(element i of a strided run)
template <class Acc>
using Load = void (*)(Acc *dst, const char *src, int64_t step, int64_t n);

template <class In, class Acc, class F>
void load_run(Acc *__restrict dst, const char *src, int64_t step, int64_t n) {
  const F f;
  const In *p = reinterpret_cast<const In *>(src);
  if (step == sizeof(In))
    for (int64_t i = 0; i < n; ++i) dst[i] = f(p[i]);
  else
    for (int64_t i = 0; i < n; ++i) dst[i] = f(*reinterpret_cast<const In *>(src + i * step));
}
template <class A>
struct ConvertTo {
  template <class T>
  MSA_INLINE A operator()(T v) const {
    return convert<A>(v);
  }
};

// out[o] (kept dims in order, contiguous) = fold. Exists for float, double, int64 with every step and for c128
// with sum and prod. load == nullptr: elements are Acc already.
template <class Acc, class Step>
void reduce_core(const Tensor &in, const std::vector<bool> &mask, wide_t<Acc> *out, Acc identity, Load<Acc> load);

}  // namespace msa

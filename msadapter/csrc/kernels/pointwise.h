// Elementwise kernels. The loop is the same for all of them (pointwise_blocks.cpp), so a kernel contains only its
// arithmetic.
//
// The arithmetic works on contiguous blocks of the type in which the kernel computes: float for the 16-bit floats,
// int64 for integers and bool. The memory of an operand is used directly if it is contiguous and has this type, which
// is the most frequent case. An operand with other strides, another type or a broadcast is copied, 512 elements at a
// time, to a buffer that stays in the L1 cache.
#pragma once
#include <cmath>

#include "loops.h"
#include "stepwise.h"

namespace msa {

using Block = void (*)(char *const *p, int64_t n, const void *context);

// Runs f over blocks of `count` tensors. The first `nout` tensors are results, and the others are operands that are
// broadcast to the shape of t[0]. compute[k] is the type of the blocks that f receives for tensor k.
void run_blocks(int count, int nout, const Tensor *const *t, const DType *compute, Block f, const void *context,
                int64_t grain = kGrain);

constexpr int64_t kCostlyGrain = 2048;  // for functions that need tens of nanoseconds for each element

// o[i] = f(a[i]). TO and TA are the types in which f computes, which may differ from the element types of the tensors.
template <class TO, class TA, class F>
void unary(const Tensor &o, const Tensor &a, F f, int64_t grain = kGrain) {
  const Tensor *t[] = {&o, &a};
  const DType d[] = {dtype_of<TO>::value, dtype_of<TA>::value};
  run_blocks(
      2, 1, t, d,
      [](char *const *p, int64_t n, const void *context) {
        const F fn = *static_cast<const F *>(context);
        TO *po = reinterpret_cast<TO *>(p[0]);
        const TA *pa = reinterpret_cast<const TA *>(p[1]);
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) po[i] = fn(pa[i]);
      },
      &f, grain);
}

// o[i] = near(a[i]) where |a[i]| is at most `limit`, and far(a[i]) elsewhere, for a function `near` that the compiler
// vectorises and that is right up to the limit only. Few blocks have elements beyond it.
template <class T, class N, class F>
void unary_within(const Tensor &o, const Tensor &a, T limit, N near, F far, int64_t grain) {
  struct Context {
    T limit;
    N near;
    F far;
  } context{limit, near, far};
  const Tensor *t[] = {&o, &a};
  const DType d[] = {dtype_of<T>::value, dtype_of<T>::value};
  run_blocks(
      2, 1, t, d,
      [](char *const *p, int64_t n, const void *given) {
        const Context c = *static_cast<const Context *>(given);
        for (int64_t begin = 0; begin < n; begin += 256) {
          T *po = reinterpret_cast<T *>(p[0]) + begin;
          const T *pa = reinterpret_cast<const T *>(p[1]) + begin;
          const int64_t m = std::min<int64_t>(256, n - begin);
          int beyond = 0;
          for (int64_t i = 0; i < m; ++i) beyond |= std::abs(pa[i]) > c.limit;
          if (beyond) {
            for (int64_t i = 0; i < m; ++i) po[i] = std::abs(pa[i]) > c.limit ? c.far(pa[i]) : c.near(pa[i]);
            continue;
          }
#pragma GCC ivdep
          for (int64_t i = 0; i < m; ++i) po[i] = c.near(pa[i]);
        }
      },
      &context, grain);
}

// o[i] = f(a[i], b[i])
template <class TO, class TA, class TB, class F>
void binary(const Tensor &o, const Tensor &a, const Tensor &b, F f, int64_t grain = kGrain) {
  const Tensor *t[] = {&o, &a, &b};
  const DType d[] = {dtype_of<TO>::value, dtype_of<TA>::value, dtype_of<TB>::value};
  run_blocks(
      3, 1, t, d,
      [](char *const *p, int64_t n, const void *context) {
        const F fn = *static_cast<const F *>(context);
        TO *po = reinterpret_cast<TO *>(p[0]);
        const TA *pa = reinterpret_cast<const TA *>(p[1]);
        const TB *pb = reinterpret_cast<const TB *>(p[2]);
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) po[i] = fn(pa[i], pb[i]);
      },
      &f, grain);
}

// o[i] = near(a[i], b[i]) where fits(a[i], b[i]), and far(a[i], b[i]) elsewhere: unary_within() for two operands.
template <class T, class P, class N, class F>
void binary_where(const Tensor &o, const Tensor &a, const Tensor &b, P fits, N near, F far, int64_t grain) {
  struct Context {
    P fits;
    N near;
    F far;
  } context{fits, near, far};
  const Tensor *t[] = {&o, &a, &b};
  const DType d[] = {dtype_of<T>::value, dtype_of<T>::value, dtype_of<T>::value};
  run_blocks(
      3, 1, t, d,
      [](char *const *p, int64_t n, const void *given) {
        const Context c = *static_cast<const Context *>(given);
        for (int64_t begin = 0; begin < n; begin += 256) {
          T *po = reinterpret_cast<T *>(p[0]) + begin;
          const T *pa = reinterpret_cast<const T *>(p[1]) + begin, *pb = reinterpret_cast<const T *>(p[2]) + begin;
          const int64_t m = std::min<int64_t>(256, n - begin);
          int beyond = 0;
          for (int64_t i = 0; i < m; ++i) beyond |= !c.fits(pa[i], pb[i]);
          if (beyond) {
            for (int64_t i = 0; i < m; ++i) po[i] = c.fits(pa[i], pb[i]) ? c.near(pa[i], pb[i]) : c.far(pa[i], pb[i]);
            continue;
          }
#pragma GCC ivdep
          for (int64_t i = 0; i < m; ++i) po[i] = c.near(pa[i], pb[i]);
        }
      },
      &context, grain);
}

// o[i] = f(a[i], b[i], c[i])
template <class TO, class TA, class TB, class TC, class F>
void ternary(const Tensor &o, const Tensor &a, const Tensor &b, const Tensor &c, F f, int64_t grain = kGrain) {
  const Tensor *t[] = {&o, &a, &b, &c};
  const DType d[] = {dtype_of<TO>::value, dtype_of<TA>::value, dtype_of<TB>::value, dtype_of<TC>::value};
  run_blocks(
      4, 1, t, d,
      [](char *const *p, int64_t n, const void *context) {
        const F fn = *static_cast<const F *>(context);
        TO *po = reinterpret_cast<TO *>(p[0]);
        const TA *pa = reinterpret_cast<const TA *>(p[1]);
        const TB *pb = reinterpret_cast<const TB *>(p[2]);
        const TC *pc = reinterpret_cast<const TC *>(p[3]);
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) po[i] = fn(pa[i], pb[i], pc[i]);
      },
      &f, grain);
}

// o1[i] = f(a[i], &o2[i]): f returns one result and writes the other.
template <class TO, class TP, class TA, class F>
void unary_pair(const Tensor &o1, const Tensor &o2, const Tensor &a, F f) {
  const Tensor *t[] = {&o1, &o2, &a};
  const DType d[] = {dtype_of<TO>::value, dtype_of<TP>::value, dtype_of<TA>::value};
  run_blocks(
      3, 2, t, d,
      [](char *const *p, int64_t n, const void *context) {
        const F fn = *static_cast<const F *>(context);
        TO *po = reinterpret_cast<TO *>(p[0]);
        TP *pp = reinterpret_cast<TP *>(p[1]);
        const TA *pa = reinterpret_cast<const TA *>(p[2]);
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) po[i] = fn(pa[i], &pp[i]);
      },
      &f);
}

// PyTorch's vector loops process two vectors of 16-bit elements at a time. The remaining elements, the tail, are
// computed by a scalar loop that rounds after every step. Returns the number of these elements. It is 0 unless the
// result and all operands are contiguous, because PyTorch then uses no vector loop.
inline int64_t tail_of(const Tensor &o, std::initializer_list<const Tensor *> operands) {
  for (const Tensor *t : operands)
    if (!t->contiguous() || t->numel != o.numel || t->dtype != o.dtype) return 0;
  return o.contiguous() ? o.numel % kVectorBytes : 0;
}

// Returns operand i as a tensor. A Python number becomes a tensor without dims, of the type of the other operand
// (`beside`). With `exact`, a number beside a 16-bit tensor is not rounded to 16 bits. This is so for products and
// quotients.
Tensor operand(Call &c, int i, DType beside, bool exact = false);
// The common element type of operands i and j. They differ only if MindSpore calls the kernel directly, because the
// dispatcher of this package promotes them first.
DType common_dtype(Call &c, int i, int j);

struct Two {
  DType dtype;
  Tensor a, b;
};
inline Two operands(Call &c, bool exact = false) {
  const DType d = common_dtype(c, 0, 1);
  return {d, operand(c, 0, d, exact), operand(c, 1, d, exact)};
}
inline Tensor out2(Call &c, DType d, const Two &p) { return c.out_pointwise(0, d, {&p.a, &p.b}); }

// MSA_COMPUTE_xxx(dtype, "op", body) runs the body with T as the type in which tensors of this dtype are computed.
#define MSA_C_FLOAT_(...)   \
  case ::msa::DType::F16:   \
  case ::msa::DType::BF16:  \
  case ::msa::DType::F32: { \
    using T = float;        \
    __VA_ARGS__;            \
    break;                  \
  }                         \
    MSA_CASE(F64, double, __VA_ARGS__)
#define MSA_C_INT_(...)     \
  case ::msa::DType::U8:    \
  case ::msa::DType::I8:    \
  case ::msa::DType::I16:   \
  case ::msa::DType::I32:   \
  case ::msa::DType::I64:   \
  case ::msa::DType::U16:   \
  case ::msa::DType::U32:   \
  case ::msa::DType::U64: { \
    using T = int64_t;      \
    __VA_ARGS__;            \
    break;                  \
  }
#define MSA_C_BOOL_(...)     \
  case ::msa::DType::Bool: { \
    using T = int64_t;       \
    __VA_ARGS__;             \
    break;                   \
  }
#define MSA_COMPUTE_FLOAT(D, OP, ...) MSA_SWITCH_(D, OP, MSA_C_FLOAT_(__VA_ARGS__))
#define MSA_COMPUTE_COMPLEX(D, OP, ...) MSA_SWITCH_(D, OP, MSA_CASES_COMPLEX_(__VA_ARGS__))
#define MSA_COMPUTE_FLOAT_COMPLEX(D, OP, ...) \
  MSA_SWITCH_(D, OP, MSA_C_FLOAT_(__VA_ARGS__) MSA_CASES_COMPLEX_(__VA_ARGS__))
#define MSA_COMPUTE_INT(D, OP, ...) MSA_SWITCH_(D, OP, MSA_C_INT_(__VA_ARGS__))
#define MSA_COMPUTE_INT_BOOL(D, OP, ...)                                                  \
  switch (D) {                                                                            \
    case ::msa::DType::Bool: MSA_C_INT_(__VA_ARGS__) default : ::msa::unsupported(OP, D); \
  }
#define MSA_COMPUTE_REAL(D, OP, ...) MSA_SWITCH_(D, OP, MSA_C_INT_(__VA_ARGS__) MSA_C_FLOAT_(__VA_ARGS__))
#define MSA_COMPUTE_REAL_BOOL(D, OP, ...)                                                                           \
  switch (D) {                                                                                                      \
    case ::msa::DType::Bool: MSA_C_INT_(__VA_ARGS__) MSA_C_FLOAT_(__VA_ARGS__) default : ::msa::unsupported(OP, D); \
  }
#define MSA_COMPUTE_NUMBER(D, OP, ...) \
  MSA_SWITCH_(D, OP, MSA_C_INT_(__VA_ARGS__) MSA_C_FLOAT_(__VA_ARGS__) MSA_CASES_COMPLEX_(__VA_ARGS__))
#define MSA_COMPUTE_ALL(D, OP, ...)                                                                  \
  switch (D) {                                                                                       \
    case ::msa::DType::Bool:                                                                         \
      MSA_C_INT_(__VA_ARGS__)                                                                        \
      MSA_C_FLOAT_(__VA_ARGS__) MSA_CASES_COMPLEX_(__VA_ARGS__) default : ::msa::unsupported(OP, D); \
  }

}  // namespace msa

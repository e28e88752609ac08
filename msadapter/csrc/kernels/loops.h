// Loops over strided tensors that are broadcast to one shape. Large loops run in several threads.
#pragma once
#include <algorithm>

#include "api.h"

namespace msa {

constexpr int64_t kGrain = 32768;

Dims broadcast_shapes(std::initializer_list<const Tensor *> operands);
// Returns a view of t with the given shape, to which t can be broadcast. Dims of size 1 that are expanded, and dims
// that t does not have, get the stride 0.
Tensor expand(const Tensor &t, const Dims &shape);
// Returns a view of the same memory with other sizes and strides. The offset counts elements.
Tensor make_view(const Tensor &t, const Dims &sizes, const Dims &strides, int64_t offset = 0);
Tensor contiguous_tensor(void *data, DType dtype, const Dims &sizes);

// A loop over N tensors of one shape. Its dims are sorted by the strides of the first tensor, and neighbouring dims are
// merged where all tensors allow it. Dim 0 of the loop is the innermost one, with the smallest stride.
template <int N>
struct Loop {
  int ndim = 0;
  int64_t numel = 1;
  int64_t sizes[kMaxDims];
  int64_t strides[N][kMaxDims];  // in bytes
  char *base[N];

  Loop(const Dims &shape, std::array<Tensor, N> t) {
    int order[kMaxDims];
    const int nd = static_cast<int>(shape.size());
    for (int k = 0; k < N; ++k) base[k] = static_cast<char *>(t[k].data);
    int n = 0;
    for (int d = 0; d < nd; ++d) {
      numel *= shape[d];
      if (shape[d] != 1) order[n++] = d;
    }
    if (numel == 0) {
      ndim = 0;
      return;
    }
    // An insertion sort by stride, which puts the innermost dim last. Dims with equal strides, or with a stride of 0,
    // keep their order.
    auto goes_outside = [&](int a, int b) {
      for (int k = 0; k < N; ++k) {
        const int64_t sa = std::abs(t[k].strides[a]), sb = std::abs(t[k].strides[b]);
        if (sa == 0 || sb == 0 || sa == sb) continue;
        return sa > sb;
      }
      return a < b;
    };
    for (int i = 1; i < n; ++i)
      for (int j = i; j > 0 && goes_outside(order[j], order[j - 1]) && !goes_outside(order[j - 1], order[j]); --j)
        std::swap(order[j], order[j - 1]);
    for (int i = n - 1; i >= 0; --i) {  // begins with the innermost dim
      const int d = order[i];
      bool merged = false;
      if (ndim > 0) {
        merged = true;
        for (int k = 0; k < N; ++k)
          if (t[k].strides[d] * item_size(t[k].dtype) != strides[k][ndim - 1] * sizes[ndim - 1]) {
            merged = false;
            break;
          }
      }
      if (merged)
        sizes[ndim - 1] *= shape[d];
      else {
        sizes[ndim] = shape[d];
        for (int k = 0; k < N; ++k) strides[k][ndim] = t[k].strides[d] * item_size(t[k].dtype);
        ++ndim;
      }
    }
    if (ndim == 0) {
      ndim = 1;
      sizes[0] = 1;
      for (int k = 0; k < N; ++k) strides[k][0] = 0;
    }
  }

  // Calls inner(char **pointers, const int64_t *strides in bytes, int64_t n) for runs of n elements along the innermost
  // dim. Uses several threads from `grain` elements on.
  template <class F>
  void run(F inner, int64_t grain = kGrain) const {
    if (numel == 0 || shape_only()) return;
    int64_t step[N];
    for (int k = 0; k < N; ++k) step[k] = strides[k][0];
    const int64_t inner_n = sizes[0], outer_n = numel / inner_n;
    auto piece = [&](int64_t begin, int64_t end) {  // a range of elements in the order of the loop
      int64_t idx[kMaxDims], rest = begin / inner_n, first = begin % inner_n;
      char *p[N];
      for (int k = 0; k < N; ++k) p[k] = base[k];
      for (int d = 1; d < ndim; ++d) {
        idx[d] = rest % sizes[d];
        rest /= sizes[d];
        for (int k = 0; k < N; ++k) p[k] += idx[d] * strides[k][d];
      }
      int64_t left = end - begin;
      while (left > 0) {
        const int64_t n = std::min(left, inner_n - first);
        char *q[N];
        for (int k = 0; k < N; ++k) q[k] = p[k] + first * step[k];
        inner(q, step, n);
        left -= n;
        first = 0;
        for (int d = 1; d < ndim; ++d) {
          for (int k = 0; k < N; ++k) p[k] += strides[k][d];
          if (++idx[d] < sizes[d]) break;
          for (int k = 0; k < N; ++k) p[k] -= strides[k][d] * sizes[d];
          idx[d] = 0;
        }
      }
    };
    (void)outer_n;
    if (numel < grain || num_threads() == 1)
      piece(0, numel);
    else
      parallel_for(numel, grain / 2, piece);
  }
};

namespace detail {
template <class TO, class TA, class F>
inline void unary_run(char *o, const char *a, int64_t so, int64_t sa, int64_t n, F f) {
  if (so == sizeof(TO) && sa == sizeof(TA)) {
    TO *__restrict po = reinterpret_cast<TO *>(o);
    const TA *pa = reinterpret_cast<const TA *>(a);
    for (int64_t i = 0; i < n; ++i) po[i] = f(element<TA>(pa + i));
  } else {
    for (int64_t i = 0; i < n; ++i) *reinterpret_cast<TO *>(o + i * so) = f(element<TA>(a + i * sa));
  }
}
template <class TO, class TA, class TB, class F>
inline void binary_run(char *o, const char *a, const char *b, int64_t so, int64_t sa, int64_t sb, int64_t n, F f) {
  if (so == sizeof(TO) && sa == sizeof(TA) && sb == sizeof(TB)) {
    TO *po = reinterpret_cast<TO *>(o);
    const TA *pa = reinterpret_cast<const TA *>(a);
    const TB *pb = reinterpret_cast<const TB *>(b);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) po[i] = f(pa[i], pb[i]);
  } else if (so == sizeof(TO) && sa == sizeof(TA) && sb == 0) {
    TO *po = reinterpret_cast<TO *>(o);
    const TA *pa = reinterpret_cast<const TA *>(a);
    const TB vb = *reinterpret_cast<const TB *>(b);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) po[i] = f(pa[i], vb);
  } else if (so == sizeof(TO) && sa == 0 && sb == sizeof(TB)) {
    TO *po = reinterpret_cast<TO *>(o);
    const TA va = *reinterpret_cast<const TA *>(a);
    const TB *pb = reinterpret_cast<const TB *>(b);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) po[i] = f(va, pb[i]);
  } else {
    for (int64_t i = 0; i < n; ++i)
      *reinterpret_cast<TO *>(o + i * so) =
          f(*reinterpret_cast<const TA *>(a + i * sa), *reinterpret_cast<const TB *>(b + i * sb));
  }
}
}  // namespace detail

// out[i] = f(a[i]), where `a` is broadcast to the shape of `out`. `out` may be the operand itself.
template <class TO, class TA, class F>
void map1(const Tensor &out, const Tensor &a, F f, int64_t grain = kGrain) {
  const Dims shape = out.shape();
  Loop<2>(shape, {out, expand(a, shape)})
      .run([&](char **p, const int64_t *s, int64_t n) { detail::unary_run<TO, TA>(p[0], p[1], s[0], s[1], n, f); },
           grain);
}
// out[i] = f(a[i], b[i]), where `a` and `b` are broadcast to the shape of `out`.
template <class TO, class TA, class TB, class F>
void map2(const Tensor &out, const Tensor &a, const Tensor &b, F f, int64_t grain = kGrain) {
  const Dims shape = out.shape();
  Loop<3>(shape, {out, expand(a, shape), expand(b, shape)})
      .run([&](char **p, const int64_t *s,
               int64_t n) { detail::binary_run<TO, TA, TB>(p[0], p[1], p[2], s[0], s[1], s[2], n, f); },
           grain);
}
// out[i] = f(a[i], b[i], c[i]), with the same broadcasting.
template <class TO, class TA, class TB, class TC, class F>
void map3(const Tensor &out, const Tensor &a, const Tensor &b, const Tensor &c, F f, int64_t grain = kGrain) {
  const Dims shape = out.shape();
  Loop<4>(shape, {out, expand(a, shape), expand(b, shape), expand(c, shape)})
      .run(
          [&](char **p, const int64_t *s, int64_t n) {
            for (int64_t i = 0; i < n; ++i)
              *reinterpret_cast<TO *>(p[0] + i * s[0]) =
                  f(*reinterpret_cast<const TA *>(p[1] + i * s[1]), *reinterpret_cast<const TB *>(p[2] + i * s[2]),
                    *reinterpret_cast<const TC *>(p[3] + i * s[3]));
          },
          grain);
}

void fill_zero(const Tensor &t);
// Copies `src`, broadcast to the shape of `dst`, and converts it to the type of `dst`. All pairs of types and all
// strides are supported.
void copy_into(const Tensor &dst, const Tensor &src);

}  // namespace msa

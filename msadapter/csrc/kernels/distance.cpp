// The distances between the rows of two matrices, and their gradient.
#include "linalg.h"
#include "stepwise.h"
#include "type_names.h"
#include "vec_functions.h"

namespace msa {
namespace {

constexpr int64_t kColumns = 512;  // distances of one row that are summed together, in the L1 cache

// Coordinates of one row whose gradients are summed together, in registers.
template <class C>
struct Lanes {
  typedef C V __attribute__((vector_size(kVectorBytes)));  // the compiler splits wider ones badly
  static constexpr int64_t kCount = kVectorBytes / sizeof(C);
};

template <class C>
MSA_INLINE C power_of(C x, C p) {
  if constexpr (std::is_same_v<C, float>)
    return vec::pow(x, p);
  else
    return std::pow(x, p);
}

// sum[j] += term(|x - y[j]|) for the coordinates y[j] of many points
template <class C, class F>
void add_terms(C *sum, C x, const C *y, int64_t n, F term) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) sum[j] = term(sum[j], vec::abs(x - y[j]));
}
// out[j] = the distance of the point x from point j. Coordinate i of point j is y[i * stride + j].
template <class C>
void distances(const C *x, const C *y, int64_t stride, int64_t n, int64_t dims, C p, C *out) {
  std::fill_n(out, n, C(0));
  for (int64_t i = 0; i < dims; ++i) {
    const C *from = y + i * stride;
    if (p == 2)
      add_terms(out, x[i], from, n, [](C s, C d) { return s + d * d; });
    else if (p == 1)
      add_terms(out, x[i], from, n, [](C s, C d) { return s + d; });
    else if (p == 0)
      add_terms(out, x[i], from, n, [](C s, C d) { return s + (d == 0 ? C(0) : C(1)); });
    else if (std::isinf(p))
      add_terms(out, x[i], from, n, [](C s, C d) { return d > s || d != d ? d : s; });
    else
      add_terms(out, x[i], from, n, [p](C s, C d) { return s + power_of(d, p); });
  }
  if (p == 2)
    for (int64_t j = 0; j < n; ++j) out[j] = vec::sqrt(out[j]);
  else if (p != 0 && p != 1 && !std::isinf(p))
    for (int64_t j = 0; j < n; ++j) out[j] = power_of(out[j], 1 / p);
}

// The sum over all points j of weight[j] slope(x - y[j], size[j]), for some coordinates of x and y.
template <class C, class F>
void add_slopes(C *sum, const C *x, const C *y, const C *weight, const C *size, int64_t n, int64_t dims, int64_t lanes,
                F slope) {
  std::fill_n(sum, lanes, C(0));
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < lanes; ++i) sum[i] += weight[j] * slope(x[i] - y[j * dims + i], size[j]);
}
// The same for Lanes::kCount coordinates and a slope of vectors, x - y or its sign.
template <class C>
void add_lanes(C *sum, const C *x, const C *y, const C *weight, int64_t n, int64_t dims, bool sign) {
  using V = typename Lanes<C>::V;
  V at, from, total{};
  std::memcpy(&at, x, sizeof(V));
  for (int64_t j = 0; j < n; ++j) {
    std::memcpy(&from, y + j * dims, sizeof(V));
    const V d = at - from;
    if (sign)
      total += (d > 0 ? V{} + 1 : V{}) * weight[j] - (d < 0 ? V{} + 1 : V{}) * weight[j];
    else
      total += d * weight[j];
  }
  std::memcpy(sum, &total, sizeof(V));
}
template <class C>
C sign_of(C d) {
  return d > 0 ? C(1) : d < 0 ? C(-1) : C(0);
}
// The gradient of the distances of one point x. `weight` is overwritten.
template <class C>
void slopes(C *out, const C *x, const C *y, C *weight, const C *size, int64_t n, int64_t dims, C p) {
  if (p == 0) return static_cast<void>(std::fill_n(out, dims, C(0)));
  if (p == 2)
    for (int64_t j = 0; j < n; ++j) weight[j] = size[j] == 0 ? C(0) : weight[j] / size[j];
  else if (p != 1 && !std::isinf(p))
    for (int64_t j = 0; j < n; ++j) weight[j] = size[j] == 0 ? C(0) : weight[j] / power_of(size[j], p - 1);
  constexpr int64_t kLanes = Lanes<C>::kCount;
  for (int64_t i = 0; i < dims; i += kLanes) {
    const int64_t lanes = std::min(kLanes, dims - i);
    if (lanes == kLanes && (p == 1 || p == 2))
      add_lanes(out + i, x + i, y + i, weight, n, dims, p == 1);
    else if (p == 2)
      add_slopes(out + i, x + i, y + i, weight, size, n, dims, lanes, [](C d, C) { return d; });
    else if (p == 1)
      add_slopes(out + i, x + i, y + i, weight, size, n, dims, lanes, [](C d, C) { return sign_of(d); });
    else if (std::isinf(p))
      add_slopes(out + i, x + i, y + i, weight, size, n, dims, lanes,
                 [](C d, C most) { return vec::abs(d) == most ? sign_of(d) : C(0); });
    else
      add_slopes(out + i, x + i, y + i, weight, size, n, dims, lanes,
                 [p](C d, C) { return d == 0 ? C(0) : vec::copysign(power_of(vec::abs(d), p - 1), d); });
  }
}

DType compute_of(DType d) { return d == DType::F64 ? DType::F64 : DType::F32; }

}  // namespace

MSA_KERNEL(Cdist) {  // x1 (..., n, m), x2 (..., k, m), p -> (..., n, k)
  const Tensor &x = c.in(0), &y = c.in(1);
  check(x.dtype == y.dtype, "expected m1 and m2 to have the same dtype, but got: ", cpp_type_name(x.dtype),
        " != ", cpp_type_name(y.dtype));
  if (!is_floating(x.dtype)) unsupported("cdist", x.dtype);
  const double p = c.number(2);
  const Dims batch = broadcast_batches(batch_of(x), batch_of(y));
  const int64_t n = x.size(-2), k = y.size(-2), m = x.size(-1), count = count_of(batch);
  const DType d = compute_of(x.dtype);
  // the points of x2 with their coordinates outside, so that a loop over points reads neighbours
  const Tensor a = c.cast(expand(x, join(batch, {n, m})), d), b = c.cast(transposed(expand(y, join(batch, {k, m}))), d);
  const Tensor o = c.out(0, x.dtype, join(batch, {n, k}));
  const Tensor work =
      o.dtype == d ? o : contiguous_tensor(c.scratch(std::max<int64_t>(o.numel, 1) * item_size(d)), d, o.shape());
  MSA_SWITCH_FLOAT(d, "cdist", ({
                     using C = compute_t<T>;
                     parallel_for(count * n, std::max<int64_t>(1, 20000 / std::max<int64_t>(k * m, 1)),
                                  [&](int64_t from, int64_t to) {
                                    for (int64_t r = from; r < to; ++r)
                                      for (int64_t j = 0; j < k; j += kColumns)
                                        distances<C>(a.ptr<C>() + r * m, b.ptr<C>() + r / n * m * k + j, k,
                                                     std::min(kColumns, k - j), m, C(p), work.ptr<C>() + r * k + j);
                                  });
                   }));
  if (work.data != o.data) copy_into(o, work);
}

// The gradient of x1. A kernel without an operator of MindSpore. Operands: dy (..., n, k), x1 (..., n, m),
// x2 (..., k, m), p, distances (..., n, k) -> (..., n, m)
MSA_KERNEL(DistanceGrad) {
  const Tensor &g = c.in(0), &x = c.in(1), &y = c.in(2), &size = c.in(4);
  const double p = c.number(3);
  const Dims batch = batch_of(size);
  const int64_t n = x.size(-2), k = y.size(-2), m = x.size(-1), count = count_of(batch);
  const DType d = compute_of(x.dtype);
  const Tensor a = c.cast(expand(x, join(batch, {n, m})), d), b = c.cast(expand(y, join(batch, {k, m})), d),
               weight = c.cast(expand(g, join(batch, {n, k})), d), far = c.cast(size, d);
  const Tensor o = c.out(0, x.dtype, join(batch, {n, m}));
  const Tensor work =
      o.dtype == d ? o : contiguous_tensor(c.scratch(std::max<int64_t>(o.numel, 1) * item_size(d)), d, o.shape());
  MSA_SWITCH_FLOAT(d, "cdist_backward", ({
                     using C = compute_t<T>;
                     parallel_for(count * n, std::max<int64_t>(1, 20000 / std::max<int64_t>(k * m, 1)),
                                  [&](int64_t from, int64_t to) {
                                    std::vector<C> own(k);
                                    for (int64_t r = from; r < to; ++r) {
                                      std::copy_n(weight.ptr<C>() + r * k, k, own.data());
                                      slopes<C>(work.ptr<C>() + r * m, a.ptr<C>() + r * m, b.ptr<C>() + r / n * k * m,
                                                own.data(), far.ptr<C>() + r * k, k, m, C(p));
                                    }
                                  });
                   }));
  if (work.data != o.data) copy_into(o, work);
}

// Where the distances of row r from the rows after it begin, among those of n rows.
static int64_t first_of(int64_t r, int64_t n) { return r * (2 * n - r - 1) / 2; }

// The distances of every row of a matrix from the rows after it. A kernel without an operator of MindSpore. Operands:
// x (n, m), p -> (n (n - 1) / 2)
MSA_KERNEL(RowDistances) {
  const Tensor &x = c.in(0);
  const double p = c.number(1);
  const int64_t n = x.size(0), m = x.size(1);
  const Tensor a = c.contiguous(x), b = c.contiguous(transposed(x));
  const Tensor o = c.out(0, x.dtype, Dims{n * std::max<int64_t>(n - 1, 0) / 2});
  auto run = [&](auto *rows, auto *columns, auto *out) {
    using T = std::remove_reference_t<decltype(*out)>;
    parallel_for(n, std::max<int64_t>(1, 20000 / std::max<int64_t>(n * m, 1)), [=](int64_t from, int64_t to) {
      for (int64_t r = from; r < to; ++r)
        for (int64_t j = r + 1; j < n; j += kColumns)
          distances<T>(rows + r * m, columns + j, n, std::min(kColumns, n - j), m, T(p),
                       out + first_of(r, n) + j - r - 1);
    });
  };
  if (x.dtype == DType::F32) return run(a.ptr<float>(), b.ptr<float>(), o.ptr<float>());
  if (x.dtype == DType::F64) return run(a.ptr<double>(), b.ptr<double>(), o.ptr<double>());
  unsupported("pdist", x.dtype);
}

// The gradient of x. A kernel without an operator of MindSpore. Operands: dy, x (n, m), p, distances -> (n, m)
MSA_KERNEL(RowDistancesGrad) {
  const Tensor &x = c.in(1);
  const double p = c.number(2);
  const int64_t n = x.size(0), m = x.size(1);
  const Tensor g = c.contiguous(c.in(0)), a = c.contiguous(x), far = c.contiguous(c.in(3));
  const Tensor o = c.out(0, x.dtype, Dims{n, m});
  auto run = [&](auto *out) {
    using T = std::remove_reference_t<decltype(*out)>;
    parallel_for(n, std::max<int64_t>(1, 20000 / std::max<int64_t>(n * m, 1)),
                 [=, &g, &a, &far](int64_t from, int64_t to) {
                   std::vector<T> weight(n), size(n);
                   for (int64_t r = from; r < to; ++r) {
                     for (int64_t j = 0; j < n; ++j) {
                       const int64_t at = j < r ? first_of(j, n) + r - j - 1 : first_of(r, n) + j - r - 1;
                       weight[j] = j == r ? T(0) : g.ptr<T>()[at];
                       size[j] = j == r ? T(0) : far.ptr<T>()[at];
                     }
                     slopes<T>(out + r * m, a.ptr<T>() + r * m, a.ptr<T>(), weight.data(), size.data(), n, m, T(p));
                   }
                 });
  };
  if (x.dtype == DType::F32) return run(o.ptr<float>());
  if (x.dtype == DType::F64) return run(o.ptr<double>());
  unsupported("pdist_backward", x.dtype);
}

}  // namespace msa

// Matrix exponential, determinant, cross product, pairwise distances.
#include <cmath>
#include <limits>

#include "gemm.h"
#include "linalg.h"
#include "type_names.h"
#include "wrapping.h"

namespace msa {
namespace {

// c = a b + beta c on n x n matrices
template <class T>
void multiply(const T *a, const T *b, T *c, int64_t n, double beta) {
  gemm(dtype_of<T>::value, n, n, n, make_scalar(1), {a, n, 1}, {b, n, 1}, make_scalar(beta), c, n);
}

// How exp(A) is computed: A is divided by 2^squarings, a Taylor polynomial of this degree is evaluated in powers of
// A^block (Paterson and Stockmeyer), and the result is squared as often as A was halved.
struct ExpPlan {
  int degree, block, squarings;
};
// The plan with the fewest products whose result is exp(A + E) with |E| <= |A| unit. The norm of the first term that
// the polynomial leaves out is |A|^(degree + 1) / (degree + 1)!, and the rest is at most exp(|A|) times as large.
ExpPlan plan_exp(double norm, double unit) {
  constexpr ExpPlan kForms[] = {{4, 2, 0}, {8, 4, 0}, {12, 3, 0}, {16, 4, 0}};
  ExpPlan best{};
  int fewest = std::numeric_limits<int>::max();
  for (ExpPlan form : kForms) {
    double size = norm;
    while (std::exp(size - std::lgamma(form.degree + 2)) * std::pow(size, form.degree) > unit) {
      size /= 2;
      ++form.squarings;
    }
    const int products = form.block - 1 + form.degree / form.block - 1 + form.squarings;
    if (products < fewest) fewest = products, best = form;
  }
  return best;
}

template <class T>
void matrix_exp(T *a, int64_t n, double unit) {
  using R = real_t<T>;
  const int64_t nn = n * n;
  R norm = 0;
  for (int64_t j = 0; j < n; ++j) {
    R sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += std::abs(a[i + j * n]);
    norm = std::max(norm, sum);
  }
  if (!std::isfinite(norm)) return std::fill(a, a + nn, T(std::numeric_limits<R>::quiet_NaN()));
  const ExpPlan plan = plan_exp(norm, unit);
  const R scale = std::ldexp(R(1), -plan.squarings);
  std::vector<T> powers(nn * plan.block), sum(nn), next(nn);
  for (int64_t i = 0; i < nn; ++i) powers[i] = a[i] * scale;
  for (int p = 1; p < plan.block; ++p) multiply(&powers[0], &powers[(p - 1) * nn], &powers[p * nn], n, 0);
  std::vector<R> factor{1};  // 1 / k!
  for (int k = 1; k <= plan.degree; ++k) factor.push_back(factor.back() / R(k));
  // next = the terms of a block: c[0] + c[1] A + c[2] A^2 + ... + c[terms] A^terms
  auto block_of = [&](const R *c, int terms) {
    std::fill(next.begin(), next.end(), T(0));
    for (int p = 0; p < terms; ++p) {
      const T *power = &powers[p * nn];
      for (int64_t i = 0; i < nn; ++i) next[i] += c[p + 1] * power[i];
    }
    for (int64_t i = 0; i < n; ++i) next[i + i * n] += c[0];
  };
  // ((first block and the highest power) A^block + second block) A^block + ...
  for (int at = plan.degree - plan.block; at >= 0; at -= plan.block) {
    const bool first = at == plan.degree - plan.block;
    block_of(&factor[at], first ? plan.block : plan.block - 1);
    if (!first) multiply(sum.data(), &powers[(plan.block - 1) * nn], next.data(), n, 1);
    sum.swap(next);
  }
  for (int s = 0; s < plan.squarings; ++s) {
    multiply(sum.data(), sum.data(), next.data(), n, 0);
    sum.swap(next);
  }
  std::copy(sum.begin(), sum.end(), a);
}

// Replaces every matrix by its LU decomposition. odd[i] tells whether the permutation of matrix i is odd.
template <class T>
void factor(const Tensor &lu, int *pivots, bool *odd) {
  const int64_t n = lu.size(-1), count = matrix_count(lu);
  const int order = narrow_int(n), ld = leading(n);
  for (int64_t i = 0; i < count; ++i) {
    int info = 0;
    odd[i] = false;
    if (n == 0) continue;
    lapack<T>(Routine::getrf, &order, &order, lu.ptr<T>() + i * n * n, &ld, pivots + i * n, &info);
    for (int64_t j = 0; j < n; ++j) odd[i] ^= pivots[i * n + j] != j + 1;
  }
}

}  // namespace

MSA_KERNEL(LinalgMatrixExp) {  // A -> exp(A)
  const Tensor &a = c.in(0);
  check_square(a, "linalg.matrix_exp");
  // Scaling and squaring loses digits, so it is done in double precision. The polynomial then needs a few digits more
  // than the result has.
  const DType work_type = is_complex(a.dtype) ? DType::C128 : DType::F64;
  const double unit = std::ldexp(1., work_type == a.dtype ? -53 : -28);
  const Tensor source = work_type == a.dtype ? a : c.cast(a, work_type);
  const Tensor f = columns_of(c, source, batch_of(a)), o = c.out(0, a.dtype, a.shape());
  const int64_t n = a.size(-1), count = matrix_count(a);
  MSA_SWITCH_LAPACK(work_type, "matrix_exp", ({
                      for (int64_t i = 0; i < count && n > 0; ++i) matrix_exp(f.ptr<T>() + i * n * n, n, unit);
                    }));
  copy_into(o, f);
}

MSA_KERNEL(LinalgDet) {  // A -> det, LU, pivots
  const Tensor &a = c.in(0);
  check_square(a, "linalg.det");
  const Dims batch = batch_of(a);
  const int64_t n = a.size(-1), count = matrix_count(a);
  const Tensor o = c.out(0, a.dtype, batch), lu = out_columns(c, 1, a.dtype, batch, n, n),
               pivots = c.out(2, DType::I32, join(batch, {n}));
  copy_into(lu, a);
  bool *odd = c.scratch_of<bool>(count + 1);
  MSA_SWITCH_LAPACK(a.dtype, "linalg_det", ({
                      factor<T>(lu, pivots.ptr<int>(), odd);
                      for (int64_t i = 0; i < count; ++i) {
                        T r = odd[i] ? T(-1) : T(1);
                        for (int64_t j = 0; j < n; ++j) r *= lu.ptr<T>()[i * n * n + j * (n + 1)];
                        o.ptr<T>()[i] = r;
                      }
                    }));
}

MSA_KERNEL(LinalgSlogdet) {  // A -> sign, log |det|, LU, pivots
  const Tensor &a = c.in(0);
  check_square(a, "linalg.slogdet");
  const Dims batch = batch_of(a);
  const int64_t n = a.size(-1), count = matrix_count(a);
  const Tensor sign = c.out(0, a.dtype, batch), log_abs = c.out(1, real_of(a.dtype), batch);
  const Tensor lu = out_columns(c, 2, a.dtype, batch, n, n), pivots = c.out(3, DType::I32, join(batch, {n}));
  copy_into(lu, a);
  bool *odd = c.scratch_of<bool>(count + 1);
  MSA_SWITCH_LAPACK(a.dtype, "linalg_slogdet", ({
                      using R = real_t<T>;
                      factor<T>(lu, pivots.ptr<int>(), odd);
                      for (int64_t i = 0; i < count; ++i) {
                        T s = odd[i] ? T(-1) : T(1);
                        R sum = 0;
                        for (int64_t j = 0; j < n; ++j) {
                          const T d = lu.ptr<T>()[i * n * n + j * (n + 1)];
                          const R size = std::abs(d);
                          s *= size == 0 ? T(0) : d / size;
                          sum += std::log(size);
                        }
                        sign.ptr<T>()[i] = s;
                        log_abs.ptr<R>()[i] = sum;
                      }
                    }));
}

MSA_KERNEL(Cross) {  // a, b (one shape after broadcasting), dim of size 3
  const Dims shape = broadcast_shapes({&c.in(0), &c.in(1)});
  const Tensor a = expand(c.in(0), shape), b = expand(c.in(1), shape);
  const int d = static_cast<int>(wrap_dim(c.integer(2), a.ndim));
  check(a.sizes[d] == 3 && b.sizes[d] == 3, "linalg.cross: inputs dimension ", c.integer(2),
        " must have length 3. Got ", a.sizes[d], " and ", b.sizes[d]);
  const Tensor o = c.out(0, a.dtype, shape);
  auto part = [&](const Tensor &t, int i) {
    Tensor r = t;
    r.data = static_cast<char *>(t.data) + i * t.strides[d] * item_size(t.dtype);
    r.sizes[d] = 1;
    r.numel = t.numel / 3;
    return r;
  };
  void *scratch = c.scratch(std::max<int64_t>(o.numel, 1) * item_size(a.dtype));
  MSA_SWITCH_NUMBER(
      a.dtype, "cross", ({
        // every product is rounded to the element type, as in PyTorch
        for (int i = 0; i < 3; ++i) {
          const int j = (i + 1) % 3, k = (i + 2) % 3;
          const Tensor first = part(o, i), second = contiguous_tensor(scratch, a.dtype, first.shape());
          map2<T, T, T>(first, part(a, j), part(b, k), [](T x, T y) { return T(wrapping_mul<compute_t<T>>(x, y)); });
          map2<T, T, T>(second, part(a, k), part(b, j), [](T x, T y) { return T(wrapping_mul<compute_t<T>>(x, y)); });
          map2<T, T, T>(first, first, second, [](T x, T y) { return T(wrapping_sub<compute_t<T>>(x, y)); });
        }
      }));
}

}  // namespace msa

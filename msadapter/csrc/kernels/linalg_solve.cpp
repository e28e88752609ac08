// Factorisations of square matrices and the solvers that use them: Cholesky, LU, LDL, triangular.
#include <cmath>
#include <numeric>

#include "linalg.h"

namespace msa {
namespace {

Tensor out_info(Call &c, int index, const Dims &batch) { return c.out(index, DType::I32, batch); }

// Cholesky factors: A = L L^H or U^H U. The other triangle is zero.
template <class T>
void cholesky(const Tensor &a, int *info, bool upper) {
  const int64_t n = a.size(-1), count = matrix_count(a);
  const int order = narrow_int(n), ld = leading(n);
  const char *uplo = upper ? "U" : "L";
  for_each_matrix(count, [&](int64_t i) {
    T *m = a.ptr<T>() + i * n * n;
    lapack<T>(Routine::potrf, uplo, &order, m, &ld, info + i);
    keep_triangle(m, n, n, upper);
  });
}

template <class T>
void lu_factor(const Tensor &a, int *pivots, int *info) {
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n), count = matrix_count(a);
  const int rows = narrow_int(m), cols = narrow_int(n), ld = leading(m);
  for_each_matrix(count, [&](int64_t i) {
    info[i] = 0;
    if (k > 0) lapack<T>(Routine::getrf, &rows, &cols, a.ptr<T>() + i * m * n, &ld, pivots + i * k, info + i);
  });
}

// Solves op(A) X = B for every matrix of B and writes X to B. Several matrices of B may use the same factors, if the
// batch is broadcast.
template <class T>
void lu_solve(const Tensor &lu, const Tensor &pivots, const Tensor &b, const char *op) {
  const int64_t n = b.size(-2), k = b.size(-1), count = matrix_count(b);
  const int order = narrow_int(n), rhs = narrow_int(k), ld = leading(n);
  if (n == 0 || k == 0) return;
  for_each_matrix(count, [&](int64_t i) {
    int info = 0;
    lapack<T>(Routine::getrs, op, &order, &rhs, lu.ptr<T>() + i * n * n, &ld, pivots.ptr<int>() + i * n,
              b.ptr<T>() + i * n * k, &ld, &info);
  });
}

// Whether B is a batch of vectors. They count as matrices with one column.
bool is_vector_case(const Tensor &a, const Tensor &b) {
  if (b.ndim == 1) return true;
  if (b.ndim != a.ndim - 1) return false;
  for (int d = 0; d < b.ndim; ++d)
    if (b.sizes[d] != a.sizes[d]) return false;
  return true;
}
Tensor as_columns(const Tensor &b) {
  Tensor r = b;
  r.sizes[r.ndim] = 1;
  r.strides[r.ndim] = 1;
  ++r.ndim;
  return r;
}

// Pivots of n x n matrices, for every matrix of a batch. LAPACK swaps rows by them without a check, so they are
// checked here.
Tensor batch_pivots(Call &c, const Tensor &pivots, const Dims &batch, int64_t n) {
  check(pivots.dtype == DType::I32, "Expected pivots to be of dtype int32, but got ", dtype_name(pivots.dtype));
  check(pivots.ndim >= 1 && pivots.size(-1) == n, "Expected pivots to have ", n,
        " elements for every matrix, but got pivots with shape ", pivots.shape());
  const Dims shape = join(batch, {pivots.size(-1)});
  const Tensor r = contiguous_tensor(c.scratch(std::max<int64_t>(count_of(shape), 1) * 4), DType::I32, shape);
  copy_into(r, expand(pivots, shape));
  for (int64_t i = 0; i < r.numel && !shape_only(); ++i) {
    const int p = r.ptr<int>()[i];
    check((p >= 1 && p <= n) || (p <= -1 && p >= -n), "pivots must be between 1 and ", n, " but one of them is ", p);
  }
  return r;
}

void fill_identity(const Tensor &t) {
  fill_zero(t);
  const int64_t n = t.size(-1), count = matrix_count(t);
  MSA_SWITCH_LAPACK(t.dtype, "eye", ({
                      for (int64_t i = 0; i < count; ++i)
                        for (int64_t j = 0; j < n; ++j) t.ptr<T>()[i * n * n + j * n + j] = T(1);
                    }));
}

}  // namespace

MSA_KERNEL(LinalgCholeskyEx) {  // A, upper -> L, info
  const Tensor &a = c.in(0);
  check_square(a, "linalg.cholesky");
  const Dims batch = batch_of(a);
  const Tensor o = out_columns(c, 0, a.dtype, batch, a.size(-2), a.size(-1)), info = out_info(c, 1, batch);
  fill_zero(info);
  copy_into(o, a);
  if (o.numel == 0) return;
  MSA_SWITCH_LAPACK(a.dtype, "linalg_cholesky_cpu", (cholesky<T>(o, info.ptr<int>(), c.flag(1))));
}

MSA_KERNEL(CholeskySolve) {  // B, L, upper -> X with (L L^H) X = B
  const Tensor &b = c.in(0), &l = c.in(1);
  check(b.ndim >= 2, "b should have at least 2 dimensions, but has ", b.ndim, " dimensions instead");
  check(l.ndim >= 2, "u should have at least 2 dimensions, but has ", l.ndim, " dimensions instead");
  check(l.size(-1) == l.size(-2), "A must be batches of square matrices, but they are ", l.size(-2), " by ", l.size(-1),
        " matrices");
  check(l.size(-1) == b.size(-2), "Incompatible matrix sizes for cholesky_solve: each A matrix is ", l.size(-1), " by ",
        l.size(-1), " but each b matrix is ", b.size(-2), " by ", b.size(-1));
  const Dims batch = broadcast_batches(batch_of(b), batch_of(l));
  const Tensor o = out_columns(c, 0, b.dtype, batch, b.size(-2), b.size(-1)), f = columns_of(c, l, batch);
  copy_into(o, b);
  const int64_t n = b.size(-2), k = b.size(-1), count = count_of(batch);
  if (o.numel == 0) return;
  const int order = narrow_int(n), rhs = narrow_int(k), ld = leading(n);
  MSA_SWITCH_LAPACK(b.dtype, "cholesky_solve_cpu", ({
                      for_each_matrix(count, [&](int64_t i) {
                        int info = 0;
                        lapack<T>(Routine::potrs, c.flag(2) ? "U" : "L", &order, &rhs, f.ptr<T>() + i * n * n, &ld,
                                  o.ptr<T>() + i * n * k, &ld, &info);
                        check(info == 0, "cholesky_solve_cpu: (Batch element ", i,
                              "): The factorization could not be completed.");
                      });
                    }));
}

MSA_KERNEL(CholeskyInverse) {  // L, upper -> (L L^H)^-1
  const Tensor &l = c.in(0);
  check_square(l, "cholesky_inverse");
  const Dims batch = batch_of(l);
  const int64_t n = l.size(-1), count = count_of(batch);
  const Tensor o = out_columns(c, 0, l.dtype, batch, n, n);
  copy_into(o, l);
  if (o.numel == 0) return;
  const bool upper = c.flag(1);
  const int order = narrow_int(n), ld = leading(n);
  MSA_SWITCH_LAPACK(l.dtype, "cholesky_inverse_out_cpu", ({
                      for_each_matrix(count, [&](int64_t b) {
                        T *m = o.ptr<T>() + b * n * n;
                        int info = 0;
                        lapack<T>(Routine::potri, upper ? "U" : "L", &order, m, &ld, &info);
                        check(info == 0, "cholesky_inverse: The diagonal element ", info,
                              " is zero, the inversion could not be completed because the input matrix is singular.");
                        for (int64_t j = 0; j < n; ++j)
                          for (int64_t i = j + 1; i < n; ++i)
                            if (upper)
                              m[i + j * n] = conjugate(m[j + i * n]);
                            else
                              m[j + i * n] = conjugate(m[i + j * n]);
                      });
                    }));
}

MSA_KERNEL(LinalgLuFactorEx) {  // A, pivot -> LU, pivots, info
  const Tensor &a = c.in(0);
  check_matrix(a, "torch.lu_factor");
  check(!c.has(1) || c.flag(1), "linalg.lu_factor: LU without pivoting is not implemented on the CPU");
  const Dims batch = batch_of(a);
  const int64_t m = a.size(-2), n = a.size(-1);
  const Tensor o = out_columns(c, 0, a.dtype, batch, m, n);
  const Tensor pivots = c.out(1, DType::I32, join(batch, {std::min(m, n)})), info = out_info(c, 2, batch);
  copy_into(o, a);
  MSA_SWITCH_LAPACK(a.dtype, "lu_factor_cpu", (lu_factor<T>(o, pivots.ptr<int>(), info.ptr<int>())));
}

MSA_KERNEL(LinalgLuSolve) {  // LU, pivots, B, left, adjoint -> X
  const Tensor &lu = c.in(0), &pivots = c.in(1), &b = c.in(2);
  const bool left = c.flag(3), adjoint = c.flag(4);
  check_square(lu, "torch.linalg.lu_solve");
  check(lu.size(-1) == b.size(left ? -2 : -1), "linalg.lu_solve: Incompatible shapes of A and B for the equation ",
        left ? "AX = B" : "XA = B", " (", lu.size(-2), "x", lu.size(-1), " and ", b.size(-2), "x", b.size(-1), ")");
  const Dims batch = broadcast_batches(batch_of(lu), batch_of(b));
  const Tensor f = columns_of(c, lu, batch), p = batch_pivots(c, pivots, batch, lu.size(-1));
  // X A = B is A^T X^T = B^T: the row-major result is the transposed problem
  const Tensor o = left ? out_columns(c, 0, b.dtype, batch, b.size(-2), b.size(-1))
                        : c.out(0, b.dtype, join(batch, {b.size(-2), b.size(-1)}));
  copy_into(o, b);
  const Tensor x = left ? o : transposed(o);
  const bool conjugated = !left && adjoint && is_complex(b.dtype);  // for X A^H = B, the conjugates of X and B are used
  if (conjugated) conjugate_in_place(o);
  const char *op = left ? (adjoint ? "C" : "N") : (adjoint ? "N" : "T");
  MSA_SWITCH_LAPACK(b.dtype, "lu_solve_cpu", (lu_solve<T>(f, p, x, op)));
  if (conjugated) conjugate_in_place(o);
}

MSA_KERNEL(LuUnpack) {  // LU, pivots, want data, want pivots -> P, L, U
  const Tensor &lu = c.in(0), &pivots = c.in(1);
  const bool data = c.flag(2), permutation = c.flag(3);
  const Dims batch = batch_of(lu);
  const int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n), count = count_of(batch);
  const Tensor p = permutation ? c.out(0, lu.dtype, join(batch, {m, m})) : c.out(0, lu.dtype, Dims{0});
  const Tensor l = data ? c.out(1, lu.dtype, join(batch, {m, k})) : c.out(1, lu.dtype, Dims{0});
  const Tensor u = data ? c.out(2, lu.dtype, join(batch, {k, n})) : c.out(2, lu.dtype, Dims{0});
  if (data) {
    const Tensor f = c.contiguous(lu);
    MSA_SWITCH_FLOAT_COMPLEX(lu.dtype, "lu_unpack", ({
                               const T *src = f.ptr<T>();
                               for (int64_t b = 0; b < count; ++b)
                                 for (int64_t i = 0; i < m; ++i)
                                   for (int64_t j = 0; j < n; ++j) {
                                     const T v = src[(b * m + i) * n + j];
                                     if (j < k) l.ptr<T>()[(b * m + i) * k + j] = i > j ? v : i == j ? T(1) : T(0);
                                     if (i < k) u.ptr<T>()[(b * k + i) * n + j] = i <= j ? v : T(0);
                                   }
                             }));
  }
  if (!permutation) return;
  check(pivots.numel == count * k, "lu_unpack: Expected LU_pivots to hold ", k,
        " pivots for every matrix, but got shape ", pivots.shape());
  const Tensor swaps = c.cast(pivots, DType::I32);
  fill_zero(p);
  std::vector<int64_t> order(m);
  for (int64_t b = 0; b < count; ++b) {
    std::iota(order.begin(), order.end(), 0);
    for (int64_t i = 0; i < k; ++i) {
      const int64_t other = swaps.ptr<int>()[b * k + i] - 1;
      check(other >= 0 && other < m, "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.");
      std::swap(order[i], order[other]);
    }
    MSA_SWITCH_FLOAT_COMPLEX(lu.dtype, "lu_unpack", ({
                               for (int64_t i = 0; i < m; ++i) p.ptr<T>()[(b * m + order[i]) * m + i] = T(1);
                             }));
  }
}

MSA_KERNEL(LinalgSolveEx) {  // A, B, left -> X, LU, pivots, info
  const Tensor &a = c.in(0);
  const bool left = c.flag(2), vector_case = is_vector_case(a, c.in(1));
  check_square(a, "linalg.solve");
  const Tensor b = vector_case ? as_columns(c.in(1)) : c.in(1);
  check(left || !vector_case,
        "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case "
        "linalg.solve is equivalent to B / A.squeeze(-1)");
  check(a.size(-1) == b.size(left ? -2 : -1), "linalg.solve: Incompatible shapes of A and B for the equation ",
        left ? "AX = B" : "XA = B", " (", a.size(-2), "x", a.size(-1), " and ", b.size(-2), "x", b.size(-1), ")");
  const Dims batch = broadcast_batches(batch_of(a), batch_of(b)), own = batch_of(a);
  const int64_t n = a.size(-1);
  Dims shape = join(batch, {b.size(-2), b.size(-1)});
  if (vector_case) shape.pop_back();
  Tensor o =
      left && !vector_case ? out_columns(c, 0, b.dtype, batch, b.size(-2), b.size(-1)) : c.out(0, b.dtype, shape);
  const Tensor lu = out_columns(c, 1, a.dtype, own, n, n), pivots = c.out(2, DType::I32, join(own, {n})),
               info = out_info(c, 3, own);
  if (vector_case) o = as_columns(o);
  copy_into(o, b);
  copy_into(lu, a);
  MSA_SWITCH_LAPACK(a.dtype, "linalg_solve_cpu", ({
                      lu_factor<T>(lu, pivots.ptr<int>(), info.ptr<int>());
                      const bool same = own == batch;
                      lu_solve<T>(same ? lu : columns_of(c, lu, batch),
                                  same ? pivots : batch_pivots(c, pivots, batch, lu.size(-1)), left ? o : transposed(o),
                                  left ? "N" : "T");
                    }));
}

static void inverse(Call &c, const Tensor &o, int *info) {
  const Tensor &a = c.in(0);
  const Tensor lu = columns_of(c, a, batch_of(a));
  const Tensor pivots =
      contiguous_tensor(c.scratch(std::max<int64_t>(a.numel, 1) * 4), DType::I32, join(batch_of(a), {a.size(-1)}));
  fill_identity(o);
  MSA_SWITCH_LAPACK(a.dtype, "linalg_inv_ex_cpu", ({
                      lu_factor<T>(lu, pivots.ptr<int>(), info);
                      lu_solve<T>(lu, pivots, o, "N");
                    }));
}
MSA_KERNEL(LinalgInvEx) {  // A -> inverse, info
  const Tensor &a = c.in(0);
  check_square(a, "linalg.inv");
  const Tensor o = out_columns(c, 0, a.dtype, batch_of(a), a.size(-2), a.size(-1)), info = out_info(c, 1, batch_of(a));
  inverse(c, o, info.ptr<int>());
}
MSA_KERNEL(MatrixInverseExt) {  // A -> inverse, an error where there is none
  const Tensor &a = c.in(0);
  check_square(a, "linalg.inv");
  const int64_t count = matrix_count(a);
  int *info = c.scratch_of<int>(count + 1);
  inverse(c, out_columns(c, 0, a.dtype, batch_of(a), a.size(-2), a.size(-1)), info);
  for (int64_t i = 0; i < count; ++i)
    check(info[i] == 0, "linalg.inv: ", a.ndim > 2 ? text("(Batch element ", i, "): ") : "", "The diagonal element ",
          info[i], " is zero, the inversion could not be completed because the input matrix is singular.");
}

// Back substitution with sums in double. As in PyTorch, zeros on the diagonal give inf and nan, and no error.
template <class T>
static void triangular_solve(const T *a, T *b, int64_t n, int64_t k, bool upper, bool transposed, bool unit) {
  using W = std::conditional_t<is_complex_v<T>, c128, double>;
  const bool backwards = upper != transposed;  // an upper triangle is solved from the last row on
  std::vector<W> x(n);
  for (int64_t col = 0; col < k; ++col) {
    T *column = b + col * n;
    for (int64_t i = 0; i < n; ++i) x[i] = W(column[i]);
    for (int64_t s = 0; s < n; ++s) {
      const int64_t i = backwards ? n - 1 - s : s;
      const int64_t first = backwards ? i + 1 : 0, last = backwards ? n : i;
      if (transposed) {  // row i of the effective matrix is column i of a
        W sum = x[i];
        for (int64_t r = first; r < last; ++r) sum -= W(a[r + i * n]) * x[r];
        x[i] = unit ? sum : sum / W(a[i + i * n]);
      } else {
        if (!unit) x[i] = x[i] / W(a[i + i * n]);
        const W v = x[i];
        if (v == W(0)) continue;
        const int64_t from = backwards ? 0 : i + 1, to = backwards ? i : n;
        for (int64_t r = from; r < to; ++r) x[r] -= W(a[r + i * n]) * v;
      }
    }
    for (int64_t i = 0; i < n; ++i) column[i] = T(x[i]);
  }
}

// Solves op(a) X = B, where op transposes if `transposed`, for the k columns of b. Large matrices are solved by LAPACK
// in blocks, unless a zero on the diagonal would make it refuse.
template <class T>
static void solve_triangle(const T *a, T *b, int64_t n, int64_t k, bool upper, bool transposed, bool unit) {
  constexpr int64_t kBlockedFrom = 64;
  bool regular = n >= kBlockedFrom;
  for (int64_t i = 0; regular && !unit && i < n; ++i) regular = a[i + i * n] != T(0);
  if (!regular) return triangular_solve(a, b, n, k, upper, transposed, unit);
  const int order = narrow_int(n), columns = narrow_int(k), ld = leading(n);
  int info = 0;
  lapack<T>(Routine::trtrs, upper ? "U" : "L", transposed ? "T" : "N", unit ? "U" : "N", &order, &columns, a, &ld, b,
            &ld, &info);
}

MSA_KERNEL(LinalgSolveTriangular) {  // A, B, upper, left, unitriangular -> X
  const Tensor &a = c.in(0), &b = c.in(1);
  const bool upper = c.flag(2), left = c.flag(3), unit = c.flag(4);
  check_square(a, "linalg.solve_triangular");
  check_matrix(b, "linalg.solve_triangular", "B");
  check(a.size(-1) == b.size(left ? -2 : -1),
        "linalg.solve_triangular: Incompatible shapes of A and B for the equation ", left ? "AX = B" : "XA = B", " (",
        a.size(-2), "x", a.size(-1), " and ", b.size(-2), "x", b.size(-1), ")");
  const Dims batch = broadcast_batches(batch_of(a), batch_of(b));
  const Tensor f = columns_of(c, a, batch);
  const Tensor o = left ? out_columns(c, 0, b.dtype, batch, b.size(-2), b.size(-1))
                        : c.out(0, b.dtype, join(batch, {b.size(-2), b.size(-1)}));
  copy_into(o, b);
  const int64_t n = a.size(-1), k = b.size(left ? -1 : -2), count = count_of(batch);
  MSA_SWITCH_LAPACK(b.dtype, "triangular_solve_cpu", ({
                      for_each_matrix(count, [&](int64_t i) {
                        solve_triangle(f.ptr<T>() + i * n * n, o.ptr<T>() + i * n * k, n, k, upper, !left, unit);
                      });
                    }));
}

MSA_KERNEL(TriangularSolve) {  // b, A, upper, transpose, unitriangular -> solution, copy of A
  const Tensor &b = c.in(0), &a = c.in(1);
  check(b.ndim >= 2, "torch.triangular_solve: Expected b to have at least 2 dimensions, but it has ", b.ndim,
        " dimensions instead");
  check(a.ndim >= 2, "torch.triangular_solve: Expected A to have at least 2 dimensions, but it has ", a.ndim,
        " dimensions instead");
  check_square(a, "triangular_solve");
  const Dims batch = broadcast_batches(batch_of(a), batch_of(b));
  const Tensor o = out_columns(c, 0, b.dtype, batch, b.size(-2), b.size(-1)),
               f = out_columns(c, 1, a.dtype, batch, a.size(-2), a.size(-1));
  copy_into(o, b);
  copy_into(f, a);
  const int64_t n = a.size(-1), k = b.size(-1), count = count_of(batch);
  MSA_SWITCH_LAPACK(b.dtype, "triangular_solve_cpu", ({
                      for_each_matrix(count, [&](int64_t i) {
                        solve_triangle(f.ptr<T>() + i * n * n, o.ptr<T>() + i * n * k, n, k, c.flag(2), c.flag(3),
                                       c.flag(4));
                      });
                    }));
}

MSA_KERNEL(LinalgLdlFactorEx) {  // A, hermitian -> LD, pivots, info (lower triangle)
  const Tensor &a = c.in(0);
  check_square(a, "torch.linalg.ldl_factor_ex");
  const Dims batch = batch_of(a);
  const int64_t n = a.size(-1), count = count_of(batch);
  const Tensor o = out_columns(c, 0, a.dtype, batch, n, n), pivots = c.out(1, DType::I32, join(batch, {n})),
               info = out_info(c, 2, batch);
  copy_into(o, a);
  fill_zero(info);
  if (o.numel == 0) return;
  const int order = narrow_int(n), ld = leading(n), size = narrow_int(64 * n);
  MSA_SWITCH_LAPACK(a.dtype, "ldl_factor_cpu", ({
                      const Routine r = c.flag(1) && is_complex_v<T> ? Routine::hetrf : Routine::sytrf;
                      T *work = c.scratch_of<T>(size);
                      for (int64_t i = 0; i < count; ++i) {
                        T *m = o.ptr<T>() + i * n * n;
                        lapack<T>(r, "L", &order, m, &ld, pivots.ptr<int>() + i * n, work, &size, info.ptr<int>() + i);
                        keep_triangle(m, n, n, false);
                      }
                    }));
}

MSA_KERNEL(LinalgLdlSolve) {  // LD, pivots, B, hermitian -> X
  const Tensor &f = c.in(0), &b = c.in(2);
  check_square(f, "torch.linalg.ldl_solve");
  const Dims batch = broadcast_batches(batch_of(f), batch_of(b));
  const int64_t n = f.size(-1), k = b.size(-1), count = count_of(batch);
  const Tensor o = out_columns(c, 0, b.dtype, batch, n, k), ld_matrix = columns_of(c, f, batch),
               p = batch_pivots(c, c.in(1), batch, n);
  copy_into(o, b);
  if (o.numel == 0) return;
  const int order = narrow_int(n), rhs = narrow_int(k), ld = leading(n);
  MSA_SWITCH_LAPACK(b.dtype, "ldl_solve_cpu", ({
                      const Routine r = c.flag(3) && is_complex_v<T> ? Routine::hetrs : Routine::sytrs;
                      for_each_matrix(count, [&](int64_t i) {
                        int info = 0;
                        lapack<T>(r, "L", &order, &rhs, ld_matrix.ptr<T>() + i * n * n, &ld, p.ptr<int>() + i * n,
                                  o.ptr<T>() + i * n * k, &ld, &info);
                      });
                    }));
}

}  // namespace msa

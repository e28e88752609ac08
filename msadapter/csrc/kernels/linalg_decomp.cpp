// QR, SVD, eigenvalues, least squares.
#include <cmath>
#include <limits>

#include "linalg.h"

namespace msa {
namespace {

// Asks a routine for its best size of work memory (its first work element), but at least 1.
template <class T>
int best_size(T answer) {
  double v;
  if constexpr (is_complex_v<T>)
    v = answer.real();
  else
    v = answer;
  return std::max(1, static_cast<int>(std::nextafter(v, 1e300) + 0.5));
}

template <class T>
void geqrf(T *a, int64_t m, int64_t n, T *tau) {
  const int rows = narrow_int(m), cols = narrow_int(n), ld = leading(m), ask = -1;
  int info = 0;
  T answer;
  lapack<T>(Routine::geqrf, &rows, &cols, a, &ld, tau, &answer, &ask, &info);
  const int size = best_size(answer);
  std::vector<T> work(size);
  lapack<T>(Routine::geqrf, &rows, &cols, a, &ld, tau, work.data(), &size, &info);
}

// Replaces `a` (m x n), whose columns contain k reflectors, by the first n columns of their product.
template <class T>
void orgqr(T *a, int64_t m, int64_t n, int64_t k, T *tau) {
  const int rows = narrow_int(m), cols = narrow_int(n), reflectors = narrow_int(k), ld = leading(m), ask = -1;
  int info = 0;
  T answer;
  lapack<T>(Routine::orgqr, &rows, &cols, &reflectors, a, &ld, tau, &answer, &ask, &info);
  const int size = best_size(answer);
  std::vector<T> work(size);
  lapack<T>(Routine::orgqr, &rows, &cols, &reflectors, a, &ld, tau, work.data(), &size, &info);
}

enum QrMode { kReduced, kComplete, kOnlyR };

template <class T>
void qr_one(const T *a, int64_t m, int64_t n, QrMode mode, T *q, T *r, int64_t q_cols, int64_t r_rows) {
  const int64_t k = std::min(m, n), width = std::max(n, q_cols);
  std::vector<T> work(std::max<int64_t>(m * width, 1)), tau(std::max<int64_t>(k, 1));
  std::copy(a, a + m * n, work.begin());
  if (k > 0) geqrf(work.data(), m, n, tau.data());
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < r_rows; ++i) r[i + j * r_rows] = i <= j ? work[i + j * m] : T(0);
  if (mode == kOnlyR || q_cols == 0) return;
  orgqr(work.data(), m, q_cols, std::min(k, q_cols), tau.data());
  std::copy(work.begin(), work.begin() + m * q_cols, q);
}

// jobz is 'A' for the full decomposition, 'S' for the reduced one, and 'N' for singular values only. `a` (m x n,
// column-major) is overwritten.
template <class T>
int svd_one(T *a, int64_t m, int64_t n, char jobz, real_t<T> *s, T *u, T *vh) {
  using R = real_t<T>;
  const int64_t k = std::min(m, n), big = std::max(m, n);
  const int rows = narrow_int(m), cols = narrow_int(n), ld = leading(m), ldu = leading(m);
  const int ldv = leading(jobz == 'A' ? n : k), ask = -1;
  std::vector<int> iwork(8 * k + 1);
  std::vector<R> rwork(is_complex_v<T> ? std::max<int64_t>(k * std::max<int64_t>(5 * k + 7, 2 * big + 2 * k + 1), 1)
                                       : 1);
  int info = 0;
  T answer;
  auto run = [&](T *work, const int *size) {
    if constexpr (is_complex_v<T>)
      lapack<T>(Routine::gesdd, &jobz, &rows, &cols, a, &ld, s, u, &ldu, vh, &ldv, work, size, rwork.data(),
                iwork.data(), &info);
    else
      lapack<T>(Routine::gesdd, &jobz, &rows, &cols, a, &ld, s, u, &ldu, vh, &ldv, work, size, iwork.data(), &info);
  };
  run(&answer, &ask);
  const int size = best_size(answer);
  std::vector<T> work(size);
  run(work.data(), &size);
  return info;
}

template <class T>
int eigh_one(T *a, int64_t n, bool upper, bool vectors, real_t<T> *w) {
  using R = real_t<T>;
  const int order = narrow_int(n), ld = leading(n), ask = -1;
  const char *job = vectors ? "V" : "N", *uplo = upper ? "U" : "L";
  int info = 0, int_answer = 1;
  T answer;
  R real_answer = 1;
  auto run = [&](T *work, const int *size, [[maybe_unused]] R *rwork, [[maybe_unused]] const int *rsize, int *iwork,
                 const int *isize) {
    if constexpr (is_complex_v<T>)
      lapack<T>(Routine::syevd, job, uplo, &order, a, &ld, w, work, size, rwork, rsize, iwork, isize, &info);
    else
      lapack<T>(Routine::syevd, job, uplo, &order, a, &ld, w, work, size, iwork, isize, &info);
  };
  run(&answer, &ask, &real_answer, &ask, &int_answer, &ask);
  const int size = best_size(answer), rsize = best_size(real_answer), isize = std::max(1, int_answer);
  std::vector<T> work(size);
  std::vector<R> rwork(rsize);
  std::vector<int> iwork(isize);
  run(work.data(), &size, rwork.data(), &rsize, iwork.data(), &isize);
  return info;
}

// Eigenvalues and right eigenvectors, which are complex for real matrices too.
template <class T>
int eig_one(T *a, int64_t n, bool vectors, std::complex<real_t<T>> *w, std::complex<real_t<T>> *v) {
  using R = real_t<T>;
  using Z = std::complex<R>;
  const int order = narrow_int(n), ld = leading(n), ask = -1, one = 1;
  const char *none = "N", *right = vectors ? "V" : "N";
  int info = 0;
  T answer, unused = T(0);
  if constexpr (is_complex_v<T>) {
    std::vector<R> rwork(2 * n + 1);
    auto run = [&](T *work, const int *size) {
      lapack<T>(Routine::geev, none, right, &order, a, &ld, w, &unused, &one, vectors ? v : &unused,
                vectors ? &ld : &one, work, size, rwork.data(), &info);
    };
    run(&answer, &ask);
    const int size = best_size(answer);
    std::vector<T> work(size);
    run(work.data(), &size);
  } else {
    std::vector<R> re(n + 1), im(n + 1), vr(vectors ? n * n + 1 : 1);
    auto run = [&](T *work, const int *size) {
      lapack<T>(Routine::geev, none, right, &order, a, &ld, re.data(), im.data(), &unused, &one, vr.data(),
                vectors ? &ld : &one, work, size, &info);
    };
    run(&answer, &ask);
    const int size = best_size(answer);
    std::vector<T> work(size);
    run(work.data(), &size);
    for (int64_t j = 0; j < n; ++j) w[j] = Z(re[j], im[j]);
    for (int64_t j = 0; vectors && j < n; ++j) {
      const bool pair =
          im[j] != 0 && j + 1 < n;  // columns j, j + 1 hold the real and imaginary parts of a conjugate pair
      for (int64_t i = 0; i < n; ++i) {
        const R x = vr[i + j * n], y = pair ? vr[i + (j + 1) * n] : R(0);
        v[i + j * n] = Z(x, y);
        if (pair) v[i + (j + 1) * n] = Z(x, -y);
      }
      if (pair) ++j;
    }
  }
  return info;
}

// The drivers of least squares. b is max(m, n) x k. Returns the rank (m or n for gels).
template <class T>
int lstsq_one(const std::string &driver, T *a, int64_t m, int64_t n, T *b, int64_t k, double rcond, real_t<T> *s,
              int *rank) {
  using R = real_t<T>;
  const int rows = narrow_int(m), cols = narrow_int(n), rhs = narrow_int(k), ld = leading(m),
            ldb = leading(std::max(m, n)), ask = -1;
  const int64_t small = std::min(m, n), big = std::max(m, n);
  const R cut = static_cast<R>(rcond);
  int info = 0, int_answer = 1;
  T answer;
  R real_answer = 1;
  std::vector<int> jpvt(n + 1, 0);
  auto run = [&](T *work, const int *size, [[maybe_unused]] R *rwork, int *iwork) {
    if (driver == "gels") return lapack<T>(Routine::gels, "N", &rows, &cols, &rhs, a, &ld, b, &ldb, work, size, &info);
    if constexpr (is_complex_v<T>) {
      if (driver == "gelsy")
        return lapack<T>(Routine::gelsy, &rows, &cols, &rhs, a, &ld, b, &ldb, jpvt.data(), &cut, rank, work, size,
                         rwork, &info);
      if (driver == "gelss")
        return lapack<T>(Routine::gelss, &rows, &cols, &rhs, a, &ld, b, &ldb, s, &cut, rank, work, size, rwork, &info);
      lapack<T>(Routine::gelsd, &rows, &cols, &rhs, a, &ld, b, &ldb, s, &cut, rank, work, size, rwork, iwork, &info);
    } else {
      if (driver == "gelsy")
        return lapack<T>(Routine::gelsy, &rows, &cols, &rhs, a, &ld, b, &ldb, jpvt.data(), &cut, rank, work, size,
                         &info);
      if (driver == "gelss")
        return lapack<T>(Routine::gelss, &rows, &cols, &rhs, a, &ld, b, &ldb, s, &cut, rank, work, size, &info);
      lapack<T>(Routine::gelsd, &rows, &cols, &rhs, a, &ld, b, &ldb, s, &cut, rank, work, size, iwork, &info);
    }
  };
  run(&answer, &ask, &real_answer, &int_answer);
  const int size = best_size(answer);
  const int64_t rsize = std::max<int64_t>({static_cast<int64_t>(real_answer), 5 * small, 2 * big, 1});
  const int64_t isize = std::max<int64_t>(int_answer, 64 * (small + 1));
  std::vector<T> work(size);
  std::vector<R> rwork(rsize);
  std::vector<int> iwork(isize);
  run(work.data(), &size, rwork.data(), iwork.data());
  return info;
}

void converged(int info, const char *name, int64_t element, bool batched) {
  check(info == 0, name, ": ", batched ? text("(Batch element ", element, "): ") : "",
        "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated "
        "eigenvalues (error code: ",
        info, ").");
}

}  // namespace

MSA_KERNEL(LinalgQr) {  // A, mode (0 reduced, 1 complete, 2 r) -> Q, R
  const Tensor &a = c.in(0);
  check_matrix(a, "linalg.qr");
  const QrMode mode = static_cast<QrMode>(c.integer(1));
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n), count = matrix_count(a);
  const int64_t q_cols = mode == kComplete ? m : mode == kReduced ? k : 0, r_rows = mode == kComplete ? m : k;
  const Dims batch = batch_of(a);
  const Tensor q = mode == kOnlyR ? c.out(0, a.dtype, Dims{0}) : out_columns(c, 0, a.dtype, batch, m, q_cols);
  const Tensor r = out_columns(c, 1, a.dtype, batch, r_rows, n), f = columns_of(c, a, batch);
  MSA_SWITCH_LAPACK(a.dtype, "linalg_qr_cpu", ({
                      for_each_matrix(count, [&](int64_t i) {
                        qr_one<T>(f.ptr<T>() + i * m * n, m, n, mode, q.ptr<T>() + i * m * q_cols,
                                  r.ptr<T>() + i * r_rows * n, q_cols, r_rows);
                      });
                    }));
}

MSA_KERNEL(Geqrf) {  // A -> reflectors with R, tau
  const Tensor &a = c.in(0);
  check_matrix(a, "torch.geqrf");
  const Dims batch = batch_of(a);
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n), count = matrix_count(a);
  const Tensor o = out_columns(c, 0, a.dtype, batch, m, n), tau = c.out(1, a.dtype, join(batch, {k}));
  copy_into(o, a);
  if (k == 0) return;
  MSA_SWITCH_LAPACK(
      a.dtype, "geqrf_cpu",
      ({ for_each_matrix(count, [&](int64_t i) { geqrf<T>(o.ptr<T>() + i * m * n, m, n, tau.ptr<T>() + i * k); }); }));
}

MSA_KERNEL(HouseholderProduct) {  // reflectors (m x n), tau (k) -> the first n columns of the product
  const Tensor &a = c.in(0);
  check_matrix(a, "torch.linalg.householder_product", "input");
  const int64_t m = a.size(-2), n = a.size(-1), count = matrix_count(a);
  check(m >= n, "torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]");
  const Tensor tau = c.contiguous(c.in(1));
  const int64_t k = tau.size(-1);
  check(n >= k, "torch.linalg.householder_product: input.shape[-1] must be greater than or equal to tau.shape[-1]");
  const Tensor o = out_columns(c, 0, a.dtype, batch_of(a), m, n);
  copy_into(o, a);
  if (o.numel == 0) return;
  MSA_SWITCH_LAPACK(a.dtype, "orgqr_cpu", ({
                      for_each_matrix(
                          count, [&](int64_t i) { orgqr<T>(o.ptr<T>() + i * m * n, m, n, k, tau.ptr<T>() + i * k); });
                    }));
}

MSA_KERNEL(Ormqr) {  // reflectors, tau, other, left, transpose -> Q other, Q^H other, other Q ...
  const Tensor &a = c.in(0), &other = c.in(2);
  const bool left = c.flag(3), adjoint = c.flag(4);
  check_matrix(a, "torch.ormqr", "input");
  check_matrix(other, "torch.ormqr", "other");
  const Tensor tau = c.contiguous(c.in(1));
  const int64_t m = other.size(-2), n = other.size(-1), k = tau.size(-1), length = a.size(-2),
                count = matrix_count(other);
  check(other.size(left ? -2 : -1) == length, "torch.ormqr: other.shape[", left ? -2 : -1,
        "] must be equal to input.shape[-2]");
  check(other.size(left ? -2 : -1) >= k, "torch.ormqr: other.shape[", left ? -2 : -1,
        "] must be greater than or equal to tau.shape[-1]");
  const Tensor f = columns_of(c, a, batch_of(a)), o = out_columns(c, 0, other.dtype, batch_of(other), m, n);
  copy_into(o, other);
  if (o.numel == 0 || k == 0) return;
  const int rows = narrow_int(m), cols = narrow_int(n), reflectors = narrow_int(k), ld = leading(length),
            ldc = leading(m), ask = -1;
  MSA_SWITCH_LAPACK(a.dtype, "ormqr_cpu", ({
                      const char *op = !adjoint ? "N" : is_complex_v<T> ? "C" : "T";
                      for_each_matrix(count, [&](int64_t i) {
                        int info = 0;
                        T answer, *q = f.ptr<T>() + i * length * a.size(-1), *t = tau.ptr<T>() + i * k,
                                  *x = o.ptr<T>() + i * m * n;
                        lapack<T>(Routine::ormqr, left ? "L" : "R", op, &rows, &cols, &reflectors, q, &ld, t, x, &ldc,
                                  &answer, &ask, &info);
                        const int size = best_size(answer);
                        std::vector<T> work(size);
                        lapack<T>(Routine::ormqr, left ? "L" : "R", op, &rows, &cols, &reflectors, q, &ld, t, x, &ldc,
                                  work.data(), &size, &info);
                      });
                    }));
}

MSA_KERNEL(LinalgSvd) {  // A, full_matrices, compute_uv -> U, S, Vh
  const Tensor &a = c.in(0);
  const bool full = c.flag(1), vectors = c.flag(2);
  check_matrix(a, "linalg.svd");
  const Dims batch = batch_of(a);
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n), count = matrix_count(a);
  const int64_t u_cols = full ? m : k, v_rows = full ? n : k;
  const Tensor u = vectors ? out_columns(c, 0, a.dtype, batch, m, u_cols) : c.out(0, a.dtype, Dims{0});
  const Tensor s = c.out(1, real_of(a.dtype), join(batch, {k}));
  const Tensor vh = vectors ? out_columns(c, 2, a.dtype, batch, v_rows, n) : c.out(2, a.dtype, Dims{0});
  const Tensor f = columns_of(c, a, batch);
  MSA_SWITCH_LAPACK(
      a.dtype, "linalg_svd_cpu", ({
        for (int64_t i = 0; i < count; ++i) {
          T *pu = vectors ? u.ptr<T>() + i * m * u_cols : nullptr,
            *pv = vectors ? vh.ptr<T>() + i * v_rows * n : nullptr;
          if (k == 0) {  // there are no singular values, and the full bases are identities
            for (int64_t j = 0; vectors && j < m * u_cols; ++j) pu[j] = T(j % (m + 1) == 0);
            for (int64_t j = 0; vectors && j < v_rows * n; ++j) pv[j] = T(j % (n + 1) == 0);
            continue;
          }
          const T *src = f.ptr<T>() + i * m * n;
          for (int64_t j = 0; j < m * n; ++j)
            check(std::isfinite(std::abs(src[j])), "linalg.svd: ", count > 1 ? text("(Batch element ", i, "): ") : "",
                  "The algorithm failed to converge because the input matrix contained non-finite values.");
          const int info = svd_one<T>(f.ptr<T>() + i * m * n, m, n,
                                      !vectors ? 'N'
                                      : full   ? 'A'
                                               : 'S',
                                      s.ptr<real_t<T>>() + i * k, pu, pv);
          converged(info, "linalg.svd", i, a.ndim > 2);
        }
      }));
}

MSA_KERNEL(LinalgEigh) {  // A, upper, compute_v -> eigenvalues (ascending), vectors
  const Tensor &a = c.in(0);
  const bool upper = c.flag(1), vectors = c.flag(2);
  check_square(a, "linalg.eigh");
  const Dims batch = batch_of(a);
  const int64_t n = a.size(-1), count = matrix_count(a);
  const Tensor w = c.out(0, real_of(a.dtype), join(batch, {n}));
  const Tensor v = vectors ? out_columns(c, 1, a.dtype, batch, n, n) : scratch_columns(c, a.dtype, batch, n, n);
  if (!vectors) c.out(1, a.dtype, Dims{0});
  copy_into(v, a);
  if (n == 0) return;
  MSA_SWITCH_LAPACK(a.dtype, "linalg_eigh_cpu", ({
                      for (int64_t i = 0; i < count; ++i)
                        converged(eigh_one<T>(v.ptr<T>() + i * n * n, n, upper, vectors, w.ptr<real_t<T>>() + i * n),
                                  "linalg.eigh", i, a.ndim > 2);
                    }));
}

MSA_KERNEL(LinalgEig) {  // A, compute_v -> eigenvalues, vectors (both complex)
  const Tensor &a = c.in(0);
  const bool vectors = c.flag(1);
  check_square(a, "linalg.eig");
  const Dims batch = batch_of(a);
  const int64_t n = a.size(-1), count = matrix_count(a);
  const DType out_type = complex_of(a.dtype);
  const Tensor w = c.out(0, out_type, join(batch, {n}));
  const Tensor v = vectors ? out_columns(c, 1, out_type, batch, n, n) : c.out(1, out_type, Dims{0});
  const Tensor f = columns_of(c, a, batch);
  if (n == 0) return;
  MSA_SWITCH_LAPACK(a.dtype, "linalg_eig_cpu", ({
                      using Z = std::complex<real_t<T>>;
                      for (int64_t i = 0; i < f.numel; ++i)
                        check(std::isfinite(std::abs(f.ptr<T>()[i])),
                              "torch.linalg.eig: input tensor should not contain infs or NaNs.");
                      for (int64_t i = 0; i < count; ++i)
                        converged(eig_one<T>(f.ptr<T>() + i * n * n, n, vectors, w.ptr<Z>() + i * n,
                                             vectors ? v.ptr<Z>() + i * n * n : nullptr),
                                  "linalg.eig", i, a.ndim > 2);
                    }));
}

MSA_KERNEL(LinalgLstsq) {  // A, B (columns), rcond, driver -> solution, rank, singular values
  const Tensor &a = c.in(0), &b = c.in(1);
  const std::string driver = c.str(3);
  const Dims batch = broadcast_batches(batch_of(a), batch_of(b));
  const int64_t m = a.size(-2), n = a.size(-1), k = b.size(-1), big = std::max(m, n), small = std::min(m, n),
                count = count_of(batch);
  const bool with_values = driver == "gelsd" || driver == "gelss";
  // The first n rows hold the solution, the others the residuals
  const Tensor x = out_columns(c, 0, a.dtype, batch, big, k);
  const Tensor rank = driver == "gels" ? c.out(1, DType::I64, Dims{0}) : c.out(1, DType::I64, batch);
  const Tensor values =
      with_values ? c.out(2, real_of(a.dtype), join(batch, {small})) : c.out(2, real_of(a.dtype), Dims{0});
  const Tensor f = columns_of(c, a, batch);
  fill_zero(x);
  const Tensor top = make_view(x, join(batch, {m, k}), Dims(x.strides, x.strides + x.ndim));
  copy_into(top, b);
  if (m == 0 || n == 0 || k == 0) {
    fill_zero(x);
    fill_zero(rank);
    return;
  }
  const OneLapackThread one(m * n < int64_t{1} << 19);
  MSA_SWITCH_LAPACK(a.dtype, "linalg_lstsq_cpu", ({
                      std::vector<real_t<T>> spare(small + 1);
                      for (int64_t i = 0; i < count; ++i) {
                        int r = 0;
                        const int info =
                            lstsq_one<T>(driver, f.ptr<T>() + i * m * n, m, n, x.ptr<T>() + i * big * k, k, c.number(2),
                                         with_values ? values.ptr<real_t<T>>() + i * small : spare.data(), &r);
                        check(info == 0, "torch.linalg.lstsq: ", a.ndim > 2 ? text("(Batch element ", i, "): ") : "",
                              "The least squares solution could not be computed because the input matrix does not have "
                              "full rank (error code: ",
                              info, ").");
                        if (rank.numel > i) rank.ptr<int64_t>()[i] = r;
                      }
                    }));
}

}  // namespace msa

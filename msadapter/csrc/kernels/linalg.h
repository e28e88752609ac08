// Dense decompositions through LAPACK. The routines are scipy's (a dependency of MindSpore); their addresses are
// handed over once by the kernel LapackBind, in the order of MSA_LAPACK_ROUTINES.
#pragma once
#include "loops.h"

namespace msa {

#define MSA_LAPACK_ROUTINES(X) \
  X(potrf)                     \
  X(potri)                     \
  X(potrs)                     \
  X(getrf)                     \
  X(getri)                     \
  X(getrs)                     \
  X(trtrs)                     \
  X(geqrf)                     \
  X(orgqr)                     \
  X(ormqr)                     \
  X(gesdd)                     \
  X(syevd)                     \
  X(geev)                      \
  X(gels)                      \
  X(gelsy)                     \
  X(gelss)                     \
  X(gelsd)                     \
  X(sytrf)                     \
  X(sytrs)                     \
  X(hetrf)                     \
  X(hetrs)                     \
  X(gemm)

enum class Routine : int {
#define MSA_NAME(n) n,
  MSA_LAPACK_ROUTINES(MSA_NAME)
#undef MSA_NAME
      count
};

template <class T>
struct real_part {
  using type = T;
};
template <class R>
struct real_part<std::complex<R>> {
  using type = R;
};
template <class T>
using real_t = typename real_part<T>::type;
template <class T>
inline T conjugate(T v) {
  if constexpr (is_complex_v<T>)
    return std::conj(v);
  else
    return v;
}

// Address of a routine for an element type (0..3 = s, d, c, z).
void *lapack_address(Routine r, int type);
template <class T>
constexpr int lapack_type() {
  return (is_complex_v<T> ? 2 : 0) + (std::is_same_v<real_t<T>, double> ? 1 : 0);
}
// lapack<float>(Routine::potrf, "U", &n, a, &lda, &info): every argument is a pointer, as in Fortran.
template <class T, class... A>
void lapack(Routine r, A... args) {
  reinterpret_cast<void (*)(A...)>(lapack_address(r, lapack_type<T>()))(args...);
}

#define MSA_SWITCH_LAPACK(D, OP, ...) \
  MSA_SWITCH_(D, OP,                  \
              MSA_CASE(F32, float, __VA_ARGS__) MSA_CASE(F64, double, __VA_ARGS__) MSA_CASES_COMPLEX_(__VA_ARGS__))

// Shape of a stack of matrices: leading dims, rows, columns.
Dims batch_of(const Tensor &t, int matrix_dims = 2);
int64_t count_of(const Dims &batch);
// How many matrices the stack holds.
int64_t matrix_count(const Tensor &t);
inline Dims join(Dims a, std::initializer_list<int64_t> b) {
  a.insert(a.end(), b);
  return a;
}
Dims broadcast_batches(const Dims &a, const Dims &b);

// A result (or scratch) stack of column-major m x n matrices, one after the other.
Tensor out_columns(Call &c, int index, DType dtype, const Dims &batch, int64_t m, int64_t n);
Tensor scratch_columns(Call &c, DType dtype, const Dims &batch, int64_t m, int64_t n);
// A column-major copy of `t` with its batch dims broadcast to `batch`.
Tensor columns_of(Call &c, const Tensor &t, const Dims &batch);
// Every matrix transposed (no copy).
Tensor transposed(const Tensor &t);
// Conjugates in place (contiguous data).
void conjugate_in_place(const Tensor &t);

void check_square(const Tensor &a, const char *name);
void check_matrix(const Tensor &a, const char *name, const char *argument = "A");

// Splits the matrices of a stack over the threads when there are enough of them.
template <class F>
void for_each_matrix(int64_t count, F f) {
  for (int64_t i = 0; i < count; ++i) f(i);
}

inline int narrow_int(int64_t n) { return static_cast<int>(n); }
inline int leading(int64_t n) { return static_cast<int>(std::max<int64_t>(n, 1)); }

// Sets the part of a column-major m x n matrix strictly below (keep_upper) or above the diagonal to zero.
template <class T>
void keep_triangle(T *a, int64_t m, int64_t n, bool keep_upper) {
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < m; ++i)
      if (keep_upper ? i > j : i < j) a[i + j * m] = T(0);
}

}  // namespace msa

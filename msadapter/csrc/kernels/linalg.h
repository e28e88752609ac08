// Dense decompositions with LAPACK. The routines are those of scipy, which MindSpore depends on. Python passes their
// addresses once to the kernel LapackBind, in the order of MSA_LAPACK_ROUTINES.
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
  X(hetrs)

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

// Returns the address of a routine for an element type. The types 0 to 3 are float, double, c64 and c128 (s, d, c and z
// in LAPACK's names).
void *lapack_address(Routine r, int type);
// While one exists, LAPACK's routines run in one thread if they are called from this thread. Its routines for least
// squares take longer with two threads, up to about 2^19 elements.
class OneLapackThread {
 public:
  explicit OneLapackThread(bool on);
  ~OneLapackThread();
  OneLapackThread(const OneLapackThread &) = delete;
  OneLapackThread &operator=(const OneLapackThread &) = delete;

 private:
  bool before_;
};
template <class T>
constexpr int lapack_type() {
  return (is_complex_v<T> ? 2 : 0) + (std::is_same_v<real_t<T>, double> ? 1 : 0);
}
// Calls a routine: lapack<float>(Routine::potrf, "U", &n, a, &lda, &info). Every argument is a pointer, as in Fortran.
template <class T, class... A>
void lapack(Routine r, A... args) {
  reinterpret_cast<void (*)(A...)>(lapack_address(r, lapack_type<T>()))(args...);
}

#define MSA_SWITCH_LAPACK(D, OP, ...) \
  MSA_SWITCH_(D, OP,                  \
              MSA_CASE(F32, float, __VA_ARGS__) MSA_CASE(F64, double, __VA_ARGS__) MSA_CASES_COMPLEX_(__VA_ARGS__))

// The shape of a batch of matrices: leading dims, rows, columns.
Dims batch_of(const Tensor &t, int matrix_dims = 2);
int64_t count_of(const Dims &batch);
// The number of matrices in a batch.
int64_t matrix_count(const Tensor &t);
inline Dims join(Dims a, std::initializer_list<int64_t> b) {
  a.insert(a.end(), b);
  return a;
}
Dims broadcast_batches(const Dims &a, const Dims &b);

// Creates a result, or scratch memory, for a batch of column-major m x n matrices that follow one another.
Tensor out_columns(Call &c, int index, DType dtype, const Dims &batch, int64_t m, int64_t n);
Tensor scratch_columns(Call &c, DType dtype, const Dims &batch, int64_t m, int64_t n);
// Returns a column-major copy of `t`, with its batch dims broadcast to `batch`.
Tensor columns_of(Call &c, const Tensor &t, const Dims &batch);
// Returns a view with every matrix transposed.
Tensor transposed(const Tensor &t);
// Conjugates contiguous numbers in place.
void conjugate_in_place(const Tensor &t);

void check_square(const Tensor &a, const char *name);
void check_matrix(const Tensor &a, const char *name, const char *argument = "A");

// Calls f for the matrices of a batch, one after the other. The threads of OpenBLAS share the work on each matrix. They
// and ours would get in each other's way, because their number holds for the whole process.
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

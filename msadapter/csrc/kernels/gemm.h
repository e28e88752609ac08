// Matrix products on strided operands: C = beta * C + alpha * A @ B.
#pragma once
#include "api.h"
#include "wrapping.h"

namespace msa {

// An operand of a product: element (i, j) is at data[i * rs + j * cs].
struct Matrix {
  const void *data = nullptr;
  int64_t rs = 0, cs = 1;
};

// The product of an m x k matrix and a k x n matrix. The rows of C are `ldc` elements apart, and its columns are
// adjacent. C is not read if beta is 0. `dtype` is the element type of all three matrices. 16-bit types are summed in
// float.
void gemm(DType dtype, int64_t m, int64_t n, int64_t k, const Scalar &alpha, Matrix a, Matrix b, const Scalar &beta,
          void *c, int64_t ldc);
// Many products of one shape. Product i reads A from a_offset[i] and B from b_offset[i] on, and writes C from i * bs_c
// on. All three count elements.
struct Batch {
  int64_t count;
  const int64_t *a_offset, *b_offset;
  int64_t bs_c;
};
void gemm_batched(DType dtype, const Batch &batch, int64_t m, int64_t n, int64_t k, const Scalar &alpha, Matrix a,
                  Matrix b, const Scalar &beta, void *c, int64_t ldc);
// The product of float32 matrices, for kernels that compute something else by a product.
void sgemm(int64_t m, int64_t n, int64_t k, float alpha, Matrix a, Matrix b, float beta, float *c, int64_t ldc);
// The product of float, double or 16-bit matrices that is stored as it is summed, in the compute type. It is for
// kernels that use many products of blocks: oneDNN computes those whose sizes are multiples of 16, because it compiles
// code for each size, and the blocked kernel the rest.
template <class T>
void gemm_of_blocks(int64_t m, int64_t n, int64_t k, compute_t<T> alpha, Matrix a, Matrix b, compute_t<T> beta,
                    compute_t<T> *c, int64_t ldc);

namespace blocked {
// The product of this package, for matrices of any strides. It packs blocks of A and B and keeps a tile of C in
// registers. The result does not depend on the number of threads. T is the type of the sums: float, double, uint32_t or
// uint64_t. In is the element type of A and B, which are converted while they are packed. Out is that of C: In or T.
template <class In, class T, class Out>
void gemm(int64_t m, int64_t n, int64_t k, T alpha, Matrix a, Matrix b, T beta, Out *c, int64_t ldc);
}  // namespace blocked

inline Scalar make_scalar(double v) {
  Scalar s;
  s.kind = Scalar::kFloat;
  s.d = v;
  return s;
}
inline bool is_zero(const Scalar &s) { return s.kind <= Scalar::kInt ? s.i == 0 : s.d == 0 && s.imag == 0; }

}  // namespace msa

// Matrix products on strided operands: C = beta * C + alpha * A @ B.
#pragma once
#include "api.h"

namespace msa {

// An operand of a product: element (i, j) is at data[i * rs + j * cs].
struct Matrix {
  const void *data = nullptr;
  int64_t rs = 0, cs = 1;
};

// One product of an m x k by a k x n matrix. C's rows are `ldc` apart and its columns adjacent. With beta == 0
// C is not read. Element type of all three is `dtype`; 16-bit types accumulate in float.
void gemm(DType dtype, int64_t m, int64_t n, int64_t k, const Scalar &alpha, Matrix a, Matrix b, const Scalar &beta,
          void *c, int64_t ldc);
// Many products of one shape: product i reads A at a_offset[i] and B at b_offset[i] (elements) and writes C at i *
// bs_c.
struct Batch {
  int64_t count;
  const int64_t *a_offset, *b_offset;
  int64_t bs_c;
};
void gemm_batched(DType dtype, const Batch &batch, int64_t m, int64_t n, int64_t k, const Scalar &alpha, Matrix a,
                  Matrix b, const Scalar &beta, void *c, int64_t ldc);
// float32 shorthand for kernels that lower to a product.
void sgemm(int64_t m, int64_t n, int64_t k, float alpha, Matrix a, Matrix b, float beta, float *c, int64_t ldc);

namespace blocked {
// Own packed and register-blocked product: any strides, result independent of the number of threads.
// T: float, double, int32_t, int64_t compute; In: element type of A, B and C (converted while packing).
template <class In, class T>
void gemm(int64_t m, int64_t n, int64_t k, T alpha, Matrix a, Matrix b, T beta, In *c, int64_t ldc);
}  // namespace blocked

inline Scalar make_scalar(double v) {
  Scalar s;
  s.kind = Scalar::kFloat;
  s.d = v;
  return s;
}
inline bool is_zero(const Scalar &s) { return s.kind <= Scalar::kInt ? s.i == 0 : s.d == 0 && s.imag == 0; }

}  // namespace msa

// Chooses the implementation of a product: matrix times vector, oneDNN, the blocked kernel, or four real products for
// a complex one.
#include "gemm.h"

#include "loops.h"
#include "onednn.h"

namespace msa {
namespace {

struct Buffer {
  void *p;
  size_t bytes;
  explicit Buffer(size_t n) : p(allocate(std::max<size_t>(n, 1))), bytes(std::max<size_t>(n, 1)) {}
  ~Buffer() { deallocate(p, bytes); }
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;
};

// The type in which the products of a type are summed. Sums of integers wrap round.
template <class T>
using sum_t = wrapping_t<compute_t<T>>;

constexpr int kLanes = 64;  // as many independent sums as the latency of an addition needs

template <class In, class T>
T dot_contiguous(const In *a, const In *b, int64_t n) {
  T lane[kLanes] = {};
  int64_t i = 0;
  auto add = [&](auto lanes) {
    for (int l = 0; l < lanes; ++l) lane[l] += convert<T>(a[i + l]) * convert<T>(b[i + l]);
    i += lanes;
  };
  while (i + kLanes <= n) add(std::integral_constant<int, kLanes>());
  if (i + kLanes / 2 <= n) add(std::integral_constant<int, kLanes / 2>());
  T rest = 0;
  for (; i < n; ++i) rest += convert<T>(a[i]) * convert<T>(b[i]);
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) lane[l] += lane[l + half];
  return rest + lane[0];
}

// y[i * ys] = beta * y[i * ys] + alpha * sum_j A(i, j) x[j * xs]
// Out is the element type of y: In or T.
template <class In, class T, class Out>
void gemv(int64_t m, int64_t k, T alpha, Matrix a, const In *x, int64_t xs, T beta, Out *y, int64_t ys) {
  const In *A = static_cast<const In *>(a.data);
  Buffer packed(xs == 1 ? 1 : sizeof(In) * k);
  if (xs != 1) {
    In *p = static_cast<In *>(packed.p);
    for (int64_t j = 0; j < k; ++j) p[j] = x[j * xs];
    x = p;
  }
  auto store = [&](int64_t i, T v) {
    Out &at = y[i * ys];
    at = convert<Out>(beta == T(0) ? v * alpha : v * alpha + beta * convert<T>(at));
  };
  const int64_t grain = std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(k, 1));
  if (a.cs == 1 || k == 1) {
    parallel_for(m, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) store(i, dot_contiguous<In, T>(A + i * a.rs, x, k));
    });
    return;
  }
  // The rows are not contiguous. They are processed in blocks whose sums stay in the cache.
  constexpr int64_t kRows = 256, kColumns = 4;
  // Adds up to kColumns columns, one after the other for each row, so that its sum is read and written once.
  auto add_columns = [&](const In *col, const In *factor, T *sum, int64_t rows, int64_t columns) {
    auto add = [&](auto count, auto step) {
      T xs[kColumns];
      for (int j = 0; j < count; ++j) xs[j] = convert<T>(factor[j]);
      for (int64_t i = 0; i < rows; ++i) {
        T s = sum[i];
        for (int j = 0; j < count; ++j) s += convert<T>(col[i * step + j * a.cs]) * xs[j];
        sum[i] = s;
      }
    };
    auto some = [&](auto count) { a.rs == 1 ? add(count, std::integral_constant<int64_t, 1>()) : add(count, a.rs); };
    if (columns >= kColumns) return some(std::integral_constant<int, kColumns>());
    for (int64_t j = 0; j < columns; ++j, col += a.cs, ++factor) some(std::integral_constant<int, 1>());
  };
  parallel_for((m + kRows - 1) / kRows, std::max<int64_t>(1, grain / kRows), [&](int64_t begin, int64_t end) {
    T sum[kRows];
    for (int64_t block = begin; block < end; ++block) {
      const int64_t i0 = block * kRows, rows = std::min(kRows, m - i0);
      std::fill(sum, sum + rows, T(0));
      for (int64_t j = 0; j < k; j += kColumns) add_columns(A + i0 * a.rs + j * a.cs, x + j, sum, rows, k - j);
      for (int64_t i = 0; i < rows; ++i) store(i0 + i, sum[i]);
    }
  });
}

// The case k == 1, in which every element of C is one product. Products of this shape do not go to oneDNN, which reads
// other memory for some strides of a batch of them (k == 1, and matrices or rows that do not follow each other without
// a gap).
template <class In, class T>
void outer(int64_t m, int64_t n, T alpha, Matrix a, Matrix b, T beta, In *c, int64_t ldc) {
  const In *A = static_cast<const In *>(a.data), *B = static_cast<const In *>(b.data);
  std::vector<In> packed;
  if (b.cs != 1) {
    packed.resize(n);
    for (int64_t j = 0; j < n; ++j) packed[j] = B[j * b.cs];
    B = packed.data();
  }
  auto rows = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T ai = convert<T>(A[i * a.rs]);
      In *row = c + i * ldc;
      if (beta == T(0))
        for (int64_t j = 0; j < n; ++j) row[j] = convert<In>(static_cast<T>(ai * convert<T>(B[j]) * alpha));
      else
        for (int64_t j = 0; j < n; ++j)
          row[j] = convert<In>(static_cast<T>(ai * convert<T>(B[j]) * alpha + convert<T>(row[j]) * beta));
    }
  };
  const int64_t grain = std::max<int64_t>(1, (1 << 15) / n);
  if (m <= grain) return rows(0, m);
  parallel_for(m, grain, rows);
}

// Whether a matrix consists of lines (rows or columns) of adjacent elements, one line after the other, as oneDNN
// requires. The stride of a dim of size 1 is not used and may be any number; it is replaced by that of a dense
// matrix.
bool stored_by_lines(Matrix &x, int64_t rows, int64_t cols) {
  if (cols == 1 && rows == 1) x.rs = x.cs = 1;
  if (cols == 1 && rows > 1) x.cs = x.rs == 1 ? rows : 1;
  if (rows == 1 && cols > 1) x.rs = x.cs == 1 ? cols : 1;
  return (x.cs == 1 && x.rs >= cols) || (x.rs == 1 && x.cs >= rows);
}

template <class In>
void scale_result(int64_t m, int64_t n, const Scalar &beta, In *c, int64_t ldc) {
  using T = compute_t<In>;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      c[i * ldc + j] = is_zero(beta) ? In(0) : convert<In>(wrapping_mul(convert<T>(c[i * ldc + j]), beta.to<T>()));
}

template <class In>
void real_gemm(DType dtype, int64_t m, int64_t n, int64_t k, const Scalar &alpha, Matrix a, Matrix b,
               const Scalar &beta, In *c, int64_t ldc) {
  using T = sum_t<In>;
  // A number that does not fit the signed type is an error.
  using Factor = std::conditional_t<!std::is_integral_v<T>, T, std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>;
  const T al = static_cast<T>(alpha.to<Factor>()), be = static_cast<T>(beta.to<Factor>());
  if (n == 1) return gemv<In, T, In>(m, k, al, a, static_cast<const In *>(b.data), b.rs, be, c, ldc);
  if (k == 1) return outer<In, T>(m, n, al, a, b, be, c, ldc);
  if (m == 1) return gemv<In, T, In>(n, k, al, {b.data, b.cs, b.rs}, static_cast<const In *>(a.data), a.cs, be, c, 1);
  if constexpr (is_floating_v<In> && !std::is_same_v<In, double>)
    if (stored_by_lines(a, m, k) && stored_by_lines(b, k, n) && onednn::preferred(dtype) &&
        onednn::matmul(dtype, dtype, 1, m, n, k, al, a, 0, b, 0, be, c, 0, ldc))
      return;
  blocked::gemm<In, T, In>(m, n, k, al, a, b, be, c, ldc);
}

// Computes (Ar + i Ai)(Br + i Bi) with four real products, which read the real and imaginary parts where they are.
template <class R>
void complex_gemm(int64_t m, int64_t n, int64_t k, std::complex<R> alpha, Matrix a, Matrix b, std::complex<R> beta,
                  std::complex<R> *c, int64_t ldc) {
  Buffer pc(sizeof(R) * 2 * m * n);
  const R *ar = static_cast<const R *>(a.data), *ai = ar + 1, *br = static_cast<const R *>(b.data), *bi = br + 1;
  R *cr = static_cast<R *>(pc.p), *ci = cr + m * n;
  auto product = [&](const R *x, const R *y, R sign, R keep, R *to) {
    blocked::gemm<R, R, R>(m, n, k, sign, {x, 2 * a.rs, 2 * a.cs}, {y, 2 * b.rs, 2 * b.cs}, keep, to, n);
  };
  product(ar, br, 1, 0, cr);
  product(ai, bi, -1, 1, cr);
  product(ar, bi, 1, 0, ci);
  product(ai, br, 1, 1, ci);
  const bool fresh = beta == std::complex<R>(0), plain = alpha == std::complex<R>(1);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      std::complex<R> v(cr[i * n + j], ci[i * n + j]), &at = c[i * ldc + j];
      if (!plain) v *= alpha;
      at = fresh ? v : v + beta * at;
    }
}

template <class T>
void typed_gemm(DType dtype, int64_t m, int64_t n, int64_t k, const Scalar &alpha, Matrix a, Matrix b,
                const Scalar &beta, T *c, int64_t ldc) {
  if (k == 0)
    scale_result(m, n, beta, c, ldc);
  else if constexpr (is_complex_v<T>)
    complex_gemm(m, n, k, alpha.to<T>(), a, b, beta.to<T>(), c, ldc);
  else
    real_gemm<T>(dtype, m, n, k, alpha, a, b, beta, c, ldc);
}

}  // namespace

void gemm(DType dtype, int64_t m, int64_t n, int64_t k, const Scalar &alpha, Matrix a, Matrix b, const Scalar &beta,
          void *c, int64_t ldc) {
  if (m == 0 || n == 0 || shape_only()) return;
  MSA_SWITCH_NUMBER(dtype, "addmm_impl_cpu_",
                    (typed_gemm(dtype, m, n, k, alpha, a, b, beta, static_cast<T *>(c), ldc)));
}

// Whether the offsets are i * step, so that the products form a single strided batch.
static bool uniform(const int64_t *offset, int64_t count, int64_t *step) {
  *step = count > 1 ? offset[1] - offset[0] : 0;
  for (int64_t i = 1; i < count; ++i)
    if (offset[i] - offset[i - 1] != *step) return false;
  return *step >= 0;
}

void gemm_batched(DType dtype, const Batch &batch, int64_t m, int64_t n, int64_t k, const Scalar &alpha, Matrix a,
                  Matrix b, const Scalar &beta, void *c, int64_t ldc) {
  if (batch.count == 0 || shape_only()) return;
  const int size = item_size(dtype);
  auto at = [&](const void *p, int64_t offset) { return static_cast<const char *>(p) + offset * size; };
  auto one = [&](int64_t i) {
    gemm(dtype, m, n, k, alpha, {at(a.data, batch.a_offset[i]), a.rs, a.cs},
         {at(b.data, batch.b_offset[i]), b.rs, b.cs}, beta, const_cast<char *>(at(c, i * batch.bs_c)), ldc);
  };
  int64_t step_a, step_b;
  if (batch.count > 1 && m > 1 && n > 1 && k > 1 && !in_parallel_region() && stored_by_lines(a, m, k) &&
      stored_by_lines(b, k, n) && onednn::preferred(dtype) && uniform(batch.a_offset, batch.count, &step_a) &&
      uniform(batch.b_offset, batch.count, &step_b) &&
      onednn::matmul(dtype, dtype, batch.count, m, n, k, alpha.to<float>(), {at(a.data, batch.a_offset[0]), a.rs, a.cs},
                     step_a, {at(b.data, batch.b_offset[0]), b.rs, b.cs}, step_b, beta.to<float>(), c, batch.bs_c, ldc))
    return;
  // For few large products the threads share each product. Many small products are divided among the threads.
  if (batch.count < num_threads() && m * n * k > (1 << 18)) {
    for (int64_t i = 0; i < batch.count; ++i) one(i);
    return;
  }
  const int64_t grain = std::max<int64_t>(1, (1 << 16) / std::max<int64_t>(1, m * n * k));
  parallel_for(batch.count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) one(i);
  });
}

void sgemm(int64_t m, int64_t n, int64_t k, float alpha, Matrix a, Matrix b, float beta, float *c, int64_t ldc) {
  gemm(DType::F32, m, n, k, make_scalar(alpha), a, b, make_scalar(beta), c, ldc);
}

template <class T>
void gemm_of_blocks(int64_t m, int64_t n, int64_t k, compute_t<T> alpha, Matrix a, Matrix b, compute_t<T> beta,
                    compute_t<T> *c, int64_t ldc) {
  constexpr int64_t kStep = 16;
  if (m == 1)  // a copy of B would take longer than the product
    return gemv<T, compute_t<T>, compute_t<T>>(n, k, alpha, {b.data, b.cs, b.rs}, static_cast<const T *>(a.data), a.cs,
                                               beta, c, 1);
  if constexpr (!std::is_same_v<T, double>) {
    constexpr DType kType = dtype_of<T>::value;
    if (m % kStep == 0 && n % kStep == 0 && k % kStep == 0 && stored_by_lines(a, m, k) && stored_by_lines(b, k, n) &&
        onednn::preferred(kType) && onednn::matmul(kType, DType::F32, 1, m, n, k, alpha, a, 0, b, 0, beta, c, 0, ldc))
      return;
  }
  blocked::gemm<T, compute_t<T>, compute_t<T>>(m, n, k, alpha, a, b, beta, c, ldc);
}
#define MSA_BLOCKS(T)                                                                                    \
  template void gemm_of_blocks<T>(int64_t, int64_t, int64_t, compute_t<T>, Matrix, Matrix, compute_t<T>, \
                                  compute_t<T> *, int64_t);
MSA_BLOCKS(float)
MSA_BLOCKS(double)
MSA_BLOCKS(BFloat16)
MSA_BLOCKS(Half)
#undef MSA_BLOCKS

}  // namespace msa

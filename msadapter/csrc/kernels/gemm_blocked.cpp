// The blocked matrix product. It is used for the element types that oneDNN does not support, and for all types if
// oneDNN is missing. Panels of kMr rows of A and of kNr columns of B are converted to the compute type and copied to
// buffers that stay in the cache. The innermost loop keeps a tile of kMr x kNr elements of C in vector registers.
#include "gemm.h"
#include "loops.h"

namespace msa::blocked {
namespace {

#ifdef __AVX512F__
constexpr int kVectorBytes = 64, kMr = 12;
#else
constexpr int kVectorBytes = 32, kMr = 6;
#endif
constexpr int64_t kKc = 256, kMc = 24 * kMr, kNc = 2048;

template <class T>
struct Micro {
  typedef T Vec __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
  static constexpr int kWidth = kVectorBytes / sizeof(T);
  static constexpr int kNr = 2 * kWidth;

  // acc[i][h] = sum_p a[p][i] * b[p][h], for the first Rows rows of A's panel and the first Vectors vectors of B's.
  template <int Rows, int Vectors>
  static inline __attribute__((always_inline)) void run(int64_t k, const T *a, const T *b, Vec (&acc)[Rows][Vectors]) {
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 2
      for (int h = 0; h < Vectors; ++h) acc[i][h] = Vec{};
    for (int64_t p = 0; p < k; ++p, a += kMr, b += kNr) {
      Vec row[Vectors];
#pragma GCC unroll 2
      for (int h = 0; h < Vectors; ++h) row[h] = *reinterpret_cast<const Vec *>(b + h * kWidth);
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) {
        const Vec ai = a[i] - Vec{};
#pragma GCC unroll 2
        for (int h = 0; h < Vectors; ++h) acc[i][h] += ai * row[h];
      }
    }
  }
  // c = beta * c + alpha * the product, for m <= Rows rows and n <= Vectors * kWidth columns
  template <int Rows, int Vectors>
  static void tile(int64_t k, const T *a, const T *b, T alpha, T beta, T *c, int64_t ldc, int64_t m, int64_t n) {
    Vec acc[Rows][Vectors];
    run<Rows, Vectors>(k, a, b, acc);
    if (n == Vectors * kWidth) {
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i)
        if (i < m)
#pragma GCC unroll 2
          for (int h = 0; h < Vectors; ++h) {
            Vec *at = reinterpret_cast<Vec *>(c + i * ldc + h * kWidth);
            const Vec v = acc[i][h] * alpha;
            *at = beta == T(0) ? v : v + *at * beta;
          }
      return;
    }
    T sums[Rows][Vectors * kWidth];
    std::memcpy(sums, acc, sizeof(sums));
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        T &at = c[i * ldc + j];
        at = beta == T(0) ? sums[i][j] * alpha : sums[i][j] * alpha + at * beta;
      }
  }
  // A tile at the border computes half of the rows or columns if these are all that C has.
  static void any(int64_t k, const T *a, const T *b, T alpha, T beta, T *c, int64_t ldc, int64_t m, int64_t n) {
    if (m > kMr / 2)
      n > kWidth ? tile<kMr, 2>(k, a, b, alpha, beta, c, ldc, m, n) : tile<kMr, 1>(k, a, b, alpha, beta, c, ldc, m, n);
    else
      n > kWidth ? tile<kMr / 2, 2>(k, a, b, alpha, beta, c, ldc, m, n)
                 : tile<kMr / 2, 1>(k, a, b, alpha, beta, c, ldc, m, n);
  }
};

// Copies `lines` rows (or columns) of k elements to panels of R lines. In a panel, the R elements with the same k are
// adjacent. Lines that the last panel lacks are zero.
template <int R, class In, class T>
void pack(const In *src, int64_t line_step, int64_t k_step, int64_t lines, int64_t k, T *dst) {
  for (int64_t l = 0; l < lines; l += R, dst += R * k) {
    const int64_t here = std::min<int64_t>(R, lines - l);
    const In *s = src + l * line_step;
    if (here < R) std::memset(static_cast<void *>(dst), 0, sizeof(T) * R * k);
    if (line_step == 1 && here == R) {
      for (int64_t p = 0; p < k; ++p)
        for (int i = 0; i < R; ++i) dst[p * R + i] = convert<T>(s[p * k_step + i]);
    } else if (here == R) {
      for (int64_t p = 0; p < k; ++p)
#pragma GCC unroll 8
        for (int i = 0; i < R; ++i) dst[p * R + i] = convert<T>(s[p * k_step + i * line_step]);
    } else {
      for (int64_t p = 0; p < k; ++p)
        for (int64_t i = 0; i < here; ++i) dst[p * R + i] = convert<T>(s[p * k_step + i * line_step]);
    }
  }
}

constexpr int64_t round_up(int64_t v, int64_t to) { return (v + to - 1) / to * to; }

struct Buffer {
  void *p;
  size_t bytes;
  explicit Buffer(size_t n) : p(allocate(n)), bytes(n) {}
  ~Buffer() { deallocate(p, bytes); }
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;
};

// Computes the part of C that belongs to one thread. C has the compute type.
template <class In, class T>
void part(int64_t m, int64_t n, int64_t k, T alpha, Matrix a, Matrix b, T beta, T *c, int64_t ldc) {
  using M = Micro<T>;
  const int64_t kc_max = std::min(k, kKc), mc_max = std::min(round_up(m, kMr), kMc),
                nc_max = std::min(round_up(n, M::kNr), kNc);
  Buffer pa(sizeof(T) * mc_max * kc_max), pb(sizeof(T) * nc_max * kc_max);
  T *packed_a = static_cast<T *>(pa.p), *packed_b = static_cast<T *>(pb.p);
  const In *A = static_cast<const In *>(a.data), *B = static_cast<const In *>(b.data);
  for (int64_t jc = 0; jc < n; jc += kNc) {
    const int64_t nc = std::min(kNc, n - jc);
    for (int64_t pc = 0; pc < k; pc += kKc) {
      const int64_t kc = std::min(kKc, k - pc);
      const T scale = pc == 0 ? beta : T(1);
      pack<M::kNr>(B + pc * b.rs + jc * b.cs, b.cs, b.rs, nc, kc, packed_b);
      for (int64_t ic = 0; ic < m; ic += kMc) {
        const int64_t mc = std::min(kMc, m - ic);
        pack<kMr>(A + ic * a.rs + pc * a.cs, a.rs, a.cs, mc, kc, packed_a);
        for (int64_t j = 0; j < nc; j += M::kNr)
          for (int64_t i = 0; i < mc; i += kMr) {
            M::any(kc, packed_a + i * kc, packed_b + j * kc, alpha, scale, c + (ic + i) * ldc + jc + j, ldc,
                   std::min<int64_t>(kMr, mc - i), std::min<int64_t>(M::kNr, nc - j));
          }
      }
    }
  }
}

// The same for a C of a narrower type. The part is computed in the compute type and rounded once.
template <class In, class T>
void part_converted(int64_t m, int64_t n, int64_t k, T alpha, Matrix a, Matrix b, T beta, In *c, int64_t ldc) {
  const In *B = static_cast<const In *>(b.data);
  Buffer wide(sizeof(T) * m * std::min(n, kNc));
  T *w = static_cast<T *>(wide.p);
  for (int64_t jc = 0; jc < n; jc += kNc) {
    const int64_t nc = std::min(kNc, n - jc);
    part<In, T>(m, nc, k, alpha, a, {B + jc * b.cs, b.rs, b.cs}, T(0), w, nc);
    for (int64_t i = 0; i < m; ++i) {
      In *to = c + i * ldc + jc;
      const T *from = w + i * nc;
      if (beta == T(0))
        for (int64_t j = 0; j < nc; ++j) to[j] = convert<In>(from[j]);
      else
        for (int64_t j = 0; j < nc; ++j) to[j] = convert<In>(from[j] + beta * convert<T>(to[j]));
    }
  }
}

}  // namespace

template <class In, class T, class Out>
void gemm(int64_t m, int64_t n, int64_t k, T alpha, Matrix a, Matrix b, T beta, Out *c, int64_t ldc) {
  const In *A = static_cast<const In *>(a.data), *B = static_cast<const In *>(b.data);
  auto block = [&](int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    const Matrix pa{A + i0 * a.rs, a.rs, a.cs}, pb{B + j0 * b.cs, b.rs, b.cs};
    Out *pc = c + i0 * ldc + j0;
    if constexpr (sizeof(Out) == sizeof(T))  // the same type, or the unsigned one of the same size
      part<In, T>(i1 - i0, j1 - j0, k, alpha, pa, pb, beta, reinterpret_cast<T *>(pc), ldc);
    else
      part_converted<In, T>(i1 - i0, j1 - j0, k, alpha, pa, pb, beta, pc, ldc);
  };
  const int64_t threads = in_parallel_region() || m * n * k < (1 << 16) ? 1 : num_threads();
  if (threads == 1) return block(0, m, 0, n);
  // C is divided into a grid of rows x cols pieces, one for each thread. The pieces are as square as possible.
  int64_t rows = 1;
  for (int64_t r = 1; r <= threads; ++r)
    if (threads % r == 0 && std::abs(m * (threads / r) - n * r) < std::abs(m * (threads / rows) - n * rows)) rows = r;
  const int64_t cols = threads / rows;
  const int64_t step_m = round_up((m + rows - 1) / rows, kMr), step_n = round_up((n + cols - 1) / cols, Micro<T>::kNr);
  parallel_for(threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t i0 = (t / cols) * step_m, j0 = (t % cols) * step_n;
      if (i0 < m && j0 < n) block(i0, std::min(m, i0 + step_m), j0, std::min(n, j0 + step_n));
    }
  });
}

#define MSA_GEMM(In, T) template void gemm<In, T, In>(int64_t, int64_t, int64_t, T, Matrix, Matrix, T, In *, int64_t);
#define MSA_GEMM_WIDE(In, T) \
  template void gemm<In, T, T>(int64_t, int64_t, int64_t, T, Matrix, Matrix, T, T *, int64_t);
MSA_GEMM(float, float)
MSA_GEMM(BFloat16, float)
MSA_GEMM(Half, float)
MSA_GEMM(double, double)
MSA_GEMM_WIDE(BFloat16, float)
MSA_GEMM_WIDE(Half, float)
MSA_GEMM(int32_t, uint32_t)
MSA_GEMM(int64_t, uint64_t)
MSA_GEMM(uint8_t, uint32_t)
MSA_GEMM(int8_t, uint32_t)
MSA_GEMM(int16_t, uint32_t)
#undef MSA_GEMM
#undef MSA_GEMM_WIDE

}  // namespace msa::blocked

#include "combine.h"

#ifdef __F16C__
#include <immintrin.h>
#endif

#include <algorithm>

#include "../kernels/wrapping.h"

namespace msa {
namespace {

constexpr int64_t kBlock = 2048;  // number of elements whose accumulators stay in the L1 cache

template <class T>
using Wide = typename compute_type<T>::type;

template <class T>
void widen(const T *from, Wide<T> *to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<Wide<T>>(from[i]);
}
template <class T>
void narrow(const Wide<T> *from, T *to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(from[i]);
}
#ifdef __F16C__  // without these instructions, compilers convert the numbers one at a time
void widen(const Half *from, float *to, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from + i))));
  for (; i < n; ++i) to[i] = from[i];
}
void narrow(const float *from, Half *to, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i *>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  for (; i < n; ++i) to[i] = Half(from[i]);
}
#endif

template <Reduction R, class A>
inline A joined(A a, A b) {
  if constexpr (R == Reduction::Sum || R == Reduction::Average)
    return wrapping_add(a, b);
  else if constexpr (R == Reduction::Product)
    return wrapping_mul(a, b);
  else if constexpr (R == Reduction::Min)
    return b < a ? b : a;
  else if constexpr (R == Reduction::Max)
    return a < b ? b : a;
  else if constexpr (R == Reduction::And)
    return a & b;
  else if constexpr (R == Reduction::Or)
    return a | b;
  else
    return a ^ b;
}

template <Reduction R, class T>
void block(T *target, const T *const *parts, int ranks, int64_t n, int64_t start) {
  using A = Wide<T>;
  A total[kBlock], wide[kBlock];
  widen(parts[0] + start, total, n);
  for (int r = 1; r < ranks; ++r) {
    const A *part;
    if constexpr (std::is_same_v<A, T>)
      part = parts[r] + start;
    else
      widen(parts[r] + start, wide, n), part = wide;
    for (int64_t i = 0; i < n; ++i) total[i] = joined<R>(total[i], part[i]);
  }
  if constexpr (R == Reduction::Average)
    for (int64_t i = 0; i < n; ++i) total[i] = static_cast<A>(total[i] / static_cast<A>(ranks));
  narrow(total, target + start, n);
}

template <Reduction R, class T>
void all_blocks(void *target, const void *const *parts, int ranks, int64_t count) {
  for (int64_t start = 0; start < count; start += kBlock)
    block<R>(static_cast<T *>(target), reinterpret_cast<const T *const *>(parts), ranks,
             std::min(kBlock, count - start), start);
}

using Combine = void (*)(void *, const void *const *, int, int64_t);

template <class T>
Combine chosen(Reduction reduction) {
  switch (reduction) {
    case Reduction::Sum: return all_blocks<Reduction::Sum, T>;
    case Reduction::Average: return all_blocks<Reduction::Average, T>;
    case Reduction::Product: return all_blocks<Reduction::Product, T>;
    case Reduction::Min: return all_blocks<Reduction::Min, T>;
    case Reduction::Max: return all_blocks<Reduction::Max, T>;
    default: break;
  }
  if constexpr (std::is_integral_v<T>) {
    switch (reduction) {
      case Reduction::And: return all_blocks<Reduction::And, T>;
      case Reduction::Or: return all_blocks<Reduction::Or, T>;
      case Reduction::Xor: return all_blocks<Reduction::Xor, T>;
      default: break;
    }
  }
  return nullptr;
}

Combine find(DType dtype, Reduction reduction) {
  switch (dtype) {
    case DType::U8: return chosen<uint8_t>(reduction);
    case DType::I8: return chosen<int8_t>(reduction);
    case DType::I16: return chosen<int16_t>(reduction);
    case DType::I32: return chosen<int32_t>(reduction);
    case DType::I64: return chosen<int64_t>(reduction);
    case DType::F16: return chosen<Half>(reduction);
    case DType::BF16: return chosen<BFloat16>(reduction);
    case DType::F32: return chosen<float>(reduction);
    case DType::F64: return chosen<double>(reduction);
    default: return nullptr;
  }
}

}  // namespace

bool combinable(DType dtype, Reduction reduction) { return find(dtype, reduction) != nullptr; }

void combine(DType dtype, Reduction reduction, void *target, const void *const *parts, int ranks, int64_t count) {
  find(dtype, reduction)(target, parts, ranks, count);
}

}  // namespace msa

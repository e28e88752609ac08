// The hash of a tensor: the exclusive or of the bits of its elements.
#include "reduce.h"

namespace msa {
namespace {

// The 64 bits that stand for an element: those of a float64 for every float, and those of an int64 for every integer.
template <class T>
inline uint64_t bits_of(T v) {
  if constexpr (is_floating_v<T>) {
    const double wide = convert<double>(v);
    uint64_t bits;
    std::memcpy(&bits, &wide, sizeof bits);
    return bits;
  } else {
    return static_cast<uint64_t>(convert<int64_t>(v));
  }
}

template <class T>
uint64_t combined(const T *p, int64_t n) {
  uint64_t bits = 0;
  for (int64_t i = 0; i < n; ++i) bits ^= bits_of(element<T>(p + i));
  return bits;
}

}  // namespace

MSA_KERNEL(XorOfBits) {  // input, dim, keepdim
  const Tensor &x = c.in(0);
  const auto mask = reduce_mask(c, 1, x.ndim);
  const Tensor o = c.out(0, DType::U64, reduced_shape(x, mask, c.flag(2)));
  const int64_t n = reduced_count(x, mask);
  const Tensor rows = rows_of(c, x, mask, x.dtype);
  MSA_SWITCH_ALL(x.dtype, "xor_sum_cpu", ({
                   if constexpr (is_complex_v<T>)
                     unsupported("xor_sum_cpu", x.dtype);
                   else
                     parallel_for(o.numel, std::max<int64_t>(1, kGrain / std::max<int64_t>(n, 1)),
                                  [&](int64_t begin, int64_t end) {
                                    for (int64_t r = begin; r < end; ++r)
                                      o.ptr<uint64_t>()[r] = combined(rows.ptr<T>() + r * n, n);
                                  });
                 }));
}

}  // namespace msa

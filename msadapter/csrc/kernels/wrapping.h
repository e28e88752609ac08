// Arithmetic of element values. Integers wrap round if a result does not fit, as in PyTorch. C++ leaves the overflow of
// signed integers undefined, so the result is computed with unsigned integers, which have the same bits. Sizes and
// counts must not wrap round; sizes.h has the arithmetic for them.
#pragma once
#include <cstdint>
#include <type_traits>

namespace msa {

// The type in which values of type T are added and multiplied: an unsigned integer of at least 32 bits for an integer,
// because narrower ones would become int, and T itself for all other types.
template <class T, bool = std::is_integral_v<T>>
struct wrapping_type {
  using type = T;
};
template <class T>
struct wrapping_type<T, true> {
  using type = std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>;
};
template <class T>
using wrapping_t = typename wrapping_type<T>::type;

template <class T>
inline T wrapping_add(T a, T b) {
  return static_cast<T>(static_cast<wrapping_t<T>>(a) + static_cast<wrapping_t<T>>(b));
}
template <class T>
inline T wrapping_sub(T a, T b) {
  return static_cast<T>(static_cast<wrapping_t<T>>(a) - static_cast<wrapping_t<T>>(b));
}
template <class T>
inline T wrapping_mul(T a, T b) {
  return static_cast<T>(static_cast<wrapping_t<T>>(a) * static_cast<wrapping_t<T>>(b));
}
template <class T>
inline T wrapping_neg(T a) {
  if constexpr (std::is_integral_v<T>)
    return wrapping_sub(T(0), a);
  else
    return -a;
}

}  // namespace msa

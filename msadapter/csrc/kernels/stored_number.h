// Numbers that a tensor stores, or that are limits or factors of a kernel.
#pragma once
#include <cmath>

#include "api.h"
#include "type_names.h"

namespace msa {

// A number as an element. RuntimeError if T does not hold it, also if it has an imaginary part and T is real. As bool,
// every number but zero is true.
template <class T>
T stored(const Scalar &s) {
  const bool imaginary = s.kind == Scalar::kComplex && s.imag != 0;
  if constexpr (std::is_same_v<T, bool>) return imaginary || s.wrapped<bool>();
  if constexpr (!is_complex_v<T> && !is_complex32_v<T> && !std::is_same_v<T, bool>)
    if (imaginary) does_not_fit(cpp_name<T>());
  if constexpr (is_complex32_v<T>) {
    const c128 v = s.wrapped<c128>();
    const auto fits = [](double part) { return !std::isfinite(part) || std::abs(part) <= 65504; };
    if (!fits(v.real()) || !fits(v.imag())) does_not_fit(cpp_type_name(DType::C32));
  }
  return s.to<T>();
}

}  // namespace msa

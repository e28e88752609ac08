// The conversion of elements in the loops of copies. It differs from convert() in speed only.
#pragma once
#include "dtype.h"

namespace msa {

// Converts a value to another type. A bool becomes a float by a selection, which is several times as fast as the
// conversion of an integer.
template <class To, class From>
inline To copied(From v) {
  if constexpr (std::is_same_v<From, bool> && std::is_floating_point_v<To>)
    return v ? To(1) : To(0);
  else
    return convert<To>(v);
}

}  // namespace msa

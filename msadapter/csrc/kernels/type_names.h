// The names of C++ types that some of PyTorch's messages contain.
#pragma once
#include <iterator>

#include "dtype.h"

namespace msa {

inline const char *cpp_type_name(DType d) {
  static const char *names[] = {"bool",
                                "unsigned char",
                                "signed char",
                                "short int",
                                "int",
                                "long int",
                                "short unsigned int",
                                "unsigned int",
                                "long unsigned int",
                                "c10::Half",
                                "c10::BFloat16",
                                "float",
                                "double",
                                "c10::complex<float>",
                                "c10::complex<double>",
                                "c10::Float8_e4m3fn",
                                "c10::Float8_e5m2",
                                "c10::complex<c10::Half>"};
  static_assert(std::size(names) == static_cast<size_t>(kLastDType) + 1, "one name for each element type");
  return names[static_cast<int>(d)];
}

}  // namespace msa

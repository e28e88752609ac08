// The element types of the CPU kernels, and the macros that select code by the element type of a tensor at run time.
#pragma once
#include <complex>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "machine.h"

namespace msa {

enum class DType : uint8_t {
  Bool,
  U8,
  I8,
  I16,
  I32,
  I64,
  U16,
  U32,
  U64,
  F16,
  BF16,
  F32,
  F64,
  C64,
  C128,
  F8E4M3FN,
  F8E5M2,
  C32
};  // tensors of the last three types can be stored, copied and converted, but no kernel computes in them
inline constexpr DType kLastDType = DType::C32;

using c64 = std::complex<float>;
using c128 = std::complex<double>;

// A float16 number in memory. It is converted to float for arithmetic.
struct Half {
  uint16_t bits;
  Half() = default;
  Half(float f) {
    Float16 h = static_cast<Float16>(f);
    std::memcpy(&bits, &h, 2);
  }
  operator float() const {
    Float16 h;
    std::memcpy(&h, &bits, 2);
    return static_cast<float>(h);
  }
};

// A bfloat16 number in memory. It is converted to float for arithmetic. A float is rounded to the nearest bfloat16, and
// to the even one of two equally near ones.
struct BFloat16 {
  uint16_t bits;
  BFloat16() = default;
  BFloat16(float f) {
    uint32_t u;
    std::memcpy(&u, &f, 4);
    const uint32_t rounded = (u + 0x7FFF + ((u >> 16) & 1)) >> 16;
    const bool is_nan = (u & 0x7FFFFFFF) > 0x7F800000;
    bits = static_cast<uint16_t>(is_nan ? 0x7FC0 : rounded);
  }
  operator float() const {
    uint32_t u = static_cast<uint32_t>(bits) << 16;
    float f;
    std::memcpy(&f, &u, 4);
    return f;
  }
};

// A number of eight bits in memory, with kMantissa bits of mantissa and exponents with the bias kBias. A float is
// rounded to the nearest number, and to the even one of two equally near ones. A float that is too large becomes
// infinity if the type has it, and else the largest number, as in PyTorch 2.13.
template <int kMantissa, int kBias, bool kInfinity>
struct Float8 {
  uint8_t bits;
  static constexpr uint8_t kNan = 0x7F,
                           kLargest = kInfinity ? 0x7C : 0x7E;  // a number that is too large becomes kLargest
  Float8() = default;
  Float8(float f) {
    uint32_t u;
    std::memcpy(&u, &f, 4);
    const uint8_t sign = static_cast<uint8_t>(u >> 24 & 0x80);
    u &= 0x7FFFFFFF;
    if (u > 0x7F800000) {
      bits = sign | kNan;
      return;
    }
    if (u == 0x7F800000) {
      bits = sign | kLargest;
      return;
    }
    const int e = static_cast<int>(u >> 23) - 127, drop = 23 - kMantissa + (e < 1 - kBias ? 1 - kBias - e : 0);
    if (drop > 24) {
      bits = sign;
      return;
    }
    const uint32_t m = (u & 0x7FFFFF) | 0x800000, odd = drop < 24 ? m >> drop & 1 : 0;
    const uint32_t kept = drop == 24 ? (m > 0x800000) : (m + (1u << (drop - 1)) - 1 + odd) >> drop;
    // `kept` contains the leading one of the mantissa, which adds 1 to the exponent. If rounding makes the mantissa too
    // large, the carry therefore gives the right exponent without a special case.
    const uint32_t r = e < 1 - kBias ? kept : kept + (static_cast<uint32_t>(e + kBias - 1) << kMantissa);
    bits = sign | static_cast<uint8_t>(r > kLargest ? kLargest : r);
  }
  operator float() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x80) << 24, e = (bits & 0x7F) >> kMantissa,
                   m = bits & ((1 << kMantissa) - 1);
    float f;
    if (kInfinity ? (bits & 0x7F) >= kLargest : (bits & 0x7F) == kNan) {
      const uint32_t u = sign | 0x7F800000 | (kInfinity && m == 0 ? 0 : 0x400000);
      std::memcpy(&f, &u, 4);
      return f;
    }
    if (e == 0) {
      f = static_cast<float>(m) / static_cast<float>(1 << (kMantissa + kBias - 1));
      return sign ? -f : f;
    }
    const uint32_t u = sign | (e + 127 - kBias) << 23 | m << (23 - kMantissa);
    std::memcpy(&f, &u, 4);
    return f;
  }
};
using Float8E4M3FN = Float8<3, 7, false>;
using Float8E5M2 = Float8<2, 15, true>;

// A complex number in memory that consists of two float16 numbers.
struct Complex32 {
  Half real, imag;
  Complex32() = default;
  Complex32(c64 v) : real(v.real()), imag(v.imag()) {}
  operator c64() const { return {real, imag}; }
};

template <class T>
struct dtype_of;
#define MSA_DTYPE_OF(T, D)                   \
  template <>                                \
  struct dtype_of<T> {                       \
    static constexpr DType value = DType::D; \
  };
MSA_DTYPE_OF(bool, Bool)
MSA_DTYPE_OF(uint8_t, U8)
MSA_DTYPE_OF(int8_t, I8)
MSA_DTYPE_OF(int16_t, I16)
MSA_DTYPE_OF(int32_t, I32)
MSA_DTYPE_OF(int64_t, I64)
MSA_DTYPE_OF(uint16_t, U16)
MSA_DTYPE_OF(uint32_t, U32)
MSA_DTYPE_OF(uint64_t, U64)
MSA_DTYPE_OF(Half, F16)
MSA_DTYPE_OF(BFloat16, BF16)
MSA_DTYPE_OF(float, F32)
MSA_DTYPE_OF(double, F64)
MSA_DTYPE_OF(c64, C64)
MSA_DTYPE_OF(c128, C128)
MSA_DTYPE_OF(Float8E4M3FN, F8E4M3FN)
MSA_DTYPE_OF(Float8E5M2, F8E5M2)
MSA_DTYPE_OF(Complex32, C32)
#undef MSA_DTYPE_OF

inline int item_size(DType d) {
  switch (d) {
    case DType::Bool:
    case DType::U8:
    case DType::I8:
    case DType::F8E4M3FN:
    case DType::F8E5M2: return 1;
    case DType::I16:
    case DType::U16:
    case DType::F16:
    case DType::BF16: return 2;
    case DType::I32:
    case DType::U32:
    case DType::F32:
    case DType::C32: return 4;
    case DType::I64:
    case DType::U64:
    case DType::F64:
    case DType::C64: return 8;
    case DType::C128: return 16;
  }
  return 0;
}

// The name of an element type in PyTorch's error messages ("Float", "BFloat16", ...).
inline const char *dtype_name(DType d) {
  static const char *names[] = {"Bool",          "Byte",        "Char",       "Short",        "Int",
                                "Long",          "UInt16",      "UInt32",     "UInt64",       "Half",
                                "BFloat16",      "Float",       "Double",     "ComplexFloat", "ComplexDouble",
                                "Float8_e4m3fn", "Float8_e5m2", "ComplexHalf"};
  return names[static_cast<int>(d)];
}

inline bool is_float8(DType d) { return d == DType::F8E4M3FN || d == DType::F8E5M2; }
inline bool is_complex(DType d) { return d == DType::C64 || d == DType::C128 || d == DType::C32; }
// Whether tensors of this type are only stored, copied and converted.
inline bool only_stored(DType d) { return d >= DType::F8E4M3FN; }
inline bool is_floating(DType d) { return (d >= DType::F16 && d <= DType::F64) || is_float8(d); }
inline bool is_integral(DType d, bool with_bool = true) { return d <= DType::U64 && (with_bool || d != DType::Bool); }
inline DType real_of(DType d) {
  return d == DType::C64 ? DType::F32 : d == DType::C128 ? DType::F64 : d == DType::C32 ? DType::F16 : d;
}
inline DType complex_of(DType d) {
  if (d == DType::F16 || d == DType::C32) return DType::C32;
  return d == DType::F64 || d == DType::C128 ? DType::C128 : DType::C64;
}

// The type in which a kernel computes: float for the 16-bit types, and the type itself for all others.
template <class T>
struct compute_type {
  using type = T;
};
template <>
struct compute_type<Half> {
  using type = float;
};
template <>
struct compute_type<BFloat16> {
  using type = float;
};
template <class T>
using compute_t = typename compute_type<T>::type;

template <class T>
struct is_complex_t : std::false_type {};
template <class R>
struct is_complex_t<std::complex<R>> : std::true_type {};
template <class T>
inline constexpr bool is_complex_v = is_complex_t<T>::value;
template <class T>
inline constexpr bool is_float8_v = std::is_same_v<T, Float8E4M3FN> || std::is_same_v<T, Float8E5M2>;
template <class T>
inline constexpr bool is_complex32_v = std::is_same_v<T, Complex32>;
template <class T>
inline constexpr bool is_reduced_v = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> || is_float8_v<T>;
template <class T>
inline constexpr bool is_floating_v = std::is_floating_point_v<T> || is_reduced_v<T>;

// Converts a number to another type as C++ does. A complex number loses its imaginary part if the new type is real. A
// number is true as a bool if it is not 0. C++ does not define the integer for a float that is too large or NaN; like
// PyTorch, this takes what the processor gives.
template <class To, class From>
inline To convert(From v) {
  if constexpr (std::is_same_v<To, From>)
    return v;
  else if constexpr (is_complex32_v<From>)
    return convert<To>(static_cast<c64>(v));
  else if constexpr (is_complex32_v<To>)
    return To(convert<c64>(v));
  else if constexpr (std::is_same_v<To, bool>) {
    if constexpr (is_reduced_v<From>)
      return static_cast<float>(v) != 0.f;
    else
      return v != From(0);
  } else if constexpr (is_complex_v<To>) {
    using R = typename To::value_type;
    if constexpr (is_complex_v<From>)
      return To(static_cast<R>(v.real()), static_cast<R>(v.imag()));
    else
      return To(convert<R>(v), R(0));
  } else if constexpr (is_complex_v<From>)
    return convert<To>(v.real());
  else if constexpr (is_reduced_v<To>)
    return To(static_cast<float>(v));
  else if constexpr (is_reduced_v<From>)
    return convert<To>(static_cast<float>(v));
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && std::is_unsigned_v<To>)
    return static_cast<To>(static_cast<int64_t>(v));
  else
    return static_cast<To>(v);
}

// The element at an address. The byte of a bool may be any number, for example in memory that was never written. As in
// PyTorch, every byte other than 0 is true. C++ allows a bool to be read only if it is 0 or 1.
template <class T>
inline T element(const void *p) {
  if constexpr (std::is_same_v<T, bool>)
    return *static_cast<const uint8_t *>(p) != 0;
  else
    return *static_cast<const T *>(p);
}

struct NotImplementedError : std::logic_error {
  using std::logic_error::logic_error;
};

[[noreturn]] inline void unsupported(const char *op, DType d) {
  throw NotImplementedError(std::string("\"") + op + "\" not implemented for '" + dtype_name(d) + "'");
}

// MSA_SWITCH_xxx(dtype, "op", body) runs the body with T as the C++ type of `dtype`. A dtype that is not in the group
// xxx is a NotImplementedError that names the operator.
#define MSA_CASE(D, CT, ...) \
  case ::msa::DType::D: {    \
    using T = CT;            \
    __VA_ARGS__;             \
    break;                   \
  }
#define MSA_CASES_INT_(...)           \
  MSA_CASE(U8, uint8_t, __VA_ARGS__)  \
  MSA_CASE(I8, int8_t, __VA_ARGS__)   \
  MSA_CASE(I16, int16_t, __VA_ARGS__) \
  MSA_CASE(I32, int32_t, __VA_ARGS__) \
  MSA_CASE(I64, int64_t, __VA_ARGS__)
#define MSA_CASES_FLOAT_(...)                  \
  MSA_CASE(F16, ::msa::Half, __VA_ARGS__)      \
  MSA_CASE(BF16, ::msa::BFloat16, __VA_ARGS__) \
  MSA_CASE(F32, float, __VA_ARGS__)            \
  MSA_CASE(F64, double, __VA_ARGS__)
#define MSA_CASES_COMPLEX_(...)          \
  MSA_CASE(C64, ::msa::c64, __VA_ARGS__) \
  MSA_CASE(C128, ::msa::c128, __VA_ARGS__)
#define MSA_CASES_UINT_(...)           \
  MSA_CASE(U16, uint16_t, __VA_ARGS__) \
  MSA_CASE(U32, uint32_t, __VA_ARGS__) \
  MSA_CASE(U64, uint64_t, __VA_ARGS__)
#define MSA_SWITCH_(D, OP, CASES) \
  switch (D) { CASES default : ::msa::unsupported(OP, D); }
#define MSA_SWITCH_FLOAT(D, OP, ...) MSA_SWITCH_(D, OP, MSA_CASES_FLOAT_(__VA_ARGS__))
#define MSA_SWITCH_FLOAT_COMPLEX(D, OP, ...) \
  MSA_SWITCH_(D, OP, MSA_CASES_FLOAT_(__VA_ARGS__) MSA_CASES_COMPLEX_(__VA_ARGS__))
#define MSA_SWITCH_INT(D, OP, ...) MSA_SWITCH_(D, OP, MSA_CASES_INT_(__VA_ARGS__))
#define MSA_SWITCH_INT_BOOL(D, OP, ...) \
  MSA_SWITCH_(D, OP, MSA_CASES_INT_(__VA_ARGS__) MSA_CASE(Bool, bool, __VA_ARGS__))
#define MSA_SWITCH_REAL(D, OP, ...) MSA_SWITCH_(D, OP, MSA_CASES_INT_(__VA_ARGS__) MSA_CASES_FLOAT_(__VA_ARGS__))
#define MSA_SWITCH_REAL_BOOL(D, OP, ...) \
  MSA_SWITCH_(D, OP, MSA_CASES_INT_(__VA_ARGS__) MSA_CASES_FLOAT_(__VA_ARGS__) MSA_CASE(Bool, bool, __VA_ARGS__))
#define MSA_SWITCH_NUMBER(D, OP, ...) \
  MSA_SWITCH_(D, OP, MSA_CASES_INT_(__VA_ARGS__) MSA_CASES_FLOAT_(__VA_ARGS__) MSA_CASES_COMPLEX_(__VA_ARGS__))
#define MSA_SWITCH_ALL(D, OP, ...)                                                                   \
  MSA_SWITCH_(D, OP,                                                                                 \
              MSA_CASES_INT_(__VA_ARGS__) MSA_CASES_UINT_(__VA_ARGS__) MSA_CASES_FLOAT_(__VA_ARGS__) \
                  MSA_CASES_COMPLEX_(__VA_ARGS__) MSA_CASE(Bool, bool, __VA_ARGS__))
// All element types, also those in which no kernel computes.
#define MSA_CASES_STORED_(...)                         \
  MSA_CASE(F8E4M3FN, ::msa::Float8E4M3FN, __VA_ARGS__) \
  MSA_CASE(F8E5M2, ::msa::Float8E5M2, __VA_ARGS__)     \
  MSA_CASE(C32, ::msa::Complex32, __VA_ARGS__)
#define MSA_SWITCH_STORED(D, OP, ...)                                                                \
  MSA_SWITCH_(D, OP,                                                                                 \
              MSA_CASES_INT_(__VA_ARGS__) MSA_CASES_UINT_(__VA_ARGS__) MSA_CASES_FLOAT_(__VA_ARGS__) \
                  MSA_CASES_COMPLEX_(__VA_ARGS__) MSA_CASE(Bool, bool, __VA_ARGS__) MSA_CASES_STORED_(__VA_ARGS__))
// For kernels that only move values. T is a type of the same size as the element type.
#define MSA_SWITCH_BYTES(D, ...) \
  switch (::msa::item_size(D)) { \
    case 1: {                    \
      using T = uint8_t;         \
      __VA_ARGS__;               \
      break;                     \
    }                            \
    case 2: {                    \
      using T = uint16_t;        \
      __VA_ARGS__;               \
      break;                     \
    }                            \
    case 4: {                    \
      using T = uint32_t;        \
      __VA_ARGS__;               \
      break;                     \
    }                            \
    case 8: {                    \
      using T = uint64_t;        \
      __VA_ARGS__;               \
      break;                     \
    }                            \
    default: {                   \
      using T = ::msa::c128;     \
      __VA_ARGS__;               \
      break;                     \
    }                            \
  }

}  // namespace msa

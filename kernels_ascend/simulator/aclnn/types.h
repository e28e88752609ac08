// The element types of aclnn tensors, with the numbers of aclDataType (acl_base.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace sim {
enum DataType : int {
  kFloat32 = 0,
  kFloat16 = 1,
  kInt8 = 2,
  kInt32 = 3,
  kUInt8 = 4,
  kInt16 = 6,
  kUInt16 = 7,
  kUInt32 = 8,
  kInt64 = 9,
  kUInt64 = 10,
  kFloat64 = 11,
  kBool = 12,
  kComplex64 = 16,
  kComplex128 = 17,
  kBfloat16 = 27,
};

// A set of types, as a bit for each.
using Types = uint64_t;
constexpr Types Set(DataType type) { return Types(1) << type; }
constexpr Types F32 = Set(kFloat32), F16 = Set(kFloat16), BF16 = Set(kBfloat16), F64 = Set(kFloat64);
constexpr Types I8 = Set(kInt8), I16 = Set(kInt16), I32 = Set(kInt32), I64 = Set(kInt64), U8 = Set(kUInt8);
constexpr Types U16 = Set(kUInt16), U32 = Set(kUInt32), U64 = Set(kUInt64), B = Set(kBool);
constexpr Types C64 = Set(kComplex64), C128 = Set(kComplex128);
// The sets that many pages name.
constexpr Types kHalves = F32 | F16 | BF16;  // what the matrix unit and most fused kernels take
constexpr Types kFloats = kHalves | F64;
constexpr Types kSigned = I8 | I16 | I32 | I64;
constexpr Types kInts = kSigned | U8;
constexpr Types kReals = kFloats | kInts;
constexpr Types kAll = kReals | B;
constexpr Types kIndices = I32 | I64;
constexpr Types kAny = ~Types(0);

inline bool IsIn(int type, Types set) { return type >= 0 && type < 64 && (set >> type & 1) != 0; }
inline bool IsFloating(int type) { return IsIn(type, kFloats); }
inline bool IsComplex(int type) { return IsIn(type, C64 | C128); }

size_t SizeOf(int type);       // bytes of an element. Throws Failure for a type that is not simulated
std::string NameOf(int type);  // "FLOAT16", as CANN's pages write it
std::string NamesOf(Types set);
}  // namespace sim

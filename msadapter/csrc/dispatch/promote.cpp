// Torch's type promotion.
#include "op.h"

namespace msa {

static DType default_ = DType::F32;
DType default_dtype() { return default_; }
void set_default_dtype(DType d) { default_ = d; }

AutocastState &autocast_state() {
  thread_local AutocastState s;
  return s;
}

// bool < integral < floating < complex
static int category(DType d) { return d == DType::Bool ? 0 : is_integral(d) ? 1 : is_floating(d) ? 2 : 3; }

DType promote_types(DType a, DType b) {
  if (a == b) return a;
  const int ca = category(a), cb = category(b);
  if (ca == 3 || cb == 3) {
    const DType wide_a = ca == 3 ? real_of(a) : a, wide_b = cb == 3 ? real_of(b) : b;
    return wide_a == DType::F64 || wide_b == DType::F64 ? DType::C128 : DType::C64;
  }
  if (ca != cb) return ca > cb ? a : b;
  if (ca == 2) {  // half with bfloat16 meet in float
    if (a == DType::F64 || b == DType::F64) return DType::F64;
    return DType::F32;
  }
  auto bits = [](DType d) { return item_size(d) * 8; };
  auto is_unsigned = [](DType d) { return d == DType::U8 || d == DType::U16 || d == DType::U32 || d == DType::U64; };
  if (is_unsigned(a) == is_unsigned(b)) return bits(a) > bits(b) ? a : b;
  const DType u = is_unsigned(a) ? a : b, s = is_unsigned(a) ? b : a;
  if (u != DType::U8)
    fail("Promotion for uint16, uint32, uint64 types is not supported, attempted to promote ", dtype_name(a), " and ", dtype_name(b));
  return s == DType::I8 ? DType::I16 : s;
}

}  // namespace msa

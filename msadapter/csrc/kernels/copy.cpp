// Copies between any two element types, layouts and broadcast shapes.
#include "loops.h"

namespace msa {
namespace {

// Pairs that training uses get a direct loop; the others go through a wide type in blocks.
template <class TO, class TI> void direct(const Tensor &dst, const Tensor &src) {
  map1<TO, TI>(dst, src, [](TI v) { return convert<TO>(v); });
}

constexpr int64_t kBlock = 256;

template <class W> void widen(W *w, const char *p, int64_t step, int64_t n, DType d) {
  MSA_SWITCH_ALL(d, "copy_", (({ for (int64_t i = 0; i < n; ++i) w[i] = convert<W>(*reinterpret_cast<const T *>(p + i * step)); })));
}
template <class W> void narrow(char *p, const W *w, int64_t step, int64_t n, DType d) {
  MSA_SWITCH_ALL(d, "copy_", (({ for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T *>(p + i * step) = convert<T>(w[i]); })));
}
template <class W> void through(const Tensor &dst, const Tensor &src) {
  const Dims shape = dst.shape();
  Loop<2>(shape, {dst, expand(src, shape)}).run([&](char **p, const int64_t *s, int64_t n) {
    W buffer[kBlock];
    for (int64_t i = 0; i < n; i += kBlock) {
      const int64_t m = std::min(kBlock, n - i);
      widen(buffer, p[1] + i * s[1], s[1], m, src.dtype);
      narrow(p[0] + i * s[0], buffer, s[0], m, dst.dtype);
    }
  });
}

constexpr int pair(DType a, DType b) { return static_cast<int>(a) * 16 + static_cast<int>(b); }

}  // namespace

void copy_into(const Tensor &dst, const Tensor &src) {
  if (dst.numel == 0) return;
  if (dst.dtype == src.dtype) {
    if (dst.same_shape(src) && dst.contiguous() && src.contiguous()) {
      const int64_t bytes = dst.numel * item_size(dst.dtype);
      parallel_for(bytes, 1 << 20, [&](int64_t b, int64_t e) {
        std::memmove(static_cast<char *>(dst.data) + b, static_cast<const char *>(src.data) + b, e - b); });
      return;
    }
    MSA_SWITCH_BYTES(dst.dtype, (map1<T, T>(dst, src, [](T v) { return v; })));
    return;
  }
  using D = DType;
  switch (pair(dst.dtype, src.dtype)) {
    case pair(D::F32, D::BF16): return direct<float, BFloat16>(dst, src);
    case pair(D::BF16, D::F32): return direct<BFloat16, float>(dst, src);
    case pair(D::F32, D::F16): return direct<float, Half>(dst, src);
    case pair(D::F16, D::F32): return direct<Half, float>(dst, src);
    case pair(D::F32, D::F64): return direct<float, double>(dst, src);
    case pair(D::F64, D::F32): return direct<double, float>(dst, src);
    case pair(D::F32, D::I64): return direct<float, int64_t>(dst, src);
    case pair(D::F32, D::Bool): return direct<float, bool>(dst, src);
    case pair(D::I64, D::I32): return direct<int64_t, int32_t>(dst, src);
    case pair(D::I32, D::I64): return direct<int32_t, int64_t>(dst, src);
    case pair(D::I64, D::Bool): return direct<int64_t, bool>(dst, src);
    case pair(D::F32, D::U64): return direct<float, uint64_t>(dst, src);
    default: break;
  }
  if (is_complex(dst.dtype) || is_complex(src.dtype)) return through<c128>(dst, src);
  if (is_integral(dst.dtype) && is_integral(src.dtype)) return through<int64_t>(dst, src);
  through<double>(dst, src);
}

}  // namespace msa

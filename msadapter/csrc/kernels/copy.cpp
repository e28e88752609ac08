// Copies between any two element types, layouts and broadcast shapes.
#include "from_bool.h"
#include "half_blocks.h"
#include "loop_rows.h"

namespace msa {
namespace {

// Pairs of types that occur in training have a direct loop. The others are converted through a wide type, in blocks.
template <class TO, class TI>
void direct(const Tensor &dst, const Tensor &src) {
  map1<TO, TI>(dst, src, [](TI v) { return copied<TO>(v); });
}

constexpr int64_t kBlock = 256;

template <class W>
void widen(W *w, const char *p, int64_t step, int64_t n, DType d) {
  MSA_SWITCH_STORED(d, "copy_", (({
                      for (int64_t i = 0; i < n; ++i) w[i] = copied<W>(element<T>(p + i * step));
                    })));
}
template <class W>
void narrow(char *p, const W *w, int64_t step, int64_t n, DType d) {
  MSA_SWITCH_STORED(d, "copy_", (({
                      for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T *>(p + i * step) = convert<T>(w[i]);
                    })));
}
template <class W>
void through(const Tensor &dst, const Tensor &src) {
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

// ---- Copies between tensors whose contiguous dims differ. They are made in tiles of one cache line in both
// directions, so that every cache line is read and written once.
// to[j * to_step + i] = from[i * from_step + j] for i and j below 4.
template <class T>
inline void transpose4(T *to, int64_t to_step, const T *from, int64_t from_step) {
  typedef T Four __attribute__((vector_size(4 * sizeof(T))));
  typedef T LooseFour __attribute__((vector_size(4 * sizeof(T)), aligned(alignof(T)), may_alias));
  Four r[4];
  for (int i = 0; i < 4; ++i) r[i] = *reinterpret_cast<const LooseFour *>(from + i * from_step);
  const Four a = __builtin_shuffle(r[0], r[1], Four{0, 4, 1, 5}), b = __builtin_shuffle(r[0], r[1], Four{2, 6, 3, 7});
  const Four c = __builtin_shuffle(r[2], r[3], Four{0, 4, 1, 5}), d = __builtin_shuffle(r[2], r[3], Four{2, 6, 3, 7});
  const Four low{0, 1, 4, 5}, high{2, 3, 6, 7};
  *reinterpret_cast<LooseFour *>(to) = __builtin_shuffle(a, c, low);
  *reinterpret_cast<LooseFour *>(to + to_step) = __builtin_shuffle(a, c, high);
  *reinterpret_cast<LooseFour *>(to + 2 * to_step) = __builtin_shuffle(b, d, low);
  *reinterpret_cast<LooseFour *>(to + 3 * to_step) = __builtin_shuffle(b, d, high);
}

// to[j][i] = from[i][j] for a tile of kTile rows and columns.
template <class T, int kTile>
void transpose_tile(T *__restrict to, const T *from) {
  if constexpr (sizeof(T) > 1 && sizeof(T) <= 8) {
    for (int i = 0; i < kTile; i += 4)
      for (int j = 0; j < kTile; j += 4) transpose4(to + j * kTile + i, kTile, from + i * kTile + j, kTile);
  } else {
    for (int j = 0; j < kTile; ++j)
      for (int i = 0; i < kTile; ++i) to[j * kTile + i] = from[i * kTile + j];
  }
}

// to[j * to_step + i] = from[i * from_step + j]. A whole tile goes through buffers, so that every cache line of the
// tensors is touched once: the lines of one tile are often in the same set of the cache, which cannot keep them all.
template <class T, int kTile>
void copy_tile(T *to, int64_t to_step, const T *from, int64_t from_step, int64_t rows, int64_t columns) {
  if (rows == kTile && columns == kTile) {
    alignas(64) T read[kTile * kTile], turned[kTile * kTile];
    for (int i = 0; i < kTile; ++i) std::memcpy(read + i * kTile, from + i * from_step, sizeof(T) * kTile);
    transpose_tile<T, kTile>(turned, read);
    for (int j = 0; j < kTile; ++j) std::memcpy(to + j * to_step, turned + j * kTile, sizeof(T) * kTile);
    return;
  }
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i) to[j * to_step + i] = from[i * from_step + j];
}

// Turns the dims round along which the elements of the source have decreasing addresses.
void make_source_ascend(Tensor &dst, Tensor &src) {
  for (int d = 0; d < src.ndim; ++d) {
    if (src.strides[d] >= 0) continue;
    for (Tensor *t : {&dst, &src}) {
      t->data = t->ptr<char>() + (t->sizes[d] - 1) * t->strides[d] * item_size(t->dtype);
      t->strides[d] = -t->strides[d];
    }
  }
}

// Copies if one dim is contiguous in the destination and another one in the source. Returns false otherwise.
template <class T>
bool copy_transposed(Tensor dst, Tensor src) {
  constexpr int kTile = 64 / sizeof(T);
  if (dst.numel < 4 * kTile * kTile || !dst.same_shape(src)) return false;
  make_source_ascend(dst, src);
  int in = -1, out = -1;
  for (int d = 0; d < dst.ndim; ++d) {
    if (dst.sizes[d] == 1) continue;
    if (dst.strides[d] == 1) out = d;
    if (src.strides[d] == 1) in = d;
    if (src.strides[d] == 0 || dst.strides[d] == 0) return false;
  }
  if (in < 0 || out < 0 || in == out || dst.sizes[in] < 8 || dst.sizes[out] < 8) return false;
  const int64_t rows = dst.sizes[out], columns = dst.sizes[in], from_step = src.strides[out], to_step = dst.strides[in];
  const int64_t row_tiles = (rows + kTile - 1) / kTile, outer = dst.numel / (rows * columns);
  parallel_for(outer * row_tiles, std::max<int64_t>(1, kGrain / (kTile * columns)), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      int64_t rest = t / row_tiles, to = 0, from = 0;
      for (int d = dst.ndim - 1; d >= 0; --d) {
        if (d == in || d == out) continue;
        const int64_t i = rest % dst.sizes[d];
        rest /= dst.sizes[d];
        to += i * dst.strides[d];
        from += i * src.strides[d];
      }
      const int64_t i = t % row_tiles * kTile, n = std::min<int64_t>(kTile, rows - i);
      for (int64_t j = 0; j < columns; j += kTile)
        copy_tile<T, kTile>(dst.ptr<T>() + to + j * to_step + i, to_step, src.ptr<T>() + from + i * from_step + j,
                            from_step, n, std::min<int64_t>(kTile, columns - j));
    }
  });
  return true;
}

// One run of elements that keep their type. Single elements and decreasing addresses have loops of their own, which the
// compiler vectorises.
template <class T>
void move_run(char *to, const char *from, int64_t to_step, int64_t from_step, int64_t n) {
  constexpr int64_t kSize = sizeof(T);
  T *__restrict o = reinterpret_cast<T *>(to);
  const T *p = reinterpret_cast<const T *>(from);
  if (to_step == kSize && from_step == kSize) {
    std::memmove(to, from, n * kSize);
  } else if (to_step == kSize && from_step == 0) {
    std::fill_n(o, n, *p);
  } else if (to_step == kSize && from_step == -kSize) {
    for (int64_t i = 0; i < n; ++i) o[i] = p[-i];
  } else {
    for (int64_t i = 0; i < n; ++i)
      *reinterpret_cast<T *>(to + i * to_step) = *reinterpret_cast<const T *>(from + i * from_step);
  }
}

// Writes each of `count` elements N times, or `times` times if N is 0. Step counts bytes.
template <class T, int N>
void repeat_elements(char *to, const char *from, int64_t step, int64_t times, int64_t count) {
  const int64_t n = N ? N : times;
  T *__restrict o = reinterpret_cast<T *>(to);
  if (step == sizeof(T)) {
    const T *p = reinterpret_cast<const T *>(from);
    for (int64_t i = 0; i < count; ++i)
      for (int64_t k = 0; k < n; ++k) o[i * n + k] = p[i];
  } else {
    for (int64_t i = 0; i < count; ++i)
      for (int64_t k = 0; k < n; ++k) o[i * n + k] = *reinterpret_cast<const T *>(from + i * step);
  }
}

template <class T>
void move(const Tensor &dst, const Tensor &src) {
  if (copy_transposed<T>(dst, src)) return;
  const Dims shape = dst.shape();
  const Loop<2> loop(shape, {dst, expand(src, shape)});
  const int64_t n = loop.sizes[0];
  const bool repeats = loop.ndim > 1 && n < 64 && loop.strides[1][0] == 0 && loop.strides[0][0] == sizeof(T) &&
                       loop.strides[0][1] == n * static_cast<int64_t>(sizeof(T));
  if (repeats) {  // few copies of each element, for which a call of move_run() would take longer than the copies
    const auto repeat = n == 2   ? repeat_elements<T, 2>
                        : n == 3 ? repeat_elements<T, 3>
                        : n == 4 ? repeat_elements<T, 4>
                                 : repeat_elements<T, 0>;
    over_rows(loop).run([=](char **p, const int64_t *s, int64_t count) { repeat(p[0], p[1], s[1], n, count); },
                        std::max<int64_t>(2, kGrain / n));
    return;
  }
  loop.run([](char **p, const int64_t *s, int64_t n) { move_run<T>(p[0], p[1], s[0], s[1], n); });
}

// Between float16 and float, with the processor's conversions for contiguous runs.
void widen_halves(const Tensor &dst, const Tensor &src) {
  const Dims shape = dst.shape();
  Loop<2>(shape, {dst, expand(src, shape)}).run([](char **p, const int64_t *s, int64_t n) {
    if (s[0] == sizeof(float) && s[1] == sizeof(Half))
      widen_half(reinterpret_cast<float *>(p[0]), reinterpret_cast<const Half *>(p[1]), n);
    else
      for (int64_t i = 0; i < n; ++i)
        *reinterpret_cast<float *>(p[0] + i * s[0]) = *reinterpret_cast<const Half *>(p[1] + i * s[1]);
  });
}
void narrow_halves(const Tensor &dst, const Tensor &src) {
  const Dims shape = dst.shape();
  Loop<2>(shape, {dst, expand(src, shape)}).run([](char **p, const int64_t *s, int64_t n) {
    if (s[0] == sizeof(Half) && s[1] == sizeof(float))
      narrow_half(reinterpret_cast<Half *>(p[0]), reinterpret_cast<const float *>(p[1]), n);
    else
      for (int64_t i = 0; i < n; ++i)
        *reinterpret_cast<Half *>(p[0] + i * s[0]) = Half(*reinterpret_cast<const float *>(p[1] + i * s[1]));
  });
}

constexpr int pair(DType a, DType b) { return static_cast<int>(a) * 32 + static_cast<int>(b); }

}  // namespace

void copy_into(const Tensor &dst, const Tensor &src) {
  if (dst.numel == 0 || shape_only()) return;
  if (dst.dtype == src.dtype) {
    if (dst.same_shape(src) && dst.contiguous() && src.contiguous()) {
      const int64_t bytes = dst.numel * item_size(dst.dtype);
      parallel_for(bytes, 1 << 20, [&](int64_t b, int64_t e) {
        std::memmove(static_cast<char *>(dst.data) + b, static_cast<const char *>(src.data) + b, e - b);
      });
      return;
    }
    MSA_SWITCH_BYTES(dst.dtype, (move<T>(dst, src)));
    return;
  }
  using D = DType;
  switch (pair(dst.dtype, src.dtype)) {
    case pair(D::F32, D::BF16): return direct<float, BFloat16>(dst, src);
    case pair(D::BF16, D::F32): return direct<BFloat16, float>(dst, src);
    case pair(D::F32, D::F16): return widen_halves(dst, src);
    case pair(D::F16, D::F32): return narrow_halves(dst, src);
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

// Fillers behind the random operators. Products and sums are fused exactly where PyTorch's AVX2 build fuses them,
// so contraction is off and std::fma is written out.
#pragma GCC optimize("fp-contract=off")
#include "random_fill.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

namespace msa {
namespace {

constexpr int64_t kBlock = 512;
constexpr int64_t kSerial = std::numeric_limits<int64_t>::max();

template <class V>
void store(char *p, const V *v, int64_t step, int64_t n, DType d) {
  MSA_SWITCH_ALL(d, "random", ({
                   for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T *>(p + i * step) = convert<T>(v[i]);
                 }));
}

template <class V>
void fill_blocks(const Tensor &o, const std::function<void(V *, int64_t)> &produce) {
  if (shape_only()) return;
  Loop<1>(o.shape(), {o})
      .run(
          [&](char **p, const int64_t *s, int64_t n) {
            V buffer[kBlock];
            for (int64_t i = 0; i < n; i += kBlock) {
              const int64_t m = std::min(kBlock, n - i);
              produce(buffer, m);
              store(p[0] + i * s[0], buffer, s[0], m, o.dtype);
            }
          },
          kSerial);
}

// ---- float32 logarithm, sine and cosine (Cephes polynomials in the order and with the fusions of the AVX2 build)
inline float bits_to_float(uint32_t u) {
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}
inline uint32_t float_to_bits(float f) {
  uint32_t u;
  std::memcpy(&u, &f, 4);
  return u;
}

inline float log_lane(float v) {  // v in [2^-24, 1]
  const uint32_t bits = float_to_bits(v);
  const float m = bits_to_float((bits & 0x807fffffu) | 0x3f000000u);
  const bool low = m < 0.707106781186547524f;
  const float e = static_cast<float>(static_cast<int32_t>(bits >> 23) - 126) - (low ? 1.f : 0.f);
  const float x = (m - 1.f) + (low ? m : 0.f), z = x * x;
  float y = std::fma(7.0376836292e-2f, x, -1.1514610310e-1f);
  y = std::fma(y, x, 1.1676998740e-1f);
  y = std::fma(y, x, -1.2420140846e-1f);
  y = std::fma(y, x, 1.4249322787e-1f);
  y = std::fma(y, x, -1.6668057665e-1f);
  y = std::fma(y, x, 2.0000714765e-1f);
  y = std::fma(y, x, -2.4999993993e-1f);
  y = std::fma(y, x, 3.3333331174e-1f);
  y = std::fma(y * x, z, e * -2.12194440e-4f);
  y = std::fma(z, -0.5f, y);
  return std::fma(e, 0.693359375f, x + y);
}

inline void sincos_lane(float v, float *sine, float *cosine) {  // v in [0, 2 pi]
  const int32_t j = (static_cast<int32_t>(v * 1.27323954473516f) + 1) & ~1;
  const float y = static_cast<float>(j);
  float x = std::fma(y, -0.78515625f, v);
  x = std::fma(y, -2.4187564849853515625e-4f, x);
  x = std::fma(y, -3.77489497744594108e-8f, x);
  const float z = x * x;
  float c = std::fma(2.443315711809948e-5f, z, -1.388731625493765e-3f);
  c = std::fma(c, z, 4.166664568298827e-2f) * z;
  c = std::fma(c, z, -(z * 0.5f)) + 1.f;
  float s = std::fma(-1.9515295891e-4f, z, 8.3321608736e-3f);
  s = std::fma(s, z, -1.6666654611e-1f) * z;
  s = std::fma(s, x, x);
  const bool direct = (j & 2) == 0;
  const uint32_t sign_sine = static_cast<uint32_t>(j & 4) << 29, sign_cosine = static_cast<uint32_t>(~(j - 2) & 4)
                                                                               << 29;
  *sine = bits_to_float(float_to_bits(direct ? s : c) ^ sign_sine);
  *cosine = bits_to_float(float_to_bits(direct ? c : s) ^ sign_cosine);
}

// Converts 16 uniform numbers to 16 normal ones. The first eight give the radii, and the others the angles.
inline void box_muller(float *d, float mean, float std) {
  float radius[8], angle[8];
  for (int j = 0; j < 8; ++j) {
    radius[j] = std::sqrt(-2.f * log_lane(1.f - d[j]));
    angle[j] = static_cast<float>(2.0 * M_PI) * d[j + 8];
  }
  for (int j = 0; j < 8; ++j) {
    float s, c;
    sincos_lane(angle[j], &s, &c);
    d[j] = std::fma(radius[j] * c, std, mean);
    d[j + 8] = std::fma(radius[j] * s, std, mean);
  }
}
inline void box_muller(double *d, double mean, double std) {
  for (int j = 0; j < 8; ++j) {
    const double radius = std::sqrt(-2 * std::log(1 - d[j])), angle = 2.0 * M_PI * d[j + 8];
    d[j] = std::fma(radius * std::cos(angle), std, mean);
    d[j + 8] = std::fma(radius * std::sin(angle), std, mean);
  }
}

void draw_uniform(Generator &g, float *out, int64_t n) {
  uint32_t raw[kBlock];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t m = std::min(kBlock, n - i);
    g.fill(raw, m);
    for (int64_t k = 0; k < m; ++k)
      out[i + k] = static_cast<float>(static_cast<int32_t>(raw[k] & 0xFFFFFFu)) * 0x1p-24f;
  }
}
void draw_uniform(Generator &g, double *out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = g.uniform_double();
}

// At least 16 contiguous values, in blocks of 16. A partial last block is replaced by 16 new draws for the last 16
// values.
template <class T>
void normal_blocks(T *data, int64_t n, T mean, T std, Generator &g) {
  draw_uniform(g, data, n);
  parallel_for(n / 16, 512, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) box_muller(data + 16 * i, mean, std);
  });
  if (n % 16 == 0) return;
  draw_uniform(g, data + n - 16, 16);
  box_muller(data + n - 16, mean, std);
}
template <class T>
void normal_blocks_reduced(T *data, int64_t n, float mean, float std, Generator &g) {
  float buffer[16];
  auto block = [&](int64_t at) {
    draw_uniform(g, buffer, 16);
    box_muller(buffer, mean, std);
    for (int j = 0; j < 16; ++j) data[at + j] = T(buffer[j]);
  };
  for (int64_t i = 0; i + 16 <= n; i += 16) block(i);
  if (n % 16 != 0) block(n - 16);
}

}  // namespace

void fill_in_order(const Tensor &o, const std::function<void(double *, int64_t)> &f) { fill_blocks<double>(o, f); }
void fill_in_order(const Tensor &o, const std::function<void(float *, int64_t)> &f) { fill_blocks<float>(o, f); }
void fill_in_order(const Tensor &o, const std::function<void(int64_t *, int64_t)> &f) { fill_blocks<int64_t>(o, f); }

Tensor real_view(const Tensor &t) {
  Dims sizes = t.shape(), strides(t.strides, t.strides + t.ndim);
  for (auto &s : strides) s *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  Tensor base = t;
  base.dtype = real_of(t.dtype);
  return make_view(base, sizes, strides);
}

void draw53(Generator &g, uint64_t *out, int64_t n) {
  if (shape_only()) return;
  uint32_t raw[kBlock];
  for (int64_t i = 0; i < n; i += kBlock / 2) {
    const int64_t m = std::min(kBlock / 2, n - i);
    g.fill(raw, 2 * m);
    for (int64_t k = 0; k < m; ++k) out[i + k] = static_cast<uint64_t>(raw[2 * k] & 0x1FFFFFu) << 32 | raw[2 * k + 1];
  }
}

uint64_t bound53(double p) { return static_cast<uint64_t>(std::ceil(std::ldexp(p, 53))); }

double as_written(double p) {
  const float f = static_cast<float>(p);
  if (static_cast<double>(f) != p) return p;
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, f).ptr;
  double r = p;
  std::from_chars(text, end, r);
  return r;
}

std::string shown(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", v);
  return text;
}

void fill_uniform(const Tensor &o, double from, double to, Generator &g) {
  if (shape_only()) return;
  if (is_complex(o.dtype)) return fill_uniform(real_view(o), from, to, g);
  if (o.dtype == DType::F64) {
    return fill_in_order(o, std::function<void(double *, int64_t)>([&](double *b, int64_t n) {
                           draw_uniform(g, b, n);
                           for (int64_t i = 0; i < n; ++i) {
                             const double v = std::fma(b[i], to - from, from);
                             b[i] = v == to ? from : v;
                           }
                         }));
  }
  const float low = static_cast<float>(from), high = static_cast<float>(to), width = high - low;
  if (o.dtype == DType::F32 && o.contiguous() && low == 0.f && high == 1.f)
    return draw_uniform(g, o.ptr<float>(), o.numel);
  float top = high, bottom = low;  // the bounds, rounded to the result's type
  if (o.dtype == DType::F16) top = Half(high), bottom = Half(low);
  if (o.dtype == DType::BF16) top = BFloat16(high), bottom = BFloat16(low);
  fill_in_order(o, std::function<void(float *, int64_t)>([&](float *b, int64_t n) {
                  draw_uniform(g, b, n);
                  for (int64_t i = 0; i < n; ++i) {
                    float v = std::fma(b[i], width, low);
                    if (o.dtype == DType::F16) v = Half(v);
                    if (o.dtype == DType::BF16) v = BFloat16(v);
                    b[i] = v == top ? bottom : v;
                  }
                }));
}

void fill_normal(const Tensor &o, double mean, double std, Generator &g) {
  if (shape_only()) return;
  if (is_complex(o.dtype)) return fill_normal(real_view(o), mean, std / std::sqrt(2.0), g);
  if (!is_floating(o.dtype)) unsupported("normal_kernel_cpu", o.dtype);
  if (o.numel >= 16 && o.contiguous()) {
    switch (o.dtype) {
      case DType::F32:
        return normal_blocks(o.ptr<float>(), o.numel, static_cast<float>(mean), static_cast<float>(std), g);
      case DType::F64: return normal_blocks(o.ptr<double>(), o.numel, mean, std, g);
      case DType::F16:
        return normal_blocks_reduced(o.ptr<Half>(), o.numel, static_cast<float>(mean), static_cast<float>(std), g);
      default:
        return normal_blocks_reduced(o.ptr<BFloat16>(), o.numel, static_cast<float>(mean), static_cast<float>(std), g);
    }
  }
  fill_in_order(o, std::function<void(double *, int64_t)>([&](double *b, int64_t n) {
                  for (int64_t i = 0; i < n; ++i) b[i] = std::fma(g.normal(), std, mean);
                }));
}

// A range of 0 stands for 2^64. From 2^28 on, 64 random bits are used for the remainder.
void fill_integers(const Tensor &o, int64_t from, uint64_t range, Generator &g) {
  if (shape_only()) return;
  const bool wide = range == 0 || range >= (1ull << 28);
  fill_in_order(o, std::function<void(int64_t *, int64_t)>([&](int64_t *b, int64_t n) {
                  for (int64_t i = 0; i < n; ++i) {
                    uint64_t v = wide ? g.random64() : g.random();
                    if (range != 0) v %= range;
                    b[i] = static_cast<int64_t>(v + static_cast<uint64_t>(from));
                  }
                }));
}

void fill_bernoulli(const Tensor &o, double p, Generator &g) {
  if (shape_only()) return;
  check(p >= 0 && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", shown(p));
  const uint64_t bound = bound53(p);
  fill_in_order(o, std::function<void(float *, int64_t)>([&](float *b, int64_t n) {
                  uint64_t draw[kBlock];
                  draw53(g, draw, n);
                  for (int64_t i = 0; i < n; ++i) b[i] = draw[i] < bound ? 1.f : 0.f;
                }));
}

}  // namespace msa

// Random operators with a per-element algorithm: dropout, multinomial, Poisson, binomial, gamma, Dirichlet.
// PyTorch builds its samplers without fused multiply-add, so contraction is off.
#pragma GCC optimize("fp-contract=off")
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "random_fill.h"

namespace msa {
namespace {

using Lock = std::lock_guard<std::mutex>;
constexpr int64_t kBlock = 512;
constexpr int64_t kSerial = std::numeric_limits<int64_t>::max();

// ---------------------------------------------------------------- dropout
// 1 / keep in the element type, as a mask that was divided by `keep` contains it.
template <class T>
compute_t<T> keep_scale(double keep) {
  using C = compute_t<T>;
  return static_cast<C>(T(C(1) / static_cast<C>(keep)));
}

// mask[i] = u < keep for a uniform number u, and out[i] = in[i] * mask[i] / keep. The draws are in the memory order of
// `out`.
void dropout_into(const Tensor &out, const Tensor &mask, const Tensor &in, double keep, Generator &g) {
  const uint64_t bound = bound53(keep);
  const Dims shape = out.shape();
  MSA_SWITCH_FLOAT(out.dtype, "dropout", ({
                     using C = compute_t<T>;
                     const C scale = keep_scale<T>(keep);
                     Loop<3>(shape, {out, mask, in})
                         .run(
                             [&](char **p, const int64_t *s, int64_t n) {
                               uint64_t draw[kBlock];
                               for (int64_t i = 0; i < n; i += kBlock) {
                                 const int64_t m = std::min(kBlock, n - i);
                                 draw53(g, draw, m);
                                 for (int64_t k = 0; k < m; ++k) {
                                   const bool kept = draw[k] < bound;
                                   *reinterpret_cast<bool *>(p[1] + (i + k) * s[1]) = kept;
                                   const C v = static_cast<C>(*reinterpret_cast<const T *>(p[2] + (i + k) * s[2]));
                                   *reinterpret_cast<T *>(p[0] + (i + k) * s[0]) = T(v * (kept ? scale : C(0)));
                                 }
                               }
                             },
                             kSerial);
                   }));
}

void apply_mask(const Tensor &out, const Tensor &in, const Tensor &mask, double keep) {
  MSA_SWITCH_FLOAT(out.dtype, "dropout", ({
                     using C = compute_t<T>;
                     const C scale = keep_scale<T>(keep);
                     map2<T, T, uint8_t>(out, in, mask, [=](T v, uint8_t kept) {
                       return T(static_cast<C>(v) * (kept ? scale : C(0)));
                     });
                   }));
}

double checked_p(double p) {
  check(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  return as_written(p);
}

// The strides of empty_like: those of the operand if it is dense, and else contiguous ones.
Tensor mask_like(Call &c, int index, const Tensor &out) {
  return c.out(index, DType::Bool, out.sizes, out.ndim, out.strides);
}

void run_dropout(Call &c, double p, int seed) {
  const Tensor &in = c.in(0);
  const Tensor out = c.out_pointwise(0, in.dtype, {&in}), mask = mask_like(c, 1, out);
  if (shape_only()) return;
  Generator &g = generator_of(c.in(seed));
  Lock lock(g.mutex);
  dropout_into(out, mask, in, 1 - p, g);
}

// ---------------------------------------------------------------- samplers
int64_t sample_poisson(double rate, Generator &g) {
  check(rate >= 0, "invalid Poisson rate, expected rate to be non-negative");
  if (rate == 0) return 0;
  if (rate < 10) {  // product of uniforms
    const double limit = std::exp(-rate);
    double product = 1;
    for (int64_t k = 0;; ++k) {
      product *= g.uniform_double();
      if (!(product > limit)) return k;
    }
  }
  // Hoermann's transformed rejection (PTRS, 1993)
  const double root = std::sqrt(rate), log_rate = std::log(rate), b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), squeeze = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = g.uniform_double() - 0.5, v = g.uniform_double(), us = 0.5 - std::fabs(u);
    const int64_t k = static_cast<int64_t>(std::floor((2 * a / us + b) * u + rate + 0.43));
    if (us >= 0.07 && v <= squeeze) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    const double left = std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b);
    if (left <= -rate + static_cast<double>(k) * log_rate - std::lgamma(static_cast<double>(k) + 1)) return k;
  }
}

// Remainder of Stirling's approximation of log k!
double stirling_tail(double k) {
  static const double small[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
                                 0.0166446911898211,  0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
                                 0.00925546218271273, 0.00833056343336287};
  if (k < 10) return small[static_cast<size_t>(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// For n p < 10. Counts how many geometric waiting times fit into n.
template <class S>
S binomial_by_inversion(S count, S p, Generator &g) {
  const double log_q = std::log1p(-p);
  double waited = 0;
  for (S hits = 0;; hits = hits + 1) {
    waited += std::ceil(std::log(g.uniform_double()) / log_q);
    if (waited > count) return hits;
  }
}

// For n p >= 10, by transformed rejection (BTRS, Hoermann 1993). As in PyTorch, count, p and k have the type S, and the
// rest is double.
template <class S>
S binomial_by_rejection(S count, S p, Generator &g) {
  const double deviation = std::sqrt(count * p * (1 - p));
  const double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p, centre = count * p + 0.5;
  const double squeeze = 0.92 - 4.2 / b, odds = p / (1 - p), alpha = (2.83 + 5.1 / b) * deviation;
  const double mode = std::floor((count + 1) * p);
  for (;;) {
    const double u = g.uniform_double() - 0.5;
    double v = g.uniform_double();
    const double us = 0.5 - std::abs(u);
    const S k = static_cast<S>(std::floor((2 * a / us + b) * u + centre));
    if (k < 0 || k > count) continue;
    if (us >= 0.07 && v <= squeeze) return k;
    v = std::log(v * alpha / (a / (us * us) + b));
    const double bound = (mode + 0.5) * std::log((mode + 1) / (odds * (count - mode + 1))) +
                         (count + 1) * std::log((count - mode + 1) / (count - k + 1)) +
                         (k + 0.5) * std::log(odds * (count - k + 1) / (k + 1)) + stirling_tail(mode) +
                         stirling_tail(count - mode) - stirling_tail(k) - stirling_tail(count - k);
    if (v <= bound) return k;
  }
}

template <class S>
S sample_binomial(S count, S p, Generator &g) {
  if (count <= 0 || p <= 0) return 0;
  if (p >= 1) return count;
  if (std::isnan(p)) return p;
  auto draw = [&](S q) {
    return count * q >= 10.0 ? binomial_by_rejection(count, q, g) : binomial_by_inversion(count, q, g);
  };
  return p <= S(0.5) ? draw(p) : count - draw(static_cast<S>(1.0 - p));
}

// Marsaglia and Tsang 2000; below 1 the shape is raised by one and the sample scaled by a power of a uniform.
template <class S>
S sample_gamma(S shape, Generator &g) {
  double scale = 1;
  if (shape < 1) {
    if (shape == 0) return 0;
    scale *= std::pow(1 - g.uniform_double(), 1.0f / shape);
    shape += 1;
  }
  const double d = shape - 1.0f / 3.0f, k = 1.0f / std::sqrt(9.0f * d);
  for (;;) {
    double x, y;
    do {
      x = g.normal();
      y = 1.0f + k * x;
    } while (y <= 0);
    const double v = y * y * y, u = 1 - g.uniform_double(), xx = x * x;
    if (u < 1.0f - 0.0331f * xx * xx || std::log(u) < 0.5f * xx + d * (1.0f - v + std::log(v)))
      return static_cast<S>(scale * d * v);
  }
}

// out[i] = f(a[i]), one element after the other in the order of `out`.
template <class TO, class TA, class F>
void serial_map(const Tensor &o, const Tensor &a, F f) {
  map1<TO, TA>(o, a, f, kSerial);
}

// ---------------------------------------------------------------- multinomial
template <class C>
void with_replacement(const C *p, int64_t n, int64_t *out, int64_t samples, C *cumulative, Generator &g) {
  C sum = 0;
  for (int64_t j = 0; j < n; ++j) {
    check(p[j] >= 0, "invalid multinomial distribution (encountering probability entry < 0)");
    check(std::isfinite(p[j]), "invalid multinomial distribution (encountering probability entry = infinity or NaN)");
    cumulative[j] = sum += p[j];
  }
  check(sum > 0, "invalid multinomial distribution (sum of probabilities <= 0)");
  for (int64_t j = 0; j < n; ++j) cumulative[j] /= sum;
  cumulative[n - 1] = 1;
  for (int64_t i = 0; i < samples; ++i)
    out[i] = std::lower_bound(cumulative, cumulative + n, g.uniform_double(), [](C a, double u) { return a < u; }) -
             cumulative;
}

// Chooses the category with the largest p / q, where each category has its own exponentially distributed q.
template <class T>
void ranked(const compute_t<T> *p, int64_t n, int64_t *out, int64_t samples, compute_t<T> *keys, Generator &g) {
  using C = compute_t<T>;
  for (int64_t j = 0; j < n; ++j) {
    const C q = static_cast<C>(T(static_cast<C>(-1.0 * std::log1p(-g.uniform_double()))));
    keys[j] = static_cast<C>(T(p[j] / q));
  }
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  auto before = [&](int64_t a, int64_t b) { return keys[a] > keys[b] || (keys[a] == keys[b] && a < b); };
  std::partial_sort(order.begin(), order.begin() + samples, order.end(), before);
  std::copy(order.begin(), order.begin() + samples, out);
}

}  // namespace

// ---------------------------------------------------------------- kernels
MSA_KERNEL(DropoutExt) {  // input, p, seed, offset -> output, mask (bool)
  run_dropout(c, checked_p(c.number(1)), 2);
}
MSA_KERNEL(FuncDropoutExt) {  // input, p, training, inplace, seed, offset
  const Tensor &in = c.in(0);
  const double p = checked_p(c.number(1));
  const Tensor out = c.out_pointwise(0, in.dtype, {&in});
  if (!c.flag(2) || p == 0 || in.numel == 0) return copy_into(out, in);
  const Tensor mask = make_view(contiguous_tensor(c.scratch(in.numel), DType::Bool, Dims{in.numel}), out.shape(),
                                Dims(out.strides, out.strides + out.ndim));
  Generator &g = generator_of(c.in(4));
  Lock lock(g.mutex);
  dropout_into(out, mask, in, 1 - p, g);
}
MSA_KERNEL(DropoutGenMaskExt) {  // shape, p, seed, offset, dtype -> mask (bool on the CPU)
  const double p = checked_p(c.number(1));
  const Tensor mask = c.out(0, DType::Bool, c.ints(0));
  Generator &g = generator_of(c.in(2));
  Lock lock(g.mutex);
  fill_bernoulli(mask, 1 - p, g);
}
static void masked(Call &c) {
  apply_mask(c.out_pointwise(0, c.in(0).dtype, {&c.in(0)}), c.in(0), c.in(1), 1 - checked_p(c.number(2)));
}
MSA_KERNEL(DropoutDoMaskExt) { masked(c); }  // input, mask, p
MSA_KERNEL(DropoutGradExt) { masked(c); }    // grad, mask, p

MSA_KERNEL(Poisson) {  // rate, seed, offset
  const Tensor &rate = c.in(0);
  const Tensor o = c.out_like(0, rate);
  Generator &g = generator_of(c.in(1));
  Lock lock(g.mutex);
  MSA_SWITCH_FLOAT(rate.dtype, "poisson_cpu", (serial_map<T, T>(o, rate, [&](T v) {
                     return convert<T>(static_cast<double>(sample_poisson(convert<double>(v), g)));
                   })));
}
MSA_KERNEL(Binomial) {  // count, prob, seed, offset
  const Tensor o = c.out_pointwise(0, c.in(0).dtype, {&c.in(0), &c.in(1)});
  Generator &g = generator_of(c.in(2));
  Lock lock(g.mutex);
  MSA_SWITCH_FLOAT(o.dtype, "binomial_cpu",
                   (map2<T, T, T>(
                       o, c.in(0), c.in(1),
                       [&](T n, T p) {
                         using C = compute_t<T>;
                         return T(sample_binomial<C>(static_cast<C>(n), static_cast<C>(p), g));
                       },
                       kSerial)));
}
template <class T>
constexpr double smallest_normal() {
  if constexpr (std::is_same_v<T, Half>)
    return 0x1p-14;
  else if constexpr (std::is_same_v<T, double>)
    return std::numeric_limits<double>::min();
  else
    return std::numeric_limits<float>::min();
}
MSA_KERNEL(StandardGamma) {  // alpha, seed, offset
  const Tensor &alpha = c.in(0);
  const Tensor o = c.out_like(0, alpha);
  Generator &g = generator_of(c.in(1));
  Lock lock(g.mutex);
  MSA_SWITCH_FLOAT(alpha.dtype, "gamma_cpu", (serial_map<T, T>(o, alpha, [&](T v) {
                     using C = compute_t<T>;
                     return T(std::max(static_cast<C>(smallest_normal<T>()), sample_gamma<C>(static_cast<C>(v), g)));
                   })));
}
MSA_KERNEL(Dirichlet) {  // alpha (..., k), seed, offset: normalised gamma samples, drawn in double
  const Tensor &alpha = c.in(0);
  check(alpha.ndim >= 1, "Expected alpha.dim() > 0 to be true, but got false.");
  const Tensor o = c.out_like(0, alpha);
  if (o.numel == 0) return;
  const Tensor wide = c.cast(alpha, DType::F64);
  const int64_t k = alpha.size(-1);
  double *gamma = c.scratch_of<double>(alpha.numel);
  {
    Generator &g = generator_of(c.in(1));
    Lock lock(g.mutex);
    for (int64_t i = 0; i < alpha.numel; ++i)
      gamma[i] = std::max(std::numeric_limits<double>::min(), sample_gamma<double>(wide.ptr<double>()[i], g));
  }
  MSA_SWITCH_FLOAT(alpha.dtype, "dirichlet", ({
                     const double top = std::is_same_v<T, double>  ? 1 - 0x1p-53
                                        : std::is_same_v<T, float> ? 1 - 0x1p-24
                                        : std::is_same_v<T, Half>  ? 1 - 0x1p-11
                                                                   : 1 - 0x1p-8;
                     for (int64_t row = 0; row < alpha.numel; row += k) {
                       const double sum = std::accumulate(gamma + row, gamma + row + k, 0.0);
                       for (int64_t j = row; j < row + k; ++j)
                         o.ptr<T>()[j] = convert<T>(std::min(
                             top, std::max(smallest_normal<T>(), convert<double>(convert<T>(gamma[j] / sum)))));
                     }
                   }));
}

MSA_KERNEL(MultinomialExt) {  // probabilities (n) or (rows, n), samples, replacement, seed, offset -> int64 indices
  const Tensor &p = c.in(0);
  const int64_t samples = c.integer(1);
  const bool replacement = c.flag(2);
  check(p.ndim > 0 && p.ndim <= 2, "prob_dist must be 1 or 2 dim");
  check(is_floating(p.dtype), "multinomial only supports floating-point dtypes for input, got: ", p.dtype);
  check(samples > 0, "cannot sample n_sample <= 0 samples");
  const int64_t n = p.size(-1), rows = p.ndim == 2 ? p.sizes[0] : 1;
  check(replacement || samples <= n, "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  check(n <= (1 << 24), "number of categories cannot exceed 2^24");
  const Tensor o = c.out(0, DType::I64, p.ndim == 2 ? Dims{rows, samples} : Dims{samples});
  if (o.numel == 0) return;
  Generator &g = generator_of(c.in(3));
  MSA_SWITCH_FLOAT(p.dtype, "multinomial", ({
                     using C = compute_t<T>;
                     const Tensor flat = c.cast(p, dtype_of<C>::value);
                     C *work = c.scratch_of<C>(n);
                     const C *values = flat.ptr<C>();
                     if (!replacement) {
                       for (int64_t i = 0; i < p.numel; ++i)
                         check(std::isfinite(values[i]) && values[i] >= 0,
                               "probability tensor contains either `inf`, `nan` or element < 0");
                       for (int64_t r = 0; r < rows; ++r)
                         check(std::any_of(values + r * n, values + (r + 1) * n, [](C v) { return v > 0; }),
                               "invalid multinomial distribution (sum of probabilities <= 0)");
                     }
                     Lock lock(g.mutex);
                     for (int64_t r = 0; r < rows; ++r) {
                       int64_t *row = o.ptr<int64_t>() + r * samples;
                       if (replacement)
                         with_replacement<C>(values + r * n, n, row, samples, work, g);
                       else
                         ranked<T>(values + r * n, n, row, samples, work, g);
                     }
                   }));
}

}  // namespace msa

// The random operators. Their last two operands are (seed, offset): on the CPU the first names a generator
// (random.h), the second belongs to device generators and is not read.
#pragma GCC optimize("fp-contract=off")
#include <cmath>
#include <limits>

#include "random_fill.h"
#include "type_names.h"

namespace msa {
namespace {

using Lock = std::lock_guard<std::mutex>;

Tensor self_out(Call &c) { return c.out_pointwise(0, c.in(0).dtype, {&c.in(0)}); }
DType dtype_or(Call &c, int i, DType otherwise) { return c.has(i) ? c.dtype(i) : otherwise; }

// 2^mantissa. All integers up to this number are exact.
int64_t last_consecutive(DType d) {
  switch (d) {
    case DType::F16: return 1ll << 11;
    case DType::BF16: return 1ll << 8;
    case DType::F32: return 1ll << 24;
    default: return 1ll << 53;
  }
}

double rounded(DType d, double v) {
  switch (d) {
    case DType::F16: return Half(static_cast<float>(v));
    case DType::BF16: return BFloat16(static_cast<float>(v));
    case DType::F32: return static_cast<float>(v);
    default: return v;
  }
}
int mantissa_bits(DType d) { return d == DType::F16 ? 11 : d == DType::BF16 ? 8 : d == DType::F32 ? 24 : 53; }
int top_bit(int64_t v) { return v == 0 ? 0 : 63 - __builtin_clzll(static_cast<uint64_t>(v < 0 ? -v : v)); }

// A bound that rounding moves out of [from, to) is replaced by the next representable number inside.
int64_t inner_from(DType d, int64_t from) {
  const int64_t next = static_cast<int64_t>(rounded(d, static_cast<double>(from + 1)));
  return next < from ? next + (1ll << (top_bit(from + 1) - mantissa_bits(d) + 1)) : from;
}
int64_t inner_to(DType d, int64_t to) {
  const int64_t last = static_cast<int64_t>(rounded(d, static_cast<double>(to - 1)));
  return last >= to ? last - (1ll << (top_bit(to - 1) - mantissa_bits(d) + 1)) : to;
}

void check_bound(const char *name, int64_t v, DType d) {
  bool inside = true;
  if (d == DType::F16)
    inside = v >= -65504 && v <= 65504;
  else if (d == DType::U64)
    inside = v >= 0;
  else if (is_integral(d)) {
    static const int bits[] = {1, 8, 7, 15, 31, 63, 16, 32};
    const int b = bits[static_cast<int>(d)];
    const bool is_signed = d == DType::I8 || d == DType::I16 || d == DType::I32 || d == DType::I64;
    const int64_t high = b == 63 ? std::numeric_limits<int64_t>::max() : (1ll << b) - 1;
    inside = v >= (is_signed ? -high - 1 : 0) && v <= high;
  }
  check(inside, name, " is out of bounds for ", cpp_type_name(d));
}

void random_from_to(const Tensor &o, int64_t from, int64_t to, Generator &g) {
  check(from < to, "random_ expects 'from' to be less than 'to', but got from=", from, " >= to=", to);
  if (is_floating(o.dtype)) {
    from = inner_from(o.dtype, from);
    to = inner_to(o.dtype, to);
    check(from < to, "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got from=", from,
          " >= to=", to);
  }
  check_bound("from", from, o.dtype);
  check_bound("to - 1", to - 1, o.dtype);
  Lock lock(g.mutex);
  fill_integers(o, from, static_cast<uint64_t>(to) - static_cast<uint64_t>(from), g);
}

// Integers in [from, the largest value]. If `from` is the lowest int64, all 64 bits are random.
void random_upwards(const Tensor &o, int64_t from, Generator &g) {
  if (from == std::numeric_limits<int64_t>::min()) {
    check(o.dtype == DType::I64 || (is_floating(o.dtype) && o.dtype != DType::F16),
          "random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16");
    Lock lock(g.mutex);
    return fill_integers(o, 0, 0, g);
  }
  int64_t last = std::numeric_limits<int64_t>::max();
  if (is_floating(o.dtype)) {
    last = last_consecutive(o.dtype);
    from = inner_from(o.dtype, from);
  } else if (o.dtype != DType::I64 && o.dtype != DType::U64) {
    static const int bits[] = {1, 8, 7, 15, 31, 63, 16, 32};
    last = (1ll << bits[static_cast<int>(o.dtype)]) - 1;
  }
  check_bound("from", from, o.dtype);
  Lock lock(g.mutex);
  fill_integers(o, from, static_cast<uint64_t>(last) - static_cast<uint64_t>(from) + 1, g);
}

// random_() without bounds: 64 bits for int64 and double, 32 otherwise (so int32 differs from random_(0, None)).
void random_default(const Tensor &o, Generator &g) {
  if (o.dtype != DType::I32) return random_upwards(o, 0, g);
  Lock lock(g.mutex);
  fill_in_order(o, std::function<void(int64_t *, int64_t)>([&](int64_t *b, int64_t n) {
                  for (int64_t i = 0; i < n; ++i) b[i] = g.random() & 0x7fffffffu;
                }));
}

void normal_into(Call &c, const Tensor &o, double mean, double std, int seed) {
  check(std >= 0.0, "normal expects std >= 0.0, but found std ", shown(std));
  if (o.numel == 0) return;
  Generator &g = generator_of(c.in(seed));
  Lock lock(g.mutex);
  fill_normal(o, mean, std, g);
}
void uniform_into(Call &c, const Tensor &o, double from, double to, int seed) {
  check(from <= to, "uniform_ expects to return a [from, to) range, but found from=", shown(from), " > to=", shown(to));
  if (!is_floating(o.dtype) && !is_complex(o.dtype)) unsupported("check_uniform_bounds", o.dtype);
  if (o.numel == 0) return;
  Generator &g = generator_of(c.in(seed));
  Lock lock(g.mutex);
  fill_uniform(o, from, to, g);
}

// Fills with value(generator), which makes one number at a time, in double.
template <class F>
void each(Call &c, const Tensor &o, int seed, F value) {
  if (o.numel == 0) return;
  Generator &g = generator_of(c.in(seed));
  Lock lock(g.mutex);
  fill_in_order(o, std::function<void(double *, int64_t)>([&](double *b, int64_t n) {
                  for (int64_t i = 0; i < n; ++i) b[i] = value(g);
                }));
}

void need_floating(const Tensor &t, const char *what) {
  if (!is_floating(t.dtype))
    fail(what,
         " distribution is a continuous probability distribution. dtype must be a floating point but you specified ",
         cpp_type_name(t.dtype));
}

}  // namespace

// ---------------------------------------------------------------- in place
MSA_POINTWISE_KERNEL(InplaceUniform) {  // self, from, to, seed, offset
  uniform_into(c, self_out(c), c.number(1), c.number(2), 3);
}
MSA_POINTWISE_KERNEL(InplaceNormal) {  // self, mean, std, seed, offset
  normal_into(c, self_out(c), c.number(1), c.number(2), 3);
}
MSA_POINTWISE_KERNEL(InplaceRandom) {  // self, from, to?, seed, offset
  const Tensor o = self_out(c);
  if (is_complex(o.dtype)) unsupported("random_kernel_cpu", o.dtype);
  if (o.numel == 0 && !c.has(2)) return;
  Generator &g = generator_of(c.in(3));
  if (c.has(2))
    random_from_to(o, c.integer(1), c.integer(2), g);
  else if (c.integer(1) == 0)
    random_default(o, g);
  else
    random_upwards(o, c.integer(1), g);
}
MSA_POINTWISE_KERNEL(InplaceExponential) {  // self, lambda, seed, offset
  const double lambda = c.number(1);
  check(lambda > 0.0, "exponential_ expects lambda > 0.0, but found lambda=", shown(lambda));
  need_floating(c.in(0), "Exponential");
  each(c, self_out(c), 2, [=](Generator &g) { return -1.0 / lambda * std::log1p(-g.uniform_double()); });
}
MSA_POINTWISE_KERNEL(InplaceCauchy) {  // self, median, sigma, seed, offset
  const double median = c.number(1), sigma = c.number(2);
  check(sigma > 0.0, "cauchy_ expects sigma > 0.0, but found sigma=", shown(sigma));
  need_floating(c.in(0), "Cauchy");
  each(c, self_out(c), 3,
       [=](Generator &g) { return std::fma(sigma, std::tan(M_PI * (g.uniform_double() - 0.5)), median); });
}
MSA_POINTWISE_KERNEL(InplaceLogNormal) {  // self, mean, std, seed, offset
  const double mean = c.number(1), std = c.number(2);
  check(std > 0.0, "log_normal_ expects std > 0.0, but found std=", shown(std));
  if (!is_floating(c.in(0).dtype)) unsupported("log_normal_cpu", c.in(0).dtype);
  each(c, self_out(c), 3, [=](Generator &g) { return std::exp(std::fma(g.normal(), std, mean)); });
}
MSA_POINTWISE_KERNEL(InplaceGeometric) {  // self, p, seed, offset
  const double p = c.number(1);
  check(0 < p && p < 1, "geometric_ expects p to be in (0, 1), but got p=", shown(p));
  if (c.in(0).dtype == DType::Bool || is_complex(c.in(0).dtype)) unsupported("geometric_cpu", c.in(0).dtype);
  each(c, self_out(c), 2, [=](Generator &g) { return std::ceil(std::log(g.uniform_double()) / std::log1p(-p)); });
}
MSA_POINTWISE_KERNEL(InplaceBernoulliScalar) {  // self, p, seed, offset
  const Tensor o = self_out(c);
  if (is_complex(o.dtype)) unsupported("bernoulli_scalar_cpu_", o.dtype);
  Generator &g = generator_of(c.in(2));
  Lock lock(g.mutex);
  fill_bernoulli(o, as_written(c.number(1)), g);
}

// o = (u < p) for uniform numbers u. A float64 probability takes a draw of 53 bits, and all others one of 24 bits.
static void bernoulli_tensor(const Tensor &o, const Tensor &p, Generator &g) {
  if (!is_floating(p.dtype)) unsupported("bernoulli_tensor_cpu_p_", p.dtype);
  const Dims shape = o.shape();
  Lock lock(g.mutex);
  MSA_SWITCH_REAL_BOOL(
      o.dtype, "bernoulli_tensor_cpu_self_", ({
        Loop<2>(shape, {o, expand(p, shape)})
            .run(
                [&](char **q, const int64_t *s, int64_t n) {
                  for (int64_t i = 0; i < n; ++i) {
                    const char *at = q[1] + i * s[1];
                    double v = 0;
                    switch (p.dtype) {
                      case DType::F64: v = *reinterpret_cast<const double *>(at); break;
                      case DType::F32: v = *reinterpret_cast<const float *>(at); break;
                      case DType::F16: v = *reinterpret_cast<const Half *>(at); break;
                      default: v = *reinterpret_cast<const BFloat16 *>(at); break;
                    }
                    check(v >= 0 && v <= 1, "Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
                    const bool hit =
                        p.dtype == DType::F64 ? g.uniform_double() < v : g.uniform_float() < static_cast<float>(v);
                    *reinterpret_cast<T *>(q[0] + i * s[0]) = T(hit ? 1 : 0);
                  }
                },
                std::numeric_limits<int64_t>::max());
      }));
}
MSA_POINTWISE_KERNEL(InplaceBernoulliTensor) {  // self, p, seed, offset
  const Tensor o = self_out(c);
  bernoulli_tensor(o, c.in(1), generator_of(c.in(2)));
}
MSA_KERNEL(BernoulliExt) {  // p, seed, offset
  bernoulli_tensor(c.out_like(0, c.in(0)), c.in(0), generator_of(c.in(1)));
}

// ---------------------------------------------------------------- new tensors
MSA_KERNEL(UniformExt) {  // like, from, to, seed, offset
  uniform_into(c, c.out_like(0, c.in(0)), c.number(1), c.number(2), 3);
}
MSA_KERNEL(RandExt) {  // shape, seed, offset, dtype?, device?
  uniform_into(c, c.out(0, dtype_or(c, 3, DType::F32), c.ints(0)), 0, 1, 1);
}
MSA_KERNEL(RandLikeExt) {  // like, seed, offset, dtype?, device?
  uniform_into(c, c.out(0, dtype_or(c, 3, c.in(0).dtype), c.in(0).shape()), 0, 1, 1);
}
MSA_KERNEL(Randn) {  // shape, seed, offset, dtype?, device?
  normal_into(c, c.out(0, dtype_or(c, 3, DType::F32), c.ints(0)), 0, 1, 1);
}
MSA_KERNEL(RandnLike) {  // like, seed, offset, dtype?, device?
  normal_into(c, c.out(0, dtype_or(c, 3, c.in(0).dtype), c.in(0).shape()), 0, 1, 1);
}
MSA_KERNEL(RandInt) {  // low, high, shape, seed, offset, dtype?, device?
  const Tensor o = c.out(0, dtype_or(c, 5, DType::I64), c.ints(2));
  random_from_to(o, c.integer(0), c.integer(1), generator_of(c.in(3)));
}
MSA_KERNEL(RandIntLike) {  // like, low, high, seed, offset, dtype?, device?
  const Tensor o = c.out(0, dtype_or(c, 5, c.in(0).dtype), c.in(0).shape());
  random_from_to(o, c.integer(1), c.integer(2), generator_of(c.in(3)));
}
MSA_KERNEL(NormalFloatFloat) {  // mean, std, size, seed, offset
  normal_into(c, c.out(0, DType::F32, c.ints(2)), c.number(0), c.number(1), 3);
}

// Swaps each position with a random one of those that are left, with 32 bits for each draw.
MSA_KERNEL(RandpermExt) {  // n, seed, offset, dtype
  const int64_t n = c.integer(0);
  check(n >= 0, "n must be non-negative, got", n);
  const Tensor o = c.out(0, dtype_or(c, 3, DType::I64), Dims{n});
  Generator &g = generator_of(c.in(1));
  int64_t *order = o.dtype == DType::I64 ? o.ptr<int64_t>() : c.scratch_of<int64_t>(std::max<int64_t>(n, 1));
  for (int64_t i = 0; i < n; ++i) order[i] = i;
  {
    Lock lock(g.mutex);
    for (int64_t i = 0; i < n - 1; ++i)
      std::swap(order[i], order[i + static_cast<int64_t>(g.random() % static_cast<uint64_t>(n - i))]);
  }
  if (o.dtype != DType::I64) copy_into(o, contiguous_tensor(order, DType::I64, Dims{n}));
}

}  // namespace msa

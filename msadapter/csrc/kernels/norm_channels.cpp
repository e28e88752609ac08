// Normalisation with statistics of channels: batch_norm and group_norm, with gradients.
#include <optional>

#include "layout.h"
#include "rows.h"

namespace msa {
namespace {

// An input seen as [n, channels, spatial].
struct Image {
  int64_t n = 1, channels = 1, spatial = 1;
  explicit Image(const Tensor &x) {
    n = x.size(0);
    channels = x.ndim > 1 ? x.size(1) : 1;
    for (int d = 2; d < x.ndim; ++d) spatial *= x.size(d);
  }
};

template <class C>
void store(Call &c, int index, const Tensor &like, const C *values) {
  Tensor o = c.out(index, like.dtype, like.shape());
  copy_into(o, contiguous_tensor(const_cast<C *>(values), dtype_of<C>::value, like.shape()));
}

// The sum of f(index of a value) over all samples and the pixels of a plane.
template <class C, class F>
C channel_sum(const Image &im, int64_t channel, F f) {
  C total = 0;
  for (int64_t i = 0; i < im.n; ++i) {
    const int64_t base = (i * im.channels + channel) * im.spatial;
    total += rows::sum<C>(im.spatial, [=](int64_t j) { return f(base + j); });
  }
  return total;
}

// The sum of f(value of x) over all samples and the pixels of a plane. `buffer` is for 16-bit values of one plane.
template <class T, class F>
compute_t<T> value_sum(const Image &im, int64_t channel, const T *x, compute_t<T> *buffer, F f) {
  using C = compute_t<T>;
  C total = 0;
  for (int64_t i = 0; i < im.n; ++i) {
    const C *v = rows::widen<T>(x + (i * im.channels + channel) * im.spatial, buffer, im.spatial);
    total += rows::sum<C>(im.spatial, [=](int64_t j) { return f(v[j]); });
  }
  return total;
}

template <class C>
void update_running(const Tensor &running, const C *fresh, int64_t n, double momentum, double factor) {
  MSA_SWITCH_FLOAT(
      running.dtype, "batch_norm", ({
        for (int64_t i = 0; i < n; ++i) {
          auto &at = running.ptr<T>()[i * running.strides[0]];
          at = convert<T>((1 - momentum) * static_cast<double>(at) + momentum * static_cast<double>(fresh[i]) * factor);
        }
      }));
}

// PyTorch keeps the sums of a bfloat16 batch in bfloat16, and those of other types in their compute type.
template <class C>
C rounded(C v, DType kept) {
  return kept == DType::BF16 ? static_cast<C>(BFloat16(static_cast<float>(v))) : v;
}

// operands: input, weight?, bias?, running_mean?, running_var?, training, momentum, eps
template <class T>
void batch_norm(Call &c) {
  using C = compute_t<T>;
  const Image im(c.in(0));
  const Tensor x = c.contiguous(c.in(0));
  const bool last = channels_last(c.in(0)) || (!c.in(0).contiguous() && dense_channels_last(c.in(0)));
  const LaidOut y(c, 0, x.dtype, x.shape(), last);
  const bool training = c.flag(5);
  const double eps = c.number(7);
  const Dims stats{training ? im.channels : 0};
  const DType kept = c.has(1) ? c.in(1).dtype : c.has(3) ? c.in(3).dtype : x.dtype;
  const rows::Stats<C> saved_mean(c, 1, kept, stats), saved_rstd(c, 2, kept, stats);
  rows::Buffer<C> mean(im.channels), var(im.channels), rstd(im.channels);
  const T *px = x.ptr<T>();
  const double count = static_cast<double>(im.n * im.spatial);
  if (training) {
    parallel_for(im.channels, rows::grain_for(im.n * im.spatial), [&](int64_t begin, int64_t end) {
      rows::Buffer<C> buffer(std::is_same_v<T, C> ? 0 : im.spatial);
      for (int64_t ch = begin; ch < end; ++ch) {
        const C m = value_sum(im, ch, px, buffer.get(), [](C v) { return v; }) / static_cast<C>(count);
        mean[ch] = rounded(m, kept);
        const C squares = value_sum(im, ch, px, buffer.get(), [m](C v) { return (v - m) * (v - m); });
        var[ch] = rounded(rounded(squares, kept) / static_cast<C>(count), kept);
        saved_mean.data()[ch] = m;
        saved_rstd.data()[ch] = C(1) / std::sqrt(var[ch] + static_cast<C>(eps));
      }
    });
    saved_mean.round();
    saved_rstd.round();
    std::copy_n(saved_rstd.data(), im.channels, rstd.get());
    if (c.has(3)) update_running<C>(c.in(3), mean, im.channels, c.number(6), 1);
    if (c.has(4)) update_running<C>(c.in(4), var, im.channels, c.number(6), count / (count - 1));
    std::copy_n(saved_mean.data(), im.channels, mean.get());
  } else {
    check(c.has(3) && c.has(4), "Expected running_mean and running_var to be defined when training=False");
    std::copy_n(rows::parameter<C>(c, 3), im.channels, mean.get());
    std::copy_n(rows::parameter<C>(c, 4), im.channels, var.get());
    for (int64_t ch = 0; ch < im.channels; ++ch) rstd[ch] = C(1) / std::sqrt(var[ch] + static_cast<C>(eps));
  }
  const C *w = rows::parameter<C>(c, 1), *b = rows::parameter<C>(c, 2);
  T *py = y.template ptr<T>();
  parallel_for(im.n * im.channels, rows::grain_for(im.spatial), [&](int64_t begin, int64_t end) {
    rows::Buffer<C> buffer(std::is_same_v<T, C> ? 0 : im.spatial);
    for (int64_t r = begin; r < end; ++r) {
      const int64_t ch = r % im.channels;
      const C scale = rstd[ch] * (w ? w[ch] : C(1)), m = mean[ch], shift = b ? b[ch] : C(0);
      const T *from = px + r * im.spatial;
      T *to = py + r * im.spatial;
      const C *v = rows::widen<T>(from, buffer, im.spatial);
      rows::store(to, buffer.get(), im.spatial, [=](int64_t i) { return (v[i] - m) * scale + shift; });
    }
  });
  y.finish();
}

// operands: dout, input, weight?, running_mean?, running_var?, saved_mean?, saved_rstd?, training, eps, output_mask
template <class T>
void batch_norm_grad(Call &c) {
  using C = compute_t<T>;
  const Image im(c.in(1));
  const Tensor x = c.contiguous(c.in(1)), dy = c.cast(c.in(0), x.dtype);
  const bool training = c.flag(7);
  const Dims &mask = c.ints(9);
  rows::Buffer<C> mean(im.channels), rstd(im.channels), sum_g(im.channels), sum_gx(im.channels);
  if (training) {
    std::copy_n(rows::parameter<C>(c, 5), im.channels, mean.get());
    std::copy_n(rows::parameter<C>(c, 6), im.channels, rstd.get());
  } else {
    std::copy_n(rows::parameter<C>(c, 3), im.channels, mean.get());
    const C *v = rows::parameter<C>(c, 4);
    for (int64_t i = 0; i < im.channels; ++i) rstd[i] = C(1) / std::sqrt(v[i] + static_cast<C>(c.number(8)));
  }
  const T *px = x.ptr<T>(), *pg = dy.template ptr<T>();
  const C *w = rows::parameter<C>(c, 2);
  std::optional<LaidOut> laid;
  if (mask[0]) laid.emplace(c, 0, x.dtype, x.shape(), channels_last(c.in(1)));
  T *dx = laid ? laid->template ptr<T>() : nullptr;
  parallel_for(im.channels, rows::grain_for(im.n * im.spatial), [&](int64_t begin, int64_t end) {
    for (int64_t ch = begin; ch < end; ++ch) {
      const C m = mean[ch], r = rstd[ch];
      sum_g[ch] = channel_sum<C>(im, ch, [=](int64_t i) { return convert<C>(pg[i]); });
      sum_gx[ch] = channel_sum<C>(im, ch, [=](int64_t i) { return convert<C>(pg[i]) * ((convert<C>(px[i]) - m) * r); });
      if (!dx) continue;
      const C count = static_cast<C>(im.n * im.spatial), scale = r * (w ? w[ch] : C(1));
      const C a = training ? sum_g[ch] / count : C(0), b = training ? sum_gx[ch] / count : C(0);
      for (int64_t n = 0; n < im.n; ++n) {
        const int64_t base = (n * im.channels + ch) * im.spatial;
        for (int64_t i = base; i < base + im.spatial; ++i)
          dx[i] = convert<T>((convert<C>(pg[i]) - a - (convert<C>(px[i]) - m) * r * b) * scale);
      }
    }
  });
  if (laid) laid->finish();
  if (mask[1]) {
    if (c.has(2))
      store<C>(c, 1, c.in(2), sum_gx);
    else
      store<C>(c, 1, contiguous_tensor(nullptr, x.dtype, {im.channels}), sum_gx);
  }
  if (mask[2]) store<C>(c, 2, contiguous_tensor(nullptr, c.has(2) ? c.in(2).dtype : x.dtype, {im.channels}), sum_g);
}

// operands: input, num_groups, weight?, bias?, eps -> output, mean [n, groups], rstd
template <class T>
void group_norm(Call &c) {
  using C = compute_t<T>;
  const Image im(c.in(0));
  const Tensor x = c.contiguous(c.in(0));
  const LaidOut y(c, 0, x.dtype, x.shape(), channels_last(c.in(0)));
  const int64_t groups = c.integer(1), per = im.channels / groups, size = per * im.spatial;
  const DType kept = c.has(2) ? c.in(2).dtype : x.dtype;
  const rows::Stats<C> mean(c, 1, kept, Dims{im.n, groups}), rstd(c, 2, kept, Dims{im.n, groups});
  const C *w = rows::parameter<C>(c, 2), *b = rows::parameter<C>(c, 3);
  const double eps = c.number(4);
  const T *px = x.ptr<T>();
  T *py = y.template ptr<T>();
  parallel_for(im.n * groups, rows::grain_for(size), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T *from = px + r * size;
      const C m = rows::sum<C>(size, [=](int64_t i) { return convert<C>(from[i]); }) / static_cast<C>(size);
      const C var = rows::sum<C>(size,
                                 [=](int64_t i) {
                                   const C d = convert<C>(from[i]) - m;
                                   return d * d;
                                 }) /
                    static_cast<C>(size);
      const C s = C(1) / std::sqrt(var + static_cast<C>(eps));
      mean.data()[r] = m;
      rstd.data()[r] = s;
      for (int64_t k = 0; k < per; ++k) {
        const int64_t ch = r % groups * per + k;
        const C scale = w ? w[ch] * s : s, shift = b ? b[ch] : C(0);
        for (int64_t i = k * im.spatial; i < (k + 1) * im.spatial; ++i)
          py[r * size + i] = convert<T>((convert<C>(from[i]) - m) * scale + shift);
      }
    }
  });
  y.finish();
  mean.finish();
  rstd.finish();
}

// operands: dy, x, mean, rstd, gamma?, num_groups, three masks -> dx, dgamma, dbeta
template <class T>
void group_norm_grad(Call &c) {
  using C = compute_t<T>;
  const Image im(c.in(1));
  const Tensor x = c.contiguous(c.in(1)), dy = c.cast(c.in(0), x.dtype);
  const C *mean = rows::parameter<C>(c, 2), *rstd = rows::parameter<C>(c, 3), *w = rows::parameter<C>(c, 4);
  const int64_t groups = c.integer(5), per = im.channels / groups, size = per * im.spatial;
  const T *px = x.ptr<T>(), *pg = dy.template ptr<T>();
  std::optional<LaidOut> laid;
  if (c.flag(6)) laid.emplace(c, 0, x.dtype, x.shape(), channels_last(c.in(1)));
  T *dx = laid ? laid->template ptr<T>() : nullptr;
  rows::Buffer<C> sum_g(im.n * im.channels), sum_gx(im.n * im.channels);  // per sample and channel
  parallel_for(im.n * groups, rows::grain_for(size), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const C m = mean[r], s = rstd[r];
      C a = 0, b = 0;
      for (int64_t k = 0; k < per; ++k) {
        const int64_t plane = r * per + k, base = plane * im.spatial;
        sum_g[plane] = rows::sum<C>(im.spatial, [=](int64_t i) { return convert<C>(pg[base + i]); });
        sum_gx[plane] = rows::sum<C>(
            im.spatial, [=](int64_t i) { return convert<C>(pg[base + i]) * ((convert<C>(px[base + i]) - m) * s); });
        const C weight = w ? w[r % groups * per + k] : C(1);
        a += sum_g[plane] * weight;
        b += sum_gx[plane] * weight;
      }
      if (!dx) continue;
      a /= static_cast<C>(size);
      b /= static_cast<C>(size);
      for (int64_t k = 0; k < per; ++k) {
        const C weight = w ? w[r % groups * per + k] : C(1);
        for (int64_t i = (r * per + k) * im.spatial; i < (r * per + k + 1) * im.spatial; ++i)
          dx[i] = convert<T>((convert<C>(pg[i]) * weight - a - (convert<C>(px[i]) - m) * s * b) * s);
      }
    }
  });
  if (laid) laid->finish();
  const DType pd = c.has(4) ? c.in(4).dtype : x.dtype;
  for (int which = 0; which < 2; ++which) {
    if (!c.flag(7 + which)) continue;
    const C *parts = which ? sum_g : sum_gx;
    rows::Buffer<C> total(im.channels);
    for (int64_t ch = 0; ch < im.channels; ++ch) {
      C v = 0;
      for (int64_t n = 0; n < im.n; ++n) v += parts[n * im.channels + ch];
      total[ch] = v;
    }
    store<C>(c, 1 + which, contiguous_tensor(nullptr, pd, {im.channels}), total);
  }
}

}  // namespace

MSA_KERNEL(BatchNormExt) { MSA_SWITCH_FLOAT(c.in(0).dtype, "batch_norm", (batch_norm<T>(c))); }
MSA_KERNEL(BatchNormGradExt) { MSA_SWITCH_FLOAT(c.in(1).dtype, "batch_norm_backward", (batch_norm_grad<T>(c))); }
MSA_KERNEL(GroupNorm) { MSA_SWITCH_FLOAT(c.in(0).dtype, "GroupNormKernelImpl", (group_norm<T>(c))); }
MSA_KERNEL(GroupNormGrad) { MSA_SWITCH_FLOAT(c.in(1).dtype, "GroupNormBackwardKernelImpl", (group_norm_grad<T>(c))); }

}  // namespace msa

// Pooling over windows of one to three spatial dims, by fixed or adaptive windows, with gradients.
#include <cmath>
#include <limits>
#include <optional>

#include "conv.h"
#include "layout.h"
#include "stepwise.h"
#include "wrapping.h"

namespace msa {
namespace {

// An input of shape [leading dims] x spatial. The spatial dims are the last ones.
struct Pool {
  Window w;
  int spatial;
  int64_t planes = 1;
  Dims lead;
  Pool(const Tensor &x, int dims) : spatial(dims) {
    check(x.ndim > dims, "non-empty ", dims + 1, "D or ", dims + 2,
          "D (batch mode) tensor expected for input, but got ", x.shape());
    for (int d = 0; d < x.ndim - dims; ++d) {
      lead.push_back(x.size(d));
      planes *= x.size(d);
    }
    for (int d = 0; d < dims; ++d) w.in[3 - dims + d] = x.size(x.ndim - dims + d);
  }
  Dims shape() const {
    Dims s = lead;
    for (int d = 0; d < spatial; ++d) s.push_back(w.out[3 - spatial + d]);
    return s;
  }
};

// PyTorch keeps the memory format of images, and of volumes in max_pool3d only.
bool keeps_format(const Tensor &x, const Pool &p) { return p.spatial == 2 && channels_last(x); }

std::string size_text(const Dims &lead, const int64_t *v, int spatial) {
  std::string s = "(" + std::to_string(lead.empty() ? 1 : lead.back());
  for (int d = 0; d < spatial; ++d) s += "x" + std::to_string(v[3 - spatial + d]);
  return s + ")";
}

// The number of windows in dim s.
int64_t pooled(const Window &w, int s, bool ceil_mode) {
  const int64_t span = (w.padded(s) - w.reach(s)).value("the size of the padded input"), stride = w.stride[s];
  if (span < 0 && !ceil_mode) return 0;
  const int64_t rest = span % stride;
  int64_t n = span / stride + (ceil_mode && rest > 0 ? 1 : 0);
  if (span < 0 && stride - 1 < -span) n = -1;
  // the last window must begin inside the input or the left padding
  const Size last = Size(n) * stride;
  if (ceil_mode && (!last.fits() || last.value() >= w.in[s] + w.pad[s])) --n;
  return n + 1;
}

Pool windows(const Tensor &x, const Dims &kernel, const Dims &stride, const Dims &pad, const Dims &dilation,
             bool ceil_mode) {
  const int dims = static_cast<int>(kernel.size());
  Pool p(x, dims);
  bool room = true;
  for (int d = 0; d < dims; ++d) {
    const int s = 3 - dims + d;
    p.w.kernel[s] = kernel[d];
    p.w.stride[s] = stride.empty() ? kernel[d] : spread(stride, d);
    p.w.pad[s] = spread(pad, d);
    p.w.dilation[s] = spread(dilation, d);
    check(p.w.kernel[s] > 0, "kernel size should be greater than zero, but got ", p.w.kernel[s]);
    check(p.w.stride[s] > 0, "stride should be greater than zero, but got ", p.w.stride[s]);
    check(p.w.dilation[s] > 0, "dilation should be greater than zero, but got ", p.w.dilation[s]);
    check(p.w.pad[s] >= 0, "pad must be non-negative, but got pad: ", p.w.pad[s]);
    check(p.w.pad[s] <= p.w.reach(s).value("the size of the dilated kernel") / 2,
          "pad should be at most half of effective kernel size, but got pad=", p.w.pad[s],
          ", kernel_size=", p.w.kernel[s], " and dilation=", p.w.dilation[s]);
    p.w.out[s] = pooled(p.w, s, ceil_mode);
    room = room && p.w.out[s] >= 1;
  }
  check(room, "Given input size: ", size_text(p.lead, p.w.in, dims),
        ". Calculated output size: ", size_text(p.lead, p.w.out, dims), ". Output size is too small");
  return p;
}

// The range of the input that one output position uses in one dim.
struct Span {
  int64_t begin, end, step;
};
Span fixed_span(const Window &w, int d, int64_t o) {
  int64_t begin = o * w.stride[d] - w.pad[d];
  const int64_t end = std::min(saturated_sum(begin, w.reach(d).value()), w.in[d]);
  if (begin < 0) begin += (-begin + w.dilation[d] - 1) / w.dilation[d] * w.dilation[d];
  return {begin, end, w.dilation[d]};
}
Span adaptive_span(const Window &w, int d, int64_t o) {
  return {o * w.in[d] / w.out[d], ((o + 1) * w.in[d] + w.out[d] - 1) / w.out[d], 1};
}

// The spans of all output positions, for each dim. They are computed once for all planes, because this takes divisions.
struct Spans {
  std::vector<Span> dim[3];
  template <class S>
  Spans(const Window &w, S span) {
    for (int d = 0; d < 3; ++d)
      for (int64_t o = 0; o < w.out[d]; ++o) dim[d].push_back(span(w, d, o));
  }
};

// Calls f(output position, its three indices, spans of the three dims) for every output of a plane.
template <class F>
void each_position(const Window &w, const Spans &spans, F f) {
  int64_t at = 0, o[3];
  for (o[0] = 0; o[0] < w.out[0]; ++o[0])
    for (o[1] = 0; o[1] < w.out[1]; ++o[1])
      for (o[2] = 0; o[2] < w.out[2]; ++o[2], ++at)
        f(at, static_cast<const int64_t *>(o), spans.dim[0][o[0]], spans.dim[1][o[1]], spans.dim[2][o[2]]);
}

// Calls f(plane, output position, its three indices, spans of the three dims) for every output, with the planes in
// parallel.
template <class S, class F>
void each_window(const Pool &p, S span, F f) {
  const Window &w = p.w;
  if (p.planes == 0) return;
  const Spans spans(w, span);
  const int64_t cost = w.positions() * std::max<int64_t>(1, w.pixels() / std::max<int64_t>(1, w.positions()));
  parallel_for(p.planes, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, cost)), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane)
      each_position(w, spans, [&](int64_t at, const int64_t *o, const Span &a, const Span &b, const Span &c) {
        f(plane, at, o, a, b, c);
      });
  });
}
template <class F>
void each_pixel(const Window &w, const Span &a, const Span &b, const Span &c, F f) {
  for (int64_t i = a.begin; i < a.end; i += a.step)
    for (int64_t j = b.begin; j < b.end; j += b.step) {
      const int64_t line = (i * w.in[1] + j) * w.in[2];
      if (c.step == 1)  // a loop that the compiler vectorises, if f has no sum
        for (int64_t k = c.begin; k < c.end; ++k) f(line + k);
      else
        for (int64_t k = c.begin; k < c.end; k += c.step) f(line + k);
    }
}

// The largest value of one window, and its position.
template <class T>
std::pair<T, int64_t> largest_of(const Pool &p, const T *from, const Span &a, const Span &b, const Span &c) {
  using C = compute_t<T>;
  int64_t best = (a.begin * p.w.in[1] + b.begin) * p.w.in[2] + c.begin;
  C top = std::numeric_limits<C>::has_infinity ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::lowest();
  each_pixel(p.w, a, b, c, [&](int64_t i) {
    const C v = convert<C>(from[i]);
    if (v > top || v != v) {
      top = v;
      best = i;
    }
  });
  return {convert<T>(top), best};
}

// `index` may be null.
template <class T, class S>
void max_forward(const Pool &p, S span, const T *x, T *y, int64_t *index) {
  each_window(p, span, [&](int64_t plane, int64_t at, const int64_t *, Span a, Span b, Span c) {
    const auto found = largest_of(p, x + plane * p.w.pixels(), a, b, c);
    y[plane * p.w.positions() + at] = found.first;
    if (index) index[plane * p.w.positions() + at] = found.second;
  });
}

// [first, last) of the positions of the last dim whose windows lie inside.
std::pair<int64_t, int64_t> inner_positions(const Window &w) {
  const int64_t step = w.stride[2], reach = w.reach(2).value();
  const int64_t first = w.pad[2] > 0 ? std::min((w.pad[2] - 1) / step + 1, w.out[2]) : 0;
  const int64_t room = w.in[2] + w.pad[2] - reach;
  return {first, room < 0 ? first : std::clamp(room / step + 1, first, w.out[2])};
}

// One tap of neighbouring windows: its elements are `step` apart, and `place` is its distance from the first tap. The
// first tap of the windows is their largest value so far. Step is `step`, or 0 if the compiler does not know it. The
// places of the largest values are kept if `best` is not null.
template <class T, int Step>
void max_tap(const T *line, int64_t step, int64_t n, bool first, int32_t place, compute_t<T> *__restrict top,
             int32_t *__restrict best) {
  using C = compute_t<T>;
  const int64_t s = Step ? Step : step;
  if (first) {
    for (int64_t c = 0; c < n; ++c) top[c] = convert<C>(line[c * s]);
    if (best) std::fill_n(best, n, 0);
    return;
  }
  if (!best) {
    for (int64_t c = 0; c < n; ++c) {
      const C v = convert<C>(line[c * s]);
      top[c] = (v > top[c]) | (v != v) ? v : top[c];
    }
    return;
  }
  for (int64_t c = 0; c < n; ++c) {
    const C v = convert<C>(line[c * s]);
    const bool larger = (v > top[c]) | (v != v);
    top[c] = larger ? v : top[c];
    best[c] = larger ? place : best[c];
  }
}

// Signals and images with fixed windows. The inner windows of a row are searched side by side; the order inside a
// window is as elsewhere. `index` may be null.
template <class T>
void max_rows(const Pool &p, const T *x, T *y, int64_t *index) {
  using C = compute_t<T>;
  constexpr int64_t kWindows = 256;  // so many windows at a time, whose results stay in the L1 cache
  const Window &w = p.w;
  const int64_t step = w.stride[2], width = w.out[2];
  const auto inner = inner_positions(w);
  const int64_t first = inner.first, last = inner.second, begins = first * step - w.pad[2];
  const auto tap = step == 1 ? max_tap<T, 1> : step == 2 ? max_tap<T, 2> : step == 3 ? max_tap<T, 3> : max_tap<T, 0>;
  auto row = [&](const T *from, T *to, int64_t *places, const Span &b) {
    C top[kWindows];
    int32_t best[kWindows];
    for (int64_t c = first; c < last; c += kWindows) {
      const int64_t n = std::min(kWindows, last - c), corner = b.begin * w.in[2] + begins + (c - first) * step;
      if (b.begin >= b.end) {  // the windows lie in the padding
        std::fill_n(top, n,
                    std::numeric_limits<C>::has_infinity ? -std::numeric_limits<C>::infinity()
                                                         : std::numeric_limits<C>::lowest());
        std::fill_n(best, n, 0);  // the corner
      }
      for (int64_t j = b.begin; j < b.end; j += b.step)
        for (int64_t k = 0; k < w.kernel[2]; ++k) {
          const int64_t place = (j - b.begin) * w.in[2] + k * w.dilation[2];
          tap(from + corner + place, step, n, place == 0, static_cast<int32_t>(place), top, index ? best : nullptr);
        }
      for (int64_t i = 0; i < n; ++i) to[c + i] = convert<T>(top[i]);
      for (int64_t i = 0; index && i < n; ++i) places[c + i] = corner + i * step + best[i];
    }
  };
  parallel_for(p.planes, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, w.pixels())),
               [&](int64_t begin, int64_t end) {
                 for (int64_t plane = begin; plane < end; ++plane)
                   for (int64_t r = 0; r < w.out[1]; ++r) {
                     const Span a = fixed_span(w, 0, 0), b = fixed_span(w, 1, r);
                     const T *from = x + plane * w.pixels();
                     const int64_t at = plane * w.positions() + r * width;
                     row(from, y + at, index ? index + at : nullptr, b);
                     for (int64_t c = 0; c < width; ++c) {
                       if (c >= first && c < last) continue;
                       const auto found = largest_of(p, from, a, b, fixed_span(w, 2, c));
                       y[at + c] = found.first;
                       if (index) index[at + c] = found.second;
                     }
                   }
               });
}

template <class T>
void max_windows(const Pool &p, const T *x, T *y, int64_t *index) {
  // the distances inside a window must fit 32 bits
  if (p.spatial < 3 && p.w.pixels() <= std::numeric_limits<int32_t>::max())
    max_rows(p, x, y, index);
  else
    max_forward(p, fixed_span, x, y, index);
}

// The sums of one plane after the other, in the type C. They are made in the plane of the result if it has this type,
// and else in memory for one plane, whose numbers are then converted.
template <class C, class T>
class PlaneSums {
 public:
  explicit PlaneSums(int64_t pixels) : pixels_(pixels), own_(kDirect ? 0 : pixels) {}
  // Returns the sums of this plane, which are zeros at first.
  C *begin(T *plane) {
    C *sums;
    if constexpr (kDirect)
      sums = plane;
    else
      sums = own_.data();
    std::fill_n(sums, pixels_, C(0));
    return sums;
  }
  void store([[maybe_unused]] T *plane) const {
    if constexpr (!kDirect)
      for (int64_t i = 0; i < pixels_; ++i) plane[i] = convert<T>(own_[i]);
  }

 private:
  static constexpr bool kDirect = std::is_same_v<C, T>;
  int64_t pixels_;
  std::vector<C> own_;
};

// Adds grad[i] at index[i] of its plane.
template <class T>
void add_at(int64_t planes, int64_t positions, int64_t pixels, const T *grad, const int64_t *index, T *dx) {
  using C = compute_t<T>;
  parallel_for(planes, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, positions + pixels)),
               [&](int64_t begin, int64_t end) {
                 PlaneSums<C, T> sums(pixels);
                 for (int64_t plane = begin; plane < end; ++plane) {
                   C *to = sums.begin(dx + plane * pixels);
                   for (int64_t i = 0; i < positions; ++i)
                     to[index[plane * positions + i]] += convert<C>(grad[plane * positions + i]);
                   sums.store(dx + plane * pixels);
                 }
               });
}

struct Average {
  bool include_pad = true;
  int64_t divisor = 0;  // 0: divide by the number of elements
  // The number of elements by which the average of this window is divided.
  double count(const Window &w, const int64_t *o, const Span &a, const Span &b, const Span &c) const {
    if (divisor != 0) return static_cast<double>(divisor);
    if (!include_pad) return static_cast<double>((a.end - a.begin) * (b.end - b.begin) * (c.end - c.begin));
    double n = 1;
    for (int d = 0; d < 3; ++d) {
      const int64_t begin = o[d] * w.stride[d] - w.pad[d];
      n *= static_cast<double>(std::min(begin + w.kernel[d], w.in[d] + w.pad[d]) - begin);
    }
    return n;
  }
};

template <class T>
using average_type = std::conditional_t<std::is_integral_v<T>, int64_t, compute_t<T>>;

// The average of one window, at the output position o.
template <class T>
T average_of(const Pool &p, const Average &avg, const T *from, const int64_t *o, const Span &a, const Span &b,
             const Span &c) {
  average_type<T> sum = 0;
  each_pixel(p.w, a, b, c, [&](int64_t i) { sum = wrapping_add(sum, convert<average_type<T>>(from[i])); });
  return convert<T>(static_cast<average_type<T>>(sum / static_cast<average_type<T>>(avg.count(p.w, o, a, b, c))));
}

// Fixed windows. The inner windows of a row are summed side by side; the order inside a window is as elsewhere.
template <class T>
void average_rows(const Pool &p, const Average &avg, const T *x, T *y) {
  using C = average_type<T>;
  const Window &w = p.w;
  const int64_t step = w.stride[2], width = w.out[2];
  const auto inner = inner_positions(w);
  const int64_t first = inner.first, last = inner.second;
  parallel_for(
      p.planes, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, w.pixels())), [&](int64_t begin, int64_t end) {
        std::vector<C> sums(width);
        for (int64_t plane = begin; plane < end; ++plane)
          for (int64_t r = 0; r < w.out[0] * w.out[1]; ++r) {
            const Span a = fixed_span(w, 0, r / w.out[1]), b = fixed_span(w, 1, r % w.out[1]);
            const T *from = x + plane * w.pixels();
            T *to = y + plane * w.positions() + r * width;
            std::fill(sums.begin(), sums.end(), C(0));
            for (int64_t i = a.begin; i < a.end; ++i)
              for (int64_t j = b.begin; j < b.end; ++j)
                for (int64_t k = 0; k < w.kernel[2]; ++k) {
                  const T *line = from + (i * w.in[1] + j) * w.in[2] + k - w.pad[2];
                  for (int64_t c = first; c < last; ++c) sums[c] = wrapping_add(sums[c], convert<C>(line[c * step]));
                }
            const int64_t inside[3] = {r / w.out[1], r % w.out[1], first};
            const C count = first < last ? static_cast<C>(avg.count(w, inside, a, b, fixed_span(w, 2, first))) : C(1);
            for (int64_t c = first; c < last; ++c) to[c] = convert<T>(static_cast<C>(sums[c] / count));
            for (int64_t c = 0; c < width; ++c) {
              const int64_t o[3] = {r / w.out[1], r % w.out[1], c};
              if (c < first || c >= last) to[c] = average_of(p, avg, from, o, a, b, fixed_span(w, 2, c));
            }
          }
      });
}

template <class T, class S>
void average_forward(const Pool &p, S span, const Average &avg, const T *x, T *y) {
  each_window(p, span, [&](int64_t plane, int64_t at, const int64_t *o, Span a, Span b, Span c) {
    y[plane * p.w.positions() + at] = average_of(p, avg, x + plane * p.w.pixels(), o, a, b, c);
  });
}

template <class T, class S>
void average_backward(const Pool &p, S span, const Average &avg, const T *g, T *dx) {
  using C = std::conditional_t<std::is_integral_v<T>, int64_t, compute_t<T>>;
  const Window &w = p.w;
  if (p.planes == 0) return;
  const Spans spans(w, span);
  parallel_for(
      p.planes, std::max<int64_t>(1, 8192 / std::max<int64_t>(1, w.pixels())), [&](int64_t begin, int64_t end) {
        PlaneSums<C, T> sums(w.pixels());
        for (int64_t plane = begin; plane < end; ++plane) {
          C *to = sums.begin(dx + plane * w.pixels());
          each_position(w, spans, [&](int64_t at, const int64_t *o, const Span &a, const Span &b, const Span &c) {
            const C share = convert<C>(g[plane * w.positions() + at]) / static_cast<C>(avg.count(w, o, a, b, c));
            each_pixel(w, a, b, c, [=](int64_t i) { to[i] = wrapping_add(to[i], share); });
          });
          sums.store(dx + plane * w.pixels());
        }
      });
}

#define MSA_SWITCH_AVERAGE(D, OP, ...) \
  MSA_SWITCH_(D, OP, MSA_CASE(I64, int64_t, __VA_ARGS__) MSA_CASES_FLOAT_(__VA_ARGS__))

Average average_options(Call &c, int include, int divisor) {
  Average a;
  a.include_pad = c.flag(include);
  if (c.has(divisor)) {
    a.divisor = c.integer(divisor);
    check(a.divisor != 0, "divisor must be not zero");
  }
  return a;
}
Dims optional_ints(Call &c, int i) { return c.has(i) ? c.ints(i) : Dims{}; }

// Adaptive averages of volumes. PyTorch sums in the element type and divides by the three sizes one after the other.
template <class T>
void volume_forward(const Pool &p, const T *x, T *y) {
  using S = stepwise_t<T>;
  each_window(p, adaptive_span, [&](int64_t plane, int64_t at, const int64_t *, Span a, Span b, Span c) {
    S sum = S(0);
    each_pixel(p.w, a, b, c, [&](int64_t i) { sum += S(x[plane * p.w.pixels() + i]); });
    y[plane * p.w.positions() + at] =
        static_cast<T>(sum / S(a.end - a.begin) / S(b.end - b.begin) / S(c.end - c.begin));
  });
}
template <class T>
void volume_backward(const Pool &p, const T *g, T *dx) {
  using S = stepwise_t<T>;
  const Window &w = p.w;
  if (p.planes == 0) return;
  const Spans spans(w, adaptive_span);
  parallel_for(
      p.planes, std::max<int64_t>(1, 8192 / std::max<int64_t>(1, w.pixels())), [&](int64_t begin, int64_t end) {
        PlaneSums<S, T> sums(w.pixels());
        for (int64_t plane = begin; plane < end; ++plane) {
          S *to = sums.begin(dx + plane * w.pixels());
          each_position(w, spans, [&](int64_t at, const int64_t *, const Span &a, const Span &b, const Span &c) {
            const S share =
                S(g[plane * w.positions() + at]) / S(a.end - a.begin) / S(b.end - b.begin) / S(c.end - c.begin);
            each_pixel(w, a, b, c, [=](int64_t i) { to[i] = wrapping_add(to[i], share); });
          });
          sums.store(dx + plane * w.pixels());
        }
      });
}

// Operands: input, kernel, stride?, padding, ceil_mode, count_include_pad, divisor?
void average(Call &c) {
  const Tensor x = c.contiguous(c.in(0));
  const Pool p = windows(x, c.ints(1), optional_ints(c, 2), c.ints(3), {1}, c.flag(4));
  const LaidOut o(c, 0, x.dtype, p.shape(), keeps_format(c.in(0), p));
  const Average options = average_options(c, 5, 6);
  MSA_SWITCH_AVERAGE(x.dtype, "avg_pool2d_out_frame", (average_rows<T>(p, options, x.ptr<T>(), o.ptr<T>())));
  o.finish();
}
// Operands: grad, then those of the forward kernel.
void average_grad(Call &c) {
  const Tensor &x = c.in(1);
  const Tensor g = c.contiguous(c.in(0));
  const Pool p = windows(x, c.ints(2), optional_ints(c, 3), c.ints(4), {1}, c.flag(5));
  const LaidOut o(c, 0, g.dtype, x.shape(), keeps_format(x, p));
  MSA_SWITCH_AVERAGE(g.dtype, "avg_pool2d_backward_out_frame",
                     (average_backward<T>(p, fixed_span, average_options(c, 6, 7), g.ptr<T>(), o.ptr<T>())));
  o.finish();
}

Average plain_average() {
  Average a;
  a.include_pad = false;
  return a;
}
Pool adaptive(const Tensor &x, const Dims &size) {
  Pool p(x, static_cast<int>(size.size()));
  for (size_t d = 0; d < size.size(); ++d) p.w.out[3 - size.size() + d] = size[d];
  return p;
}
void adaptive_average(Call &c) {  // input, output_size
  const Tensor x = c.contiguous(c.in(0));
  const Pool p = adaptive(x, c.ints(1));
  const LaidOut o(c, 0, x.dtype, p.shape(), keeps_format(c.in(0), p));
  if (p.spatial == 3 && p.w.positions() > 1) {  // one output value is a plain mean
    MSA_SWITCH_FLOAT(x.dtype, "adaptive_avg_pool3d_cpu", (volume_forward<T>(p, x.ptr<T>(), o.ptr<T>())));
    return;
  }
  MSA_SWITCH_FLOAT(x.dtype, "adaptive_avg_pool2d",
                   (average_forward<T>(p, adaptive_span, plain_average(), x.ptr<T>(), o.ptr<T>())));
  o.finish();
}
void adaptive_average_grad(Call &c, int dims) {  // grad, input
  const Tensor g = c.contiguous(c.in(0));
  const Tensor &x = c.in(1);
  Dims size;
  for (int d = 0; d < dims; ++d) size.push_back(g.size(g.ndim - dims + d));
  const Pool p = adaptive(x, size);
  const LaidOut o(c, 0, g.dtype, x.shape(), keeps_format(x, p) && p.w.positions() > 1);
  if (p.spatial == 3 && p.w.positions() > 1) {
    MSA_SWITCH_FLOAT(g.dtype, "adaptive_avg_pool3d_backward_cpu", (volume_backward<T>(p, g.ptr<T>(), o.ptr<T>())));
    return;
  }
  MSA_SWITCH_FLOAT(g.dtype, "adaptive_avg_pool2d_backward",
                   (average_backward<T>(p, adaptive_span, plain_average(), g.ptr<T>(), o.ptr<T>())));
  o.finish();
}

void scatter_grad(Call &c, const Tensor &grad, const Tensor &x, const Tensor &indices, int dims) {
  const Tensor g = c.contiguous(grad), index = c.cast(indices, DType::I64);
  const LaidOut o(c, 0, g.dtype, x.shape(), channels_last(x));
  int64_t planes = 1, pixels = 1, positions = 1;
  for (int d = 0; d < x.ndim; ++d) (d < x.ndim - dims ? planes : pixels) *= x.size(d);
  for (int d = g.ndim - dims; d < g.ndim; ++d) positions *= g.size(d);
  MSA_SWITCH_REAL(g.dtype, "max_pool2d_backward",
                  (add_at<T>(planes, positions, pixels, g.ptr<T>(), index.ptr<int64_t>(), o.ptr<T>())));
  o.finish();
}

}  // namespace

// Operands: input, kernel, stride?, padding, dilation, ceil_mode
static void max_pool(Call &c, bool indices) {
  const Tensor x = c.contiguous(c.in(0));
  const Pool p = windows(x, c.ints(1), optional_ints(c, 2), c.ints(3), c.ints(4), c.flag(5));
  const bool volume = p.spatial == 3 && !c.in(0).contiguous() && dense_channels_last(c.in(0));
  const bool last = volume || channels_last(c.in(0));
  const LaidOut o(c, 0, x.dtype, p.shape(), last);
  std::optional<LaidOut> index;
  if (indices) index.emplace(c, 1, DType::I64, p.shape(), last);
  MSA_SWITCH_REAL(x.dtype, "max_pool2d",
                  (max_windows<T>(p, x.ptr<T>(), o.ptr<T>(), index ? index->ptr<int64_t>() : nullptr)));
  o.finish();
  if (index) index->finish();
}
MSA_KERNEL(MaxPoolWithIndices) { max_pool(c, true); }  // the results are the largest values and their positions
MSA_KERNEL(MaxPoolValues) { max_pool(c, false); }      // without the positions
// input, grad, indices, kernel
MSA_KERNEL(MaxPoolGradWithIndices) { scatter_grad(c, c.in(1), c.in(0), c.in(2), static_cast<int>(c.ints(3).size())); }

MSA_KERNEL(AvgPool2D) { average(c); }
MSA_KERNEL(AvgPool2DGrad) { average_grad(c); }
MSA_KERNEL(AvgPool1D) { average(c); }
MSA_KERNEL(AvgPool3DExt) { average(c); }
MSA_KERNEL(AvgPool3DGradExt) { average_grad(c); }
MSA_KERNEL(AdaptiveAvgPool2DExt) { adaptive_average(c); }
MSA_KERNEL(AdaptiveAvgPool3DExt) { adaptive_average(c); }
MSA_KERNEL(AdaptiveAvgPool2DGradExt) { adaptive_average_grad(c, 2); }
MSA_KERNEL(AdaptiveAvgPool3DGradExt) { adaptive_average_grad(c, 3); }

MSA_KERNEL(AdaptiveMaxPool2D) {  // input, output_size (one to three dims) -> output, indices
  const Tensor x = c.contiguous(c.in(0));
  const Pool p = adaptive(x, c.ints(1));
  const bool last = keeps_format(c.in(0), p);
  const LaidOut o(c, 0, x.dtype, p.shape(), last), index(c, 1, DType::I64, p.shape(), last);
  MSA_SWITCH_FLOAT(x.dtype, "adaptive_max_pool2d",
                   (max_forward<T>(p, adaptive_span, x.ptr<T>(), o.ptr<T>(), index.ptr<int64_t>())));
  o.finish();
  index.finish();
}
MSA_KERNEL(AdaptiveMaxPool2DGrad) { scatter_grad(c, c.in(0), c.in(1), c.in(2), 2); }  // grad, input, indices

}  // namespace msa

// Convolution in one to three dims with columns and matrix products. Transposed convolution is its input gradient.
#include "conv.h"

#include "gemm.h"
#include "layout.h"
#include "onednn.h"
#include "rows.h"
#include "stepwise.h"
#include "type_names.h"

namespace msa {
namespace {

// `image` side: the input of the plain convolution; `result` side: its output. A transposed convolution swaps them.
struct Problem {
  Window w;
  int spatial;
  int64_t n, image_channels, result_channels, groups;
  int64_t per_image() const { return image_channels / groups; }
  int64_t per_result() const { return result_channels / groups; }
  int64_t depth() const { return per_image() * w.taps(); }
};

DType compute_dtype(DType d) {
  if (d == DType::F16 || d == DType::BF16) return DType::F32;
  return is_integral(d) ? DType::I64 : d;
}

Dims image_shape(const Problem &p, bool result) {
  Dims s{p.n, result ? p.result_channels : p.image_channels};
  for (int d = 0; d < p.spatial; ++d) s.push_back((result ? p.w.out : p.w.in)[3 - p.spatial + d]);
  return s;
}

// Reads the operands from `at` on: stride, padding, dilation, transposed, output_padding, groups.
Problem problem(Call &c, const Tensor &x, const Tensor &weight, int at) {
  Problem p;
  p.spatial = x.ndim - 2;
  check(p.spatial >= 1 && p.spatial <= 3 && weight.ndim == x.ndim,
        "Expected 3D, 4D or 5D input and weight to convolution, but got input of size: ", x.shape(),
        " and weight of size: ", weight.shape());
  const bool transposed = c.flag(at + 3);
  p.groups = c.integer(at + 5);
  p.n = x.size(0);
  check(p.groups > 0, "non-positive groups is not supported");
  const int64_t channels = (Size(weight.size(1)) * p.groups).value("the number of channels of a convolution");
  if (transposed) {
    p.result_channels = x.size(1);
    p.image_channels = channels;
    check(weight.size(0) == x.size(1), "Given transposed=1, weight of size ", weight.shape(), ", expected input",
          x.shape(), " to have ", weight.size(0), " channels, but got ", x.size(1), " channels instead");
  } else {
    p.image_channels = x.size(1);
    p.result_channels = weight.size(0);
    check(channels == x.size(1), "Given groups=", p.groups, ", weight of size ", weight.shape(), ", expected input",
          x.shape(), " to have ", channels, " channels, but got ", x.size(1), " channels instead");
    check(weight.size(0) % p.groups == 0, "Given groups=", p.groups, ", expected weight to be divisible by ", p.groups,
          " at dimension 0, but got weight of size ", weight.shape(), " instead");
  }
  Dims padded, kernel;
  bool fits = true;
  for (int d = 0; d < p.spatial; ++d) {
    const int s = 3 - p.spatial + d;
    Window &w = p.w;
    w.kernel[s] = weight.size(d + 2);
    w.stride[s] = spread(c.ints(at), d);
    w.pad[s] = spread(c.ints(at + 1), d);
    w.dilation[s] = spread(c.ints(at + 2), d);
    check(w.stride[s] > 0, "non-positive stride is not supported");
    check(w.pad[s] >= 0, "negative padding is not supported");
    check(w.dilation[s] > 0, "dilation should be greater than zero");
    const int64_t reach = w.reach(s).value("the size of the dilated kernel");
    if (transposed) {
      w.out[s] = x.size(d + 2);
      const int64_t extra = spread(c.ints(at + 4), d);
      check(extra >= 0, "negative output_padding is not supported");
      const Size size = (Size(w.out[s]) - 1) * w.stride[s] - Size(2) * w.pad[s] + reach + extra;
      w.in[s] = size.value("the size of the result of a transposed convolution");
      check(w.in[s] > 0, "Given input size per channel: (", x.size(d + 2), "). Calculated output size per channel: (",
            w.in[s], "). Output size is too small");
    } else {
      w.in[s] = x.size(d + 2);
      padded.push_back(w.padded(s).value("the size of the padded input"));
      kernel.push_back(reach);
      fits = fits && padded.back() >= reach;
      w.out[s] = (padded.back() - reach) / w.stride[s] + 1;
    }
  }
  if (!fits) {
    auto times = [](const Dims &v) {
      std::string s;
      for (size_t i = 0; i < v.size(); ++i) s += (i ? " x " : "") + std::to_string(v[i]);
      return s;
    };
    fail("Calculated padded input size per channel: (", times(padded), "). Kernel size: (", times(kernel),
         "). Kernel size can't be greater than actual input size");
  }
  return p;
}

template <class T>
struct Columns {
  const Problem &p;
  rows::Buffer<T> buffer;
  explicit Columns(const Problem &problem)
      : p(problem), buffer(problem.w.identity() ? 1 : problem.depth() * problem.w.positions()) {}
  const T *of(const T *image) {
    if (p.w.identity()) return image;
    image_to_columns(p.w, p.per_image(), image, buffer.get());
    return buffer;
  }
};

template <class F>
void each_sample(const Problem &p, F f) {
  if (p.n >= num_threads())
    parallel_for(p.n, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) f(i);
    });
  else
    for (int64_t i = 0; i < p.n; ++i) f(i);
}

// result = weight * columns(image)
template <class T>
void forward(const Problem &p, DType d, const T *image, const T *weight, T *result) {
  const int64_t depth = p.depth(), positions = p.w.positions(), rows = p.per_result();
  each_sample(p, [&](int64_t i) {
    Columns<T> columns(p);
    for (int64_t g = 0; g < p.groups; ++g) {
      const T *col = columns.of(image + (i * p.image_channels + g * p.per_image()) * p.w.pixels());
      gemm(d, rows, positions, depth, make_scalar(1), {weight + g * rows * depth, depth, 1}, {col, positions, 1},
           make_scalar(0), result + (i * p.result_channels + g * rows) * positions, positions);
    }
  });
}

// Values rounded to the 16-bit element type, in place.
template <class E>
void round_to(float *x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = E(x[i]);
}
// On processors with instructions for 16-bit types, PyTorch convolves them in oneDNN: in float32, rounded once.
bool is_rounding(DType d) {
#ifdef __AVX512BW__
  if (d == DType::BF16) return false;
#endif
#ifdef __AVX512FP16__
  if (d == DType::F16) return false;
#endif
  return d == DType::F16 || d == DType::BF16;
}
// f(E()) with the 16-bit element type of `d`.
template <class F>
void with_reduced(DType d, F f) {
  if (d == DType::F16)
    f(Half());
  else
    f(BFloat16());
}
// On other processors PyTorch keeps columns and image of 16-bit types in this type. The columns and every sum are
// therefore rounded.
void add_columns_rounding(const Problem &p, DType element, const float *col, float *image) {
  with_reduced(element, [&](auto e) {
    using S = Stepwise<decltype(e)>;
    const int64_t channels = p.per_image(), n = p.depth() * p.w.positions(), pixels = channels * p.w.pixels();
    std::vector<S> from(col, col + n), to(pixels);
    columns_to_image<S>(p.w, channels, from.data(), to.data());
    for (int64_t i = 0; i < pixels; ++i) image[i] = to[i].v;
  });
}

// image = columns_to_image(weight^T * result). `element` is the type of the tensors, narrower than T for 16-bit types.
template <class T>
void input_grad(const Problem &p, DType d, DType element, const T *result, const T *weight, T *image) {
  const int64_t depth = p.depth(), positions = p.w.positions(), rows = p.per_result();
  each_sample(p, [&](int64_t i) {
    rows::Buffer<T> buffer(p.w.identity() ? 1 : depth * positions);
    for (int64_t g = 0; g < p.groups; ++g) {
      T *to = image + (i * p.image_channels + g * p.per_image()) * p.w.pixels();
      T *col = p.w.identity() ? to : buffer.get();
      gemm(d, depth, positions, rows, make_scalar(1), {weight + g * rows * depth, 1, depth},
           {result + (i * p.result_channels + g * rows) * positions, positions, 1}, make_scalar(0), col, positions);
      if constexpr (std::is_same_v<T, float>)
        if (is_rounding(element)) {
          if (!p.w.identity())
            add_columns_rounding(p, element, col, to);
          else
            with_reduced(element, [&](auto e) { round_to<decltype(e)>(to, depth * positions); });
          continue;
        }
      if (!p.w.identity()) columns_to_image(p.w, p.per_image(), col, to);
    }
  });
}

// weight = sum over samples of result * columns(image)^T, in the element type
template <class T>
void weight_grad(const Problem &p, DType d, DType element, const T *result, const T *image, T *weight) {
  const int64_t depth = p.depth(), positions = p.w.positions(), rows = p.per_result();
  Columns<T> columns(p);
  for (int64_t i = 0; i < p.n; ++i)
    for (int64_t g = 0; g < p.groups; ++g) {
      const T *col = columns.of(image + (i * p.image_channels + g * p.per_image()) * p.w.pixels());
      gemm(d, rows, depth, positions, make_scalar(1),
           {result + (i * p.result_channels + g * rows) * positions, positions, 1}, {col, 1, positions},
           make_scalar(i == 0 ? 0 : 1), weight + g * rows * depth, depth);
      if constexpr (std::is_same_v<T, float>)
        if (is_rounding(element))
          with_reduced(element, [&](auto e) { round_to<decltype(e)>(weight + g * rows * depth, rows * depth); });
    }
}

// Into how many equal parts a batch of n, whose operands have `bytes`, is divided. Each still has work for all threads:
// an image for each of them, or images so large that oneDNN divides them among the threads.
int64_t parts_of_batch(int64_t n, int64_t bytes) {
  constexpr int64_t kLarge = 4 << 20, kLargeImage = 8 << 20;
  for (int64_t parts = bytes < kLarge ? 1 : 4; parts > 1; parts /= 2)
    if (n % parts == 0 && (n / parts >= num_threads() || bytes / n >= kLargeImage)) return parts;
  return 1;
}

void add_to(const Tensor &sum, const float *terms) {
  float *to = sum.ptr<float>();
  parallel_for(sum.numel, kGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] += terms[i];
  });
}

// Computes the image, the weight or the result of a convolution with oneDNN, from the two others. Returns false if
// oneDNN is missing or does not support the case, or if preparing it would take longer than the convolution. The
// operands are read in their 16-bit type if the processor has instructions for it, and as float32 otherwise. The
// computed tensor is of type float32, or of the type in which the others are read. The bias is added to the result.
bool with_onednn(Call &c, const Problem &p, onednn::Part part, const Tensor &image, const Tensor &weight,
                 const Tensor &result, const Tensor &bias = Tensor()) {
  constexpr int64_t kLeastWork = 1 << 18;  // products of two numbers
  const Tensor *operands[] = {&image, &weight, &result};
  const int written = static_cast<int>(part);
  const DType given = operands[written == 0 ? 1 : 0]->dtype;
  if (shape_only() || compute_dtype(given) != DType::F32 || is_rounding(given) || !onednn::convolves()) return false;
  // The product of weight and image as they are: it needs no other layout of them, and is faster.
  if (p.w.identity() && p.groups == 1 && given == DType::F32) return false;
  if (image.numel == 0 || weight.numel == 0 || result.numel < kLeastWork / std::max<int64_t>(1, p.depth()))
    return false;
  // The weight is the sum of what the parts of the batch give. A sum of 16-bit parts would be rounded more than once.
  const bool sums = part == onednn::Part::kWeight;
  const int64_t parts = sums && weight.dtype != DType::F32 ? 1 : parts_of_batch(p.n, (image.numel + result.numel) * 4);
  onednn::Convolution shape{
      p.spatial, p.n / parts, p.image_channels, p.result_channels, p.groups, {}, {}, {}, {}, {}, {}, 0, 0, 0};
  for (int d = 0; d < 3; ++d) {
    shape.in[d] = p.w.in[d];
    shape.out[d] = p.w.out[d];
    shape.kernel[d] = p.w.kernel[d];
    shape.stride[d] = p.w.stride[d];
    shape.pad[d] = p.w.pad[d];
    shape.dilation[d] = p.w.dilation[d];
  }
  const DType type = given != DType::F32 && onednn::preferred(given) ? given : DType::F32;
  shape.type = static_cast<int64_t>(type);
  shape.written = static_cast<int64_t>(operands[written]->dtype);
  if (shape.written != static_cast<int64_t>(DType::F32) && shape.written != shape.type) return false;
  shape.biased = bias.data != nullptr;
  void *data[4] = {nullptr, nullptr, nullptr, bias.data};
  int64_t step[3] = {};
  for (int i = 0; i < 3; ++i) {
    const Tensor t = i == written ? *operands[i] : c.cast(*operands[i], type);
    data[i] = t.data;
    if (i != static_cast<int>(onednn::Part::kWeight)) step[i] = t.numel * item_size(t.dtype) / parts;
  }
  // oneDNN may copy operands to another layout. The parts of the batch need the same copies, and share their memory.
  std::vector<void *> copies;
  for (int64_t k = 0; k < parts; ++k) {
    size_t next = 0;
    auto scratch = [&](int64_t bytes) {
      if (next == copies.size()) copies.push_back(c.scratch(bytes));
      return copies[next++];
    };
    if (!onednn::convolve(shape, part, data, scratch)) return false;
    if (sums && k > 0) add_to(weight, static_cast<const float *>(data[written]));
    if (sums && k == 0 && parts > 1) data[written] = c.scratch(weight.numel * item_size(DType::F32));
    for (int i = 0; i < 3; ++i) data[i] = static_cast<char *>(data[i]) + step[i];
  }
  return true;
}

Tensor zeros_if_empty(const Tensor &t, int64_t samples) {
  if (samples == 0) fill_zero(t);
  return t;
}

// Result `index` in the compute type: the result itself, or scratch memory that finish() converts.
struct Target {
  Tensor out, work;
  Target(Call &c, int index, DType dtype, DType compute, const Dims &shape, bool last = false)
      : Target(c, out_laid(c, index, dtype, shape, last), compute) {}
  Target(Call &c, const Tensor &result, DType compute) : out(result) {
    const DType dtype = out.dtype;
    const Dims shape = out.shape();
    work = dtype == compute && out.contiguous()
               ? out
               : contiguous_tensor(c.scratch(std::max<int64_t>(out.numel, 1) * item_size(compute)), compute, shape);
  }
  void finish() const {
    if (work.data != out.data) copy_into(out, work);
  }
};

#define MSA_SWITCH_CONV(D, ...)                                                                                        \
  MSA_SWITCH_(D, "convolution",                                                                                        \
              MSA_CASE(I64, int64_t, __VA_ARGS__) MSA_CASE(F32, float, __VA_ARGS__) MSA_CASE(F64, double, __VA_ARGS__) \
                  MSA_CASES_COMPLEX_(__VA_ARGS__))

void check_types(const Tensor &x, const Tensor &w) {
  check(x.dtype == w.dtype, "expected m1 and m2 to have the same dtype, but got: ", x.dtype, " != ", w.dtype);
}

}  // namespace

MSA_KERNEL(Convolution) {  // input, weight, bias?, stride, padding, dilation, transposed, output_padding, groups
  const Tensor &x = c.in(0), &w = c.in(1);
  check_types(x, w);
  const Problem p = problem(c, x, w, 3);
  const bool transposed = c.flag(6);
  check(!c.has(2) || transposed || c.in(2).dtype == x.dtype, "Input type (", cpp_type_name(x.dtype),
        ") and bias type (", cpp_type_name(c.in(2).dtype), ") should be the same");
  const DType d = compute_dtype(x.dtype);
  const Tensor o = out_laid(c, 0, x.dtype, image_shape(p, !transposed), false);
  const Tensor bias = c.has(2) ? c.cast(c.in(2), d) : Tensor();
  check(!c.has(2) || bias.numel == o.size(1), "Given weight of size ", w.shape(),
        ", expected bias to be 1-dimensional with ", o.size(1), " elements, but got bias of size ", bias.shape(),
        " instead");
  auto convolve = [&](const Tensor &to, const Tensor &add) {
    return transposed ? with_onednn(c, p, onednn::Part::kImage, to, w, x)
                      : with_onednn(c, p, onednn::Part::kResult, x, w, to, add);
  };
  const bool adds_later = transposed && c.has(2);  // oneDNN has no bias there
  if (o.contiguous() && !adds_later && convolve(o, c.has(2) ? c.contiguous(bias) : bias)) return;
  const Target t(c, o, d);
  if (!convolve(t.work, Tensor())) {
    const Tensor cx = c.cast(x, d), cw = c.cast(w, d);
    MSA_SWITCH_CONV(d, ({
                      if (transposed)
                        input_grad<T>(p, d, x.dtype, cx.ptr<T>(), cw.ptr<T>(), t.work.ptr<T>());
                      else
                        forward<T>(p, d, cx.ptr<T>(), cw.ptr<T>(), t.work.ptr<T>());
                    }));
  }
  MSA_SWITCH_CONV(d, ({
                    if (c.has(2)) {
                      const int64_t channels = t.work.size(1);
                      const int64_t plane = channels == 0 || p.n == 0 ? 0 : t.work.numel / (channels * p.n);
                      const T *add = bias.ptr<T>();
                      T *sum = t.work.ptr<T>();
                      const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, plane));
                      parallel_for(p.n * channels, grain, [=](int64_t begin, int64_t end) {
                        for (int64_t i = begin; i < end; ++i) {
                          const T v = add[i % channels];
                          for (int64_t j = i * plane; j < (i + 1) * plane; ++j) sum[j] += v;
                        }
                      });
                    }
                  }));
  t.finish();
}

// dout, input, weight, bias?, stride, padding, dilation, transposed, output_padding, groups, output_mask
MSA_KERNEL(ConvolutionGrad) {
  const Tensor &g = c.in(0), &x = c.in(1), &w = c.in(2);
  const Problem p = problem(c, x, w, 4);
  const bool transposed = c.flag(7);
  const Dims &mask = c.ints(10);
  const DType d = compute_dtype(g.dtype);
  const Tensor cg = c.cast(g, d);
  if (mask[0]) {
    const Target t(c, 0, g.dtype, d, x.shape(), channels_last(x) || channels_last(w));
    if (!with_onednn(c, p, transposed ? onednn::Part::kResult : onednn::Part::kImage, transposed ? g : t.work, w,
                     transposed ? t.work : g)) {
      const Tensor cw = c.cast(w, d);
      MSA_SWITCH_CONV(d, ({
                        if (transposed)
                          forward<T>(p, d, cg.ptr<T>(), cw.ptr<T>(), t.work.ptr<T>());
                        else
                          input_grad<T>(p, d, g.dtype, cg.ptr<T>(), cw.ptr<T>(), t.work.ptr<T>());
                      }));
    }
    t.finish();
  }
  if (mask[1]) {
    const Target t(c, 1, g.dtype, d, w.shape());
    zeros_if_empty(t.work, p.n);
    if (!with_onednn(c, p, onednn::Part::kWeight, transposed ? g : x, t.work, transposed ? x : g)) {
      const Tensor cx = c.cast(x, d);
      MSA_SWITCH_CONV(d, ({
                        if (transposed)
                          weight_grad<T>(p, d, g.dtype, cx.ptr<T>(), cg.ptr<T>(), t.work.ptr<T>());
                        else
                          weight_grad<T>(p, d, g.dtype, cg.ptr<T>(), cx.ptr<T>(), t.work.ptr<T>());
                      }));
    }
    t.finish();
  }
  if (mask[2]) {
    const int64_t channels = g.size(1), plane = channels == 0 || p.n == 0 ? 0 : cg.numel / (channels * p.n);
    const Target t(c, 2, g.dtype, d, Dims{channels});
    MSA_SWITCH_CONV(d, ({
                      for (int64_t ch = 0; ch < channels; ++ch) {
                        T sum(0);
                        for (int64_t i = 0; i < p.n; ++i) {
                          const T *from = cg.ptr<T>() + (i * channels + ch) * plane;
                          sum += rows::sum<T>(plane, [=](int64_t j) { return from[j]; });
                        }
                        t.work.ptr<T>()[ch] = sum;
                      }
                    }));
    t.finish();
  }
}

// input [n, c, h, w], kernel_size, dilation, padding, stride -> [n, c * taps, positions]
MSA_KERNEL(Im2ColExt) {
  const Tensor x = c.contiguous(c.in(0));
  Window w;
  for (int d = 0; d < 2; ++d) {
    w.kernel[d + 1] = spread(c.ints(1), d);
    w.dilation[d + 1] = spread(c.ints(2), d);
    w.pad[d + 1] = spread(c.ints(3), d);
    w.stride[d + 1] = spread(c.ints(4), d);
    w.in[d + 1] = x.size(d + 2);
    const int64_t reach = w.reach(d + 1).value("the size of the dilated kernel");
    const int64_t padded = w.padded(d + 1).value("the size of the padded input");
    w.out[d + 1] = (Size(padded) - reach).value("the number of blocks") / w.stride[d + 1] + 1;
    check(padded >= reach && w.out[d + 1] > 0, "Given input with spatial size (", x.size(2), ", ", x.size(3),
          "), kernel_size=", c.ints(1), ", dilation=", c.ints(2), ", padding=", c.ints(3),
          ", calculated shape of the array of sliding blocks is too small: its components must be at least one");
  }
  const int64_t channels = x.size(1);
  const Tensor o =
      c.out(0, x.dtype,
            Dims{x.size(0), (Size(channels) * w.taps()).value("the rows of the result of unfold"), w.positions()});
  MSA_SWITCH_BYTES(x.dtype, (image_to_columns<T>(w, x.size(0) * channels, x.ptr<T>(), o.ptr<T>())));
}

// input [n, c * taps, positions], output_size, kernel_size, dilation, padding, stride -> [n, c, h, w]
MSA_KERNEL(Col2ImExt) {
  const DType d = compute_dtype(c.in(0).dtype);
  const Tensor x = c.cast(c.in(0), d);
  Window w;
  for (int k = 0; k < 2; ++k) {
    w.in[k + 1] = spread(c.ints(1), k);
    w.kernel[k + 1] = spread(c.ints(2), k);
    w.dilation[k + 1] = spread(c.ints(3), k);
    w.pad[k + 1] = spread(c.ints(4), k);
    w.stride[k + 1] = spread(c.ints(5), k);
    w.out[k + 1] = (w.padded(k + 1) - w.reach(k + 1)).value("the number of blocks") / w.stride[k + 1] + 1;
  }
  check(x.size(1) % w.taps() == 0,
        "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)=",
        x.size(1), " and kernel_size=", c.ints(2), ".");
  check(x.size(2) == w.positions(), "Given output_size=", c.ints(1), ", kernel_size=", c.ints(2),
        ", dilation=", c.ints(3), ", padding=", c.ints(4), ", stride=", c.ints(5),
        ", expected size of input's dimension 2 to match the calculated number of sliding blocks ", w.out[1], " * ",
        w.out[2], " = ", w.positions(), ", but got input.size(2)=", x.size(2), ".");
  const int64_t channels = x.size(1) / w.taps();
  const Target t(c, 0, c.in(0).dtype, d, Dims{x.size(0), channels, w.in[1], w.in[2]});
  MSA_SWITCH_CONV(d, (columns_to_image<T>(w, x.size(0) * channels, x.ptr<T>(), t.work.ptr<T>())));
  t.finish();
}

}  // namespace msa

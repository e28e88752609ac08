// Convolution of sequences with time as their first dim, and the gradient of its weight. MindSpore has no operator for
// them.
#include "gemm.h"
#include "loops.h"

namespace msa {
namespace {

// The steps of the result that tap k reads from the input: `count` steps from `to` on, and of the input from `from` on.
struct Overlap {
  int64_t to, from, count;
};
Overlap overlap(int64_t k, int64_t shift, int64_t result, int64_t input) {
  const int64_t move = k - shift;  // step t of the result reads step t + move
  const int64_t to = std::max<int64_t>(0, -move), last = std::min(result, input - move);
  return {to, to + move, std::max<int64_t>(0, last - to)};
}

void check_shapes(const Tensor &x, const Tensor &w) {
  check(x.ndim == 3, "Input must have 3 dims: time, batch, in_channel");
  check(w.ndim == 3, "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.");
  check(x.size(2) == w.size(1), "Input dim 2 (input channels) is not == dim 1 in the weight tensor");
}

}  // namespace

// input [steps, batch, channels], weight [taps, channels, outputs], bias?, shift, length -> [length, batch, outputs]:
// result[t] = bias + the sum over k of input[t + k - shift] @ weight[k], with zeros before and after the input
MSA_KERNEL(ConvOverTime) {
  const Tensor x = c.contiguous(c.in(0)), w = c.contiguous(c.in(1));
  check_shapes(x, w);
  const int64_t shift = c.integer(3), length = c.integer(4), batch = x.size(1), channels = x.size(2),
                outputs = w.size(2);
  check(x.dtype == w.dtype, "self and mat2 must have the same dtype, but got ", x.dtype, " and ", w.dtype);
  check(length >= 0, "Trying to create tensor with negative dimension ", length, ": ", Dims{length, batch, outputs});
  const Tensor o = c.out(0, x.dtype, Dims{length, batch, outputs});
  if (c.has(2)) {
    check(c.in(2).ndim == 1, "Bias must be 1-D");
    check(c.in(2).numel == outputs, "Bias size must equal dim 2 in the weight tensor (output channels).");
    copy_into(o, c.in(2));
  } else {
    fill_zero(o);
  }
  const int64_t item = item_size(x.dtype);
  for (int64_t k = 0; k < w.size(0); ++k) {
    const Overlap part = overlap(k, shift, length, x.size(0));
    if (part.count == 0) continue;
    gemm(x.dtype, part.count * batch, outputs, channels, make_scalar(1),
         {x.ptr<char>() + part.from * batch * channels * item, channels, 1},
         {w.ptr<char>() + k * channels * outputs * item, outputs, 1}, make_scalar(1),
         o.ptr<char>() + part.to * batch * outputs * item, outputs);
  }
}

// gradient [length, batch, outputs], input [steps, batch, channels], taps, shift -> [taps, channels, outputs]
MSA_KERNEL(ConvOverTimeWeightGrad) {
  const Tensor g = c.contiguous(c.in(0)), x = c.contiguous(c.in(1));
  const int64_t taps = c.integer(2), shift = c.integer(3), batch = x.size(1), channels = x.size(2), outputs = g.size(2);
  const Tensor o = c.out(0, g.dtype, Dims{taps, channels, outputs});
  fill_zero(o);
  const int64_t item = item_size(x.dtype);
  for (int64_t k = 0; k < taps; ++k) {
    const Overlap part = overlap(k, shift, g.size(0), x.size(0));
    if (part.count == 0) continue;
    gemm(x.dtype, channels, outputs, part.count * batch, make_scalar(1),
         {x.ptr<char>() + part.from * batch * channels * item, 1, channels},
         {g.ptr<char>() + part.to * batch * outputs * item, outputs, 1}, make_scalar(0),
         o.ptr<char>() + k * channels * outputs * item, outputs);
  }
}

}  // namespace msa

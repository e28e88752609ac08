// Constant padding and cropping.
#include "layout.h"
#include "stored_number.h"

namespace msa {

MSA_KERNEL(ConstantPadND) {  // input, (before, after) pairs from the last dim on (negative crops), value
  const Tensor &x = c.in(0);
  const Dims &pads = c.ints(1);
  Dims shape = x.shape(), from(x.ndim, 0), to(x.ndim, 0), inner = x.shape();
  for (size_t i = 0; i < pads.size() / 2; ++i) {
    const int d = x.ndim - 1 - static_cast<int>(i);
    const int64_t before = pads[2 * i], after = pads[2 * i + 1];
    shape[d] = (Size(shape[d]) + before + after).value("the size of the result of pad");
    check(shape[d] >= 0, "The input size ", x.sizes[d], ", plus negative padding ", before, " and ", after,
          " resulted in a negative output size, which is invalid. Check dimension ", d, " of your input.");
    from[d] = before < 0 ? (Size(0) - before).value("a padding") : 0;
    to[d] = std::max<int64_t>(0, before);
    const Size cropped = Size(x.sizes[d]) + std::min<int64_t>(0, before) + std::min<int64_t>(0, after);
    inner[d] = std::max<int64_t>(0, cropped.value("a padding"));
  }
  const Tensor o = out_laid(c, 0, x.dtype, shape, channels_last(x));
  if (o.numel == 0) return;
  MSA_SWITCH_ALL(x.dtype, "constant_pad_nd", (std::fill_n(o.ptr<T>(), o.numel, stored<T>(c.scalar(2)))));
  int64_t source = 0, target = 0;
  Dims xs(x.ndim), os(x.ndim);
  for (int d = 0; d < x.ndim; ++d) {
    source += from[d] * x.strides[d];
    target += to[d] * o.strides[d];
    xs[d] = x.strides[d];
    os[d] = o.strides[d];
  }
  const Tensor part = make_view(o, inner, os, target);
  if (part.numel > 0) copy_into(part, make_view(x, inner, xs, source));
}

}  // namespace msa

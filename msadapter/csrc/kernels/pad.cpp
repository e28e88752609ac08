// Padding and cropping: with a constant, and with the elements at the border.
#include "layout.h"
#include "stored_number.h"
#include "wrapping.h"

namespace msa {
namespace {

// Which element of a dim of n elements is at position `at` of the extended dim, where positions before it are negative.
int64_t border_place(int64_t at, int64_t n, const std::string &mode) {
  if (mode == "replicate") return std::clamp<int64_t>(at, 0, n - 1);
  if (mode == "circular") return ((at % n) + n) % n;
  return (n - 1) - std::abs((n - 1) - std::abs(at));
}

// The dims of a tensor that is extended, and for each position of the result the offset of its element in its dim.
struct Border {
  Dims sizes, pads;
  Dims shape;                 // that of the result
  std::vector<Dims> offsets;  // empty before find_offsets
  int64_t planes = 1;         // the product of the dims before the first one that is extended

  Border(const Dims &sizes_of, const Dims &pads_of) : sizes(sizes_of), pads(pads_of), shape(sizes_of) {
    check(pads.size() % 2 == 0 && pads.size() / 2 <= sizes.size(), "PadBorder: ", pads.size(),
          " numbers of padding for a tensor of shape ", sizes);
    bool outer = true;
    for (int d = 0; d < static_cast<int>(sizes.size()); ++d) {
      const int64_t before = pad(d, 0), after = pad(d, 1);
      shape[d] = (Size(sizes[d]) + before + after).value("the size of the result of pad");
      check(shape[d] >= 0, "The input size ", sizes[d], ", plus negative padding ", before, " and ", after,
            " resulted in a negative output size, which is invalid. Check dimension ", d, " of your input.");
      outer = outer && before == 0 && after == 0 && d + 1 < static_cast<int>(sizes.size());
      if (outer) planes *= sizes[d];
      check(shape[d] == 0 || sizes[d] > 0, "PadBorder: dimension ", d, " is empty and cannot be extended");
    }
  }
  // The padding of a dim before (side 0) or after it (side 1). The pairs begin with the last dim.
  int64_t pad(int d, int side) const {
    const size_t i = 2 * (sizes.size() - 1 - d) + side;
    return i < pads.size() ? pads[i] : 0;
  }
  // `strides` are those of the tensor that has the elements, in elements. The result should have its memory before:
  // what is too large for it is an error then, and nothing is computed for it.
  void find_offsets(const Dims &strides, const std::string &mode) {
    for (int d = 0; d < static_cast<int>(sizes.size()); ++d) {
      const int64_t before = pad(d, 0), after = pad(d, 1);
      Dims own(shape[d]);
      for (int64_t at = 0; at < static_cast<int64_t>(own.size()); ++at) {
        const int64_t place = before || after ? border_place(at - before, sizes[d], mode) : at;
        check(place >= 0 && place < sizes[d], "PadBorder: padding of ", before, " and ", after,
              " is too large for dimension ", d, " of size ", sizes[d]);
        own[at] = place * strides[d];
      }
      offsets.push_back(std::move(own));
    }
  }
  int64_t width() const { return shape.empty() ? 1 : shape.back(); }
  // The offset of a row of the result.
  int64_t row(int64_t r) const {
    int64_t offset = 0;
    for (int d = static_cast<int>(shape.size()) - 2; d >= 0; --d) {
      offset += offsets[d][r % shape[d]];
      r /= shape[d];
    }
    return offset;
  }
};

template <class T>
void extend(const Border &border, const Tensor &x, const Tensor &o) {
  const int64_t width = border.width();
  const int64_t *columns = border.offsets.back().data();
  int64_t first = 0, last = 0;  // the positions of a row that are neighbours in the operand, if there are any
  for (int64_t j = 0; j < width; ++j) {
    int64_t end = j + 1;
    while (end < width && columns[end] == columns[end - 1] + 1) ++end;
    if (end - j > last - first) first = j, last = end;
    j = end - 1;
  }
  parallel_for(o.numel / width, std::max<int64_t>(1, kGrain / width), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T *from = x.ptr<T>() + border.row(r);
      T *to = o.ptr<T>() + r * width;
      for (int64_t j = 0; j < first; ++j) to[j] = from[columns[j]];
      std::memcpy(to + first, from + columns[first], (last - first) * sizeof(T));
      for (int64_t j = last; j < width; ++j) to[j] = from[columns[j]];
    }
  });
}

// Adds each row of the gradient to its row of the result, in the order of the rows. The planes are independent.
template <class T>
void fold_border(const Border &border, const Tensor &g, const Tensor &o) {
  using C = compute_t<T>;
  const int64_t width = border.width();
  const int64_t *columns = border.offsets.back().data();
  const int64_t rows = g.numel / width / border.planes;
  parallel_for(border.planes, std::max<int64_t>(1, kGrain / (rows * width)), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin * rows; r < end * rows; ++r) {
      const T *from = g.ptr<T>() + r * width;
      T *to = o.ptr<T>() + border.row(r);
      for (int64_t j = 0; j < width; ++j) to[columns[j]] = T(wrapping_add<C>(to[columns[j]], from[j]));
    }
  });
}

}  // namespace

// input, (before, after) pairs from the last dim on (negative ones crop), mode ("reflect", "replicate" or "circular")
MSA_KERNEL(PadBorder) {
  const Tensor &x = c.in(0);
  Border border(x.shape(), c.ints(1));
  const Tensor o = c.out(0, x.dtype, border.shape);
  if (o.numel == 0 || shape_only()) return;
  border.find_offsets(Dims(x.strides, x.strides + x.ndim), c.str(2));
  if (x.ndim == 0) return copy_into(o, x);
  MSA_SWITCH_BYTES(x.dtype, (extend<T>(border, x, o)));
}

// gradient, sizes of the input, pairs, mode
MSA_KERNEL(PadBorderGrad) {
  const Tensor g = c.contiguous(c.in(0));
  const Tensor o = c.out(0, g.dtype, c.ints(1));
  Border border(o.shape(), c.ints(2));
  check(g.shape() == border.shape, "PadBorderGrad: the gradient has the shape ", g.shape(), ", but the result ",
        border.shape);
  fill_zero(o);
  if (g.numel == 0 || shape_only()) return;
  if (o.ndim == 0) return copy_into(o, g);
  border.find_offsets(Dims(o.strides, o.strides + o.ndim), c.str(3));
  MSA_SWITCH_NUMBER(g.dtype, "pad_backward", (fold_border<T>(border, g, o)));
}

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

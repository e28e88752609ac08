// Max pooling over windows at given positions, which fractional pooling draws. MindSpore has no operator for it.
#include "loops.h"

namespace msa {
namespace {

// The windows of one plane. `start` are their first positions in the three dims, as many as results; dims that the
// image does not have are the first ones, with the size 1.
struct Windows {
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  const int64_t *start[3] = {};
};

// Memory for the windows of one row.
template <class T>
struct Found {
  std::vector<compute_t<T>> top, value;
  std::vector<int32_t> starts, best;  // places of a plane, which vectors of float can be compared beside
  explicit Found(int64_t n) : top(n), value(n), starts(n), best(n) {}
};

// Compares one element of each window of a row with the largest so far, or takes it as the first one. The elements are
// at `line` + starts[o] of the plane. No branch depends on them, so that the compiler can use vectors.
template <class T>
void compare(const T *plane, int32_t line, int64_t n, bool first, Found<T> *found) {
  using C = compute_t<T>;
  C *__restrict top = found->top.data();
  int32_t *__restrict best = found->best.data();
  const int32_t *__restrict starts = found->starts.data();
  if (first) {
    for (int64_t o = 0; o < n; ++o) top[o] = convert<C>(plane[line + starts[o]]), best[o] = line + starts[o];
    return;
  }
  C *__restrict value = found->value.data();  // loaded by a loop of its own, so that the other one has vectors
  for (int64_t o = 0; o < n; ++o) value[o] = convert<C>(plane[line + starts[o]]);
  for (int64_t o = 0; o < n; ++o) {
    const C v = value[o];
    const bool larger = (v > top[o]) | (v != v);
    top[o] = larger ? v : top[o];
    best[o] = larger ? line + starts[o] : best[o];
  }
}

// The largest elements of the windows of a plane, or their last NaN, and their places in the plane.
template <class T>
void pool_plane(const T *plane, const Windows &w, Found<T> *found, T *values, int64_t *places) {
  const int64_t n = w.out[2];
  std::copy_n(w.start[2], n, found->starts.data());
  for (int64_t a = 0; a < w.out[0]; ++a)
    for (int64_t b = 0; b < w.out[1]; ++b) {
      const int64_t depth = w.start[0] ? w.start[0][a] : 0, height = w.start[1][b];
      bool first = true;
      for (int64_t i = 0; i < w.kernel[0]; ++i)
        for (int64_t j = 0; j < w.kernel[1]; ++j)
          for (int64_t k = 0; k < w.kernel[2]; ++k, first = false)
            compare(plane, static_cast<int32_t>(((depth + i) * w.in[1] + height + j) * w.in[2] + k), n, first, found);
      for (int64_t o = 0; o < n; ++o) values[o] = convert<T>(found->top[o]);
      std::copy_n(found->best.data(), n, places);
      values += n;
      places += n;
    }
}

}  // namespace

// input [n, c, spatial dims], the first positions of the windows in each spatial dim [n, c, results] (int64), kernel ->
// the largest elements [n, c, results of each dim], and their places in the flattened image
MSA_KERNEL(MaxPoolAtStarts) {
  const Tensor x = c.contiguous(c.in(0));
  const std::vector<Tensor> &given = c.list(1);
  const Dims &kernel = c.ints(2);
  const int dims = static_cast<int>(kernel.size());
  check(dims >= 2 && dims <= 3 && x.ndim == dims + 2 && static_cast<int>(given.size()) == dims,
        "MaxPoolAtStarts: expected an image or a volume with the starts of each dim, but got an input of shape ",
        x.shape(), " and ", given.size(), " starts");
  Dims shape{x.size(0), x.size(1)};
  Windows w;
  std::vector<Tensor> starts;
  for (int d = 0; d < dims; ++d) {
    const int s = 3 - dims + d;
    starts.push_back(c.cast(given[d], DType::I64));
    w.in[s] = x.size(d + 2);
    w.out[s] = starts[d].size(-1);
    w.kernel[s] = kernel[d];
    check(starts[d].numel == x.size(0) * x.size(1) * w.out[s], "MaxPoolAtStarts: the starts have the shape ",
          given[d].shape(), ", but the input ", x.shape());
    shape.push_back(w.out[s]);
    for (int64_t i = 0; i < starts[d].numel && !shape_only(); ++i) {
      const int64_t first = starts[d].ptr<int64_t>()[i];
      check(first >= 0 && first <= w.in[s] - w.kernel[s], "MaxPoolAtStarts: a window begins at ", first,
            " in a dim of size ", w.in[s]);
    }
  }
  check(element_count(w.in, 3) <= std::numeric_limits<int32_t>::max(), "MaxPoolAtStarts: the image is too large");
  const Tensor values = c.out(0, x.dtype, shape), places = c.out(1, DType::I64, shape);
  const int64_t pixels = w.in[0] * w.in[1] * w.in[2], results = w.out[0] * w.out[1] * w.out[2];
  MSA_SWITCH_FLOAT(x.dtype, "fractional_max_pool", ({
                     parallel_for(x.size(0) * x.size(1), std::max<int64_t>(1, kGrain / std::max<int64_t>(1, pixels)),
                                  [&](int64_t begin, int64_t end) {
                                    Found<T> found(w.out[2]);
                                    for (int64_t plane = begin; plane < end; ++plane) {
                                      Windows own = w;
                                      for (int d = 0; d < dims; ++d) {
                                        const int s = 3 - dims + d;
                                        own.start[s] = starts[d].ptr<int64_t>() + plane * w.out[s];
                                      }
                                      pool_plane(x.ptr<T>() + plane * pixels, own, &found,
                                                 values.ptr<T>() + plane * results,
                                                 places.ptr<int64_t>() + plane * results);
                                    }
                                  });
                   }));
}

}  // namespace msa

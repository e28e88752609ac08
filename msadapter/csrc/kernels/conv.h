// The windows of convolutions and pooling over up to three spatial dims: their geometry, the copy of an image to a
// matrix with one column for each window (image_to_columns), and the reverse.
#pragma once
#include "loops.h"

namespace msa {

struct Window {
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, pad[3] = {0, 0, 0},
          dilation[3] = {1, 1, 1};
  int64_t positions() const { return element_count(out, 3); }
  int64_t pixels() const { return element_count(in, 3); }
  int64_t taps() const { return element_count(kernel, 3); }
  // The number of pixels that the dilated kernel covers in one dim, and the size of the padded image.
  Size reach(int s) const { return (Size(kernel[s]) - 1) * dilation[s] + 1; }
  Size padded(int s) const { return Size(in[s]) + Size(2) * pad[s]; }
  bool identity() const {  // a 1 x 1 kernel that uses every pixel once
    for (int d = 0; d < 3; ++d)
      if (kernel[d] != 1 || stride[d] != 1 || pad[d] != 0) return false;
    return true;
  }
};

// The i-th of `dims` values. A single value applies to all dims.
inline int64_t spread(const Dims &v, int i) { return v.size() == 1 ? v[0] : v[i]; }

// col[(c, tap), position] = image[c, position * stride - pad + tap * dilation], and 0 for pixels outside of the image.
template <class T>
void image_to_columns(const Window &w, int64_t channels, const T *image, T *col) {
  const int64_t taps = w.taps(), positions = w.positions();
  parallel_for(channels * taps, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, positions)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t row = begin; row < end; ++row) {
                   const int64_t tap = row % taps, kw = tap % w.kernel[2], kh = tap / w.kernel[2] % w.kernel[1],
                                 kd = tap / w.kernel[2] / w.kernel[1];
                   const T *plane = image + row / taps * w.pixels();
                   T *to = col + row * positions;
                   const int64_t x0 = kw * w.dilation[2] - w.pad[2];
                   for (int64_t od = 0; od < w.out[0]; ++od)
                     for (int64_t oh = 0; oh < w.out[1]; ++oh, to += w.out[2]) {
                       const int64_t d = od * w.stride[0] - w.pad[0] + kd * w.dilation[0],
                                     h = oh * w.stride[1] - w.pad[1] + kh * w.dilation[1];
                       if (d < 0 || d >= w.in[0] || h < 0 || h >= w.in[1]) {
                         std::fill_n(to, w.out[2], T(0));
                         continue;
                       }
                       const T *line = plane + (d * w.in[1] + h) * w.in[2];
                       for (int64_t ow = 0; ow < w.out[2]; ++ow) {
                         const int64_t x = x0 + ow * w.stride[2];
                         to[ow] = x >= 0 && x < w.in[2] ? line[x] : T(0);
                       }
                     }
                 }
               });
}

// The reverse of image_to_columns. The values of a pixel that is in several windows are added. `image` is overwritten.
template <class T>
void columns_to_image(const Window &w, int64_t channels, const T *col, T *image) {
  const int64_t taps = w.taps(), positions = w.positions();
  parallel_for(channels, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, positions * taps)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t c = begin; c < end; ++c) {
                   T *plane = image + c * w.pixels();
                   std::fill_n(plane, w.pixels(), T(0));
                   const T *from = col + c * taps * positions;
                   for (int64_t tap = 0; tap < taps; ++tap) {
                     const int64_t kw = tap % w.kernel[2], kh = tap / w.kernel[2] % w.kernel[1],
                                   kd = tap / w.kernel[2] / w.kernel[1];
                     const int64_t x0 = kw * w.dilation[2] - w.pad[2];
                     for (int64_t od = 0; od < w.out[0]; ++od)
                       for (int64_t oh = 0; oh < w.out[1]; ++oh, from += w.out[2]) {
                         const int64_t d = od * w.stride[0] - w.pad[0] + kd * w.dilation[0],
                                       h = oh * w.stride[1] - w.pad[1] + kh * w.dilation[1];
                         if (d < 0 || d >= w.in[0] || h < 0 || h >= w.in[1]) continue;
                         T *line = plane + (d * w.in[1] + h) * w.in[2];
                         for (int64_t ow = 0; ow < w.out[2]; ++ow) {
                           const int64_t x = x0 + ow * w.stride[2];
                           if (x >= 0 && x < w.in[2]) line[x] += from[ow];
                         }
                       }
                   }
                 }
               });
}

}  // namespace msa

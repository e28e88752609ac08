// Convolutions with the oneDNN library that MindSpore contains, and products on processors with instructions (AVX-512,
// AMX) that the blocked kernel does not use. It is loaded at run time. The kernels can be built and run without it.
#pragma once
#include <functional>

#include "gemm.h"

namespace msa::onednn {

// Sets the path of libdnnl.so.3. Without it, a copy that the process has loaded already is used. Call this before the
// first product.
void set_library(const std::string &path);
// Describes the library ("oneDNN 3.10.1, isa 7"), or says why there is none.
std::string describe();
// Whether oneDNN is faster for products of this type on this processor. MSADAPTER_ONEDNN=0 turns it off, =1 uses it
// for all types that it supports.
bool preferred(DType dtype);
// C = alpha * A @ B + beta * C for `batch` products. `dtype` is the element type of A and B, and `written` that of C:
// the same one or float32. Returns false if oneDNN declined, and writes nothing then.
bool matmul(DType dtype, DType written, int64_t batch, int64_t m, int64_t n, int64_t k, float alpha, const Matrix &a,
            int64_t bs_a, const Matrix &b, int64_t bs_b, float beta, void *c, int64_t bs_c, int64_t ldc);

// A convolution in one to three dims, which are the last ones of the arrays. `image` is the side of
// the input and `result` the side of the output; the weight is [result_channels, image_channels / groups, kernel...].
struct Convolution {
  int64_t spatial, n, image_channels, result_channels, groups;
  int64_t in[3], out[3], kernel[3], stride[3], pad[3], dilation[3];
  int64_t type;     // the element type (DType) of the operands that are read
  int64_t written;  // the element type of what is computed: float32, or the same one
  int64_t biased;   // whether a bias, of type float32, is added to the result
};
enum class Part { kImage, kWeight, kResult };  // what is computed from the two others
// Whether oneDNN can be asked for convolutions.
bool convolves();
// `data` are image, weight, result and the bias if there is one, contiguous. `scratch` gives memory that stays until
// the kernel returns. Returns false if oneDNN declined.
bool convolve(const Convolution &shape, Part part, void *const *data, const std::function<void *(int64_t)> &scratch);

}  // namespace msa::onednn

// Products with the oneDNN library that MindSpore contains, on processors with instructions (AVX-512, AMX) that the
// blocked kernel does not use. It is loaded at run time. The kernels can be built and run without it.
#pragma once
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
// C = alpha * A @ B + beta * C for `batch` products. Returns false if oneDNN declined, and writes nothing then.
bool matmul(DType dtype, int64_t batch, int64_t m, int64_t n, int64_t k, float alpha, const Matrix &a, int64_t bs_a,
            const Matrix &b, int64_t bs_b, float beta, void *c, int64_t bs_c, int64_t ldc);

}  // namespace msa::onednn

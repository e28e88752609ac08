// Products through the oneDNN that MindSpore ships, where the processor has instructions that our own blocked
// kernel does not use (AVX-512, AMX). Loaded at run time: the kernels build and run without it.
#pragma once
#include "gemm.h"

namespace msa::onednn {

// Path of libdnnl.so.3; without it a copy that the process has loaded already is used. Call before the first product.
void set_library(const std::string &path);
// "oneDNN 3.10.1, isa 7" or why there is none.
std::string describe();
// Is this type's product better done by oneDNN on this processor? MSADAPTER_ONEDNN=0 never, =1 for all it supports.
bool preferred(DType dtype);
// C = alpha * A @ B + beta * C for `batch` products. False when oneDNN declined: nothing was written.
bool matmul(DType dtype, int64_t batch, int64_t m, int64_t n, int64_t k, float alpha, const Matrix &a, int64_t bs_a,
            const Matrix &b, int64_t bs_b, float beta, void *c, int64_t bs_c, int64_t ldc);

}  // namespace msa::onednn

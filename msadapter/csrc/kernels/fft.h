// The connection to the library of discrete Fourier transforms, which has no C interface.
#pragma once
#include <cstdint>

namespace msa {

// Computes one transform, and returns 1. If it fails, it returns 0 and writes why into `reason`, which has room for
// kReasonSize characters and ends with a zero. `job` has `count` numbers: see transform() in fft.cpp.
using RunTransform = int (*)(int64_t count, const int64_t *job, char *reason);
constexpr int kReasonSize = 512;

// Python calls this once with the address of such a function (ops/_pocketfft.py).
void bind_transforms(RunTransform run);

}  // namespace msa

// Discrete Fourier transforms. The library is the pocketfft inside scipy, which MindSpore depends on. It has a Python
// interface only, so that a function of ops/_pocketfft.py runs each transform.
#include "fft.h"

#include <atomic>

#include "loops.h"

namespace msa {
namespace {

std::atomic<RunTransform> bound{nullptr};

// The values are those that ops/_pocketfft.py expects.
enum class Kind : int64_t {
  kComplex = 0,  // complex numbers, or all frequencies of real ones
  kToHalf = 1,   // real numbers to the first half of their frequencies
  kFromHalf = 2  // the first half of the frequencies to real numbers
};

// Transforms `in` along `dims` and writes `out`, which has the same shape but for the last one of `dims`. `norm` is 0
// for no scaling, 1 for a division by the root of the number of points, and 2 for a division by this number.
void transform(Kind kind, const Tensor &out, const Tensor &in, const Dims &dims, int64_t norm, bool forward) {
  if (out.numel == 0) return;
  const bool is_double = real_of(in.dtype) == DType::F64;
  if (!is_double && real_of(in.dtype) != DType::F32) fail("Unsupported dtype ", in.dtype);
  for (int64_t d : dims)
    check(out.sizes[d] >= 1 && in.sizes[d] >= 1, "Invalid number of data points (", in.sizes[d], ") specified");
  const RunTransform run = bound.load();
  check(run != nullptr, "no library of Fourier transforms is bound: import msadapter first");
  constexpr int64_t kShared = 1 << 17;  // points; waking the threads of the library takes as long as fewer points
  Dims job = {static_cast<int64_t>(kind),
              is_double,
              forward,
              norm,
              std::max(in.numel, out.numel) < kShared ? 1 : num_threads(),
              in.ndim,
              reinterpret_cast<int64_t>(in.data),
              is_complex(in.dtype),
              reinterpret_cast<int64_t>(out.data),
              is_complex(out.dtype)};
  for (const Tensor *t : {&in, &out}) {
    job.insert(job.end(), t->sizes, t->sizes + t->ndim);
    for (int d = 0; d < t->ndim; ++d) job.push_back(t->strides[d] * static_cast<int64_t>(item_size(t->dtype)));
  }
  job.insert(job.end(), dims.begin(), dims.end());
  char reason[kReasonSize] = "";
  if (!run(static_cast<int64_t>(job.size()), job.data(), reason)) fail(reason);
}

Dims wrapped(const Dims &dims, const Tensor &t) {
  Dims r;
  for (int64_t d : dims) r.push_back(wrap_dim(d, t.ndim));
  return r;
}

}  // namespace

void bind_transforms(RunTransform run) { bound.store(run); }

MSA_KERNEL(FftC2c) {  // x, dims, norm, forward
  const Tensor &x = c.in(0);
  const Dims dims = wrapped(c.ints(1), x);
  const Tensor o = c.out(0, x.dtype, x.shape());
  if (dims.empty()) return copy_into(o, x);
  transform(Kind::kComplex, o, x, dims, c.integer(2), c.flag(3));
}

MSA_KERNEL(FftR2c) {  // x, dims, norm, onesided: the last of dims is the real one
  const Tensor &x = c.in(0);
  const Dims dims = wrapped(c.ints(1), x);
  const int last = static_cast<int>(dims.back());
  const bool half = c.flag(3);
  Dims shape = x.shape();
  if (half) shape[last] = shape[last] / 2 + 1;
  transform(half ? Kind::kToHalf : Kind::kComplex, c.out(0, complex_of(x.dtype), shape), x, dims, c.integer(2), true);
}

MSA_KERNEL(FftC2r) {  // x (half of a Hermitian signal along the last of dims), dims, norm, length of the real result
  Tensor x = c.in(0);
  const Dims dims = wrapped(c.ints(1), x);
  const int last = static_cast<int>(dims.back());
  const int64_t n = c.integer(3);
  check(n >= 1, "Invalid number of data points (", n, ") specified");
  check(x.sizes[last] >= n / 2 + 1, "FftC2r: ", n / 2 + 1, " values are needed along the last dim, got ",
        x.sizes[last]);
  Dims shape = x.shape();
  shape[last] = n;
  x.sizes[last] = n / 2 + 1;  // the values after these are those of no frequency
  transform(Kind::kFromHalf, c.out(0, real_of(x.dtype), shape), x, dims, c.integer(2), false);
}

}  // namespace msa

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
  kComplex = 0,  // complex numbers
  kToHalf = 1,   // real numbers to the first half of their frequencies
  kFromHalf = 2  // the first half of the frequencies to real numbers
};

// Transforms `in` along `dims` and writes `out`, which has the same shape but for the last one of `dims`. `norm` is 0
// for no scaling, 1 for a division by the root of the number of points, and 2 for a division by this number.
void transform(Kind kind, const Tensor &out, const Tensor &in, const Dims &dims, int64_t norm, bool forward) {
  if (out.numel == 0 || shape_only()) return;
  const bool is_double = real_of(in.dtype) == DType::F64;
  if (!is_double && real_of(in.dtype) != DType::F32) fail("Unsupported dtype ", in.dtype);
  for (int64_t d : dims)
    check(out.sizes[d] >= 1 && in.sizes[d] >= 1, "Invalid number of data points (", in.sizes[d], ") specified");
  const RunTransform run = bound.load();
  check(run != nullptr, "no library of Fourier transforms is bound: import msadapter first");
  constexpr int64_t kShared = 1 << 18;  // points; waking the threads of the library takes as long as fewer points
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

// Writes the frequencies n / 2 + 1 to n - 1 along the last of `dims`, where the others of a real signal stand already.
// At the negative position in all of `dims` stands the conjugate.
template <class T>
void fill_other_half(const Tensor &out, const Dims &dims) {
  const int last = static_cast<int>(dims.back());
  const int64_t n = out.sizes[last], half = n / 2 + 1;
  if (half == n) return;
  Dims sizes = out.shape(), to(out.strides, out.strides + out.ndim), from = to;
  sizes[last] = n - half;
  from[last] = -to[last];
  const Dims outer(dims.begin(), dims.end() - 1);
  // Position 0 of a dim is its own negative. The positions after it are read backwards.
  for (uint64_t chosen = 0; chosen < uint64_t{1} << outer.size(); ++chosen) {
    Dims part = sizes, source = from;
    int64_t first = half * to[last], mirrored = (n - half) * to[last];
    for (size_t i = 0; i < outer.size(); ++i) {
      const int64_t d = outer[i];
      if (chosen >> i & 1) {
        part[d] = sizes[d] - 1;
        source[d] = -to[d];
        first += to[d];
        mirrored += (sizes[d] - 1) * to[d];
      } else {
        part[d] = 1;
      }
    }
    map1<T, T>(make_view(out, part, to, first), make_view(out, part, source, mirrored),
               [](T v) { return std::conj(v); });
  }
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

MSA_KERNEL(FftR2c) {  // x, dims, norm, onesided: the last of dims is the real one, forward
  const Tensor &x = c.in(0);
  const Dims dims = wrapped(c.ints(1), x);
  const int last = static_cast<int>(dims.back());
  const bool onesided = c.flag(3);
  const int64_t half = x.sizes[last] / 2 + 1;
  Dims shape = x.shape();
  if (onesided) shape[last] = half;
  const Tensor o = c.out(0, complex_of(x.dtype), shape);
  shape[last] = std::min(half, o.sizes[last]);
  transform(Kind::kToHalf, make_view(o, shape, Dims(o.strides, o.strides + o.ndim)), x, dims, c.integer(2), c.flag(4));
  if (onesided || o.numel == 0) return;
  o.dtype == DType::C64 ? fill_other_half<c64>(o, dims) : fill_other_half<c128>(o, dims);
}

// x (half of a Hermitian signal along the last of dims), dims, norm, length of the real result, forward
MSA_KERNEL(FftC2r) {
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
  transform(Kind::kFromHalf, c.out(0, real_of(x.dtype), shape), x, dims, c.integer(2), c.flag(4));
}

}  // namespace msa

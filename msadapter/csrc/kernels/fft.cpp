// Discrete Fourier transforms: mixed-radix Stockham passes, Bluestein's algorithm where a large prime divides the
// length.
#include <cmath>
#include <map>
#include <memory>
#include <mutex>

#include "loops.h"

namespace msa {
namespace {

constexpr int64_t kLargestRadix = 37;

// exp(-2 pi i k / n), computed in double from an angle below pi / 4 so that every root is accurate.
template <class R>
std::complex<R> root(int64_t k, int64_t n) {
  k %= n;
  const int64_t eighths = 8 * k;
  const double turn = 2.0 * M_PI / static_cast<double>(n);
  double c, s;  // the cosine and sine of the positive angle
  if (eighths < n)
    c = std::cos(turn * k), s = std::sin(turn * k);
  else if (eighths < 3 * n) {
    const double rest = turn * 0.25 * static_cast<double>(4 * k - n);
    c = -std::sin(rest), s = std::cos(rest);
  } else if (eighths < 5 * n) {
    const double rest = turn * 0.5 * static_cast<double>(2 * k - n);
    c = -std::cos(rest), s = -std::sin(rest);
  } else if (eighths < 7 * n) {
    const double rest = turn * 0.25 * static_cast<double>(4 * k - 3 * n);
    c = std::sin(rest), s = -std::cos(rest);
  } else {
    const double rest = turn * static_cast<double>(k - n);
    c = std::cos(rest), s = std::sin(rest);
  }
  return {static_cast<R>(c), static_cast<R>(-s)};
}

template <class R>
inline std::complex<R> times(std::complex<R> a, std::complex<R> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
template <class R>
inline std::complex<R> times_i(std::complex<R> a) {
  return {-a.imag(), a.real()};
}

// Forward transforms of one length.
template <class R>
class Plan {
  using Z = std::complex<R>;

 public:
  explicit Plan(int64_t n) : n_(n) {
    int64_t rest = n;
    for (int64_t r : {4, 2, 3, 5, 7})
      while (rest % r == 0) factors_.push_back(r), rest /= r;
    for (int64_t r = 11; r <= kLargestRadix && rest > 1; r += 2)
      while (rest % r == 0) factors_.push_back(r), rest /= r;
    if (rest > 1) {
      make_chirp();
      return;
    }
    roots_.resize(n);
    for (int64_t k = 0; k < n; ++k) roots_[k] = root<R>(k, n);
  }

  // Work elements that run() needs.
  int64_t work_size() const { return inner_ ? 2 * inner_->n_ : n_; }

  // Transforms x in place.
  void run(Z *x, Z *work) const {
    if (inner_) return run_chirp(x, work);
    Z *from = x, *to = work;
    int64_t stride = 1, length = n_;
    for (int64_t r : factors_) {
      length /= r;
      pass(r, length, stride, from, to);
      stride *= r;
      std::swap(from, to);
    }
    if (from != x) std::copy(from, from + n_, x);
  }

 private:
  // One pass of radix r: combines from[q + s (p + i m)] to to[q + s (r p + k)], for i, k < r, p < m and q < s.
  void pass(int64_t r, int64_t m, int64_t s, const Z *from, Z *to) const {
    switch (r) {
      case 2:
        return pass_with<2>(m, s, from, to, [](const Z *a, Z *b) {
          b[0] = a[0] + a[1];
          b[1] = a[0] - a[1];
        });
      case 3:
        return pass_with<3>(m, s, from, to, [](const Z *a, Z *b) {
          const R half_root = static_cast<R>(0.86602540378443864676);
          const Z sum = a[1] + a[2], mid = a[0] - R(0.5) * sum, side = times_i(half_root * (a[2] - a[1]));
          b[0] = a[0] + sum;
          b[1] = mid + side;
          b[2] = mid - side;
        });
      case 4:
        return pass_with<4>(m, s, from, to, [](const Z *a, Z *b) {
          const Z even = a[0] + a[2], odd = a[1] + a[3], diff = a[0] - a[2], turned = times_i(a[3] - a[1]);
          b[0] = even + odd;
          b[1] = diff + turned;
          b[2] = even - odd;
          b[3] = diff - turned;
        });
      case 5:
        return pass_with<5>(m, s, from, to, [](const Z *a, Z *b) {
          const R c1 = static_cast<R>(0.30901699437494742410), c2 = static_cast<R>(-0.80901699437494742410);
          const R s1 = static_cast<R>(0.95105651629515357212), s2 = static_cast<R>(0.58778525229247312917);
          const Z p = a[1] + a[4], q = a[2] + a[3], u = a[4] - a[1], v = a[3] - a[2];
          const Z e = a[0] + c1 * p + c2 * q, f = a[0] + c2 * p + c1 * q;
          const Z g = times_i(s1 * u + s2 * v), h = times_i(s2 * u - s1 * v);
          b[0] = a[0] + p + q;
          b[1] = e + g;
          b[2] = f + h;
          b[3] = f - h;
          b[4] = e - g;
        });
      default: return pass_any(r, m, s, from, to);
    }
  }

  template <int N, class F>
  void pass_with(int64_t m, int64_t s, const Z *from, Z *to, F butterfly) const {
    for (int64_t p = 0; p < m; ++p) {
      Z w[N];
      for (int k = 1; k < N; ++k) w[k] = roots_[s * p * k];  // the index is valid, because s p k < s m N = n
      const Z *in = from + s * p;
      Z *out = to + s * N * p;
      for (int64_t q = 0; q < s; ++q) {
        Z a[N], b[N];
        for (int i = 0; i < N; ++i) a[i] = in[q + s * m * i];
        butterfly(a, b);
        out[q] = b[0];
        for (int k = 1; k < N; ++k) out[q + s * k] = times(b[k], w[k]);
      }
    }
  }

  void pass_any(int64_t r, int64_t m, int64_t s, const Z *from, Z *to) const {
    const int64_t unit = n_ / r;  // roots_[unit * j] = exp(-2 pi i j / r)
    for (int64_t p = 0; p < m; ++p)
      for (int64_t q = 0; q < s; ++q)
        for (int64_t k = 0; k < r; ++k) {
          Z sum = from[q + s * p];
          for (int64_t i = 1; i < r; ++i) sum += times(from[q + s * (p + i * m)], roots_[unit * (i * k % r)]);
          to[q + s * (r * p + k)] = times(sum, roots_[s * p * k]);
        }
  }

  // Bluestein: a convolution with the chirp exp(pi i k^2 / n), by transforms of a power of two.
  void make_chirp() {
    int64_t size = 1;
    while (size < 2 * n_ - 1) size *= 2;
    inner_ = std::make_unique<Plan>(size);
    roots_.resize(n_);
    for (int64_t k = 0; k < n_; ++k)
      roots_[k] = root<R>(static_cast<int64_t>(static_cast<__int128>(k) * k % (2 * n_)), 2 * n_);
    chirp_.assign(size, Z(0));
    for (int64_t k = 0; k < n_; ++k) chirp_[k] = chirp_[(size - k) % size] = std::conj(roots_[k]);
    std::vector<Z> work(size);
    inner_->run(chirp_.data(), work.data());
  }
  void run_chirp(Z *x, Z *work) const {
    const int64_t size = inner_->n_;
    Z *a = work, *inner_work = work + size;
    for (int64_t k = 0; k < n_; ++k) a[k] = times(x[k], roots_[k]);
    std::fill(a + n_, a + size, Z(0));
    inner_->run(a, inner_work);
    for (int64_t k = 0; k < size; ++k)
      // Conjugate, so that the inverse transform is a forward transform again
      a[k] = std::conj(times(a[k], chirp_[k]));
    inner_->run(a, inner_work);
    const R scale = R(1) / static_cast<R>(size);
    for (int64_t k = 0; k < n_; ++k) x[k] = times(std::conj(a[k]) * scale, roots_[k]);
  }

  int64_t n_;
  std::vector<int64_t> factors_;
  std::vector<Z> roots_, chirp_;
  std::unique_ptr<Plan> inner_;
};

template <class R>
std::shared_ptr<const Plan<R>> plan_for(int64_t n) {
  static std::mutex mutex;
  static std::map<int64_t, std::shared_ptr<const Plan<R>>> plans;
  std::lock_guard<std::mutex> lock(mutex);
  if (plans.size() > 64) plans.clear();
  auto &p = plans[n];
  if (!p) p = std::make_shared<const Plan<R>>(n);
  return p;
}

// What is read from a line: complex numbers, real numbers, or the first half of a Hermitian line.
enum class Input { kComplex, kReal, kHalf };
// What is written.
enum class Output { kComplex, kReal };

// Transforms of length n along `dim` of every line. `out` and `in` have the same shape in the other dims. A line
// reads and writes at most n elements (a one-sided result stores only the first out.size(dim) values).
template <class R>
void transform(const Tensor &out, const Tensor &in, int dim, int64_t n, bool forward, double scale, Input kind,
               Output result) {
  using Z = std::complex<R>;
  const auto plan = plan_for<R>(n);
  Dims lines = out.shape(), in_strides(in.strides, in.strides + in.ndim),
       out_strides(out.strides, out.strides + out.ndim);
  lines[dim] = 1;
  int64_t count = 1;
  for (int64_t s : lines) count *= s;
  const int64_t si = in.strides[dim], so = out.strides[dim], stored = out.sizes[dim], given = in.sizes[dim];
  const R factor = static_cast<R>(scale);
  parallel_for(count, std::max<int64_t>(1, 16384 / std::max<int64_t>(n, 1)), [&](int64_t begin, int64_t end) {
    std::vector<Z> line(n), work(plan->work_size());
    for (int64_t l = begin; l < end; ++l) {
      int64_t rest = l, from = 0, to = 0;
      for (int d = out.ndim - 1; d >= 0; --d) {
        const int64_t i = rest % lines[d];
        rest /= lines[d];
        from += i * in_strides[d];
        to += i * out_strides[d];
      }
      if (kind == Input::kReal) {
        const R *p = in.ptr<R>() + from;
        for (int64_t k = 0; k < n; ++k) line[k] = Z(p[k * si], R(0));
      } else {
        const Z *p = in.ptr<Z>() + from;
        const int64_t have = kind == Input::kHalf ? std::min(given, n / 2 + 1) : n;
        for (int64_t k = 0; k < have; ++k) line[k] = p[k * si];
        for (int64_t k = have; k < n; ++k) line[k] = std::conj(line[n - k]);
      }
      if (!forward)
        for (auto &z : line) z = std::conj(z);
      plan->run(line.data(), work.data());
      if (result == Output::kReal) {
        R *p = out.ptr<R>() + to;
        for (int64_t k = 0; k < stored; ++k) p[k * so] = line[k].real() * factor;
      } else {
        Z *p = out.ptr<Z>() + to;
        for (int64_t k = 0; k < stored; ++k) p[k * so] = (forward ? line[k] : std::conj(line[k])) * factor;
      }
    }
  });
}

void run_transform(const Tensor &out, const Tensor &in, int dim, int64_t n, bool forward, double scale, Input kind,
                   Output result) {
  if (out.numel == 0) return;
  switch (real_of(in.dtype)) {
    case DType::F32: return transform<float>(out, in, dim, n, forward, scale, kind, result);
    case DType::F64: return transform<double>(out, in, dim, n, forward, scale, kind, result);
    default: fail("Unsupported dtype ", in.dtype);
  }
}

enum Norm { kNone = 0, kByRoot = 1, kByN = 2 };
double scale_of(int64_t mode, const Tensor &t, const Dims &dims, int64_t last_size = -1) {
  double n = 1;
  for (size_t i = 0; i < dims.size(); ++i)
    n *= static_cast<double>(i + 1 == dims.size() && last_size >= 0 ? last_size : t.size(static_cast<int>(dims[i])));
  return mode == kNone ? 1.0 : mode == kByRoot ? 1.0 / std::sqrt(n) : 1.0 / n;
}

// Complex transforms along dims: the first from `in` to `out`, the others in place. The last one also scales.
void complex_dims(const Tensor &out, const Tensor &in, const Dims &dims, size_t count, bool forward, double scale) {
  if (count == 0) return copy_into(out, in);
  for (size_t i = 0; i < count; ++i)
    run_transform(out, i == 0 ? in : out, static_cast<int>(dims[i]), out.sizes[dims[i]], forward,
                  i + 1 == count ? scale : 1.0, Input::kComplex, Output::kComplex);
}

Dims wrapped(const Dims &dims, const Tensor &t) {
  Dims r;
  for (int64_t d : dims) r.push_back(wrap_dim(d, t.ndim));
  return r;
}

}  // namespace

MSA_KERNEL(FftC2c) {  // x, dims, norm (0 none, 1 root n, 2 n), forward
  const Tensor &x = c.in(0);
  const Dims dims = wrapped(c.ints(1), x);
  complex_dims(c.out(0, x.dtype, x.shape()), x, dims, dims.size(), c.flag(3), scale_of(c.integer(2), x, dims));
}

MSA_KERNEL(FftR2c) {  // x, dims, norm, onesided: the last of dims is the real one
  const Tensor &x = c.in(0);
  const Dims dims = wrapped(c.ints(1), x);
  const int last = static_cast<int>(dims.back());
  Dims shape = x.shape();
  if (c.flag(3)) shape[last] = shape[last] / 2 + 1;
  const Tensor o = c.out(0, complex_of(x.dtype), shape);
  const double scale = scale_of(c.integer(2), x, dims);
  run_transform(o, x, last, x.sizes[last], true, dims.size() == 1 ? scale : 1.0, Input::kReal, Output::kComplex);
  if (dims.size() > 1) complex_dims(o, o, dims, dims.size() - 1, true, scale);
}

MSA_KERNEL(FftC2r) {  // x (half of a Hermitian signal along the last of dims), dims, norm, length of the real result
  const Tensor &x = c.in(0);
  const Dims dims = wrapped(c.ints(1), x);
  const int last = static_cast<int>(dims.back());
  const int64_t n = c.integer(3);
  check(n >= 1, "Invalid number of data points (", n, ") specified");
  check(x.sizes[last] >= n / 2 + 1, "FftC2r: ", n / 2 + 1, " values are needed along the last dim, got ",
        x.sizes[last]);
  Dims shape = x.shape();
  shape[last] = n;
  const Tensor o = c.out(0, real_of(x.dtype), shape);
  Tensor half = x;
  if (dims.size() > 1) {
    half =
        contiguous_tensor(c.scratch(byte_count(std::max<int64_t>(x.numel, 1), item_size(x.dtype))), x.dtype, x.shape());
    complex_dims(half, x, dims, dims.size() - 1, false, 1.0);
  }
  run_transform(o, half, last, n, false, scale_of(c.integer(2), x, dims, n), Input::kHalf, Output::kReal);
}

}  // namespace msa

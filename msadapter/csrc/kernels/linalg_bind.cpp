// The addresses of LAPACK's routines, and helpers for batches of matrices.
#include "linalg.h"

#include <atomic>

namespace msa {
namespace {

constexpr int kRoutines = static_cast<int>(Routine::count);
void *addresses[kRoutines][4];
std::atomic<bool> bound{false};
void (*set_blas_threads)(int) = nullptr;  // of OpenBLAS, which has threads of its own; null for other libraries
std::atomic<int> blas_threads{0};         // the number that it was given last
thread_local bool one_thread = false;

}  // namespace

OneLapackThread::OneLapackThread(bool on) : before_(one_thread) { one_thread = one_thread || on; }
OneLapackThread::~OneLapackThread() { one_thread = before_; }

void *lapack_address(Routine r, int type) {
  check(bound.load(), "LAPACK is not bound: call LapackBind first");
  if (const int n = one_thread ? 1 : num_threads(); set_blas_threads && blas_threads.exchange(n) != n)
    set_blas_threads(n);
  return addresses[static_cast<int>(r)][type];
}

// () -> the names of the routines as bytes, separated by commas. Python passes the addresses in this order.
MSA_KERNEL(LapackNames) {
  std::string names;
#define MSA_NAME(n) names += (names.empty() ? "" : ","), names += #n;
  MSA_LAPACK_ROUTINES(MSA_NAME)
#undef MSA_NAME
  const Tensor o = c.out(0, DType::U8, Dims{static_cast<int64_t>(names.size())});
  std::memcpy(o.data, names.data(), names.size());
}
// (int64 addresses: for each routine those for float, double, c64 and c128, and at last that of the function that sets
// OpenBLAS's number of threads, or 0) -> the number of routines
MSA_KERNEL(LapackBind) {
  const Tensor a = c.contiguous(c.in(0));
  check(a.dtype == DType::I64 && a.numel == kRoutines * 4 + 1, "LapackBind expects ", kRoutines * 4 + 1,
        " addresses, got ", a.numel);
  for (int i = 0; i < kRoutines * 4; ++i) {
    void *p = reinterpret_cast<void *>(a.ptr<int64_t>()[i]);
    check(p != nullptr, "LapackBind: address ", i, " is null");
    addresses[i / 4][i % 4] = p;
  }
  set_blas_threads = reinterpret_cast<void (*)(int)>(a.ptr<int64_t>()[kRoutines * 4]);
  bound.store(true);
  *c.out(0, DType::I64, Dims{}).ptr<int64_t>() = kRoutines;
}

Dims batch_of(const Tensor &t, int matrix_dims) { return Dims(t.sizes, t.sizes + t.ndim - matrix_dims); }
int64_t count_of(const Dims &batch) {
  int64_t n = 1;
  for (int64_t s : batch) n *= s;
  return n;
}
int64_t matrix_count(const Tensor &t) {
  int64_t n = 1;
  for (int d = 0; d < t.ndim - 2; ++d) n *= t.sizes[d];
  return n;
}

Dims broadcast_batches(const Dims &a, const Dims &b) {
  const Tensor ta = contiguous_tensor(nullptr, DType::U8, a), tb = contiguous_tensor(nullptr, DType::U8, b);
  return broadcast_shapes({&ta, &tb});
}

static Dims column_strides(const Dims &batch, int64_t m, int64_t n) {
  Dims r(batch.size());
  int64_t step = m * n;
  for (int d = static_cast<int>(batch.size()) - 1; d >= 0; --d) {
    r[d] = step;
    step *= batch[d];
  }
  r.push_back(1);
  r.push_back(std::max<int64_t>(m, 1));
  return r;
}

Tensor out_columns(Call &c, int index, DType dtype, const Dims &batch, int64_t m, int64_t n) {
  const Dims sizes = join(batch, {m, n}), strides = column_strides(batch, m, n);
  return c.out(index, dtype, sizes.data(), static_cast<int>(sizes.size()), strides.data());
}

Tensor scratch_columns(Call &c, DType dtype, const Dims &batch, int64_t m, int64_t n) {
  const int64_t numel = count_of(batch) * m * n;
  const Tensor flat = contiguous_tensor(c.scratch(std::max<int64_t>(numel, 1) * item_size(dtype)), dtype, Dims{numel});
  return make_view(flat, join(batch, {m, n}), column_strides(batch, m, n));
}

Tensor columns_of(Call &c, const Tensor &t, const Dims &batch) {
  const Tensor r = scratch_columns(c, t.dtype, batch, t.size(-2), t.size(-1));
  copy_into(r, t);
  return r;
}

Tensor transposed(const Tensor &t) {
  Tensor r = t;
  std::swap(r.sizes[r.ndim - 1], r.sizes[r.ndim - 2]);
  std::swap(r.strides[r.ndim - 1], r.strides[r.ndim - 2]);
  return r;
}

void conjugate_in_place(const Tensor &t) {
  if (t.dtype == DType::C64) map1<c64, c64>(t, t, [](c64 v) { return std::conj(v); });
  if (t.dtype == DType::C128) map1<c128, c128>(t, t, [](c128 v) { return std::conj(v); });
}

void check_matrix(const Tensor &a, const char *name, const char *argument) {
  check(a.ndim >= 2, name, ": The input tensor ", argument, " must have at least 2 dimensions.");
}
void check_square(const Tensor &a, const char *name) {
  check_matrix(a, name);
  check(a.size(-1) == a.size(-2), name, ": ", "A must be batches of square matrices, but they are ", a.size(-2), " by ",
        a.size(-1), " matrices");
}

}  // namespace msa

// Registry, shapes, memory pool and thread pool shared by the kernels.
#include <unistd.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

#include <sys/mman.h>

#include "loops.h"

namespace msa {

// ---------------------------------------------------------------- registry
static std::unordered_map<std::string, KernelInfo> &table() {
  static std::unordered_map<std::string, KernelInfo> t;
  return t;
}
std::string &duplicate_kernels() {  // reported when the module is loaded, because static initialisers cannot throw
  static std::string names;
  return names;
}
void register_kernel(const char *name, const KernelInfo &info) {
  if (!table().emplace(name, info).second) duplicate_kernels() += std::string(" ") + name;
}
const KernelInfo *find_kernel(const std::string &name) {
  auto it = table().find(name);
  return it == table().end() ? nullptr : &it->second;
}
std::vector<std::string> kernel_names() {
  std::vector<std::string> r;
  for (auto &e : table()) r.push_back(e.first);
  std::sort(r.begin(), r.end());
  return r;
}

// ---------------------------------------------------------------- numbers
void size_overflow(const char *what) {
  if (!what) fail("numel: integer multiplication overflow");
  fail("integer overflow: ", what, " does not fit 64 bits");
}
void does_not_fit(const char *type) { fail("value cannot be converted to type ", type, " without overflow"); }

// ---------------------------------------------------------------- shapes
int64_t wrap_dim(int64_t dim, int64_t ndim) {
  const int64_t n = ndim == 0 ? 1 : ndim;
  if (dim < -n || dim >= n)
    throw IndexError(
        text("Dimension out of range (expected to be in range of [", -n, ", ", n - 1, "], but got ", dim, ")"));
  return dim < 0 ? dim + n : dim;
}

Dims broadcast_shapes(std::initializer_list<const Tensor *> operands) {
  Dims r;
  for (const Tensor *t : operands) {
    if (t->ndim > static_cast<int>(r.size())) r.insert(r.begin(), t->ndim - r.size(), 1);
    const int shift = static_cast<int>(r.size()) - t->ndim;
    for (int d = t->ndim - 1; d >= 0; --d) {  // from the right, so that the same mismatch is reported as in PyTorch
      int64_t &have = r[d + shift];
      const int64_t s = t->sizes[d];
      if (have == s || s == 1) continue;
      if (have != 1)
        fail("The size of tensor a (", have, ") must match the size of tensor b (", s, ") at non-singleton dimension ",
             d + shift);
      have = s;
    }
  }
  return r;
}

Tensor expand(const Tensor &t, const Dims &shape) {
  Tensor r = t;
  r.ndim = static_cast<int>(shape.size());
  r.numel = element_count(shape);
  const int shift = r.ndim - t.ndim;
  for (int d = 0; d < r.ndim; ++d) {
    const int s = d - shift;
    r.sizes[d] = shape[d];
    r.strides[d] = s < 0 || (t.sizes[s] == 1 && shape[d] != 1) ? 0 : t.strides[s];
  }
  return r;
}

Tensor make_view(const Tensor &t, const Dims &sizes, const Dims &strides, int64_t offset) {
  Tensor r;
  r.dtype = t.dtype;
  r.data = static_cast<char *>(t.data) + offset * item_size(t.dtype);
  r.ndim = static_cast<int>(sizes.size());
  r.numel = 1;
  for (int d = 0; d < r.ndim; ++d) {
    r.sizes[d] = sizes[d];
    r.strides[d] = strides[d];
    r.numel *= sizes[d];
  }
  return r;
}

Tensor contiguous_tensor(void *data, DType dtype, const Dims &sizes) {
  Tensor r;
  r.data = data;
  r.dtype = dtype;
  r.ndim = static_cast<int>(sizes.size());
  r.numel = 1;
  for (int d = r.ndim - 1; d >= 0; --d) {
    r.sizes[d] = sizes[d];
    r.strides[d] = r.numel;
    r.numel *= sizes[d];
  }
  return r;
}

// Whether the elements fill their memory without gaps and overlaps.
static bool dense(const Tensor &t) {
  int order[kMaxDims];
  for (int d = 0; d < t.ndim; ++d) order[d] = d;
  std::sort(order, order + t.ndim, [&](int a, int b) { return t.strides[a] < t.strides[b]; });
  int64_t expected = 1;
  for (int i = 0; i < t.ndim; ++i) {
    if (t.sizes[order[i]] == 1) continue;
    if (t.strides[order[i]] != expected) return false;
    expected *= t.sizes[order[i]];
  }
  return true;
}

// Returns -1 if dim a is inside of dim b in memory, and 1 if it is outside. The first operand whose strides decide it
// counts. Returns 0 if no operand decides.
static int compare_dims(const std::vector<Tensor> &operands, int a, int b) {
  for (const Tensor &t : operands) {
    const int64_t x = t.strides[a], y = t.strides[b];
    if (x == 0 || y == 0) continue;
    if (x != y) return x < y ? -1 : 1;
    if (t.sizes[a] > t.sizes[b]) return 1;
  }
  return 0;
}

// The layout of a result is PyTorch's. It is that of the operands if they are dense and have the same strides.
// Otherwise the dims have the same order in memory as in the operands.
Tensor Call::out_pointwise(int index, DType dtype, std::initializer_list<const Tensor *> operands) {
  const Tensor *first = *operands.begin();
  bool same = true, contiguous = true, alike = true;
  for (const Tensor *t : operands) {
    same = same && t->same_shape(*first);
    contiguous = contiguous && t->contiguous();
    alike = alike && same && std::equal(t->strides, t->strides + t->ndim, first->strides);
  }
  if (same && contiguous) return out(index, dtype, first->sizes, first->ndim);
  if (same && alike && dense(*first)) return out(index, dtype, first->sizes, first->ndim, first->strides);
  const Dims shape = broadcast_shapes(operands);
  const int n = static_cast<int>(shape.size());
  std::vector<Tensor> seen;
  for (const Tensor *t : operands) seen.push_back(expand(*t, shape));
  int order[kMaxDims];  // the dim with the smallest stride is first
  for (int i = 0; i < n; ++i) order[i] = n - 1 - i;
  for (int i = 1; i < n; ++i) {  // an insertion sort, in which dims without an order keep their positions
    int at = i;
    for (int k = i - 1; k >= 0; --k) {
      const int c = compare_dims(seen, order[k], order[at]);
      if (c < 0) break;
      if (c > 0) {
        std::swap(order[k], order[at]);
        at = k;
      }
    }
  }
  int64_t strides[kMaxDims], step = 1;
  for (int i = 0; i < n; ++i) {
    strides[order[i]] = step;
    step *= std::max<int64_t>(shape[order[i]], 1);
  }
  return out(index, dtype, shape.data(), n, strides);
}

Tensor Call::contiguous(const Tensor &t) { return t.contiguous() ? t : cast(t, t.dtype); }

Tensor Call::cast(const Tensor &t, DType dtype) {
  if (t.dtype == dtype && t.contiguous()) return t;
  Tensor r = contiguous_tensor(scratch(byte_count(std::max<int64_t>(t.numel, 1), item_size(dtype))), dtype, t.shape());
  copy_into(r, t);
  return r;
}

void fill_zero(const Tensor &t) {
  if (shape_only()) return;
  if (t.contiguous()) {
    std::memset(t.data, 0, t.numel * item_size(t.dtype));
    return;
  }
  MSA_SWITCH_BYTES(t.dtype, (map1<T, T>(t, t, [](T) { return T(0); })));
}

// ---------------------------------------------------------------- memory
// Blocks have sizes of 2^n and 1.5 * 2^n bytes, and freed blocks are kept in one list for each size. A list of blocks
// of more than 8 MiB keeps at most 64 MiB, or one block.
namespace {
constexpr int kClasses = 128;  // two for every power of two that a size can have
struct Pool {
  std::mutex m;
  std::vector<void *> free[kClasses];
  int64_t allocated = 0, peak = 0, reserved = 0;
};
Pool &pool() {
  static Pool *p = new Pool;  // never destroyed, because tensors may exist after static destructors have run
  return *p;
}
int size_class(size_t bytes, size_t *rounded) {
  if (bytes <= 64) {
    *rounded = 64;
    return 0;
  }
  const int top = 63 - __builtin_clzll(bytes - 1);  // 2^top < bytes <= 2^(top+1)
  const size_t low = size_t(1) << top, mid = low + (low >> 1);
  if (bytes <= mid) {
    *rounded = mid;
    return (top - 5) * 2 - 1;
  }
  *rounded = low << 1;
  return (top - 5) * 2;
}
}  // namespace

// A build with AddressSanitizer keeps no blocks, and asks for exactly the bytes that are needed, so that the sanitizer
// sees every access behind the end and after the release.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kKeepsBlocks = false;
#else
constexpr bool kKeepsBlocks = true;
#endif

static void *from_system(size_t bytes) {
  void *r = nullptr;
  return posix_memalign(&r, 64, bytes) == 0 ? r : nullptr;
}

void *allocate(size_t bytes) {
  size_t rounded;
  const int c = size_class(bytes, &rounded);
  Pool &p = pool();
  {
    std::lock_guard<std::mutex> g(p.m);
    p.allocated += rounded;
    p.peak = std::max(p.peak, p.allocated);
    if (!p.free[c].empty()) {
      void *r = p.free[c].back();
      p.free[c].pop_back();
      return r;
    }
    p.reserved += rounded;
  }
  const size_t asked = kKeepsBlocks ? rounded : bytes;
  void *r = from_system(asked);
  if (!r) {
    release_cached();
    r = from_system(asked);
  }
  if (!r) {
    std::lock_guard<std::mutex> g(p.m);
    p.allocated -= rounded;
    p.reserved -= rounded;
  }
  if (!r) fail("DefaultCPUAllocator: can't allocate memory: you tried to allocate ", bytes, " bytes.");
  return r;
}
void deallocate(void *ptr, size_t bytes) {
  size_t rounded;
  const int c = size_class(bytes, &rounded);
  Pool &p = pool();
  std::lock_guard<std::mutex> g(p.m);
  p.allocated -= rounded;
  // Keeps at most 64 MiB for each class of large blocks, because a size may not be used again.
  const bool enough = rounded > (8u << 20) && p.free[c].size() * rounded >= (64u << 20);
  if (enough || !kKeepsBlocks) {
    std::free(ptr);
    p.reserved -= rounded;
    return;
  }
  p.free[c].push_back(ptr);
}
MemoryStats memory_stats() {
  Pool &p = pool();
  std::lock_guard<std::mutex> g(p.m);
  return {p.allocated, p.peak, p.reserved};
}
void reset_peak() {
  Pool &p = pool();
  std::lock_guard<std::mutex> g(p.m);
  p.peak = p.allocated;
}
void release_cached() {
  Pool &p = pool();
  std::lock_guard<std::mutex> g(p.m);
  for (int c = 0; c < kClasses; ++c) {
    if (p.free[c].empty()) continue;  // the last classes are larger than any size
    const size_t rounded = c == 0 ? 64 : (c & 1 ? (size_t(3) << ((c + 1) / 2 + 4)) : (size_t(1) << (c / 2 + 6)));
    for (void *b : p.free[c]) {
      std::free(b);
      p.reserved -= rounded;
    }
    p.free[c].clear();
  }
}

// ---------------------------------------------------------------- threads
namespace {
thread_local bool inside = false;

class ThreadPool {
 public:
  explicit ThreadPool(int n) : n_(n) {
    for (int i = 1; i < n; ++i) workers_.emplace_back([this, i] { work(i); });
  }
  ~ThreadPool() {
    stop_.store(true);
    announce(0);
    for (auto &w : workers_) w.join();
  }
  int size() const { return n_; }

  // Calls f(i) for i in [0, n). The caller takes part, and the function returns when all are done. It rethrows the
  // first exception. No thread is waited for that has not begun a piece, because on a busy machine it may not run soon.
  void run(int n, const std::function<void(int)> &f) {
    std::lock_guard<std::mutex> one(run_);
    left_.store(n);
    total_ = n;
    job_ = &f;
    error_ = nullptr;
    announce(static_cast<uint32_t>(n));
    inside = true;
    drain();
    inside = false;
    for (int spins = 0; left_.load(std::memory_order_acquire) != 0; ++spins)
      if (spins < kSpins)
        relax();
      else
        std::this_thread::yield();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  static constexpr int kSpins = 4000;

  // A new epoch, in which so many pieces are to be claimed.
  void announce(uint32_t pieces) {
    {
      std::lock_guard<std::mutex> g(m_);
      state_.store(((state_.load() >> 32) + 1) << 32 | pieces, std::memory_order_release);
    }
    if (sleepers_.load() > 0) cv_.notify_all();
  }
  uint64_t epoch() const { return state_.load(std::memory_order_acquire) >> 32; }

  void drain() {
    for (;;) {
      uint64_t state = state_.load(std::memory_order_acquire);
      const auto unclaimed = static_cast<uint32_t>(state);
      if (unclaimed == 0) return;
      if (!state_.compare_exchange_weak(state, state - 1, std::memory_order_acq_rel)) continue;
      // run() waits for the claimed piece, so that the job stays until it is done.
      try {
        (*job_)(total_ - static_cast<int>(unclaimed));
      } catch (...) {
        std::lock_guard<std::mutex> g(m_);
        if (!error_) error_ = std::current_exception();
      }
      left_.fetch_sub(1, std::memory_order_release);
    }
  }
  void work(int) {
    inside = true;
    uint64_t seen = 0;
    for (;;) {
      // Spins briefly, because consecutive kernels often follow each other within microseconds.
      for (int spins = 0; epoch() == seen && spins < kSpins; ++spins) relax();
      if (epoch() == seen) {
        std::unique_lock<std::mutex> l(m_);
        sleepers_.fetch_add(1);
        cv_.wait(l, [&] { return epoch() != seen; });
        sleepers_.fetch_sub(1);
      }
      seen = epoch();
      if (stop_.load()) return;
      drain();
    }
  }
  const int n_;
  std::vector<std::thread> workers_;
  std::mutex m_, run_;
  std::condition_variable cv_;
  std::atomic<uint64_t> state_{0};  // the epoch, which counts the jobs, and in the lower half the unclaimed pieces
  std::atomic<int> left_{0}, sleepers_{0};  // pieces that are not done, and threads that wait for cv_
  int total_ = 0;
  const std::function<void(int)> *job_ = nullptr;
  std::exception_ptr error_;
  std::atomic<bool> stop_{false};
};

// The number in an environment variable, or 0.
int number_in(const char *name) {
  const char *text = std::getenv(name);
  return text ? std::atoi(text) : 0;
}
// OMP_NUM_THREADS, or all processors. Ranks that share a machine have one thread each, as torchrun gives them.
int default_threads() {
  if (const int n = number_in("OMP_NUM_THREADS"); n > 0) return n;
  for (const char *ranks : {"LOCAL_WORLD_SIZE", "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"})
    if (number_in(ranks) > 1) return 1;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}
int &thread_count() {
  static int n = default_threads();
  return n;
}
ThreadPool *the_pool = nullptr;
pid_t pool_owner = 0;
std::mutex pool_mutex;

ThreadPool &threads() {
  std::lock_guard<std::mutex> g(pool_mutex);
  // A forked child process, in which the threads of the parent do not exist
  if (the_pool && pool_owner != getpid()) the_pool = nullptr;
  if (the_pool && the_pool->size() != thread_count()) {
    delete the_pool;
    the_pool = nullptr;
  }
  if (!the_pool) {
    the_pool = new ThreadPool(thread_count());
    pool_owner = getpid();
  }
  return *the_pool;
}
}  // namespace

int num_threads() { return thread_count(); }
void set_num_threads(int n) {
  check(n > 0, "set_num_threads expects a positive integer");
  thread_count() = n;
}
bool in_parallel_region() { return inside; }

// ---------------------------------------------------------------- meta tensors
static thread_local bool only_shapes = false;
bool shape_only() { return only_shapes; }
ShapeOnly::ShapeOnly(bool on) : previous_(only_shapes) { only_shapes = on; }
ShapeOnly::~ShapeOnly() { only_shapes = previous_; }
void needs_values(const char *op) {
  if (only_shapes)
    throw NotImplementedError(
        text(op, ": the size of the result depends on values, which a meta tensor does not have"));
}
void *reserve_address_space(size_t bytes) {
  void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  check(p != MAP_FAILED, "no address space left for a meta tensor of ", static_cast<int64_t>(bytes), " bytes");
  return p;
}
void release_address_space(void *p, size_t bytes) { munmap(p, bytes); }

void parallel_for(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t)> &f) {
  if (n <= 0 || only_shapes) return;
  const int64_t pieces = std::min<int64_t>(thread_count(), (n + grain - 1) / std::max<int64_t>(grain, 1));
  if (pieces <= 1 || inside) {
    f(0, n);
    return;
  }
  const int64_t step = (n + pieces - 1) / pieces;
  threads().run(static_cast<int>(pieces), [&](int i) {
    const int64_t b = i * step, e = std::min(n, b + step);
    if (b < e) f(b, e);
  });
}

}  // namespace msa

// oneDNN: the library, its threads, and matrix products.
#include <dlfcn.h>

#include <cstdlib>
#include <mutex>

#include "onednn_library.h"

namespace msa::onednn {
namespace {

std::string &library_path() {
  static std::string p = std::getenv("MSADAPTER_ONEDNN_LIBRARY") ? std::getenv("MSADAPTER_ONEDNN_LIBRARY") : "";
  return p;
}

void load(Library &l) {
  const std::string &path = library_path();
  void *so =
      path.empty() ? dlopen("libdnnl.so.3", RTLD_NOW | RTLD_NOLOAD) : dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!so) return;
#define X(R, name, args)                                          \
  l.name = reinterpret_cast<R(*) args>(dlsym(so, "dnnl_" #name)); \
  if (!l.name) {                                                  \
    l.problem = "oneDNN lacks dnnl_" #name;                       \
    return;                                                       \
  }
  MSA_ONEDNN_FUNCTIONS(X)
#undef X
  if (l.version()->major != 3) {
    l.problem = text("oneDNN ", l.version()->major, " is not version 3");
    return;
  }
  l.isa = l.get_effective_cpu_isa();
  if (l.engine_create(&l.engine, kCpu, 0) != 0) {
    l.problem = "oneDNN has no CPU engine";
    return;
  }
  l.problem.clear();
}

// oneDNN's threadpool_iface: the order of the virtual functions is its binary interface.
struct PoolInterface {
  virtual int get_num_threads() const { return num_threads(); }
  virtual bool get_in_parallel() const { return in_parallel_region(); }
  virtual void parallel_for(int n, const std::function<void(int, int)> &f) {
    msa::parallel_for(n, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) f(static_cast<int>(i), n);
    });
  }
  virtual uint64_t get_flags() const { return 0; }
  virtual void wait() {}
  virtual ~PoolInterface() = default;
};

struct Key {
  int64_t v[14];
  float alpha, beta;
  int dtype, written, threads;
  bool operator<(const Key &o) const { return std::memcmp(this, &o, sizeof(Key)) < 0; }
};

// A primitive with its three memory objects. It belongs to one thread, because setting data pointers is not thread
// safe.
struct Product {
  Library &l;
  Handle primitive = nullptr, memory[3] = {};
  explicit Product(Library &lib) : l(lib) {}
  Product(const Product &) = delete;
  Product &operator=(const Product &) = delete;
  ~Product() {
    for (Handle m : memory)
      if (m) l.memory_destroy(m);
    if (primitive) l.primitive_destroy(primitive);
  }
};

bool build(Product &p, const Key &key) {
  Library &l = p.l;
  const int64_t batch = key.v[0], m = key.v[1], n = key.v[2], k = key.v[3];
  Handle desc[3] = {}, attr = nullptr, ops = nullptr, pd = nullptr;
  const int64_t dims[3][3] = {{batch, m, k}, {batch, k, n}, {batch, m, n}};
  const int from = batch == 1 ? 1 : 0, nd = 3 - from;
  bool ok = true;
  for (int i = 0; i < 3; ++i) {
    int64_t size[kDimsMax] = {}, stride[kDimsMax] = {};
    for (int d = 0; d < nd; ++d) {
      size[d] = dims[i][d + from];
      stride[d] = key.v[4 + 3 * i + d + from];
    }
    // OneDNN broadcasts a dim of size 1
    if (from == 0 && stride[0] == 0 && i < 2) size[0] = 1, stride[0] = size[1] * size[2];
    const auto type = static_cast<DType>(i == 2 ? key.written : key.dtype);
    ok = ok && l.memory_desc_create_with_strides(&desc[i], nd, size, onednn_type(type), stride) == 0;
  }
  ok = ok && l.primitive_attr_create(&attr) == 0 && l.post_ops_create(&ops) == 0;
  if (ok && key.alpha != 1.f) ok = l.post_ops_append_eltwise(ops, kEltwiseLinear, key.alpha, 0.f) == 0;
  if (ok && key.beta != 0.f) ok = l.post_ops_append_sum(ops, key.beta, 0, kUndef) == 0;
  ok = ok && l.primitive_attr_set_post_ops(attr, ops) == 0;
  ok = ok && l.matmul_primitive_desc_create(&pd, l.engine, desc[0], desc[1], nullptr, desc[2], attr) == 0;
  ok = ok && l.primitive_create(&p.primitive, pd) == 0;
  for (int i = 0; i < 3; ++i) ok = ok && l.memory_create(&p.memory[i], desc[i], l.engine, nullptr) == 0;
  if (pd) l.primitive_desc_destroy(pd);
  if (ops) l.post_ops_destroy(ops);
  if (attr) l.primitive_attr_destroy(attr);
  for (Handle d : desc)
    if (d) l.memory_desc_destroy(d);
  return ok;
}

}  // namespace

Library &library() {
  static Library *l = [] {
    auto *fresh = new Library;
    load(*fresh);
    return fresh;
  }();
  return *l;
}

Handle stream() {
  thread_local Handle s = nullptr;
  static PoolInterface *pool = new PoolInterface;
  if (!s && library().threadpool_interop_stream_create(&s, library().engine, pool) != 0) s = nullptr;
  return s;
}

void set_library(const std::string &path) { library_path() = path; }

std::string describe() {
  const Library &l = library();
  if (!l.ok()) return l.problem;
  return text("oneDNN ", l.version()->major, ".", l.version()->minor, ".", l.version()->patch, ", isa ", l.isa);
}

bool preferred(DType dtype) {
  static const char *choice = std::getenv("MSADAPTER_ONEDNN");
  if (choice && choice[0] == '0') return false;
  if (dtype != DType::F32 && dtype != DType::BF16 && dtype != DType::F16) return false;
  const Library &l = library();
  if (!l.ok()) return false;
  if (choice && choice[0] == '1') return true;
  // Bits of dnnl_cpu_isa_t: AVX-512 core, its bf16 dot products, its fp16 arithmetic.
  return (l.isa & (dtype == DType::F32 ? 0x20 : dtype == DType::BF16 ? 0x80 : 0x100)) != 0;
}

bool matmul(DType dtype, DType written, int64_t batch, int64_t m, int64_t n, int64_t k, float alpha, const Matrix &a,
            int64_t bs_a, const Matrix &b, int64_t bs_b, float beta, void *c, int64_t bs_c, int64_t ldc) {
  Key key;
  std::memset(static_cast<void *>(&key), 0, sizeof(key));
  const int64_t v[] = {batch, m, n, k, bs_a, a.rs, a.cs, bs_b, b.rs, b.cs, bs_c, ldc, 1};
  std::copy(std::begin(v), std::end(v), key.v);
  key.alpha = alpha;
  key.beta = beta;
  key.dtype = static_cast<int>(dtype);
  key.written = static_cast<int>(written);
  key.threads = in_parallel_region() ? 1 : num_threads();
  thread_local Cache<Key, Product> cache;
  Library &l = library();
  Handle s = stream();
  if (!s) return false;
  l.threadpool_interop_set_max_concurrency(key.threads);
  Product *p = cache.get(key, [&] {
    auto fresh = std::make_unique<Product>(l);
    if (!build(*fresh, key)) fresh.reset();
    return fresh;
  });
  if (!p) return false;
  l.memory_set_data_handle(p->memory[0], const_cast<void *>(a.data));
  l.memory_set_data_handle(p->memory[1], const_cast<void *>(b.data));
  l.memory_set_data_handle(p->memory[2], c);
  const ExecArg args[] = {{kSrc, p->memory[0]}, {kWeights, p->memory[1]}, {kDst, p->memory[2]}};
  return l.primitive_execute(p->primitive, s, 3, args) == 0;
}

}  // namespace msa::onednn

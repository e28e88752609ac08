// The functions of oneDNN's C interface that the kernels need, found with dlsym.
#pragma once
#include <list>
#include <map>
#include <memory>

#include "onednn.h"

namespace msa::onednn {

using Status = int;
using Handle = void *;
struct ExecArg {
  int arg;
  Handle memory;
};
// The numbers of oneDNN's enumerations.
constexpr int kCpu = 1, kDimsMax = 12, kSrc = 1, kDst = 17, kWeights = 33, kBias = 41, kDiffSrc = 129, kDiffDst = 145,
              kDiffWeights = 161, kEltwiseLinear = 0x26, kUndef = 0, kAnyTag = 1, kForwardTraining = 64, kDirect = 1;
constexpr int kQuerySrc = 129, kQueryDiffSrc = 130, kQueryWeights = 131, kQueryDiffWeights = 132, kQueryDst = 133,
              kQueryDiffDst = 134;
struct Version {
  int major, minor, patch;
};
using Sizes = const int64_t *;

#define MSA_ONEDNN_FUNCTIONS(X)                                                                       \
  X(const Version *, version, ())                                                                     \
  X(int, get_effective_cpu_isa, ())                                                                   \
  X(Status, engine_create, (Handle *, int, size_t))                                                   \
  X(Status, threadpool_interop_stream_create, (Handle *, Handle, void *))                             \
  X(Status, threadpool_interop_set_max_concurrency, (int))                                            \
  X(Status, memory_desc_create_with_strides, (Handle *, int, const int64_t *, int, const int64_t *))  \
  X(Status, memory_desc_create_with_tag, (Handle *, int, Sizes, int, int))                            \
  X(Status, memory_desc_destroy, (Handle))                                                            \
  X(Status, matmul_primitive_desc_create, (Handle *, Handle, Handle, Handle, Handle, Handle, Handle)) \
  X(Status, primitive_desc_destroy, (Handle))                                                         \
  X(Status, primitive_create, (Handle *, Handle))                                                     \
  X(Status, primitive_destroy, (Handle))                                                              \
  X(Status, primitive_execute, (Handle, Handle, int, const ExecArg *))                                \
  X(Status, memory_create, (Handle *, Handle, Handle, void *))                                        \
  X(Status, memory_set_data_handle, (Handle, void *))                                                 \
  X(Status, memory_destroy, (Handle))                                                                 \
  X(Status, primitive_attr_create, (Handle *))                                                        \
  X(Status, primitive_attr_destroy, (Handle))                                                         \
  X(Status, primitive_attr_set_post_ops, (Handle, Handle))                                            \
  X(Status, post_ops_create, (Handle *))                                                              \
  X(Status, post_ops_destroy, (Handle))                                                               \
  X(Status, post_ops_append_eltwise, (Handle, int, float, float))                                     \
  X(Status, post_ops_append_sum, (Handle, float, int32_t, int))                                       \
  X(int, memory_desc_equal, (Handle, Handle))                                                         \
  X(size_t, memory_desc_get_size, (Handle))                                                           \
  X(Handle, primitive_desc_query_md, (Handle, int, int))                                              \
  X(Status, reorder_primitive_desc_create, (Handle *, Handle, Handle, Handle, Handle, Handle))        \
  X(Status, convolution_forward_primitive_desc_create,                                                \
    (Handle *, Handle, int, int, Handle, Handle, Handle, Handle, Sizes, Sizes, Sizes, Sizes, Handle)) \
  X(Status, convolution_backward_data_primitive_desc_create,                                          \
    (Handle *, Handle, int, Handle, Handle, Handle, Sizes, Sizes, Sizes, Sizes, Handle, Handle))      \
  X(Status, convolution_backward_weights_primitive_desc_create,                                       \
    (Handle *, Handle, int, Handle, Handle, Handle, Handle, Sizes, Sizes, Sizes, Sizes, Handle, Handle))

struct Library {
#define X(R, name, args) R(*name) args = nullptr;
  MSA_ONEDNN_FUNCTIONS(X)
#undef X
  Handle engine = nullptr;
  int isa = 0;
  std::string problem = "oneDNN is not loaded";
  bool ok() const { return problem.empty(); }
};

// The library, which is loaded at the first call. It is never freed, because kernels may run while the process ends.
Library &library();
// The stream of this thread, whose work runs in this package's threads. Null if there is none.
Handle stream();
inline int onednn_type(DType d) { return d == DType::F32 ? 3 : d == DType::BF16 ? 2 : 1; }

// The least recently used values of this thread. Null means that oneDNN has declined.
template <class Key, class Value>
class Cache {
 public:
  template <class Make>
  Value *get(const Key &key, Make make) {
    auto found = index_.find(key);
    if (found != index_.end()) {
      order_.splice(order_.begin(), order_, found->second);
      return found->second->second.get();
    }
    order_.emplace_front(key, make());
    index_[key] = order_.begin();
    if (order_.size() > kCapacity) {
      index_.erase(order_.back().first);
      order_.pop_back();
    }
    return order_.front().second.get();
  }

 private:
  static constexpr size_t kCapacity = 512;
  std::list<std::pair<Key, std::unique_ptr<Value>>> order_;
  std::map<Key, typename std::list<std::pair<Key, std::unique_ptr<Value>>>::iterator> index_;
};

}  // namespace msa::onednn

#include "device.h"

#include <pybind11/functional.h>
#include <pybind11/pybind11.h>

#include <atomic>
#include <map>
#include <mutex>

#include "include/pynative/utils/runtime/op_runner.h"
#include "include/runtime/hardware_abstract/device_context/device_context.h"
#include "include/runtime/pipeline/pipeline.h"
#include "include/utils/callback.h"
#include "include/utils/ms_context.h"
#include "pybind_api/gil_scoped_long_running.h"
#include "geometry.h"
#include "operators.h"
#include "runtime/hardware_abstract/utils.h"

namespace msa {

using mindspore::device::CopyType;
using mindspore::device::DeviceAddress;
using mindspore::device::DeviceContext;
using mindspore::device::DeviceType;

CopyCounts &copy_counts() {
  static CopyCounts counts;
  return counts;
}

namespace {

// The words by which programs recognise a fault of the hardware. They are torch_npu's, by the error numbers of CANN.
const char *fault_of(int error) {
  switch (error) {
    case 507053: return "UCE ERROR";
    case 507054: return "HBM MULTI BIT ECC ERROR";
    case 507055: return "SUSPECT MEM ERROR";
    case 507056: return "HCCS LINK ERROR";
    case 507057: return "SUSPECT REMOTE ERROR";
    default: return nullptr;
  }
}

// Raises the error of a call that failed: what failed, the fault of the hardware if it is one, and CANN's own message.
template <class... Parts>
[[noreturn]] void fail_on_device(const Parts &...what) {
  const auto number = GET_COMMON_CALLBACK(TftGetErrorCode, int);
  const auto message = GET_COMMON_CALLBACK(TftGetRecentErrMsg, const char *);
  const int error = number ? number() : 0;
  const char *fault = fault_of(error), *said = message ? message() : nullptr;
  fail(what..., " failed", fault ? ": " : "", fault ? fault : "", said && *said ? ": " : "", said ? said : "",
       " (error ", error, ")");
}

// A device of MindSpore, reached through its runtime.
class MindSporeDevice final : public Device {
 public:
  explicit MindSporeDevice(DeviceType type)
      : type_(type), context_(mindspore::runtime::OpRunner::GetDeviceContext(type)) {
    context_->Initialize();
    pybind11::module_::import("atexit").attr("register")(pybind11::cpp_function([this] { closed_ = true; }));
  }

  DeviceType type() const override { return type_; }

  std::shared_ptr<DeviceAddress> allocate(size_t bytes) override {
    const uint32_t stream = current_stream();
    void *p = memory().AllocateMemory(std::max<size_t>(bytes, 1), stream);
    if (!p) throw OutOfMemory(text("NPU out of memory. Tried to allocate ", bytes, " bytes"));
    auto address = std::make_shared<DeviceAddress>(p, bytes, type_, stream);
    address->set_from_mem_pool(true);
    // The pool gives a block again only to work of the same stream, which runs after what uses it now. At the end of
    // the process MindSpore releases all memory itself, before the last tensors go.
    address->SetDevicePointerDeleter([this](void *q, bool) {
      if (!closed_) memory().FreeMemory(q);
    });
    return address;
  }

  void to_host(void *host, const void *device, size_t bytes) override {
    wait();
    if (!memory().CopyDirectly(host, bytes, device, bytes, CopyType::kD2H))
      fail_on_device("copying ", bytes, " bytes from the accelerator");
    count_to_host(bytes);
  }

  void from_host(void *device, const void *host, size_t bytes) override {
    wait();  // the block may still be used by work that was issued before its owner released it
    if (!memory().CopyDirectly(device, bytes, host, bytes, CopyType::kH2D))
      fail_on_device("copying ", bytes, " bytes to the accelerator");
    count_from_host(bytes);
  }

  void to_host_later(void *host, const void *device, size_t bytes) override {
    refuse_if_stopped();
    note_copy(host);
    const auto from = std::make_shared<DeviceAddress>(const_cast<void *>(device), bytes, type_, current_stream());
    if (!memory().AsyncCopy(host_block(host, bytes), from, current_stream(), false, nullptr, nullptr))
      fail_on_device("copying ", bytes, " bytes from the accelerator");
    count_to_host(bytes);
  }

  void from_host_later(void *device, const void *host, size_t bytes) override {
    refuse_if_stopped();
    note_copy(host);
    const auto to = std::make_shared<DeviceAddress>(device, bytes, type_, current_stream());
    if (!memory().AsyncCopy(to, host_block(const_cast<void *>(host), bytes), current_stream(), false, nullptr, nullptr))
      fail_on_device("copying ", bytes, " bytes to the accelerator");
    count_from_host(bytes);
  }

  std::shared_ptr<void> allocate_pinned(size_t bytes) override {
    const auto pool = memory().pin_mem_allocator();
    check(pool != nullptr, "MindSpore has no pinned memory for this device");
    void *p = pool->Alloc(std::max<size_t>(bytes, 1), current_stream());
    if (!p) throw OutOfMemory(text("The host has no memory to pin. Tried to allocate ", bytes, " bytes"));
    const std::lock_guard<std::mutex> guard(pinned_lock_);
    pinned_[static_cast<const char *>(p)] = {bytes, false};
    return std::shared_ptr<void>(p, [this, pool](void *q) {
      if (closed_) return;
      if (forget_pinned(q)) memory().SyncAllStreams();  // after an error of the device, nothing uses the memory either
      pool->Free(q);
    });
  }

  bool is_pinned(const void *host) const override {
    const std::lock_guard<std::mutex> guard(pinned_lock_);
    return block_of(host) != pinned_.end();
  }

  uint32_t current_stream() const override { return static_cast<uint32_t>(memory().GetCurrentStreamId()); }

  void synchronise() override {
    finish_queue();
    wait();
  }

 private:
  struct Pinned {
    size_t bytes;
    bool copied;  // by a copy that does not wait
  };
  using PinnedBlocks = std::map<const char *, Pinned>;

  void wait() {
    refuse_if_stopped();
    mindspore::GilReleaseWithCheck others_run;
    memory().BindDeviceToCurrentThread(false);
    if (!memory().SyncAllStreams()) fail_on_device("waiting for the accelerator");
  }

  static std::shared_ptr<DeviceAddress> host_block(void *p, size_t bytes) {
    return std::make_shared<DeviceAddress>(p, bytes, DeviceType::kCPU, 0);
  }
  static void count_to_host(size_t bytes) {
    ++copy_counts().to_host;
    copy_counts().bytes_to_host += static_cast<int64_t>(bytes);
  }
  static void count_from_host(size_t bytes) {
    ++copy_counts().from_host;
    copy_counts().bytes_from_host += static_cast<int64_t>(bytes);
  }

  PinnedBlocks::const_iterator block_of(const void *host) const {
    auto after = pinned_.upper_bound(static_cast<const char *>(host));
    if (after == pinned_.begin()) return pinned_.end();
    const auto block = std::prev(after);
    return static_cast<const char *>(host) < block->first + block->second.bytes ? block : pinned_.end();
  }
  void note_copy(const void *host) {
    const std::lock_guard<std::mutex> guard(pinned_lock_);
    const auto block = block_of(host);
    check(block != pinned_.end(), "internal: a copy that does not wait needs pinned memory");
    pinned_[block->first].copied = true;
  }
  // Returns whether the block was part of a copy that may still run.
  bool forget_pinned(const void *host) {
    const std::lock_guard<std::mutex> guard(pinned_lock_);
    const auto block = pinned_.find(static_cast<const char *>(host));
    const bool copied = block->second.copied;
    pinned_.erase(block);
    return copied;
  }

  mindspore::device::DeviceResManager &memory() const { return *context_->device_res_manager_; }

  DeviceType type_;
  DeviceContext *context_;
  bool closed_ = false;
  mutable std::mutex pinned_lock_;
  PinnedBlocks pinned_;
};

DeviceType target() {
  return mindspore::device::GetDeviceTypeByName(
      mindspore::MsContext::GetInstance()->get_param<std::string>(mindspore::MS_CTX_DEVICE_TARGET));
}

// A dense tensor that has the strides of t if those are dense, on the device of the scope.
TensorPtr empty_like(const TensorPtr &t, DType dtype) {
  const Tensor g = geometry_of(t);
  return new_tensor(dtype, g.sizes, g.ndim, is_dense(t->shape(), strides_of(t)) ? g.strides : nullptr);
}

// The bytes from the first to behind the last element of a dense tensor.
size_t dense_bytes(const TensorPtr &t) {
  const Tensor g = geometry_of(t);
  return static_cast<size_t>(g.numel) * item_size(g.dtype);
}

bool is_dense_block(const TensorPtr &t) { return is_dense(t->shape(), strides_of(t)); }

TensorPtr dense_block(const TensorPtr &t) { return is_dense_block(t) ? t : run1("Contiguous", {Operand::of(t)}); }

// Copies without waiting to a pinned tensor that has the layout of the other one's values. False if it has another one.
bool copied_to_pinned(const TensorPtr &to, const TensorPtr &from) {
  if (!is_pinned(to) || to->data_type() != from->data_type() || to->shape() != from->shape()) return false;
  const TensorPtr block = dense_block(from);
  if (strides_of(block) != strides_of(to)) return false;
  if (dense_bytes(to)) accelerator()->to_host_later(view_of(to).data, data_pointer(block), dense_bytes(to));
  return true;
}

void copy_between_devices(const TensorPtr &to, const TensorPtr &from, bool later) {
  if (on_cpu(to)) {
    if (later && copied_to_pinned(to, from)) return;
    const TensorPtr values = on_host(from);
    copy_into(view_of(to), view_of(values));
    return;
  }
  // MindSpore's copy converts and broadcasts, so only the bytes have to be on the device.
  run1("InplaceCopy", {Operand::of(to), Operand::of(on_cpu(from) ? copy_to_device(from, device_tag(to), later) : from),
                       Operand::of(false)});
}

}  // namespace

static std::atomic<bool> device_stopped = false;
void set_device_stopped(bool stopped) { device_stopped = stopped; }
void refuse_if_stopped() {
  if (device_stopped) fail("FORCE STOP: the device was stopped. torch.npu.restart_device starts it again");
}

void find_accelerator() { separate_memory = target() != DeviceType::kCPU; }

Device *accelerator() {
  static Device *device = has_accelerator() ? new MindSporeDevice(target()) : nullptr;
  return device;
}

int accelerator_tag() {
  return 1 + static_cast<int>(mindspore::MsContext::GetInstance()->get_param<uint32_t>(mindspore::MS_CTX_DEVICE_ID));
}

void finish_queue() {
  mindspore::GilReleaseWithCheck others_run;  // the threads of the queue may need the interpreter's lock
  mindspore::runtime::Pipeline::Get().WaitAll();
}

void *data_pointer(const TensorPtr &t) {
  if (on_cpu(t)) return view_of(t).data;
  finish_queue();
  char *base = static_cast<char *>(t->device_address()->GetMutablePtr());
  check(base != nullptr || geometry_of(t).numel == 0, "The tensor has no storage: its memory was released");
  return base + offset_of(t) * static_cast<int64_t>(item_size(from_ms(t->data_type())));
}

TensorPtr on_host(const TensorPtr &t) {
  if (on_cpu(t)) return t;
  const TensorPtr block = dense_block(t);
  DeviceScope scope(0);
  const TensorPtr r = empty_like(block, from_ms(t->data_type()));
  if (dense_bytes(r)) accelerator()->to_host(view_of(r).data, data_pointer(block), dense_bytes(r));
  return r;
}

static void check_this_device(int tag) {
  if (tag != accelerator_tag())
    throw NotImplementedError(
        text("a tensor on npu:", tag - 1,
             ": MindSpore drives one NPU in a process, and this one uses npu:", accelerator_tag() - 1,
             ". Call torch.npu.set_device before the first tensor is created "
             "(docs/ascend.md)"));
}

// A tensor in pinned memory, with the layout of empty_like.
static TensorPtr pinned_like(const TensorPtr &t) {
  const DType dtype = from_ms(t->data_type());
  const size_t bytes = dense_bytes(t);
  const auto memory = accelerator()->allocate_pinned(bytes);
  DeviceScope scope(0);
  const TensorPtr flat = tensor_on(memory.get(), bytes, dtype, {static_cast<int64_t>(geometry_of(t).numel)}, memory);
  const TensorPtr model = empty_like(t, dtype);
  return new_view(flat, dtype, model->shape(), strides_of(model), 0);
}

TensorPtr pinned_copy(const TensorPtr &t) {
  if (!on_cpu(t)) fail("cannot pin '", dtype_name(from_ms(t->data_type())), "': only dense CPU tensors can be pinned");
  if (!has_accelerator() || is_pinned(t)) return t;
  const TensorPtr r = pinned_like(t);
  copy_into(view_of(r), view_of(t));
  return r;
}

bool is_pinned(const TensorPtr &t) {
  return has_accelerator() && on_cpu(t) && !is_meta(t) && accelerator()->is_pinned(view_of(t).data);
}

TensorPtr copy_to_device(const TensorPtr &t, int tag, bool later) {
  if (has_accelerator() && tag != 0 && tag != kMetaTag) check_this_device(tag);
  const DType dtype = from_ms(t->data_type());
  if (!has_accelerator() || tag == 0 || !on_cpu(t)) {
    DeviceScope scope(tag);
    TensorPtr r = later && tag == 0 && !on_cpu(t) ? pinned_like(t) : empty_like(t, dtype);
    copy_tensor(r, t, later);
    return r;
  }
  TensorPtr block = t;
  if (!is_dense_block(t)) {
    DeviceScope scope(0);
    block = empty_like(t, dtype);
    copy_into(view_of(block), view_of(t));
  }
  DeviceScope scope(tag);
  TensorPtr r = empty_like(block, dtype);
  if (!dense_bytes(r)) return r;
  if (later && is_pinned(block))
    accelerator()->from_host_later(data_pointer(r), view_of(block).data, dense_bytes(r));
  else
    accelerator()->from_host(data_pointer(r), view_of(block).data, dense_bytes(r));
  return r;
}

void copy_tensor(const TensorPtr &to, const TensorPtr &from, bool later) {
  if (on_cpu(to) && on_cpu(from))
    copy_into(view_of(to), view_of(from));
  else if (element_count(to->shape()) > 0)  // MindSpore refuses an empty tensor whose strides are 0
    copy_between_devices(to, from, later);
}

void zero_tensor(const TensorPtr &t) {
  if (on_cpu(t))
    fill_zero(view_of(t));
  else if (element_count(t->shape()) > 0)
    run1("InplaceZero", {Operand::of(t)});
}

}  // namespace msa

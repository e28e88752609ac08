#include "accelerator.h"

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

}  // namespace

bool separate_memory = false;

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

}  // namespace msa

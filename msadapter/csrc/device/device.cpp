#include "device.h"

#include <pybind11/functional.h>
#include <pybind11/pybind11.h>

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
    synchronise();
    if (!memory().CopyDirectly(host, bytes, device, bytes, CopyType::kD2H))
      fail_on_device("copying ", bytes, " bytes from the accelerator");
    ++copy_counts().to_host;
    copy_counts().bytes_to_host += static_cast<int64_t>(bytes);
  }

  void from_host(void *device, const void *host, size_t bytes) override {
    synchronise();  // the block may still be used by work that was issued before its owner released it
    if (!memory().CopyDirectly(device, bytes, host, bytes, CopyType::kH2D))
      fail_on_device("copying ", bytes, " bytes to the accelerator");
    ++copy_counts().from_host;
    copy_counts().bytes_from_host += static_cast<int64_t>(bytes);
  }

  uint32_t current_stream() const override { return static_cast<uint32_t>(memory().GetCurrentStreamId()); }

  void synchronise() override {
    mindspore::GilReleaseWithCheck others_run;
    finish_queue();
    memory().BindDeviceToCurrentThread(false);
    if (!memory().SyncAllStreams()) fail_on_device("waiting for the accelerator");
  }

 private:
  mindspore::device::DeviceResManager &memory() const { return *context_->device_res_manager_; }

  DeviceType type_;
  DeviceContext *context_;
  bool closed_ = false;
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

void copy_between_devices(const TensorPtr &to, const TensorPtr &from) {
  if (on_cpu(to)) {
    const TensorPtr values = on_host(from);
    copy_into(view_of(to), view_of(values));
    return;
  }
  // MindSpore's copy converts and broadcasts, so only the bytes have to be on the device.
  run1("InplaceCopy",
       {Operand::of(to), Operand::of(on_cpu(from) ? copy_to_device(from, device_tag(to)) : from), Operand::of(false)});
}

}  // namespace

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
  const TensorPtr block = is_dense_block(t) ? t : run1("Contiguous", {Operand::of(t)});
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

TensorPtr copy_to_device(const TensorPtr &t, int tag) {
  if (has_accelerator() && tag != 0 && tag != kMetaTag) check_this_device(tag);
  const DType dtype = from_ms(t->data_type());
  if (!has_accelerator() || tag == 0 || !on_cpu(t)) {
    DeviceScope scope(tag);
    TensorPtr r = empty_like(t, dtype);
    copy_tensor(r, t);
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
  if (dense_bytes(r)) accelerator()->from_host(data_pointer(r), view_of(block).data, dense_bytes(r));
  return r;
}

void copy_tensor(const TensorPtr &to, const TensorPtr &from) {
  if (on_cpu(to) && on_cpu(from))
    copy_into(view_of(to), view_of(from));
  else
    copy_between_devices(to, from);
}

void zero_tensor(const TensorPtr &t) {
  if (on_cpu(t))
    fill_zero(view_of(t));
  else
    run1("InplaceZero", {Operand::of(t)});
}

}  // namespace msa

#include "operators.h"

#include <cstdlib>

#include "ascend_limits.h"
#include "kernel_calls.h"

namespace msa {

static bool &fast() {
  static bool on = [] {
    const char *e = std::getenv("MSADAPTER_FAST");
    return !(e && std::string(e) == "0");
  }();
  return on;
}
bool fast_path() { return fast(); }
void set_fast_path(bool on) { fast() = on; }

static bool any_meta(const Operand *args, int n) { return any_tensor(args, n, is_meta) || shape_only(); }
static bool any_on_accelerator(const Operand *args, int n) {
  return any_tensor(args, n, [](const TensorPtr &t) { return !on_cpu(t); });
}

// Operators run where their operands are. Without operands they run on the device that was asked for.
static bool runs_on_accelerator(const Operand *args, int n) {
  const bool any = any_tensor(args, n, [](const TensorPtr &) { return true; });
  return any ? any_on_accelerator(args, n) : scope_tag() != 0;
}

static void check_one_device(const Operand *args, int n) {
  const bool mixed = any_tensor(args, n, [](const TensorPtr &t) { return on_cpu(t) && !t->shape().empty(); });
  check(!mixed,
        "Expected all tensors to be on the same device, but found at least two devices, npu:", accelerator_tag() - 1,
        " and cpu!");
}

// Computes on the host what the accelerator has no operator for.
static Tensors run_through_host(const Operator *op, const Operand *args, int n, const char *reason) {
  if (!op->kernel)
    throw NotImplementedError(text(op->name, ": MindSpore has no such operator for the NPU (docs/ascend.md)"));
  if (any_on_accelerator(args, n)) note_host_call(op->name, reason);
  std::vector<Operand> local(args, args + n);
  for (auto &o : local) {
    if (o.kind == Arg::kTensor) o.tensor = on_host(o.tensor);
    for (auto &t : o.tensors)
      if (t) t = on_host(t);
  }
  DeviceScope scope(0);
  Tensors r = run_kernel(op->name.c_str(), op->kernel, local.data(), n, op->inplace ? &local[0].tensor : nullptr);
  if (op->kernel->writes_operands)
    for (int i = 0; i < n; ++i) {
      if (args[i].kind == Arg::kTensor && !on_cpu(args[i].tensor)) copy_tensor(args[i].tensor, local[i].tensor);
      for (size_t k = 0; k < args[i].tensors.size(); ++k)
        if (args[i].tensors[k] && !on_cpu(args[i].tensors[k])) copy_tensor(args[i].tensors[k], local[i].tensors[k]);
    }
  for (auto &t : r) t = copy_to_device(t, accelerator_tag());
  return r;
}

static Tensors run_on_accelerator(const Operator *op, const Operand *args, int n, const TensorPtr *destination) {
  static const Operator *copy = find_operator("InplaceCopy");
  if (op == copy) {  // the only operator whose operands may be on two devices
    copy_tensor(args[0].tensor, args[1].tensor, args[2].kind == Arg::kScalar && args[2].scalar.to<bool>());
    return {args[0].tensor};
  }
  check_one_device(args, n);
  const bool exists = runs_on_accelerator(*op);
  const char *reason = exists ? why_not_on_npu(*op, args, n) : nullptr;
  const bool there = exists && !reason;
  Tensors r = there ? call_mindspore(op, args, n, accelerator()->type()) : run_through_host(op, args, n, reason);
  if (destination && !(there && op->inplace)) {
    copy_tensor(*destination, r.at(0));
    r[0] = *destination;
  }
  return r;
}

Tensors run_operator(const Operator *op, const Operand *args, int n, const TensorPtr *destination) {
  if (op->inplace && !destination) destination = &args[0].tensor;
  if (has_accelerator() && !any_meta(args, n) && runs_on_accelerator(args, n))
    return run_on_accelerator(op, args, n, destination);
  if (op->kernel && (fast_path() || any_meta(args, n) || !op->through_mindspore || (destination && !op->inplace)))
    return run_kernel(op->name.c_str(), op->kernel, args, n, destination);
  if (!op->through_mindspore)
    throw NotImplementedError(text(op->name, ": MindSpore has no such operator for this device (docs/ascend.md)"));
  return call_mindspore(op, args, n, mindspore::device::DeviceType::kCPU);
}

TensorPtr run1(const char *name, std::initializer_list<Operand> args) {
  return run_operator(find_operator(name), args.begin(), static_cast<int>(args.size()))[0];
}

}  // namespace msa

#include "mindspore_operators.h"

#include <optional>

#include "include/pynative/utils/runtime/op_runner.h"
#include "include/runtime/pipeline/pipeline.h"
#include "kernel/cpu/cpu_kernel.h"
#include "pybind_api/gil_scoped_long_running.h"
#include "../kernels/category.h"
#include "pyboost_bind.h"

namespace mindspore::kernel {
// MindSpore asks by name whether a CPU kernel exists before it calls the operator that is overridden here. This
// kernel answers yes, and is never launched.
class NameOnlyKernel : public NativeCpuKernelMod {
 public:
  bool Init(const std::vector<KernelTensor *> &, const std::vector<KernelTensor *> &) override { return true; }
  bool Launch(const std::vector<KernelTensor *> &, const std::vector<KernelTensor *> &,
              const std::vector<KernelTensor *> &) override {
    return false;
  }
  std::vector<KernelAttr> GetOpSupport() override { return {KernelAttr().AddSkipCheckAttr(true)}; }
};
}  // namespace mindspore::kernel

namespace msa {

// ---------------------------------------------------------------- boxing
Operand box(const TensorPtr &t) { return Operand::of(t); }
Operand box(const mindspore::Int64ImmPtr &v) {
  Operand o = Operand::of(static_cast<int64_t>(v->value()));
  // MindSpore passes dtypes as plain integers. They are converted where an operator asks for a dtype.
  const auto id = static_cast<TypeId>(v->value());
  if (v->value() > 0 && v->value() < 256 && known_dtype(id)) o.dtype = from_ms(id);
  return o;
}
Operand box(const mindspore::BoolImmPtr &v) { return Operand::of(static_cast<bool>(v->value())); }
Operand box(const mindspore::FP32ImmPtr &v) { return Operand::of(static_cast<double>(v->value())); }
Operand box(const mindspore::StringImmPtr &v) {
  Operand o;
  o.kind = Arg::kString;
  o.str = v->value();
  return o;
}
Operand box(const mindspore::ScalarPtr &v) {
  using namespace mindspore;
  if (v->isa<BoolImm>()) return Operand::of(static_cast<bool>(GetValue<bool>(v)));
  if (v->isa<FP32Imm>()) return Operand::of(static_cast<double>(GetValue<float>(v)));
  if (v->isa<FP64Imm>()) return Operand::of(GetValue<double>(v));
  if (v->isa<Int64Imm>()) return Operand::of(static_cast<int64_t>(GetValue<int64_t>(v)));
  if (v->isa<Int32Imm>()) return Operand::of(static_cast<int64_t>(GetValue<int32_t>(v)));
  fail("scalar operand of an unknown kind: ", v->ToString());
}
// MindSpore writes an absent index tensor (a full slice) as an empty tensor of nine dimensions.
constexpr size_t kAbsentIndexDims = 9;
static bool is_absent_index(const TensorPtr &t) { return t->shape() == Dims(kAbsentIndexDims, 0); }

Operand box(const mindspore::ValueTuplePtr &t) {
  Operand o;
  const auto &v = t->value();
  if (!v.empty() && v[0]->isa<MsTensor>()) {
    o.kind = Arg::kTensors;
    for (auto &e : v) {
      const TensorPtr element = e->cast<TensorPtr>();
      o.tensors.push_back(is_absent_index(element) ? nullptr : element);
    }
  } else if (!v.empty() && (v[0]->isa<mindspore::FP32Imm>() || v[0]->isa<mindspore::FP64Imm>())) {
    o.kind = Arg::kFloats;
    for (auto &e : v) o.floats.push_back(box(e->cast<mindspore::ScalarPtr>()).scalar.d);
  } else {
    o.kind = Arg::kInts;
    for (auto &e : v) o.ints.push_back(box(e->cast<mindspore::ScalarPtr>()).scalar.i);
  }
  return o;
}

// The device on which MindSpore's operators run in this thread: that of their operands.
static thread_local mindspore::device::DeviceType operators_device = mindspore::device::DeviceType::kCPU;
mindspore::device::DeviceType current_device() { return operators_device; }
uint32_t current_stream() {
  return operators_device == mindspore::device::DeviceType::kCPU ? 0 : accelerator()->current_stream();
}

class RunOn {
 public:
  explicit RunOn(mindspore::device::DeviceType type) : previous_(operators_device) { operators_device = type; }
  ~RunOn() { operators_device = previous_; }

 private:
  mindspore::device::DeviceType previous_;
};

// The dtype of numbers that become tensors in the call that is being made: that of its tensor of the highest category.
static thread_local std::optional<DType> number_dtype;

class NumberScope {
 public:
  NumberScope(const Operand *args, int n) : previous_(number_dtype) {
    number_dtype.reset();
    for (int i = 0; i < n; ++i) {
      if (args[i].kind != Arg::kTensor) continue;
      const DType d = from_ms(args[i].tensor->data_type());
      if (!number_dtype || category(d) > category(*number_dtype)) number_dtype = d;
    }
  }
  ~NumberScope() { number_dtype = previous_; }

 private:
  std::optional<DType> previous_;
};

// A number where MindSpore's operator takes a tensor. It takes the dtype of the tensors unless its category is higher.
static DType dtype_of_number(const Scalar &s) {
  static const DType types[] = {DType::Bool, DType::I64, DType::F64, DType::C128};
  const DType own = types[s.kind];
  return number_dtype && category(own) <= category(*number_dtype) ? *number_dtype : own;
}

TensorPtr number_on_host(const Scalar &value, DType dtype, bool wrap) {
  DeviceScope host(0);
  TensorPtr t = new_tensor(dtype, Dims{});
  const Tensor v = view_of(t);
  MSA_SWITCH_ALL(v.dtype, "number", (*v.ptr<T>() = wrap ? value.wrapped<T>() : value.to<T>()));
  return t;
}

TensorPtr Unbox<TensorPtr>::get(const Operand &o) {
  if (o.tensor || o.kind != Arg::kScalar) return o.tensor;
  const DType dtype = dtype_of_number(o.scalar);
  if (operators_device != mindspore::device::DeviceType::kCPU) return number_on_accelerator(o.scalar, dtype);
  return number_on_host(o.scalar, dtype, true);
}
mindspore::Int64ImmPtr Unbox<mindspore::Int64ImmPtr>::get(const Operand &o) {
  return std::make_shared<mindspore::Int64Imm>(o.kind == Arg::kDType ? to_ms(o.dtype) : o.scalar.to<int64_t>());
}
mindspore::BoolImmPtr Unbox<mindspore::BoolImmPtr>::get(const Operand &o) {
  return std::make_shared<mindspore::BoolImm>(o.scalar.to<bool>());
}
mindspore::FP32ImmPtr Unbox<mindspore::FP32ImmPtr>::get(const Operand &o) {
  return std::make_shared<mindspore::FP32Imm>(o.scalar.wrapped<float>());
}
mindspore::StringImmPtr Unbox<mindspore::StringImmPtr>::get(const Operand &o) {
  return std::make_shared<mindspore::StringImm>(o.str);
}
mindspore::ScalarPtr Unbox<mindspore::ScalarPtr>::get(const Operand &o) {
  switch (o.scalar.kind) {
    case Scalar::kBool: return std::make_shared<mindspore::BoolImm>(o.scalar.i != 0);
    case Scalar::kInt:
      if (o.scalar.is_unsigned) return std::make_shared<mindspore::FP64Imm>(o.scalar.wrapped<double>());
      return std::make_shared<mindspore::Int64Imm>(o.scalar.i);
    case Scalar::kFloat: return std::make_shared<mindspore::FP64Imm>(o.scalar.d);
    default: fail("MindSpore's operators take no complex scalar");
  }
}
mindspore::ValueTuplePtr Unbox<mindspore::ValueTuplePtr>::get(const Operand &o) {
  mindspore::ValuePtrList v;
  DeviceScope host(0);
  for (auto &t : o.tensors) v.push_back(t ? t : new_tensor(DType::I64, Dims(kAbsentIndexDims, 0)));
  for (auto i : o.ints) v.push_back(mindspore::MakeValue<int64_t>(i));
  for (auto d : o.floats) v.push_back(mindspore::MakeValue<float>(static_cast<float>(d)));
  return std::make_shared<mindspore::ValueTuple>(v);
}

// ---------------------------------------------------------------- registry
namespace {
struct Thunk {
  std::function<Tensors(const Operand *, int)> call;
  std::function<void()> install;
  std::function<bool(mindspore::device::DeviceType)> runs_on;
};
std::unordered_map<std::string, Thunk> &thunks() {
  static std::unordered_map<std::string, Thunk> t;
  return t;
}
}  // namespace

// Every operator that was asked for. Callers keep pointers to them.
static std::unordered_map<std::string, std::unique_ptr<Operator>> &known_operators() {
  static std::unordered_map<std::string, std::unique_ptr<Operator>> known;
  return known;
}

static void give_thunk(Operator *op) {
  auto found = thunks().find(op->name);
  if (found == thunks().end()) return;
  op->through_mindspore = found->second.call;
  op->runs_on = found->second.runs_on;
}

void register_thunk(const std::string &name, std::function<Tensors(const Operand *, int)> call,
                    std::function<void()> install, std::function<bool(mindspore::device::DeviceType)> runs_on) {
  thunks()[name] = Thunk{std::move(call), std::move(install), std::move(runs_on)};
  // The library with MindSpore's operators may be loaded when the operator is known already.
  auto known = known_operators().find(name);
  if (known != known_operators().end()) give_thunk(known->second.get());
}

const mindspore::device::DeviceContext *cpu_context() {
  static auto c = mindspore::runtime::OpRunner::GetDeviceContext(mindspore::device::DeviceType::kCPU);
  return c;
}
const KernelInfo *kernel_of(const char *name) { return find_kernel(name); }

const Operator *find_operator(const std::string &name) {
  auto &known = known_operators();
  auto it = known.find(name);
  if (it != known.end()) return it->second.get();
  auto op = std::make_unique<Operator>();
  op->name = name;
  op->inplace = name.rfind("Inplace", 0) == 0;
  op->kernel = find_kernel(name);
  give_thunk(op.get());
  if (!op->kernel && !op->through_mindspore)
    throw NotImplementedError(
        text(name, ": neither MindSpore nor the CPU kernels have this operator (docs/coverage.md)"));
  return (known[name] = std::move(op)).get();
}

std::vector<std::string> mindspore_operators() {
  std::vector<std::string> r;
  for (auto &e : thunks()) r.push_back(e.first);
  std::sort(r.begin(), r.end());
  return r;
}

// ---------------------------------------------------------------- calls
// MindSpore's Python functions (collectives, their handles, events of streams) go through a queue that stands before
// the one to which calls from here go. A call must not overtake them.
static void let_earlier_calls_pass() {
  auto &pipeline = mindspore::runtime::Pipeline::Get();
  if (pipeline.frontend_stage()->Empty()) return;
  mindspore::GilReleaseWithCheck others_run;
  pipeline.WaitFrontend();
}

Tensors call_mindspore(const Operator *op, const Operand *args, int n, mindspore::device::DeviceType device) {
  if (device != mindspore::device::DeviceType::kCPU) {
    refuse_if_stopped();
    let_earlier_calls_pass();
  }
  NoGrad guard;
  NumberScope numbers(args, n);
  RunOn scope(device);
  return op->through_mindspore(args, n);
}

TensorPtr call_on_accelerator(const Operator *op, const Operand *args, int n) {
  return call_mindspore(op, args, n, accelerator()->type())[0];
}

TensorPtr call_on_accelerator(const char *name, std::initializer_list<Operand> args) {
  return call_on_accelerator(find_operator(name), args.begin(), static_cast<int>(args.size()));
}

// A tensor without dims whose bytes come from the host.
static TensorPtr number_copied(const Scalar &value, DType dtype) {
  const TensorPtr on_host = number_on_host(value, dtype, true);
  DeviceScope device(accelerator_tag());
  const TensorPtr t = new_tensor(dtype, Dims{});
  accelerator()->from_host(data_pointer(t), view_of(on_host).data, item_size(dtype));
  return t;
}

TensorPtr number_on_accelerator(const Scalar &value, DType dtype) {
  if (is_complex(dtype)) return number_copied(value, dtype);
  static const Operator *fill = find_operator("FillScalar");
  const Operand args[] = {Operand::of(Dims{}), Operand::of(value), Operand::of(dtype)};
  return call_on_accelerator(fill, args, 3);
}

bool runs_on_accelerator(const Operator &op) { return op.through_mindspore && op.runs_on(accelerator()->type()); }

void install_overrides() {
  auto &factory = mindspore::kernel::Factory<mindspore::kernel::NativeCpuKernelMod>::Instance();
  for (auto &e : thunks()) {
    if (!find_kernel(e.first)) continue;
    e.second.install();
    if (!factory.IsRegistered(e.first))
      factory.Register(e.first, [] { return std::make_shared<mindspore::kernel::NameOnlyKernel>(); });
  }
}

}  // namespace msa

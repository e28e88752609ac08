#include "operators.h"

#include <cstdlib>
#include <optional>

#include "include/pynative/utils/runtime/op_runner.h"
#include "include/runtime/pipeline/pipeline.h"
#include "kernel/cpu/cpu_kernel.h"
#include "pybind_api/gil_scoped_long_running.h"
#include "../kernels/category.h"
#include "ascend_limits.h"
#include "device.h"
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

// ---------------------------------------------------------------- kernels
namespace {
class BoxedCall final : public Call {
 public:
  explicit BoxedCall(const TensorPtr *destination) : destination_(destination) {}
  ~BoxedCall() override {
    for (auto &s : scratch_) deallocate(s.first, s.second);
  }
  Tensor out(int index, DType dtype, const int64_t *sizes, int ndim, const int64_t *strides) override {
    if (static_cast<int>(results.size()) <= index) results.resize(index + 1);
    if (destination_ && index == 0) {
      Tensor d = view_of(*destination_);
      bool same = d.dtype == dtype && d.ndim == ndim;
      for (int i = 0; same && i < ndim; ++i) same = d.sizes[i] == sizes[i];
      if (same) {
        results[0] = *destination_;
        return d;
      }
    }
    results[index] = new_tensor(dtype, sizes, ndim, strides);
    return view_of(results[index]);
  }
  void *scratch(size_t bytes) override {
    scratch_.emplace_back(allocate(std::max<size_t>(bytes, 1)), std::max<size_t>(bytes, 1));
    return scratch_.back().first;
  }
  Tensors results;

 private:
  const TensorPtr *destination_;
  std::vector<std::pair<void *, size_t>> scratch_;
};
constexpr int kMaxOperands = 40;
}  // namespace

Tensors run_kernel(const char *name, const KernelInfo *kernel, const Operand *args, int n,
                   const TensorPtr *destination) {
  if (!kernel) throw NotImplementedError(text(name, " is not supported on CPU (docs/coverage.md)"));
  check(n <= kMaxOperands, name, ": too many operands");
  struct Boxed {  // only as many as there are operands, because an Arg is large
    explicit Boxed(int count) : n(count) {
      for (int i = 0; i < n; ++i) new (at(i)) Arg();
    }
    ~Boxed() {
      for (int i = 0; i < n; ++i) at(i)->~Arg();
    }
    Arg *at(int i) { return reinterpret_cast<Arg *>(bytes) + i; }
    alignas(Arg) unsigned char bytes[sizeof(Arg) * kMaxOperands];
    int n;
  } storage(n);
  Arg *boxed = storage.at(0);
  int tag = 0;
  for (int i = 0; i < n; ++i) {
    if (args[i].kind == Arg::kTensor) tag = std::max(tag, device_tag(args[i].tensor));
    for (auto &t : args[i].tensors)
      if (t) tag = std::max(tag, device_tag(t));
  }
  if (tag == kMetaTag && destination && !is_meta(*destination))
    throw NotImplementedError("Cannot copy out of meta tensor; no data!");
  DeviceScope scope(tag ? tag : factory_tag());
  ShapeOnly shapes(tag == kMetaTag || shape_only());
  for (int i = 0; i < n; ++i) {
    const Operand &o = args[i];
    Arg &a = boxed[i];
    a.kind = o.kind;
    switch (o.kind) {
      case Arg::kTensor: a.tensor = view_of(o.tensor); break;
      case Arg::kTensors:
        a.tensors.reserve(o.tensors.size());
        for (auto &t : o.tensors) {
          a.tensors.push_back(t ? view_of(t) : Tensor{});
          if (!t) a.tensors.back().ndim = -1;
        }
        break;
      case Arg::kInts: a.ints = o.ints; break;
      case Arg::kFloats: a.floats = o.floats; break;
      case Arg::kString: a.str = o.str; break;
      case Arg::kDType:
      case Arg::kScalar:
        a.scalar = o.scalar;
        a.dtype = o.dtype;
        break;
      case Arg::kNone: break;
    }
  }
  BoxedCall call(kernel->elementwise ? destination : nullptr);
  call.name = name;
  call.args = boxed;
  call.nargs = n;
  kernel->run(call);
  // Computed in other memory, because the kernel may read what it has already written
  if (destination && !kernel->elementwise) {
    copy_into(view_of(*destination), view_of(call.results.at(0)));
    call.results[0] = *destination;
  }
  return std::move(call.results);
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
bool &fast() {
  static bool on = [] {
    const char *e = std::getenv("MSADAPTER_FAST");
    return !(e && std::string(e) == "0");
  }();
  return on;
}
}  // namespace

bool fast_path() { return fast(); }
void set_fast_path(bool on) { fast() = on; }

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

static bool any_meta(const Operand *args, int n) { return any_tensor(args, n, is_meta) || shape_only(); }
static bool any_on_accelerator(const Operand *args, int n) {
  return any_tensor(args, n, [](const TensorPtr &t) { return !on_cpu(t); });
}

// MindSpore's Python functions (collectives, their handles, events of streams) go through a queue that stands before
// the one to which calls from here go. A call must not overtake them.
static void let_earlier_calls_pass() {
  auto &pipeline = mindspore::runtime::Pipeline::Get();
  if (pipeline.frontend_stage()->Empty()) return;
  mindspore::GilReleaseWithCheck others_run;
  pipeline.WaitFrontend();
}

static Tensors call_mindspore(const Operator *op, const Operand *args, int n, mindspore::device::DeviceType device) {
  if (device != mindspore::device::DeviceType::kCPU) {
    refuse_if_stopped();
    let_earlier_calls_pass();
  }
  NoGrad guard;
  NumberScope numbers(args, n);
  RunOn scope(device);
  return op->through_mindspore(args, n);
}

// ---------------------------------------------------------------- on an accelerator
TensorPtr number_on_accelerator(const Scalar &value, DType dtype) {
  if (is_complex(dtype)) return copy_to_device(number_on_host(value, dtype, true), accelerator_tag());
  static const Operator *fill = find_operator("FillScalar");
  const Operand args[] = {Operand::of(Dims{}), Operand::of(value), Operand::of(dtype)};
  return call_mindspore(fill, args, 3, accelerator()->type())[0];
}

// Operators run where their operands are. Without operands they run on the device that was asked for.
static bool runs_on_accelerator(const Operand *args, int n) {
  const bool any = any_tensor(args, n, [](const TensorPtr &) { return true; });
  return any ? any_on_accelerator(args, n) : scope_tag() != 0;
}

bool runs_on_accelerator(const Operator &op) { return op.through_mindspore && op.runs_on(accelerator()->type()); }

static void check_one_device(const Operand *args, int n) {
  const bool mixed = any_tensor(args, n, [](const TensorPtr &t) { return on_cpu(t) && !t->shape().empty(); });
  check(!mixed,
        "Expected all tensors to be on the same device, but found at least two devices, npu:", accelerator_tag() - 1,
        " and cpu!");
}

// Counts work that is done on the host, and says so once for each operator and reason. `reason` is what the NPU's
// operator does not take, or null if there is no operator.
static void note_host_call(const std::string &name, const char *reason) {
  if (++host_calls()[{name, reason ? reason : ""}] > 1) return;
  const std::string message =
      text(name,
           reason ? text(": MindSpore's operator for the NPU does not take ", reason, ". The call")
                  : std::string(": MindSpore has no such operator for the NPU. It"),
           " is computed on the host, which copies its operands (docs/ascend.md)");
  if (PyErr_WarnEx(PyExc_UserWarning, message.c_str(), 1) < 0) throw PythonError{};
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

// Complex numbers as pairs of real ones
static Operand real_view(const TensorPtr &t) {
  Dims sizes = t->shape(), strides = strides_of(t);
  count_reals(&sizes, &strides);
  const DType real = from_ms(t->data_type()) == DType::C128 ? DType::F64 : DType::F32;
  return Operand::of(new_view(t, real, sizes, strides, 2 * offset_of(t)));
}

// Copies for which MindSpore's operator is not called as it is. Returns whether this was one of them.
static bool copied(const Operator *op, const Operand *args) {
  static const Operator *copy = find_operator("InplaceCopy");
  if (op != copy) return false;
  const TensorPtr &to = args[0].tensor, &from = args[1].tensor;
  if (on_cpu(to) != on_cpu(from)) {  // the only operator whose operands may be on two devices
    copy_tensor(to, from, args[2].kind == Arg::kScalar && args[2].scalar.to<bool>());
    return true;
  }
  // CANN copies complex numbers only into dense tensors, and the real numbers that they consist of into any.
  if (to->data_type() != from->data_type() || !is_complex(from_ms(to->data_type()))) return false;
  const Operand real[] = {real_view(to), real_view(from), args[2]};
  call_mindspore(op, real, 3, accelerator()->type());
  return true;
}

static Tensors run_on_accelerator(const Operator *op, const Operand *args, int n, const TensorPtr *destination) {
  if (copied(op, args)) return {args[0].tensor};
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
  if (op->kernel && (fast() || any_meta(args, n) || !op->through_mindspore || (destination && !op->inplace)))
    return run_kernel(op->name.c_str(), op->kernel, args, n, destination);
  if (!op->through_mindspore)
    throw NotImplementedError(text(op->name, ": MindSpore has no such operator for this device (docs/ascend.md)"));
  return call_mindspore(op, args, n, mindspore::device::DeviceType::kCPU);
}

TensorPtr run1(const char *name, std::initializer_list<Operand> args) {
  return run_operator(find_operator(name), args.begin(), static_cast<int>(args.size()))[0];
}

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

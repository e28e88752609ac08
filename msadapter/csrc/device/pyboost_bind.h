// The connection to MindSpore's operators. It belongs to a second library, which takes minutes to compile and is built
// only if MindSpore's dispatch is used: on an accelerator, with MSADAPTER_FAST=0, or by msadapter.complete_mindspore().
// A template makes two functions from the C++ type of a MindSpore operator. The first one replaces its CPU
// implementation and runs our kernel. The second one converts our operands to the types of the operator and calls it on
// any device.
#pragma once
#include "include/pynative/utils/pyboost/op_register.h"
#include "include/pynative/utils/pyboost/op_runner.h"
#include "kernel_calls.h"
#include "mindspore_operators.h"

namespace msa {

namespace pb = mindspore::kernel::pyboost;

// ---- from MindSpore's types to operands of the kernels
Operand box(const TensorPtr &t);
Operand box(const mindspore::ValueTuplePtr &t);
Operand box(const mindspore::Int64ImmPtr &v);
Operand box(const mindspore::BoolImmPtr &v);
Operand box(const mindspore::FP32ImmPtr &v);
Operand box(const mindspore::ScalarPtr &v);
Operand box(const mindspore::StringImmPtr &v);
template <class T>
Operand box(const std::optional<T> &v) {
  return v.has_value() ? box(v.value()) : Operand();
}

// ---- from our operands to MindSpore's types
template <class T>
struct Unbox;
template <>
struct Unbox<TensorPtr> {
  static TensorPtr get(const Operand &o);
};
template <>
struct Unbox<mindspore::ValueTuplePtr> {
  static mindspore::ValueTuplePtr get(const Operand &o);
};
template <>
struct Unbox<mindspore::Int64ImmPtr> {
  static mindspore::Int64ImmPtr get(const Operand &o);
};
template <>
struct Unbox<mindspore::BoolImmPtr> {
  static mindspore::BoolImmPtr get(const Operand &o);
};
template <>
struct Unbox<mindspore::FP32ImmPtr> {
  static mindspore::FP32ImmPtr get(const Operand &o);
};
template <>
struct Unbox<mindspore::ScalarPtr> {
  static mindspore::ScalarPtr get(const Operand &o);
};
template <>
struct Unbox<mindspore::StringImmPtr> {
  static mindspore::StringImmPtr get(const Operand &o);
};
template <class T>
struct Unbox<std::optional<T>> {
  static std::optional<T> get(const Operand &o) {
    if (o.kind == Arg::kNone) return std::nullopt;
    return Unbox<T>::get(o);
  }
};

inline void results_of(const TensorPtr &t, Tensors *r) { r->push_back(t); }
inline void results_of(const std::vector<TensorPtr> &t, Tensors *r) { *r = t; }
template <class... T>
void results_of(const std::tuple<T...> &t, Tensors *r) {
  std::apply([&](const auto &...e) { (r->push_back(e), ...); }, t);
}
template <class R>
struct FromResults;
template <>
struct FromResults<TensorPtr> {
  static TensorPtr get(const Tensors &t) { return t.at(0); }
};
template <>
struct FromResults<std::vector<TensorPtr>> {
  static std::vector<TensorPtr> get(const Tensors &t) { return t; }
};
template <class... T>
struct FromResults<std::tuple<T...>> {
  template <size_t... I>
  static std::tuple<T...> make(const Tensors &t, std::index_sequence<I...>) {
    return {
        (I < t.size() ? t[I] : new_tensor(DType::F32, Dims{0}))...};  // a result that our kernel does not have is empty
  }
  static std::tuple<T...> get(const Tensors &t) { return make(t, std::index_sequence_for<T...>{}); }
};

const KernelInfo *kernel_of(const char *name);  // find_kernel, for the library of operators
const mindspore::device::DeviceContext *cpu_context();
// Where MindSpore's operators run in this thread: the device of their operands, and its current stream.
mindspore::device::DeviceType current_device();
uint32_t current_stream();

template <class Op, class Signature>
struct Bind;
template <class Op, class R, class... A>
struct Bind<Op, R (Op::*)(A...)> {
  struct Override : Op {
    using Op::Op;
    R Call(A... a) override {
      static const KernelInfo *kernel = kernel_of(Op::op_name().c_str());
      static const bool inplace = Op::op_name().rfind("Inplace", 0) == 0;
      Operand args[sizeof...(A) ? sizeof...(A) : 1] = {box(a)...};
      this->outputs_ =
          run_kernel(Op::op_name().c_str(), kernel, args, sizeof...(A), inplace ? &args[0].tensor : nullptr);
      return FromResults<std::decay_t<R>>::get(this->outputs_);
    }
  };
  static void install() {
    static auto primitive = std::make_shared<mindspore::Primitive>(Op::op_name());
    std::function<std::shared_ptr<Op>()> creator = [] {
      return std::shared_ptr<Op>(new Override(primitive, cpu_context()));
    };
    auto &factory = pb::OpFactory<Op>::Get();
    if (!factory.IsRegistered(mindspore::device::DeviceType::kCPU)) {
      return factory.Register(mindspore::device::DeviceType::kCPU, std::move(creator));
    }
    // Register does not replace a creator. A loop compiles faster than operator[] of the map, whose type each operator
    // has anew.
    for (auto &[device, present] : factory.op_creator()) {
      if (device == mindspore::device::DeviceType::kCPU) present = std::move(creator);
    }
  }
  template <size_t... I>
  static Tensors call_indexed(const Operand *args, std::index_sequence<I...>) {
    auto op = pb::OpFactory<Op>::Get().Create(current_device(), current_stream());
    Tensors r;
    results_of(op->Call(Unbox<std::decay_t<A>>::get(args[I])...), &r);
    return r;
  }
  static Tensors call(const Operand *args, int n) {
    check(n == sizeof...(A), Op::op_name(), ": MindSpore's operator takes ", sizeof...(A),
          " operands, the mapping gives ", n);
    return call_indexed(args, std::index_sequence_for<A...>{});
  }
};

template <class Op>
struct RegisterOperator {
  explicit RegisterOperator(const char *name) {
    using B = Bind<Op, decltype(&Op::Call)>;
    register_thunk(name, &B::call, &B::install,
                   [](mindspore::device::DeviceType type) { return pb::OpFactory<Op>::Get().IsRegistered(type); });
  }
};

}  // namespace msa

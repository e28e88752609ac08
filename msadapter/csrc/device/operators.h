// Calls MindSpore operators by their names. On the CPU they run a kernel of this package, if there is one. All others
// go through MindSpore's own dispatch.
#pragma once
#include <functional>
#include <unordered_map>

#include "bridge.h"

namespace msa {

// One operand in MindSpore's types. (kernels::Arg is an operand for the kernels.)
struct Operand {
  Arg::Kind kind = Arg::kNone;
  TensorPtr tensor;
  std::vector<TensorPtr> tensors;
  Scalar scalar;
  DType dtype = DType::F32;
  Dims ints;
  std::vector<double> floats;
  std::string str;

  static Operand of(const TensorPtr &t) {
    Operand o;
    o.kind = t ? Arg::kTensor : Arg::kNone;
    o.tensor = t;
    return o;
  }
  static Operand of(int64_t v) {
    Operand o;
    o.kind = Arg::kScalar;
    o.scalar.kind = Scalar::kInt;
    o.scalar.i = v;
    return o;
  }
  static Operand of(double v) {
    Operand o;
    o.kind = Arg::kScalar;
    o.scalar.kind = Scalar::kFloat;
    o.scalar.d = v;
    return o;
  }
  static Operand of(bool v) {
    Operand o;
    o.kind = Arg::kScalar;
    o.scalar.kind = Scalar::kBool;
    o.scalar.i = v;
    return o;
  }
  static Operand of(const Scalar &v) {
    Operand o;
    o.kind = Arg::kScalar;
    o.scalar = v;
    return o;
  }
  static Operand of(const Dims &v) {
    Operand o;
    o.kind = Arg::kInts;
    o.ints = v;
    return o;
  }
  static Operand of(DType d) {
    Operand o;
    o.kind = Arg::kDType;
    o.dtype = d;
    o.scalar.i = to_ms(d);
    return o;
  }
};
// Whether a tensor among the operands, also in lists, has a property.
template <class F>
bool any_tensor(const Operand *args, int n, F &&has) {
  for (int i = 0; i < n; ++i) {
    if (args[i].tensor && has(args[i].tensor)) return true;
    for (auto &t : args[i].tensors)
      if (t && has(t)) return true;
  }
  return false;
}

using Tensors = std::vector<TensorPtr>;

// What is known about one operator.
struct Operator {
  std::string name;
  bool inplace = false;                // MindSpore's Inplace* operators: result 0 is operand 0
  const KernelInfo *kernel = nullptr;  // the CPU kernel of this package, if there is one
  std::function<Tensors(const Operand *, int)> through_mindspore;  // MindSpore's operator, if it has one
  std::function<bool(mindspore::device::DeviceType)> runs_on;      // whether MindSpore has it for this device
};

// Returns the operator with this name, and throws NotImplementedError if there is none. Callers keep the result.
const Operator *find_operator(const std::string &name);
std::vector<std::string> mindspore_operators();

// Runs without recording gradients. If the kernel is elementwise, it writes its results directly to `destination`.
Tensors run_operator(const Operator *op, const Operand *args, int n, const TensorPtr *destination = nullptr);
TensorPtr run1(const char *name, std::initializer_list<Operand> args);

// Whether MindSpore has the operator for the accelerator.
bool runs_on_accelerator(const Operator &op);
// A tensor without dims in host memory, where MindSpore's operators take it beside tensors of any device. With `wrap`,
// a number that the type does not hold wraps round instead of being an error.
TensorPtr number_on_host(const Scalar &value, DType dtype, bool wrap = false);
// A tensor without dims that the accelerator fills with a number. Copying the number there would wait for the device.
TensorPtr number_on_accelerator(const Scalar &value, DType dtype);

// Whether operators on the CPU call our kernels directly. False with MSADAPTER_FAST=0: every operator then goes through
// MindSpore's dispatch, as on an accelerator.
bool fast_path();
void set_fast_path(bool on);

// Makes MindSpore's CPU operators use the kernels of this package.
void install_overrides();
void register_thunk(const std::string &name, std::function<Tensors(const Operand *, int)> call,
                    std::function<void()> install, std::function<bool(mindspore::device::DeviceType)> runs_on);

}  // namespace msa

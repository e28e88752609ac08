// MindSpore operators by name: run with our kernel (CPU) or through MindSpore's own dispatch (any device).
#pragma once
#include <functional>
#include <unordered_map>

#include "bridge.h"

namespace msa {

// One operand on the MindSpore side of the fence (kernels::Arg is the other side).
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

using Tensors = std::vector<TensorPtr>;

// What we know of one operator name.
struct Operator {
  std::string name;
  bool inplace = false;                                            // MindSpore's Inplace*: result 0 is operand 0
  const KernelInfo *kernel = nullptr;                              // our CPU kernel, if any
  std::function<Tensors(const Operand *, int)> through_mindspore;  // MindSpore's operator, if it has one
};

// Found once per call site; throws NotImplementedError for an unknown name.
const Operator *find_operator(const std::string &name);
std::vector<std::string> mindspore_operators();

// Runs without recording gradients. `destination`: results go straight into these tensors when the kernel is
// elementwise.
Tensors run_operator(const Operator *op, const Operand *args, int n, const TensorPtr *destination = nullptr);
TensorPtr run1(const char *name, std::initializer_list<Operand> args);

// MSADAPTER_FAST=0: every operator goes through MindSpore's dispatch, as on an accelerator.
bool fast_path();
void set_fast_path(bool on);

// Puts our kernels behind MindSpore's CPU operators.
void install_overrides();
void register_thunk(const std::string &name, std::function<Tensors(const Operand *, int)> call,
                    std::function<void()> install);

}  // namespace msa

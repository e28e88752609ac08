// The operands of an operator in MindSpore's types. (kernels::Arg is an operand for the kernels.)
#pragma once
#include "bridge.h"

namespace msa {

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

}  // namespace msa

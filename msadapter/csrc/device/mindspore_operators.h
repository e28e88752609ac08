// MindSpore's operators: which there are, and calls of them on the device of their operands.
#pragma once
#include <functional>
#include <unordered_map>

#include "accelerator.h"
#include "operand.h"

namespace msa {

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

// Calls MindSpore's operator on this device, without recording gradients.
Tensors call_mindspore(const Operator *op, const Operand *args, int n, mindspore::device::DeviceType device);
// The same on the accelerator, for operators with one result.
TensorPtr call_on_accelerator(const Operator *op, const Operand *args, int n);
TensorPtr call_on_accelerator(const char *name, std::initializer_list<Operand> args);

// Whether MindSpore has the operator for the accelerator.
bool runs_on_accelerator(const Operator &op);
// A tensor without dims in host memory, where MindSpore's operators take it beside tensors of any device. With `wrap`,
// a number that the type does not hold wraps round instead of being an error.
TensorPtr number_on_host(const Scalar &value, DType dtype, bool wrap = false);
// A tensor without dims that the accelerator fills with a number. Copying the number there would wait for the device.
TensorPtr number_on_accelerator(const Scalar &value, DType dtype);

// Makes MindSpore's CPU operators use the kernels of this package.
void install_overrides();
void register_thunk(const std::string &name, std::function<Tensors(const Operand *, int)> call,
                    std::function<void()> install, std::function<bool(mindspore::device::DeviceType)> runs_on);

}  // namespace msa

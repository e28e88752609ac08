#include "ascend_limits.h"

#include <algorithm>
#include <set>

#include "geometry.h"

namespace msa {
namespace {

using Refusal = bool (*)(const Operand *args, int n);
struct Limit {
  Refusal refuses;
  const char *reason;
};

size_t rank(const Operand &o) { return o.tensor->shape().size(); }
int64_t elements(const Operand &o) { return geometry_of(o.tensor).numel; }
bool is_tensor_operand(const Operand &o) { return o.kind == Arg::kTensor; }

bool without_dims(const Operand *args, int n) {
  for (int i = 0; i < n; ++i)
    if (is_tensor_operand(args[i]) && rank(args[i]) == 0) return true;
  return false;
}
bool is_empty(const Operand *args, int) { return elements(args[0]) == 0; }

// Whether the bounds of a clamp have sizes that the clamped tensor does not have.
bool wider_bounds(const Operand *args, int n) {
  const Dims &self = args[0].tensor->shape();
  for (int i = 1; i < n; ++i) {
    if (!is_tensor_operand(args[i])) continue;
    const Dims &bound = args[i].tensor->shape();
    if (bound.size() > self.size()) return true;
    for (size_t k = 0; k < bound.size(); ++k) {
      const int64_t size = bound[bound.size() - 1 - k];
      if (size != 1 && size != self[self.size() - 1 - k]) return true;
    }
  }
  return false;
}
bool positions_of_other_types(const Operand *args, int) {  // self, dim, index
  const DType d = from_ms(args[2].tensor->data_type());
  return d != DType::I64 && d != DType::I32;
}
bool absent_positions(const Operand *args, int) {  // self, indices, ...
  for (auto &t : args[1].tensors)
    if (!t) return true;
  return false;
}
// Whether the operand at a position is absent
template <int kAt>
bool absent(const Operand *args, int) {
  return !is_tensor_operand(args[kAt]);
}
bool weight_with_dims(const Operand *args, int) { return rank(args[1]) > 1; }         // input, weight
bool no_steps(const Operand *args, int) { return args[2].scalar.to<int64_t>() < 1; }  // start, end, steps
bool other_shapes(const Operand *args, int) { return args[0].tensor->shape() != args[1].tensor->shape(); }
bool ranks_2_to_5(const Operand *args, int) { return rank(args[0]) < 2 || rank(args[0]) > 5; }

bool has_dtype(const Operand *args, int n, bool (*wanted)(DType)) {
  for (int i = 0; i < n; ++i)
    if (is_tensor_operand(args[i]) && wanted(from_ms(args[i].tensor->data_type()))) return true;
  return false;
}
bool integers(const Operand *args, int n) {
  return has_dtype(args, n, [](DType d) { return !is_floating(d) && !is_complex(d); });
}
bool bfloat16(const Operand *args, int n) {
  return has_dtype(args, n, [](DType d) { return d == DType::BF16; });
}
bool float64(const Operand *args, int n) {
  return has_dtype(args, n, [](DType d) { return d == DType::F64; });
}
bool float16(const Operand *args, int n) {
  return has_dtype(args, n, [](DType d) { return d == DType::F16; });
}
bool bools(const Operand *args, int n) {
  return has_dtype(args, n, [](DType d) { return d == DType::Bool; });
}

// The first list of numbers is the window's sizes in every pooling operator.
size_t window_dims(const Operand *args, int n) {
  for (int i = 0; i < n; ++i)
    if (args[i].kind == Arg::kInts) return args[i].ints.size();
  return 0;
}
template <size_t kDims>
bool other_window(const Operand *args, int n) {
  return window_dims(args, n) != kDims || rank(args[0]) < kDims + 1 || rank(args[0]) > kDims + 2;
}
bool dilated(const Operand *args, int n) {
  int list = 0;
  for (int i = 0; i < n; ++i) {
    if (args[i].kind != Arg::kInts || ++list != 4) continue;  // kernel_size, stride, padding, dilation
    for (int64_t d : args[i].ints)
      if (d != 1) return true;
  }
  return false;
}
// CANN's gradient of a maximum takes float32, and int32 positions. Other pooling operators give int64 positions.
bool max_gradient_of_other_types(const Operand *args, int) {  // self, grad, indices, ...
  return args[0].tensor->data_type() != mindspore::kNumberTypeFloat32 ||
         args[2].tensor->data_type() != mindspore::kNumberTypeInt32;
}
bool size_and_scales(const Operand *args, int n) {
  bool size = false, scales = false;
  for (int i = 1; i < n; ++i) {
    size = size || args[i].kind == Arg::kInts;
    scales = scales || args[i].kind == Arg::kFloats;
  }
  return size && scales;
}

constexpr Limit kNoDims = {without_dims, "a tensor without dims"};
constexpr Limit kEmpty = {is_empty, "an empty tensor"};
constexpr Limit kIntegers = {integers, "integers"};
constexpr Limit kBools = {bools, "bools"};
constexpr Limit kFloat64 = {float64, "float64"};
constexpr Limit kFloat16 = {float16, "float16"};
constexpr Limit kBfloat16 = {bfloat16, "bfloat16"};
constexpr Limit kWindow2d = {other_window<2>, "a window of other than two dims"};
constexpr Limit kWindow3d = {other_window<3>, "a window of other than three dims"};
constexpr Limit kDilated = {dilated, "a dilated window"};
constexpr Limit kSizeAndScales = {size_and_scales, "sizes and scales together"};
constexpr const char *kAbsentWeight = "an absent weight";

// What each operator does not take
const std::unordered_map<std::string, std::vector<Limit>> &limits() {
  static const std::unordered_map<std::string, std::vector<Limit>> table = {
      {"AdaptiveAvgPool2DExt", {kIntegers, kEmpty, kWindow2d}},
      {"AdaptiveAvgPool2DGradExt", {kIntegers, kEmpty, kWindow2d}},
      {"AdaptiveAvgPool3DExt", {kIntegers, kEmpty, kWindow3d}},
      {"AdaptiveAvgPool3DGradExt", {kIntegers, kEmpty, kWindow3d}},
      {"AdaptiveMaxPool2D", {kIntegers, kEmpty, kWindow2d}},
      {"Addbmm", {kIntegers}},
      {"Addmm", {kIntegers}},
      {"Addmv", {kIntegers, kBfloat16}},
      {"AvgPool2D", {kIntegers, kEmpty, kWindow2d}},
      {"AvgPool2DGrad", {kIntegers, kEmpty, kWindow2d}},
      {"AvgPool3DExt", {kIntegers, kEmpty, kWindow3d}},
      {"AvgPool3DGradExt", {kIntegers, kEmpty, kWindow3d}},
      {"Baddbmm", {kIntegers}},
      {"BatchMatMul", {kIntegers}},
      {"BatchMatMulExt", {kIntegers}},
      {"BatchNormExt", {{ranks_2_to_5, "a tensor of fewer than two or more than five dims"}}},
      {"Ceil", {kIntegers}},
      {"ClampTensor", {kBools, {wider_bounds, "bounds with other sizes than the tensor"}}},
      {"Convolution", {kIntegers}},
      {"ConvolutionStr", {kIntegers}},
      {"Cummax", {kNoDims}},
      {"CumminExt", {kNoDims}},
      {"Dense", {kIntegers}},
      {"Dot", {kIntegers}},
      {"GatherD", {kNoDims, {positions_of_other_types, "an index that is not int32 or int64"}}},
      {"GridSampler2D", {kFloat16}},
      {"GridSampler2DGrad", {kFloat16}},
      {"GroupNorm", {{absent<2>, kAbsentWeight}}},      // input, groups, weight
      {"GroupNormGrad", {{absent<4>, kAbsentWeight}}},  // gradient, input, mean, rstd, weight
      {"HistcExt", {kBfloat16}},
      {"Im2ColExt", {kIntegers}},
      {"InplaceIndexPut", {{absent_positions, "dims without an index"}}},
      {"LinSpaceExt", {{no_steps, "zero steps"}}},
      {"LinalgVectorNorm", {kFloat64}},
      {"LogSoftmax", {kNoDims}},
      {"LogSoftmaxGrad", {kNoDims}},
      {"MatMul", {kIntegers}},
      {"MatMulExt", {kIntegers}},
      {"MaxDim", {kEmpty}},
      {"MaxPoolGradWithIndices",
       {kEmpty, kWindow2d, kDilated, {max_gradient_of_other_types, "other than float32 values and int32 positions"}}},
      {"MaxPoolWithIndices", {kIntegers, kEmpty, kWindow2d, kDilated}},
      {"MinDim", {kEmpty}},
      {"MishExt", {kBfloat16}},
      {"MishGradExt", {kBfloat16}},
      {"Mm", {kIntegers}},
      {"Mv", {kIntegers}},
      {"OneHotExt", {kEmpty}},
      {"PReLU", {{weight_with_dims, "a weight of several dims"}}},
      {"Polar", {{other_shapes, "operands of different shapes"}}},
      {"RmsNorm", {{absent<1>, kAbsentWeight}, kEmpty}},  // input, weight
      {"ScatterAddExt", {kNoDims}},
      {"SearchSorted", {kBfloat16}},
      {"Softmax", {kNoDims}},
      {"SoftmaxBackward", {kNoDims}},
      {"Square", {kBools}},
      {"Trunc", {kIntegers}},
      {"UpsampleBicubic2D", {kSizeAndScales}},
      {"UpsampleBilinear2D", {kSizeAndScales}},
      {"UpsampleLinear1D", {kSizeAndScales}},
      {"UpsampleNearest1D", {kSizeAndScales}},
      {"UpsampleNearest2D", {kSizeAndScales}},
      {"UpsampleNearest3D", {kSizeAndScales}},
      {"UpsampleTrilinear3D", {kSizeAndScales}},
      {"Vdot", {kIntegers}},
  };
  return table;
}

bool has_complex(const Operand *args, int n) {
  for (int i = 0; i < n; ++i) {
    if (args[i].kind == Arg::kDType && is_complex(args[i].dtype)) return true;
    if (args[i].kind == Arg::kScalar && args[i].scalar.kind == Scalar::kComplex) return true;
  }
  return any_tensor(args, n, [](const TensorPtr &t) { return is_complex(from_ms(t->data_type())); });
}

// Operators that move elements without computing with them
bool only_moves(const Operator &op) {
  static const std::set<std::string> names = {"Clone", "Contiguous", "InplaceCopy"};
  return names.count(op.name) > 0;
}

// A copy between complex and real numbers
bool converts_complex(const Operator &op, const Operand *args) {
  return op.name == "InplaceCopy" &&
         is_complex(from_ms(args[0].tensor->data_type())) != is_complex(from_ms(args[1].tensor->data_type()));
}

}  // namespace

HostCalls &host_calls() {
  static HostCalls calls;
  return calls;
}

std::vector<std::pair<std::string, std::string>> npu_limits() {
  std::vector<std::pair<std::string, std::string>> all;
  for (auto &[name, reasons] : limits())
    for (const Limit &limit : reasons) all.emplace_back(name, limit.reason);
  std::sort(all.begin(), all.end());
  return all;
}

void note_host_call(const std::string &name, const char *reason) {
  if (++host_calls()[{name, reason ? reason : ""}] > 1) return;
  const std::string message =
      text(name,
           reason ? text(": MindSpore's operator for the NPU does not take ", reason, ". The call")
                  : std::string(": MindSpore has no such operator for the NPU. It"),
           " is computed on the host, which copies its operands (docs/ascend.md)");
  if (PyErr_WarnEx(PyExc_UserWarning, message.c_str(), 1) < 0) throw PythonError{};
}

const char *why_not_on_npu(const Operator &op, const Operand *args, int n) {
  if (has_complex(args, n) && (!only_moves(op) || converts_complex(op, args))) return "complex numbers";
  auto found = limits().find(op.name);
  if (found == limits().end()) return nullptr;
  for (const Limit &limit : found->second)
    if (limit.refuses(args, n)) return limit.reason;
  return nullptr;
}

}  // namespace msa

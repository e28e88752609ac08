// A declared operator. It parses a call by its schema, promotes types, runs, and records the gradient.
#pragma once
#include "../autograd/graph.h"

namespace msa {

enum class ParamType : uint8_t {
  kTensor,
  kTensors,
  kTensorOrScalar,
  kScalar,
  kInt,
  kInts,
  kFloat,
  kFloats,
  kBool,
  kString,
  kDType,
  kAny
};

// The type that has to hold a Python number. For elements of 16 bits, the type of the computation is float32.
enum class NumberLimit : uint8_t { kNone, kElement, kCompute };

struct Param {
  PyObject *name = nullptr;  // interned
  std::vector<PyObject *> aliases;
  ParamType type = ParamType::kAny;
  bool nullable = false, keyword_only = false, required = true;
  bool differentiable = false;             // some formula gives its gradient
  NumberLimit limit = NumberLimit::kNone;  // a number that this type does not hold is an error
  bool floats_only = false;                // the limit counts only for floating point and complex elements
  bool narrow_only = false;                // the limit counts only for integers and 16-bit floats
  PyObject *fallback = nullptr;            // the default value
};

// Tells where the formula of a gradient finds one of its arguments.
struct Need {
  enum Kind : uint8_t { kParam, kResult, kNeeds } kind;
  int index;
  bool shape_only = false;  // the formula uses only shape, dtype and ndim of this parameter
};
struct Formula {
  std::vector<int> params;  // the parameters whose gradients it computes
  PyObject *function = nullptr;
  std::vector<Need> needs;
  bool joint = false;  // it returns a tuple of all gradients
};

enum class Promote : uint8_t { kNone, kDefault, kFloat };

// What autocast does to the floating operands of an operator.
enum class Cast : uint8_t { kNone, kLower, kFloat32, kWidest, kAsGiven, kRefused };
// The two kinds of device that autocast tells apart.
enum AutocastDevice : uint8_t { kHost, kAccelerator, kAutocastDevices };

constexpr int kMaxParams = 40;  // the largest number of parameters of one operator
constexpr int kMaxNeeds = 40;   // the largest number of arguments of one gradient formula, without the gradient

struct Op;
// A gradient in C++ for a frequent operator. It gives the results of the formulas, and is used if no graph of the
// gradient is recorded.
struct OpNode;
using NativeGradient = bool (*)(OpNode &, const TensorPtr &g, Tensors *out);  // false: use the formulas

// Bodies in C++ return false if they do not handle a call, and shortcuts of composites return null. The Python body
// then runs. It also raises all errors.
using NativeBody = bool (*)(const Operand *v, PyObject **slots, Tensors *out);
using PlainCall = PyObject *(*)(const Op &, PyObject **slots);

struct Op {
  std::string name;       // the last part of the qualified name, which PyTorch's messages use
  std::string qualified;  // PyTorch's dotted name, which is the key of the tables of native code
  std::vector<Param> params;
  PyObject *body = nullptr;      // the Python body, or null if `kernel` is called directly
  PyObject *npu_body = nullptr;  // the Python body for tensors in an NPU's memory, or null. It may decline a call
  bool composite = false;        // the body consists of differentiable operators
  bool view = false;
  bool varargs = false;  // the first int[] parameter takes varargs
  int vararg_index = -1;
  const Operator *kernel = nullptr;
  std::string kernel_name;
  // MindSpore's operators that write the results of others into the first operand, by the names of the others. They
  // are used for tensors in an NPU's memory.
  std::unordered_map<std::string, std::string> writers;
  // MindSpore's operators for calls in which one parameter is a Python number. Our kernels need none of them.
  struct WithNumber {
    int param;
    std::string name;
    const Operator *kernel = nullptr;
  };
  std::vector<WithNumber> with_number;
  Promote promote = Promote::kNone;
  std::vector<int> promote_params;
  bool limited = false;  // some parameter has a limit
  std::vector<Formula> formulas;
  bool saves_self = false, saves_result = false, differentiable = false;
  std::vector<bool> read_results;     // by number: whether a gradient reads this result
  PyObject *result_type = nullptr;    // namedtuple class, or null
  PyObject *keyword_names = nullptr;  // tuple of the keyword-only names (for python bodies)
  bool casts = false;                 // autocast has a policy for it on some device
  Cast autocast[kAutocastDevices] = {Cast::kNone, Cast::kNone};
  std::string autocast_refusal;  // the message of Cast::kRefused
  std::string node_name, trace_name;
  // The names of nodes that depend on an argument, as PyTorch's overloads do. The first case that fits counts.
  struct NodeCase {
    enum Kind : uint8_t { kTensor, kNumber, kGiven, kList, kOneDim, kTwoDims };
    std::vector<std::pair<Kind, int>> conditions;  // of parameters, all of which must hold
    std::string name;
  };
  std::vector<NodeCase> node_cases;
  int device_param = -1;  // the number of the parameter `device`
  NativeGradient native = nullptr;
  NativeBody native_body = nullptr;
  PlainCall plain_call = nullptr;
  bool takes_out = false;          // has a form with out=
  bool refuses_bool = false;       // bool operands are an error, as in subtraction
  bool numbers_alone = false;      // takes two numbers without a tensor, as PyTorch's arithmetic does
  bool writes_expanded = false;    // its in-place form accepts a tensor whose elements share memory
  bool separate_operands = false;  // its in-place form refuses operands that share memory with the written tensor
  int converted = -1;              // the parameter whose numbers the result has, as another dtype
  bool chain_of_views = false;     // its node has the name of the last view of a subscript
};

struct OpObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  Op *op;
  bool inplace;
  bool method;  // the form in the class Tensor: without out=, and its first argument must be a tensor
  PyObject *dict;
};
// The types of operators. An object of the first one is a function: as an attribute of a class it stays one, as
// PyTorch's functions from C++ do. One of the second is bound to an instance, as a function of Python is.
extern PyTypeObject op_type, bound_op_type;
inline bool is_operator(PyObject *o) { return Py_TYPE(o) == &op_type || Py_TYPE(o) == &bound_op_type; }

// The graph node of a call of an Op.
struct OpNode final : Node {
  OpNode(const Op *o, size_t outputs) : Node(o->node_name, outputs), op(o) {}
  bool single_use() const override { return op->saves_self || !saved.empty() || op->saves_result; }
  Tensors apply(const Tensors &grads) override;
  void Release() override;
  void rename(const std::string &name) { name_ = name; }
  void set_output_size(size_t n) { output_size_ = n; }

  const Op *op;
  struct Input {
    int edge = -1;
    int count = 1;
    Dims sizes;
    DType dtype = DType::F32;
    int tag = 0;  // of the device that its gradient goes to
    bool tensor = false;
  };
  std::vector<Input> inputs;                      // for each parameter
  std::vector<std::pair<Dims, DType>> list_meta;  // for Tensor[] parameters, in edge order
  std::vector<std::pair<int, SavedTensor>> saved;
  std::vector<std::pair<int, std::vector<SavedTensor>>> saved_lists;
  std::vector<std::pair<int, TensorPtr>> shapes;  // parameters of which only shape and dtype are used
  std::vector<std::pair<int, Ref>> plain;         // other values that the formulas use
  std::vector<SavedTensor> results;
  bool released = false;
  bool in_python = false;  // a __torch_dispatch__ answered the call, and answers the operators of its formulas
  TensorPtr saved_tensor(int param);  // null if it was not saved
  TensorPtr saved_result(int i) { return unpacked(results.at(i)); }

 private:
  // What hooks have unpacked in the call of apply() that runs: they are asked once for each tensor.
  std::vector<std::pair<const SavedTensor *, TensorPtr>> unpacked_;
  TensorPtr unpacked(const SavedTensor &saved);
  Tensors compute(const Tensors &grads);
};

// Sums g to `sizes` and casts it to `dtype`. The result is differentiable if grad mode is on.
TensorPtr reduce_to(const TensorPtr &g, const Dims &sizes, DType dtype);

DType default_dtype();
void set_default_dtype(DType d);
DType promote_types(DType a, DType b);

struct AutocastState {
  bool enabled = false;  // whether autocast is enabled on any device
  struct Device {
    bool enabled = false;
    DType dtype = DType::BF16;
  } devices[kAutocastDevices];
};
AutocastState &autocast_state();

bool init_ops(PyObject *module);

}  // namespace msa

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

struct Param {
  PyObject *name = nullptr;  // interned
  std::vector<PyObject *> aliases;
  ParamType type = ParamType::kAny;
  bool nullable = false, keyword_only = false, required = true;
  PyObject *fallback = nullptr;  // the default value
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

struct Op;
// A gradient in C++ for a frequent operator. It gives the results of the formulas, and is used if no graph of the
// gradient is recorded.
struct OpNode;
using NativeGradient = bool (*)(OpNode &, const TensorPtr &g, Tensors *out);  // false: use the formulas

// Bodies in C++ return false, and shortcuts of composites return null, if they do not handle a call. The Python body
// then runs, and raises errors.
using NativeBody = bool (*)(const Operand *v, PyObject **slots, Tensors *out);
using PlainCall = PyObject *(*)(const Op &, PyObject **slots);

struct Op {
  std::string name;
  std::vector<Param> params;
  PyObject *body = nullptr;  // python body, or null when `kernel` is called directly
  bool composite = false;    // the body consists of differentiable operators
  bool view = false;
  bool varargs = false;  // the first int[] parameter takes varargs
  int vararg_index = -1;
  const Operator *kernel = nullptr;
  std::string kernel_name;
  Promote promote = Promote::kNone;
  std::vector<int> promote_params;
  std::vector<Formula> formulas;
  std::vector<uint8_t> saved_params;  // bit: some formula uses this parameter
  bool saves_self = false, saves_result = false, differentiable = false;
  PyObject *result_type = nullptr;    // namedtuple class, or null
  PyObject *keyword_names = nullptr;  // tuple of the keyword-only names (for python bodies)
  int autocast = 0;                   // 1 lower precision, 2 float32, 3 widest
  std::string node_name, trace_name;
  NativeGradient native = nullptr;
  int device_param = -1;  // the number of the parameter `device`
  NativeBody native_body = nullptr;
  PlainCall plain_call = nullptr;
  bool subtraction = false;
  bool numbers_alone = false;  // takes two numbers without a tensor, as torch's add, sub, mul and div do
  PyObject *doc = nullptr;
};

struct OpObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  Op *op;
  bool inplace;
  PyObject *dict;
};
extern PyTypeObject op_type;

// The graph node of a call of an Op.
struct OpNode final : Node {
  OpNode(const Op *o, size_t outputs) : Node(o->node_name, outputs), op(o) {}
  bool single_use() const override { return op->saves_self || !saved.empty() || op->saves_result; }
  Tensors apply(const Tensors &grads) override;
  void Release() override;
  void rename(const char *name) { name_ = name; }

  const Op *op;
  struct Input {
    int edge = -1;
    int count = 1;
    Dims sizes;
    DType dtype = DType::F32;
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
  TensorPtr saved_tensor(int param) const;
};

NativeGradient native_gradient(const std::string &op_name);
// Sums g to `sizes` and casts it to `dtype`. The result is differentiable if grad mode is on.
TensorPtr reduce_to(const TensorPtr &g, const Dims &sizes, DType dtype);

DType default_dtype();
void set_default_dtype(DType d);
DType promote_types(DType a, DType b);

struct AutocastState {
  bool enabled = false;
  DType dtype = DType::BF16;
};
AutocastState &autocast_state();

bool init_ops(PyObject *module);

}  // namespace msa

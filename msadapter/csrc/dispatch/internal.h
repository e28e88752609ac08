// Declarations that the parts of the dispatcher share.
#pragma once
#include <new>

#include "op.h"

namespace msa {

// n values on the stack, which are constructed as needed, because most calls have few of the possible operands.
template <class T, int Capacity>
class Slots {
 public:
  explicit Slots(int n) : n_(n) {
    for (int i = 0; i < n_; ++i) new (at(i)) T();
  }
  Slots(const T *from, int n) : n_(n) {
    for (int i = 0; i < n_; ++i) new (at(i)) T(from[i]);
  }
  Slots(const Slots &) = delete;
  ~Slots() {
    for (int i = 0; i < n_; ++i) at(i)->~T();
  }
  T *data() { return at(0); }
  T &operator[](int i) { return *at(i); }

 private:
  T *at(int i) { return reinterpret_cast<T *>(bytes_) + i; }
  alignas(T) unsigned char bytes_[sizeof(T) * Capacity];
  int n_;
};
using Operands = Slots<Operand, kMaxParams>;

struct Results {
  Tensors tensors;
  bool single = true;
  bool as_list = false;
  Ref python;  // set if the body returned something other than tensors
};

// The operator with this name. It is looked up once for each place of use.
#define MSA_OPERATOR(name)                           \
  ([] {                                              \
    static const Operator *op = find_operator(name); \
    return op;                                       \
  }())

// ---- node.cpp
Ref result_of_none();
Ref python_tensor(const TensorPtr &t);

// ---- parse.cpp
std::string type_name(PyObject *o);
bool scalar_from(PyObject *o, Scalar *s);
DType scalar_dtype(const Scalar &s);
void convert(const Op &op, int i, PyObject *o, Operand *r);
[[noreturn]] void bad_argument(const Op &op, int i, PyObject *o);
// Raises PyTorch's error if an argument of a composite does not have its declared type, or is an integer that does not
// fit 64 bits. The arguments of other operators are checked when they are converted.
void check_arguments(const Op &op, PyObject **slots);
// Keyword values of a call; `out` receives out= when the schema has no such parameter.
struct Keywords {
  PyObject *names = nullptr;
  PyObject *const *values = nullptr;
  PyObject *out = nullptr;
};
void parse(const Op &op, PyObject *const *args, Py_ssize_t nargs, Keywords *keywords, PyObject **slots, Ref *held);

// ---- promote.cpp
void promote(const Op &op, Operand *v);
TensorPtr raw_cast(const TensorPtr &t, DType d);
// RuntimeError if a number is beyond the declared limit of its parameter. `elements` is the type of the operands.
void check_limits(const Op &op, const Operand *v, DType elements);

// ---- autocast.cpp
inline bool autocasts(const Op &op) { return op.casts && autocast_state().enabled; }
// Casts floating point operands as autocast asks. `slots` then contains the casts, which `hold` keeps alive.
// Returns whether the operator has a policy on the device of its operands.
bool apply_autocast(const Op &op, Operand *v, PyObject **slots, std::vector<Ref> *hold);
// Turns autocast off while an operator runs, so that its inner operators do not cast again, as in PyTorch.
class AutocastPause {
 public:
  explicit AutocastPause(bool pause) : before_(pause && autocast_state().enabled) {
    if (before_) autocast_state().enabled = false;
  }
  ~AutocastPause() {
    if (before_) autocast_state().enabled = true;
  }
  AutocastPause(const AutocastPause &) = delete;

 private:
  bool before_;
};

// ---- out_forms.cpp
// Raises PyTorch's error if the tensors given as out= cannot be written: a differentiable call would have to be
// recorded, or a tensor overlaps itself or an operand. `v` is null for a composite.
void check_out(const Op &op, const Operand *v, PyObject **slots, PyObject *out);

// RuntimeError if the call names another dtype than that of out=. The result of some functions has the dtype, and that
// of functions that create tensors also the device, of out=: these options are set in `slots`, and what is returned
// keeps them alive.
Ref take_options_of_out(const Op &op, PyObject **slots, PyObject *out);

// ---- run.cpp
// Whether an operand that has a gradient formula requires grad.
bool any_requires_grad(const Op &op, const Operand *v);
// Calls f(tensor) for a Python object that is a tensor, or for every tensor in a tuple or list.
template <class F>
void each_tensor_in(PyObject *o, F &&f) {
  if (is_tensor(o)) return f(unwrap(o));
  if (!PyTuple_Check(o) && !PyList_Check(o)) return;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
    if (PyObject *item = PySequence_Fast_GET_ITEM(o, i); is_tensor(item)) f(unwrap(item));
}
Ref call_body(const Op &op, PyObject **objects);
// Replaces tensors by numbers where the schema of a composite has numbers, as PyTorch does. `held` owns the numbers.
void numbers_for_tensors(const Op &op, PyObject **slots, std::vector<Ref> *held);
Ref run_functional(Op &op, Operand *v, PyObject **slots, bool autocast = true);
Ref run_inplace(Op &op, Operand *v, PyObject **slots);
void resolve_kernel(Op &op);
// Returns the MindSpore operator that takes this call's Python number as a number, or null if there is none or
// MindSpore's dispatch is not used.
const Operator *mapping_for_number(const Op &op, const Operand *v);

// ---- native code of declared operators, by their qualified names. A declaration says which of it an operator has.
template <class Function>
using Table = std::unordered_map<std::string, Function>;
const Table<NativeBody> &native_bodies();         // native_bodies.cpp: the most frequent operators
const Table<NativeBody> &native_factories();      // native_factories.cpp
const Table<NativeBody> &native_views();          // native_views.cpp
const Table<NativeGradient> &native_gradients();  // native_gradients.cpp
const Table<PlainCall> &plain_calls();            // plain_calls.cpp: composites

// ---- native_factories.cpp
bool factories_on_cpu();  // whether the default device is the CPU

// ---- native_views.cpp
bool can_view(const TensorPtr &t, const Operand &sizes);  // whether `view` can give the tensor these sizes
// One item of a subscript without tensors; `_region` takes a list of them, four numbers each.
struct RegionItem {
  enum Kind : int64_t { kSelect, kSlice, kNewDim } kind;
  int64_t start, step, length;  // of a slice; `start` is the position that a selection takes
};
class RegionItems {
 public:
  explicit RegionItems(const Dims &numbers) : numbers_(numbers) {}
  size_t size() const { return numbers_.size() / 4; }
  RegionItem operator[](size_t i) const {
    const int64_t *n = &numbers_[4 * i];
    return {static_cast<RegionItem::Kind>(n[0]), n[1], n[2], n[3]};
  }

 private:
  const Dims &numbers_;
};

// ---- subscript.cpp: null (without an error) where the Python body must decide
PyObject *plain_subscript(PyObject *tensor, PyObject *index);

// ---- plain_calls.cpp
Op *op_named(const char *name);

// ---- declare.cpp
PyObject *make_op(PyObject *, PyObject *spec);
PyObject *method_form(PyObject *, PyObject *function);  // the method of Tensor with the declaration of a function
// {"body": [qualified names], "gradient": [...], "call": [...]}: every entry of the tables of native code
PyObject *native_entries(PyObject *, PyObject *);

// ---- raw_calls.cpp
PyObject *call_operator(PyObject *, PyObject *const *args, Py_ssize_t nargs);
PyObject *operator_handle(PyObject *, PyObject *name);

// ---- op.cpp
PyObject *op_call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames);
bool functions_overridden();  // a __torch_function__ mode is active
// Returns what a mode or a tensor subclass returns for the call, or null if they do not handle it.
Ref call_torch_function(PyObject *function, PyObject *args, PyObject *kwargs);

}  // namespace msa

// Declarations that the parts of the dispatcher share.
#pragma once
#include <new>

#include "op.h"

namespace msa {

constexpr int kMaxParams = 40;

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

// ---- run.cpp
Ref call_body(const Op &op, PyObject **objects);
Ref run_functional(Op &op, Operand *v, PyObject **slots);
Ref run_inplace(Op &op, Operand *v, PyObject **slots);
void resolve_kernel(Op &op);
// Casts floating point operands as autocast asks. `slots` then contains the casts, which `hold` keeps alive.
void apply_autocast(const Op &op, Operand *v, PyObject **slots, std::vector<Ref> *hold);

// ---- native_bodies.cpp: bodies of the hottest operators in C++; nullptr where there is none.
NativeBody native_body(const std::string &op_name);

// ---- native_factories.cpp
NativeBody native_factory(const std::string &op_name);
bool factories_on_cpu();  // whether the default device is the CPU

// ---- native_views.cpp
NativeBody native_view(const std::string &op_name);
bool can_view(const TensorPtr &t, const Operand &sizes);  // whether `view` can give the tensor these sizes

// ---- subscript.cpp: null (without an error) where the Python body must decide
PyObject *plain_subscript(PyObject *tensor, PyObject *index);

// ---- plain_calls.cpp: the same for composites
PlainCall plain_call(const std::string &op_name);
Op *op_named(const char *name);

// ---- op.cpp
bool functions_overridden();  // a __torch_function__ mode is active
// Returns what a mode or a tensor subclass returns for the call, or null if they do not handle it.
Ref call_torch_function(PyObject *function, PyObject *args, PyObject *kwargs);

}  // namespace msa

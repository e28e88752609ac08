// How an operator of the aclnn interface is declared:
//
//   ACLNN_OP(Add, (Tensor self, Tensor other, Scalar alpha, Out out), "ops-math/math/add/docs/aclnnAdd.md") {
//     Takes(self, kAll);                       // checks run when the call is planned, on the host
//     FitsBroadcast({self, other}, out);
//     return [=] { ... };                      // the task runs on the stream, later
//   }
//
// The C functions aclnnAddGetWorkspaceSize and aclnnAdd, the check that no required argument is missing, the checks of
// addresses and formats, and the row of the table of operators are all made from the types of the parameters. The page
// names the CANN document that the signature and the checks were taken from; every refusal names it too.
#pragma once
#include <tuple>
#include <utility>

#include "objects.h"
#include "types.h"
#include "../runtime/status.h"

namespace sim {
using Shape = std::vector<int64_t>;
using Task = std::function<void()>;

// ---- the types of parameters
struct Tensor {
  Shape shape, stride;
  int type = 0;
  char *data = nullptr;  // the first element, where the simulator may reach it
  aclTensor *handle = nullptr;
  const char *name = "";

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  int64_t numel() const {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    return count;
  }
  bool floating() const { return IsFloating(type); }
  explicit operator bool() const { return handle != nullptr; }
};
struct Maybe : Tensor {};     // an input that may be missing
struct Out : Tensor {};       // written; for an operator in place, also read
struct MaybeOut : Tensor {};  // written if it is there

struct Scalar {
  bool present = false;
  int type = 0;
  double real = 0;
  int64_t whole = 0;
  bool floating() const { return IsFloating(type); }
  explicit operator bool() const { return present; }
};
struct MaybeScalar : Scalar {};
struct Ints : std::vector<int64_t> {};
struct MaybeInts : std::vector<int64_t> {
  bool present = false;
};
struct Floats : std::vector<float> {};
struct Bools : std::vector<uint8_t> {};
struct Tensors : std::vector<Tensor> {};
struct MaybeTensors : std::vector<Tensor> {
  bool present = false;
};
struct Scalars : std::vector<Scalar> {};
struct Text : std::string {};  // a missing text is ""

// ---- from the arguments of the C function. `Wire` is the type that crosses the interface.
template <class P>
struct Bind {
  using Wire = P;  // a number
  static P From(P value, const char *) { return value; }
};
Tensor BindTensor(const aclTensor *tensor, const char *name, bool required);
Scalar BindScalar(const aclScalar *scalar, const char *name, bool required);
template <class P>
struct BindTensorAs {
  using Wire = const aclTensor *;
  static P From(Wire wire, const char *name) {
    constexpr bool kRequired = std::is_same_v<P, Tensor> || std::is_same_v<P, Out>;
    P bound;
    static_cast<Tensor &>(bound) = BindTensor(wire, name, kRequired);
    return bound;
  }
};
template <>
struct Bind<Tensor> : BindTensorAs<Tensor> {};
template <>
struct Bind<Maybe> : BindTensorAs<Maybe> {};
template <>
struct Bind<Out> : BindTensorAs<Out> {};
template <>
struct Bind<MaybeOut> : BindTensorAs<MaybeOut> {};
template <>
struct Bind<Scalar> {
  using Wire = const aclScalar *;
  static Scalar From(Wire wire, const char *name) { return BindScalar(wire, name, true); }
};
template <>
struct Bind<MaybeScalar> {
  using Wire = const aclScalar *;
  static MaybeScalar From(Wire wire, const char *name) { return {BindScalar(wire, name, false)}; }
};
[[noreturn]] void RefuseMissing(const char *name);
template <class P, class W, bool kRequired>
struct BindArray {
  using Wire = const W *;
  static P From(Wire wire, const char *name) {
    P bound;
    if (wire == nullptr && kRequired) RefuseMissing(name);
    if (wire != nullptr) bound.assign(wire->values.begin(), wire->values.end());
    if constexpr (!kRequired) bound.present = wire != nullptr;
    return bound;
  }
};
template <>
struct Bind<Ints> : BindArray<Ints, aclIntArray, true> {};
template <>
struct Bind<MaybeInts> : BindArray<MaybeInts, aclIntArray, false> {};
template <>
struct Bind<Floats> : BindArray<Floats, aclFloatArray, true> {};
template <>
struct Bind<Bools> : BindArray<Bools, aclBoolArray, true> {};
template <class P, bool kRequired>
struct BindTensors {
  using Wire = const aclTensorList *;
  static P From(Wire wire, const char *name) {
    P bound;
    if (wire == nullptr && kRequired) RefuseMissing(name);
    if constexpr (!kRequired) bound.present = wire != nullptr;
    // An element of a list may be missing: aclnnIndex has no index for an axis that is taken whole.
    if (wire != nullptr) {
      for (const auto *one : wire->values) bound.push_back(BindTensor(one, name, false));
    }
    return bound;
  }
};
template <>
struct Bind<Tensors> : BindTensors<Tensors, true> {};
template <>
struct Bind<MaybeTensors> : BindTensors<MaybeTensors, false> {};
template <>
struct Bind<Scalars> {
  using Wire = const aclScalarList *;
  static Scalars From(Wire wire, const char *name) {
    Scalars bound;
    if (wire == nullptr) RefuseMissing(name);
    for (const auto *one : wire->values) bound.push_back(BindScalar(one, name, true));
    return bound;
  }
};
template <>
struct Bind<Text> {
  using Wire = const char *;
  static Text From(Wire wire, const char *) { return {wire != nullptr ? wire : ""}; }
};

// ---- the table of operators
struct Declaration {
  const char *name;        // "aclnnAdd"
  const char *parameters;  // "(Tensor self, ...)", as it was declared
  const char *page;
  std::vector<std::string> names;  // of the parameters
  Declaration(const char *name, const char *parameters, const char *page);
};
const std::vector<const Declaration *> &Declarations();
// The operator that is planned or runs in this thread, for the texts of refusals.
const Declaration *&Current();

// Plans a call: binds, checks and makes the task. Returns the status of aclnnXGetWorkspaceSize.
Status Plan(const Declaration &declaration, std::function<Task()> prepare, uint64_t *workspace,
            aclOpExecutor **executor);

template <class Tag, class F, F kFunction>
struct Entry;
template <class Tag, class... A, Task (*kFunction)(A...)>
struct Entry<Tag, Task (*)(A...), kFunction> {
  static Status GetWorkspaceSize(typename Bind<A>::Wire... arguments, uint64_t *workspace, aclOpExecutor **executor) {
    auto prepare = [wires = std::make_tuple(arguments...)] { return Call(wires, std::index_sequence_for<A...>()); };
    return Plan(Tag::Describe(), prepare, workspace, executor);
  }
  template <class W, size_t... kAt>
  static Task Call(const W &wires, std::index_sequence<kAt...>) {
    [[maybe_unused]] const auto &names = Tag::Describe().names;
    // braces, so that the arguments are bound from left to right and the first wrong one is named
    return std::apply(kFunction, std::tuple<A...>{Bind<A>::From(std::get<kAt>(wires), names.at(kAt).c_str())...});
  }
};
}  // namespace sim

// The exported symbols jump to functions whose parameters are derived from the declaration, which the preprocessor
// cannot write out. Arguments stay in their registers and on the stack.
#if defined(__x86_64__)
#define ACLNN_JUMP(SLOT) "jmp *" SLOT "(%rip)\n"
#define ACLNN_LAUNCH "jmp SimulatedNpuLaunch@PLT\n"
#elif defined(__aarch64__)
#define ACLNN_JUMP(SLOT) "adrp x16, " SLOT "\nldr x16, [x16, :lo12:" SLOT "]\nbr x16\n"
#define ACLNN_LAUNCH "b SimulatedNpuLaunch\n"
#endif
#define ACLNN_EXPORT(SYMBOL, CODE) ".globl " SYMBOL "\n.type " SYMBOL ",%function\n" SYMBOL ":\n" CODE

#define ACLNN_TEXT(...) #__VA_ARGS__  // after macros among the parameters are expanded
#define ACLNN_OP(NAME, PARAMETERS, PAGE)                                                                         \
  namespace {                                                                                                    \
  struct Tag##NAME {                                                                                             \
    static const Declaration &Describe() {                                                                       \
      static const Declaration one("aclnn" #NAME, ACLNN_TEXT(PARAMETERS), PAGE);                                 \
      return one;                                                                                                \
    }                                                                                                            \
  };                                                                                                             \
  const Declaration &kDeclared##NAME = Tag##NAME::Describe();                                                    \
  }                                                                                                              \
  static Task Function##NAME PARAMETERS;                                                                         \
  extern "C" {                                                                                                   \
  __attribute__((visibility("hidden"), used)) void *simulated_npu_plan_##NAME =                                  \
      reinterpret_cast<void *>(&Entry<Tag##NAME, decltype(&Function##NAME), &Function##NAME>::GetWorkspaceSize); \
  }                                                                                                              \
  asm(".text\n" ACLNN_EXPORT("aclnn" #NAME "GetWorkspaceSize", ACLNN_JUMP("simulated_npu_plan_" #NAME))          \
          ACLNN_EXPORT("aclnn" #NAME, ACLNN_LAUNCH));                                                            \
  static Task Function##NAME PARAMETERS

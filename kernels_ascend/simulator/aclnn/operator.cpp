// Planning and launching of aclnn operators, and the table of them.
#include "operator.h"

#include <string.h>

#include "complex.h"
#include "values.h"
#include "../runtime/counters.h"
#include "../runtime/memory.h"
#include "../runtime/settings.h"
#include "../runtime/stream.h"

namespace sim {
namespace {
// The formats whose elements lie as shape and stride say. Private formats (FRACTAL_NZ = 29, NC1HWC0 = 3, ...) are laid
// out in tiles, which no operator here reads.
constexpr int kPlainFormats[] = {-1, 0, 1, 2, 27, 30, 47};

std::vector<const Declaration *> &Table() {
  static auto *all = new std::vector<const Declaration *>;
  return *all;
}

// The names in "(Tensor self, int64_t dim)": the last word before each comma.
std::vector<std::string> NamesIn(const std::string &parameters) {
  std::vector<std::string> names;
  std::string word;
  for (const char c : parameters) {
    if (isalnum(c) || c == '_') {
      word += c;
    } else {
      if (c == ',' || c == ')') names.push_back(word);
      word.clear();
    }
  }
  return names;
}

bool IsPlain(int format) {
  for (const int plain : kPlainFormats) {
    if (format == plain) return true;
  }
  return false;
}
}  // namespace

Declaration::Declaration(const char *declared, const char *text, const char *document)
    : name(declared), parameters(text), page(document), names(NamesIn(text)) {
  Table().push_back(this);
}
const std::vector<const Declaration *> &Declarations() { return Table(); }
const Declaration *&Current() {
  static thread_local const Declaration *one = nullptr;
  return one;
}

std::vector<std::pair<const aclTensor *, std::string>> &UntakenComplex() {
  static thread_local std::vector<std::pair<const aclTensor *, std::string>> arguments;
  return arguments;
}

void RefuseMissing(const char *name) {
  throw Failure(kNullPointer, Format("%s: the argument '%s' is missing (%s)", Current()->name, name, Current()->page));
}

Tensor BindTensor(const aclTensor *tensor, const char *name, bool required) {
  Tensor bound;
  bound.name = name;
  if (tensor == nullptr) {
    if (required) RefuseMissing(name);
    return bound;
  }
  bound.handle = const_cast<aclTensor *>(tensor);
  bound.shape = tensor->shape;
  bound.stride = tensor->stride;
  bound.type = tensor->type;
  if (bound.rank() > 8) Refuse("'%s' has %lld axes, a device takes at most 8", name, (long long)bound.rank());
  if (!IsPlain(tensor->format)) Refuse("'%s' has the private format %d", name, tensor->format);
  if (bound.type == kBfloat16 && !ChipHasBfloat16()) {
    Refuse("'%s' is BFLOAT16, which %s does not have", name, TheSettings().chip.c_str());
  }
  if (IsComplex(bound.type)) UntakenComplex().emplace_back(tensor, name);
  const size_t size = SizeOf(tensor->type);
  if (bound.numel() > 0 && tensor->data == nullptr) Refuse("'%s' has no memory", name);
  if (tensor->data != nullptr && !IsDevice(tensor->data)) {
    Refuse("'%s' lies at the host address %p", name, tensor->data);
  }
  bound.data = Reach(tensor->data) + tensor->offset * static_cast<int64_t>(size);
  return bound;
}

Scalar BindScalar(const aclScalar *scalar, const char *name, bool required) {
  Scalar bound;
  if (scalar == nullptr) {
    if (required) RefuseMissing(name);
    return bound;
  }
  bound.present = true;
  bound.type = scalar->type;
  ReadNumber(scalar->bytes, scalar->type, &bound.real, &bound.whole);
  return bound;
}

Status Plan(const Declaration &declaration, std::function<Task()> prepare, uint64_t *workspace,
            aclOpExecutor **executor) {
  if (workspace == nullptr || executor == nullptr) {
    return Report(kNullPointer, std::string(declaration.name) + ": nowhere to put the executor");
  }
  *workspace = 0;
  *executor = nullptr;
  Current() = &declaration;
  return Guarded([&] {
    // What the task refuses, it refuses in the name of this operator.
    auto named = [&declaration, prepare = std::move(prepare)]() -> Task {
      Current() = &declaration;
      UntakenComplex().clear();
      Task task = prepare();
      if (!UntakenComplex().empty()) {
        const auto &[tensor, name] = UntakenComplex().front();
        Refuse("'%s' is %s, which is not simulated here", name.c_str(), NameOf(tensor->type).c_str());
      }
      return [&declaration, task = std::move(task)] {
        Current() = &declaration;
        task();
      };
    };
    Task task = named();
    *executor = new aclOpExecutor{declaration.name, std::move(named), std::move(task)};
  });
}
}  // namespace sim

using namespace sim;

// Every aclnnX is this function: it puts the planned task on the stream.
SIM_API int SimulatedNpuLaunch(void *, uint64_t, aclOpExecutor *executor, void *stream) {
  if (executor == nullptr) return Report(kNullPointer, "an operator was launched without an executor");
  Log(1, "%s", executor->name);
  ++Counter(executor->name);
  Status status = kOk;
  const Status bound = Guarded([&] {
    if (executor->moved) {
      executor->task = executor->prepare();
      executor->moved = false;
    }
    Task task = executor->repeatable ? executor->task : std::move(executor->task);
    status = Enqueue(ToStream(stream), std::move(task), executor->name);
  });
  if (!executor->repeatable) delete executor;
  return bound != kOk ? bound : status;
}

// The table of operators as lines "name<tab>parameters<tab>page".
SIM_API const char *SimulatedNpuOperators() {
  static const std::string *text = [] {
    auto *lines = new std::string;
    for (const auto *one : Declarations()) *lines += Format("%s\t%s\t%s\n", one->name, one->parameters, one->page);
    return lines;
  }();
  return text->c_str();
}

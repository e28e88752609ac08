// Records ranges of operators and backward nodes for torch.profiler. Without a profiler it only tests a flag.
#pragma once
#include <string>

#include "bridge.h"

namespace msa {

extern bool tracing;  // read and written with the interpreter's lock held

class TraceScope {
 public:
  TraceScope() = default;
  TraceScope(const TraceScope &) = delete;
  ~TraceScope() {
    if (index_ >= 0) finish();
  }
  // Begins a range `prefix` + `name` in a category of the Chrome trace. The shapes of the `count` operands are kept
  // if the user has asked for them.
  void begin(const char *prefix, const std::string &name, const char *category, PyObject *const *operands = nullptr,
             int count = 0);

 private:
  void finish();
  int64_t index_ = -1;
  uint64_t session_ = 0;
};

bool init_trace(PyObject *module);

}  // namespace msa

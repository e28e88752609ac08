// What every function of the Python module goes through: C++ errors become Python's.
#pragma once
#include "../device/bridge.h"

namespace msa {

template <class F>
PyObject *guarded(F f) {
  try {
    return f();
  } catch (...) {
    translate_exception();
    return nullptr;
  }
}

}  // namespace msa

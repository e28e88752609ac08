// A wrapper for every function of the Python module, which translates C++ exceptions to Python exceptions.
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

// Calls that a __torch_dispatch__ answers.
#pragma once
#include "internal.h"

namespace msa {

// Whether a __torch_dispatch__ answers operators on these arguments: an active mode, or the class of an argument.
bool answered_by_program(PyObject **slots, int n);
// Lets it answer, and records the call. `function` is the Python object of the operator.
Ref run_in_python(Op &op, PyObject *function, bool inplace, PyObject **slots, PyObject *out);
// The same for an operator outside of the table on one tensor, such as detach, and its answer.
bool answered_by_program(PyObject *tensor);
Ref ask_program(const char *name, PyObject *tensor);
bool init_python_dispatch(PyObject *module);

}  // namespace msa

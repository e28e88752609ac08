// Tensors of classes with a __torch_dispatch__. Their numbers are in attributes of a Python object, so the C++ tensor
// keeps the class and the attributes of that object: a tensor that the graph holds is the program's again when Python
// gets it.
#pragma once
#include "bridge.h"

namespace msa {

// From now on `wrap` gives this object, or another one with its class and its attributes if the program has dropped it.
void keep_object(const TensorPtr &t, PyObject *o);
bool has_object(const TensorPtr &t);        // whether `keep_object` was called for it
PyObject *kept_object(const TensorPtr &t);  // a new reference, null without an error if nothing is kept
// Visits what only this tensor keeps, for Python's collector of cycles.
int visit_object(const TensorPtr &t, visitproc visit, void *arg);

}  // namespace msa

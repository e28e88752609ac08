// Facts of a declaration that few operators have and only rare calls need: they are kept beside Op, in a table.
#pragma once
#include "internal.h"

namespace msa {

struct RareFacts {
  std::vector<std::vector<int>> older;  // the positional parameters of deprecated signatures, in their order
  bool warns_expanded = false;          // the in-place form warns of tensors whose elements share memory
  PyObject *out_dtype = Py_None;        // which dtypes out= may have: a word, None without out=
};

// ---- declare.cpp
const RareFacts &rare_facts(const Op &op);

// ---- run.cpp
// RuntimeError if the first argument, which is written, shares memory with another one.
void refuse_shared_arguments(PyObject **slots, int n);
// Whether a native kernel computes each element of the result from one element of every operand.
bool elementwise(const Op &op);

// ---- op.cpp
bool fills_empty();  // whether the memory of new tensors has to be filled, which the Python bodies do

}  // namespace msa

// The signatures of collectives as Python objects.
#pragma once
#include "../distributed/signature.h"
#include "guarded.h"

namespace msa {

std::shared_ptr<Ledger> ledger_of(PyObject *capsule);
PyObject *bytes_of(const Signature &signature);
std::vector<int64_t> counts_from(PyObject *sequence);

}  // namespace msa

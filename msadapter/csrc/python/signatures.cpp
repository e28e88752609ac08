// The Python functions for the signatures of collectives, which are bytes objects there.
#include "signatures.h"

#include <cstring>

#include "arguments.h"

namespace msa {
namespace {

constexpr const char *kLedgerName = "msadapter.Ledger";

void free_ledger(PyObject *capsule) {
  delete static_cast<std::shared_ptr<Ledger> *>(PyCapsule_GetPointer(capsule, kLedgerName));
}

Signature signature_from(PyObject *o) {
  if (!PyBytes_Check(o) || PyBytes_GET_SIZE(o) != sizeof(Signature)) throw ValueError("not a signature");
  Signature s;
  std::memcpy(&s, PyBytes_AS_STRING(o), sizeof s);
  return s;
}

uint64_t number_from(PyObject *o) {
  const unsigned long long value = PyLong_AsUnsignedLongLong(o);
  if (PyErr_Occurred()) throw PythonError{};
  return value;
}

Collective kind_from(PyObject *o) {
  const char *name = PyUnicode_AsUTF8(o);
  if (!name) throw PythonError{};
  for (int i = 1; i < kCollectives; ++i)
    if (!std::strcmp(name, collective_name(static_cast<Collective>(i)))) return static_cast<Collective>(i);
  throw ValueError(text("no collective ", name));
}

MSA_FUNCTION(ledger_open) {
  return guarded([&]() -> PyObject * {
    expect(n, 1);
    return PyCapsule_New(new std::shared_ptr<Ledger>(std::make_shared<Ledger>(integer_of(a[0]))), kLedgerName,
                         free_ledger);
  });
}

MSA_FUNCTION(ledger_unconfirmed) {
  return guarded([&]() -> PyObject * {
    expect(n, 1);
    return PyLong_FromUnsignedLong(ledger_of(a[0])->unconfirmed());
  });
}

// ledger_sign(ledger, early, sequence, kind, dtype, reduction, root, same, sent, received)
MSA_FUNCTION(ledger_sign) {
  return guarded([&]() -> PyObject * {
    expect(n, 10);
    Facts facts{kind_from(a[3])};
    DType dtype;
    if (dtype_from_object(a[4], &dtype)) facts.dtype = static_cast<int>(dtype);
    if (a[5] != Py_None) facts.reduction = static_cast<int>(integer_of(a[5]));
    facts.root = static_cast<int>(integer_of(a[6]));
    facts.same = number_from(a[7]);
    facts.sent = number_from(a[8]);
    facts.received = number_from(a[9]);
    return bytes_of(ledger_of(a[0])->sign(facts, static_cast<uint32_t>(integer_of(a[2])), PyObject_IsTrue(a[1]) == 1));
  });
}

// (kind, dtype or None, reduction or -1, sequence, root or -1, same)
MSA_FUNCTION(signature_fields) {
  return guarded([&]() -> PyObject * {
    expect(n, 1);
    const Signature s = signature_from(a[0]);
    check(s.kind < kCollectives, "a signature has the unknown kind ", static_cast<int>(s.kind));
    PyObject *dtype = s.dtype ? dtype_object(static_cast<DType>(s.dtype - 1)) : Py_None;
    return Py_BuildValue("(sOiIiK)", collective_name(static_cast<Collective>(s.kind)), dtype, s.reduction - 1,
                         s.sequence, static_cast<int>(s.root) - 1, static_cast<unsigned long long>(s.same));
  });
}

// The same signature without the hash of what was before, which a waiting rank cannot compare.
MSA_FUNCTION(signature_alone) {
  return guarded([&]() -> PyObject * {
    expect(n, 1);
    Signature s = signature_from(a[0]);
    s.rooted = 0;
    return bytes_of(s);
  });
}

// signature_sending(signature, sent): the same signature with another sum of what the rank sends
MSA_FUNCTION(signature_sending) {
  return guarded([&]() -> PyObject * {
    expect(n, 2);
    Signature s = signature_from(a[0]);
    s.sent = number_from(a[1]);
    return bytes_of(s);
  });
}

MSA_FUNCTION(signature_sent) {
  return guarded([&]() -> PyObject * {
    expect(n, 1);
    return PyLong_FromUnsignedLongLong(signature_from(a[0]).sent);
  });
}

// signatures_disagreeing(own, all): see disagreeing(). `all` is a buffer with the signatures of some ranks.
MSA_FUNCTION(signatures_disagreeing) {
  return guarded([&]() -> PyObject * {
    expect(n, 2);
    const Signature own = signature_from(a[0]);
    Py_buffer buffer;
    if (PyObject_GetBuffer(a[1], &buffer, PyBUF_SIMPLE) != 0) throw PythonError{};
    std::vector<Signature> all(buffer.len / sizeof(Signature));
    std::memcpy(all.data(), buffer.buf, all.size() * sizeof(Signature));
    PyBuffer_Release(&buffer);
    return PyLong_FromLong(disagreeing(own, static_cast<int>(all.size()), [&](int r) { return &all[r]; }));
  });
}

MSA_FUNCTION(signature_flow) {
  return guarded([&]() -> PyObject * {
    expect(n, 3);
    return PyLong_FromUnsignedLongLong(
        flow(static_cast<int>(integer_of(a[0])), static_cast<int>(integer_of(a[1])), integer_of(a[2])));
  });
}

MSA_FUNCTION(signature_flow_to_all) {
  return guarded([&]() -> PyObject * {
    expect(n, 2);
    return PyLong_FromUnsignedLongLong(flow_to_all(static_cast<int>(integer_of(a[0])), counts_from(a[1])));
  });
}

MSA_FUNCTION(signature_flow_from_all) {
  return guarded([&]() -> PyObject * {
    expect(n, 2);
    return PyLong_FromUnsignedLongLong(flow_from_all(static_cast<int>(integer_of(a[0])), counts_from(a[1])));
  });
}

MSA_FUNCTION(signature_counts) {
  return guarded([&]() -> PyObject * {
    expect(n, 1);
    return PyLong_FromUnsignedLongLong(hash_of(counts_from(a[0])));
  });
}

PyMethodDef signatures_functions[] = {MSA_ENTRY("ledger_open", ledger_open),
                                      MSA_ENTRY("ledger_unconfirmed", ledger_unconfirmed),
                                      MSA_ENTRY("ledger_sign", ledger_sign),
                                      MSA_ENTRY("signature_fields", signature_fields),
                                      MSA_ENTRY("signature_alone", signature_alone),
                                      MSA_ENTRY("signature_sending", signature_sending),
                                      MSA_ENTRY("signature_sent", signature_sent),
                                      MSA_ENTRY("signatures_disagreeing", signatures_disagreeing),
                                      MSA_ENTRY("signature_flow", signature_flow),
                                      MSA_ENTRY("signature_flow_to_all", signature_flow_to_all),
                                      MSA_ENTRY("signature_flow_from_all", signature_flow_from_all),
                                      MSA_ENTRY("signature_counts", signature_counts),
                                      {nullptr, nullptr, 0, nullptr}};

}  // namespace

std::shared_ptr<Ledger> ledger_of(PyObject *capsule) {
  auto *p = static_cast<std::shared_ptr<Ledger> *>(PyCapsule_GetPointer(capsule, kLedgerName));
  if (!p) throw PythonError{};
  return *p;
}

PyObject *bytes_of(const Signature &signature) {
  return PyBytes_FromStringAndSize(reinterpret_cast<const char *>(&signature), sizeof signature);
}

std::vector<int64_t> counts_from(PyObject *o) {
  Ref seq = checked(PySequence_Fast(o, "expected a sequence of ints"));
  std::vector<int64_t> counts;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(seq.get()); ++i)
    counts.push_back(integer_of(PySequence_Fast_GET_ITEM(seq.get(), i)));
  return counts;
}

bool init_signatures(PyObject *module) { return PyModule_AddFunctions(module, signatures_functions) == 0; }

}  // namespace msa

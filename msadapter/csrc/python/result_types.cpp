// The types of named results, such as torch.return_types.max: a tuple whose members have names (CPython's struct
// sequence).
#include <memory>
#include <string>
#include <vector>

#include "arguments.h"

namespace msa {
namespace {

// What CPython keeps pointers to. A type lives as long as the process.
struct NamedResult {
  PyTypeObject type{};
  std::string name;
  std::vector<std::string> names;
  std::vector<PyStructSequence_Field> fields;
};

std::string utf8(PyObject *o) {
  const char *text = PyUnicode_AsUTF8(o);
  if (!text) throw PythonError();
  return text;
}

PyObject *result_repr(PyObject *self) {
  return guarded([&]() -> PyObject * {
    const auto *kind = Py_TYPE(self);
    const Ref names = checked(PyObject_GetAttrString(reinterpret_cast<PyObject *>(Py_TYPE(self)), "__match_args__"));
    std::string text = std::string(kind->tp_name) + "(";
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.get()); ++i) {
      const Ref value = checked(PyObject_Repr(PyTuple_GET_ITEM(self, i)));
      text += (i ? ",\n" : "\n") + utf8(PyTuple_GET_ITEM(names.get(), i)) + "=" + utf8(value.get());
    }
    return PyUnicode_FromString((text + ")").c_str());
  });
}

MSA_FUNCTION(named_result) {  // (name with its module, tuple of the members' names) -> type
  return guarded([&]() -> PyObject * {
    expect(n, 2);
    auto made = std::make_unique<NamedResult>();
    made->name = utf8(a[0]);
    const Py_ssize_t count = PyTuple_Size(a[1]);
    if (count < 0) throw PythonError();
    for (Py_ssize_t i = 0; i < count; ++i) made->names.push_back(utf8(PyTuple_GET_ITEM(a[1], i)));
    for (const auto &name : made->names) made->fields.push_back({name.c_str(), nullptr});
    made->fields.push_back({nullptr, nullptr});
    PyStructSequence_Desc described{made->name.c_str(), nullptr, made->fields.data(), static_cast<int>(count)};
    if (PyStructSequence_InitType2(&made->type, &described) < 0) throw PythonError();
    made->type.tp_repr = result_repr;
    return Py_NewRef(reinterpret_cast<PyObject *>(&made.release()->type));
  });
}

PyMethodDef result_types_functions[] = {MSA_ENTRY("named_result", named_result), {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool init_result_types(PyObject *module) { return PyModule_AddFunctions(module, result_types_functions) == 0; }

}  // namespace msa

#include "trace.h"

#include <pthread.h>
#include <time.h>

namespace msa {

bool tracing = false;

namespace {

struct Event {
  std::string name;
  const char *category;
  int64_t start, end, memory;  // nanoseconds of time.perf_counter_ns(), and bytes allocated minus bytes freed inside
  uint64_t thread;
  Ref shapes, stack;
};
std::vector<Event> events;
uint64_t session = 0;  // a scope that ends after its recording must not write into the next recording
bool with_shapes = false, with_memory = false, with_stack = false;

int64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

Ref sizes_of(PyObject *o) {
  if (is_tensor(o)) {
    const TensorPtr t = unwrap(o);
    const auto &shape = t->shape();
    Ref l = checked(PyList_New(shape.size()));
    for (size_t i = 0; i < shape.size(); ++i) PyList_SET_ITEM(l.get(), i, PyLong_FromLongLong(shape[i]));
    return l;
  }
  Ref l = checked(PyList_New(0));
  if (!PyList_CheckExact(o) && !PyTuple_CheckExact(o)) return l;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
    PyObject *e = PySequence_Fast_GET_ITEM(o, i);
    if (is_tensor(e) && PyList_Append(l.get(), sizes_of(e).get()) < 0) throw PythonError{};
  }
  return l;
}

Ref python_stack() {
  Ref l = checked(PyList_New(0));
  Ref frame = Ref::borrow(reinterpret_cast<PyObject *>(PyEval_GetFrame()));
  while (frame) {
    auto *f = reinterpret_cast<PyFrameObject *>(frame.get());
    Ref code(reinterpret_cast<PyObject *>(PyFrame_GetCode(f)));
    auto *c = reinterpret_cast<PyCodeObject *>(code.get());
    Ref line = checked(PyUnicode_FromFormat("%U(%d): %U", c->co_filename, PyFrame_GetLineNumber(f), c->co_name));
    if (PyList_Append(l.get(), line.get()) < 0) throw PythonError{};
    frame = Ref(reinterpret_cast<PyObject *>(PyFrame_GetBack(f)));
  }
  return l;
}

// trace_start(shapes, memory, stack)
PyObject *trace_start(PyObject *, PyObject *args) {
  int shapes, memory, stack;
  if (!PyArg_ParseTuple(args, "ppp", &shapes, &memory, &stack)) return nullptr;
  events.clear();
  ++session;
  with_shapes = shapes;
  with_memory = memory;
  with_stack = stack;
  tracing = true;
  Py_RETURN_NONE;
}

PyObject *or_none(const Ref &r) { return r ? r.get() : Py_None; }

// trace_stop() -> [(name, category, start, end, thread, memory, shapes, stack)]
PyObject *trace_stop(PyObject *, PyObject *) {
  tracing = false;
  std::vector<Event> seen;
  seen.swap(events);
  const int64_t stopped = now();
  PyObject *list = PyList_New(seen.size());
  for (size_t i = 0; list && i < seen.size(); ++i) {
    const Event &e = seen[i];
    PyObject *t = Py_BuildValue("(ssLLKLOO)", e.name.c_str(), e.category, e.start, e.end ? e.end : stopped, e.thread,
                                e.memory, or_none(e.shapes), or_none(e.stack));
    if (!t)
      Py_CLEAR(list);
    else
      PyList_SET_ITEM(list, i, t);
  }
  return list;
}

PyMethodDef functions[] = {
    {"trace_start", trace_start, METH_VARARGS, "trace_start(shapes, memory, stack): record operators"},
    {"trace_stop", trace_stop, METH_NOARGS, "what was recorded since trace_start"},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void TraceScope::begin(const char *prefix, const std::string &name, const char *category, PyObject *const *operands,
                       int count) {
  Event e{prefix + name, category, 0, 0, 0, static_cast<uint64_t>(pthread_self()), Ref(), Ref()};
  if (with_shapes) {
    e.shapes = checked(PyList_New(count));
    for (int i = 0; i < count; ++i) PyList_SET_ITEM(e.shapes.get(), i, sizes_of(operands[i]).release());
  }
  if (with_stack) e.stack = python_stack();
  if (with_memory) e.memory = -memory_stats().allocated;
  index_ = static_cast<int64_t>(events.size());
  session_ = session;
  events.push_back(std::move(e));
  events.back().start = now();
}

void TraceScope::finish() {
  if (!tracing || session_ != session) return;
  Event &e = events[index_];
  e.end = now();
  if (with_memory) e.memory += memory_stats().allocated;
}

bool init_trace(PyObject *module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace msa

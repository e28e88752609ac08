// The state of __torch_dispatch__ methods in this thread.
#include "below.h"

namespace msa {

PythonDispatch &python_dispatch() {
  thread_local PythonDispatch state;
  return state;
}

BelowGraph::BelowGraph() : before_(python_dispatch()) {
  PythonDispatch &now = python_dispatch();
  now.asked_grad = before_.inside ? before_.asked_grad : grad_.before && !before_.formulas;
  now.inside = true;
  now.formulas = false;
}

BelowGraph::~BelowGraph() {
  PythonDispatch &now = python_dispatch();
  now.inside = before_.inside;
  now.formulas = before_.formulas;
  now.asked_grad = before_.asked_grad;
}

TensorPtr without_history(const TensorPtr &t) {
  if (!has_object(t)) return alias_of(t);
  return unwrap(checked(PyObject_CallMethod(checked(wrap(t)).get(), "detach", nullptr)).get());
}

}  // namespace msa

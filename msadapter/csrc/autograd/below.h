// What __torch_dispatch__ methods run in. They are below the graph, as in PyTorch: a call that a method answers is
// recorded as one operator, and the operators that the method calls are not recorded.
#pragma once
#include "../device/python_objects.h"

namespace msa {

struct PythonDispatch {
  int modes = 0;            // active modes of this thread
  int disabled = 0;         // while it is positive, no method is asked
  bool inside = false;      // a method runs
  bool formulas = false;    // a gradient is computed with recorded operators, although the program asked for no graph
  bool asked_grad = false;  // inside of a method: the grad mode that programs see and set
};
PythonDispatch &python_dispatch();

inline bool modes_active() { return python_dispatch().modes > 0 && python_dispatch().disabled == 0; }
// Whether an operator on this tensor has to be called from Python, because a method may answer it.
inline bool answered_in_python(const TensorPtr &t) { return modes_active() || has_object(t); }

// The scope of a method.
class BelowGraph {
 public:
  BelowGraph();
  ~BelowGraph();
  BelowGraph(const BelowGraph &) = delete;

 private:
  PythonDispatch before_;
  NoGrad grad_;
};

// A tensor with the same numbers and without history: by the method `detach` of a class with a __torch_dispatch__.
TensorPtr without_history(const TensorPtr &t);

}  // namespace msa

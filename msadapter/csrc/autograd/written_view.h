// The history of a result that was written into a view.
#pragma once
#include "graph.h"

namespace msa {

// The node of a write to a view runs inside of the base's CopySlices. A result that it saved is then a view of what the
// CopySlices gives, and its own edges lead to the base, so it cannot be the history of that result itself.
struct WrittenView {
  const Node *writer = nullptr;  // which runs now in this thread, or null
  NodePtr history;
};
WrittenView &written_view();

}  // namespace msa

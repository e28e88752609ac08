"""torch.distributed.autograd: backward passes through calls to other workers.

with context() as number:
    loss = rpc.rpc_sync("worker1", torch.add, args=(t1, t2)).sum()
    backward(number, [loss])
    gradients = get_gradients(number)
"""

from __future__ import annotations

from ... import ops
from ..._host.native import load
from ...autograd.graph import get_gradient_edge
from ._contexts import DistAutogradContext, contexts

__all__ = ["DistAutogradContext", "backward", "context", "get_gradients", "is_available"]

_C = load()


def is_available() -> bool:
    return True


class context:
    """A forward pass and the backward passes through it.

    ``with context() as number`` gives its number, which is the same on all workers. Gradients are kept in the context, not in
    `.grad`, so that several contexts can run at the same time. They are lost at the end of the block.
    """

    def __enter__(self) -> int:
        self.autograd_context = _new_context()
        return self.autograd_context._context_id()

    def __exit__(self, *exc) -> None:
        _release_context(self.autograd_context._context_id())


def backward(context_id: int, roots, retain_graph: bool = False) -> None:
    """Compute the gradients of ``roots`` with respect to the leaves of the context on all workers.

    ``roots`` are tensors with one element. Gradients are added to those that the context has already. Other than in PyTorch,
    results of calls in the context that ``roots`` do not depend on may be left unused. RuntimeError if a worker fails, or if
    the graph has been freed.
    """
    here = contexts()
    if not isinstance(context_id, int) or not isinstance(roots, (list, tuple)):
        raise TypeError(
            "backward(): incompatible function arguments. It takes the number of a context and a list of tensors, got "
            f"{type(context_id).__name__} and {type(roots).__name__}"
        )
    at = here.of(context_id)
    if not roots:
        raise RuntimeError("No tensors provided for gradient computation.")
    for root in roots:
        if not root.requires_grad:
            raise RuntimeError("requires_grad not set on root")
        if root.numel() != 1:
            raise RuntimeError(f"{root.shape} is not a scalar, all roots need to be scalar")
        if root.grad_fn is None:
            raise RuntimeError("the root does not have a valid gradient function.")
    part = at.pass_of(here.next_pass())
    edges = [get_gradient_edge(root)[:2] for root in roots]
    try:
        part.reach(edges, []).wait()
        part.feed(edges, [ops.ones_like(root).detach() for root in roots], bool(retain_graph)).wait()
    finally:
        part.end()


def get_gradients(context_id: int) -> dict:
    """Return the gradients of this worker's leaves in a context, by the leaf."""
    at = contexts().of(context_id)
    with at.lock:
        return dict(at.gradients)


# -- names that PyTorch's own code and tests use -----------------------------------------------------------
def _new_context() -> DistAutogradContext:
    return contexts().new()


def _release_context(context_id: int) -> None:
    contexts().of(context_id)
    contexts().release(context_id)


def _retrieve_context(context_id: int) -> DistAutogradContext:
    return contexts().of(context_id)


def _current_context() -> DistAutogradContext:
    found = contexts().current()
    if found is None:
        raise RuntimeError(
            "Current thread doesn't have a valid autograd context. Please wrap your code using: "
            "`with torch.distributed.autograd.context() as context_id` to generate a valid context"
        )
    return found


def _is_valid_context(context_id: int) -> bool:
    contexts().of(context_id)
    return True


def _get_max_id() -> int:
    """The largest number of a message or context that this worker could give."""
    return contexts().largest_number()


def _get_debug_info() -> dict[str, str]:
    here = contexts()
    with_passes = sum(bool(here.of(number).passes) for number in here.numbers())
    return {"num_current_backward_passes": str(with_passes), "num_autograd_contexts": str(len(here))}

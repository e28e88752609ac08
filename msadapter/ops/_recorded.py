"""Gradients of an operator with a kernel of its own, where their graph is recorded too."""

from __future__ import annotations

from .._host import extensions


def recorded_gradients(function, operands, needs, gs) -> tuple:
    """Return the gradients of ``function(*operands)``, which consists of ordinary operators, with their own graph.

    Args:
        function: returns a tuple of tensors, in the order of ``gs``.
        operands: tensors or None.
        needs: for each operand, whether its gradient is needed. The others get None.
        gs: the gradients of the results. None where there is none.
    """
    # Views, because the hooks of the operands are called for the gradients of the whole graph only.
    own = [x.view_as(x) if needed else x for x, needed in zip(operands, needs, strict=True)]
    made = function(*own)
    given = [(y, g) for y, g in zip(made, gs, strict=True) if g is not None]
    found = extensions.recorded_gradient.value(
        [y for y, _ in given],
        [x for x, needed in zip(own, needs, strict=True) if needed],
        [g for _, g in given],
        create_graph=True,
        allow_unused=True,
    )
    left = iter(found)
    return tuple(next(left) if needed else None for needed in needs)

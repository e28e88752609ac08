"""The tangents of custom Functions, which their jvp computes."""

from __future__ import annotations

from .. import ops
from ..tensor import Tensor
from ._tangents import check_shape, differentiable, laid_out, paused, visible


def tangents_of(inputs) -> list[tuple]:
    """Return (level, tangents of the arguments of a custom Function) for each level at which an argument is dual."""
    found = [
        (level, [level.get(x) if isinstance(x, Tensor) else None for x in inputs]) for level in visible()
    ]
    return [(level, tangents) for level, tangents in found if any(v is not None for v in tangents)]


def apply_jvp(cls, ctx, level, inputs, tangents, outputs) -> None:
    """Give the outputs of a custom Function the tangents that its jvp computes from those of its inputs, at one level.

    An input without a tangent counts as zeros, and as None if the Function does not want its gradients materialized.
    RuntimeError if the tangents do not fit the outputs: their number, what is not a tensor, what is a view, what is written.
    """
    given = tangents
    if ctx._materialize:
        with paused(level):
            given = [
                ops.zeros_like(x.detach()) if t is None and isinstance(x, Tensor) and differentiable(x) else t
                for x, t in zip(inputs, tangents, strict=True)
            ]
    versions = [None if t is None else t._version for t in tangents]
    ctx._in_jvp = True
    try:
        with paused(level):
            found = cls.jvp(ctx, *given)
    finally:
        ctx._in_jvp = False
    found = found if isinstance(found, tuple) else (found,)
    if len(found) != len(outputs):
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected {len(outputs)} but got {len(found)})"
        )
    fixed = {id(t) for t in ctx._non_differentiable}
    for i, (output, tangent) in enumerate(zip(outputs, found, strict=True)):
        if not isinstance(output, Tensor) or not differentiable(output) or id(output) in fixed:
            if tangent is not None:
                raise RuntimeError(
                    f"Function's jvp returned a gradient at position {i}, but  the corresponding forward output is not a "
                    "differentiable Tensor.You should return None at that position instead."
                )
            continue
        place = next((k for k, x in enumerate(inputs) if x is output), None)
        if place is not None and tangents[place] is not None:
            _check_written(tangent, tangents[place], versions[place])
            continue
        _check_view(output, tangent, inputs, tangents)
        if tangent is None:
            continue
        check_shape(output, tangent)
        with paused(level):
            level.put(output, laid_out(tangent, output))


def _check_written(tangent, own, version) -> None:
    """Check what jvp returns for an input that forward has written."""
    if tangent is None or tangent._version == version:
        raise RuntimeError(
            "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying an "
            "input inplace, then the jvp function must modify the corresponding gradient inplace."
        )
    if tangent is not own:
        raise RuntimeError(
            "An inplace custom Function is not returning the forward mode gradients as-is. If the forward is modifying an "
            "input inplace, then the jvp function must modify the gradient inplace and return it as-is."
        )


def _check_view(output, tangent, inputs, tangents) -> None:
    """Check what jvp returns for a view of an input: it must be a view of the input's tangent."""
    base = output._base
    if base is None:
        return
    for x, own in zip(inputs, tangents, strict=True):
        if own is None or (x is not base and x._base is not base):
            continue
        if tangent is None or tangent._base is None:
            raise RuntimeError(
                "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."
            )
        if tangent._base is not (own if own._base is None else own._base):
            if own._base is None:
                raise RuntimeError(
                    "A custom Function is returning a view but the jvp is not returning a view of the given grad input."
                )
            raise RuntimeError(
                "A custom Function is returning a view but the jvp is not returning a view of the same base as the given grad "
                "input."
            )
        return

"""torch.autograd.forward_ad: forward-mode differentiation, operator by operator.

A dual tensor is a value with a tangent. Inside of a level, every operator with a dual argument is run as always, and then the
tangents of its results are computed (``_forward_operators.py``).
"""

from __future__ import annotations

import contextlib
from typing import NamedTuple

from .. import ops
from .._host import extensions
from .._host.native import load
from ..tensor import Tensor
from . import _forward_operators
from ._tangents import (
    Tangents,
    check_shape,
    differentiable,
    enable,
    is_active,
    is_batched,
    laid_out,
    levels,
    paused,
    state,
    visible,
    with_tangent_of,
)

_C = load()
__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]


_NESTED = "Nested forward mode AD is not supported at the moment"


def __getattr__(name: str) -> int:
    """Return the number of the current level, which programs read, or -1 outside of a level."""
    if name == "_current_level":
        return len(levels) - 1
    raise AttributeError(f"module 'torch.autograd.forward_ad' has no attribute {name!r}")


def _is_fwd_grad_enabled() -> bool:
    return state.enabled


class _set_fwd_grad_enabled:
    """Set whether tangents are recorded. As a context manager, restore it at the end."""

    def __init__(self, mode: bool):
        self.previous = state.enabled
        enable(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc) -> None:
        state.enabled = self.previous


class UnpackedDualTensor(NamedTuple):
    """A value and its tangent, or None if it has no tangent."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Begin a level and return its number."""
    if levels:
        raise RuntimeError(_NESTED)
    _begin(Tangents())
    return 0


def exit_dual_level(*, level=None) -> None:
    """End the level and discard its tangents."""
    if not levels and level is None:
        raise RuntimeError("Dual level must be a positive number")
    if not levels or level not in (None, len(levels) - 1):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    _end()


class dual_level:
    """A ``with`` block that begins and ends a level."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc) -> None:
        exit_dual_level()


def _begin(level: Tangents) -> None:
    levels.append(level)
    _C.add_torch_function_modes(1)  # operators ask forward_mode now


def _end() -> None:
    levels.pop()
    _C.add_torch_function_modes(-1)


@contextlib.contextmanager
def _level():
    """A block with a level for a derivative of torch.func, which may be inside of others, but not inside of ``dual_level``."""
    if levels and not levels[-1].of_transform:
        raise RuntimeError(_NESTED)
    _begin(Tangents(of_transform=True))
    try:
        yield
    finally:
        _end()


def _alias(tensor):
    """Return a view of the whole tensor. A class with __torch_dispatch__ is asked for it by the operator alias."""
    kind = type(tensor)
    if not _C.dispatches(tensor):
        return tensor.view_as(tensor)
    return kind.__torch_dispatch__(ops.aten.alias.default, (kind,), (tensor,), {})


def make_dual(tensor, tangent, *, level=None):
    """Return a view of ``tensor`` with a tangent of the same shape. Both are floating point or complex."""
    if level is None and not levels:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    if level is not None and level != len(levels) - 1:
        raise RuntimeError("Invalid level given to _make_dual")
    for name, x in (("primal", tensor), ("tangent", tangent)):
        if not differentiable(x):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {x.dtype}")
    check_shape(tensor, tangent)
    if is_batched(tensor):
        raise RuntimeError(
            "Batching rule not implemented for aten::_make_dual; the fallback path doesn't work on out= or view ops."
        )
    if is_active() and levels[-1].get(tensor) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not supported."
        )
    if is_active() and levels[-1].get(tangent) is not None:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level0 is not supported."
        )
    with paused(levels[-1]):
        made = laid_out(tangent, tensor)
        dual = _alias(tensor)
        if dual.requires_grad:
            levels[-1].sources.append((dual, made.clone()))
            dual = dual.view_as(dual)
        levels[-1].put(dual, made)
    return dual


def unpack_dual(tensor, *, level=None) -> UnpackedDualTensor:
    """Return the value and the tangent of a tensor that was computed from dual tensors."""
    if is_batched(tensor):  # the plain tensor of the whole batch has the tangent
        batches = extensions.batches.value
        primal, tangent = unpack_dual(batches.plain(tensor))
        each = None if tangent is None else batches.tangent_of_each(tangent, tensor)
        return UnpackedDualTensor(batches.wrapped(primal, tensor), each)
    tangent = levels[-1].get(tensor) if is_active() else None
    if tangent is None:
        return UnpackedDualTensor(tensor, None)
    with paused(levels[-1]):
        primal = tensor.view_as(tensor)
    levels[-1].put(primal, None)
    return UnpackedDualTensor(primal, tangent)


def drop_tangent(tensor) -> None:
    """Take the tangents from a tensor that is detached in place."""
    for level in levels:
        level.put(tensor, None)


def take_tangent(tensor, view) -> None:
    """Give a tensor that gets the geometry of its view in place the tangents of this view."""
    with_tangent_of(view, tensor)


def shown_tangent(tensor):
    """Return the tangent that the text of a tensor contains, or None."""
    return next((level.get(tensor) for level in visible()), None)


extensions.forward_mode.provide(_forward_operators.run)
extensions.forward_gradients.provide(_forward_operators.gradients)
extensions.shown_tangent.provide(shown_tangent)
extensions.drop_tangent.provide(drop_tangent)
extensions.take_tangent.provide(take_tangent)

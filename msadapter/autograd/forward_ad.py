"""torch.autograd.forward_ad: forward-mode differentiation, computed with two backward passes.

A dual tensor is a value with a tangent v. When the tangent J v of a result is asked for, the function u ->
J^T u is recorded, and differentiated with respect to u. As it is linear in u, this gives J v. Dual tensors
and their results therefore require grad, and results computed under ``no_grad`` have no tangent.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

from .. import ops
from .._host.native import load
from ..tensor import Tensor
from ._passes import grad
from .grad_mode import enable_grad

_C = load()
__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]
# the (tensor, tangent) pairs of the current level, as the single element of this list; empty outside of a
# level
_level: list = []


def __getattr__(name: str) -> int:
    """Return the number of the current level, which programs read, or -1 outside of a level."""
    if name == "_current_level":
        return len(_level) - 1
    raise AttributeError(f"module 'torch.autograd.forward_ad' has no attribute {name!r}")


class _State(threading.local):
    """Whether a thread records tangents, and whether it computes one now."""

    enabled = True
    pushing = False


_state = _State()


def _is_fwd_grad_enabled() -> bool:
    return _state.enabled


class _set_fwd_grad_enabled:
    """Set whether tangents are recorded. As a context manager, restore it at the end."""

    def __init__(self, mode: bool):
        self.previous, _state.enabled = _state.enabled, bool(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc) -> None:
        _state.enabled = self.previous


class UnpackedDualTensor(NamedTuple):
    """A value and its tangent, or None if it has no tangent."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Begin a level and return its number."""
    if _level:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _level.append([])
    return 0


def exit_dual_level(*, level=None) -> None:
    """End the level and discard its tangents."""
    if not _level:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    _level.pop()


class dual_level:
    """A ``with`` block that begins and ends a level."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc) -> None:
        exit_dual_level()


def make_dual(tensor, tangent, *, level=None):
    """Return ``tensor`` with a tangent of the same shape. Both are floating point or complex."""
    if not _level:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for name, x in (("primal", tensor), ("tangent", tangent)):
        if not (x.dtype.is_floating_point or x.dtype.is_complex):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {x.dtype}")
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            f"Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )
    with enable_grad():
        dual = tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()
    _level[-1].append((dual, tangent))
    return dual


def unpack_dual(tensor, *, level=None) -> UnpackedDualTensor:
    """Return the value and the tangent of a tensor that was computed from dual tensors."""
    if not _level or not _state.enabled:
        return UnpackedDualTensor(tensor, None)
    duals = _level[-1]
    for dual, tangent in duals:
        if tensor is dual:
            return UnpackedDualTensor(_plain(tensor), tangent)
    if not tensor.requires_grad or not duals:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(_plain(tensor), _pushed(tensor, duals))


def is_active() -> bool:
    """Return whether tangents are recorded now: inside of a level."""
    return bool(_level) and _state.enabled


def is_pushing() -> bool:
    """Return whether the running backward computes a tangent.

    Functions with a jvp of their own have no gradient then, because their results are dual tensors themselves.
    """
    return _state.pushing


def apply_jvp(jvp, inputs, outputs, materialize: bool) -> None:
    """Give the outputs of a custom Function the tangents that its jvp computes from those of its inputs.

    An input without a tangent counts as zeros if ``materialize`` is set, and else as None.
    RuntimeError if the number of tangents is not that of the outputs, or one is given for what is no tensor.
    """
    tangents = [unpack_dual(x).tangent if isinstance(x, Tensor) and x.requires_grad else None for x in inputs]
    if all(t is None for t in tangents):
        return
    if materialize:
        tangents = [
            ops.zeros_like(x.detach()) if t is None and isinstance(x, Tensor) else t
            for x, t in zip(inputs, tangents, strict=True)
        ]
    found = jvp(*tangents)
    found = found if isinstance(found, tuple) else (found,)
    if len(found) != len(outputs):
        raise RuntimeError(
            f"jvp returned an incorrect number of forward gradients (expected {len(outputs)}, got {len(found)})"
        )
    for i, (output, tangent) in enumerate(zip(outputs, found, strict=True)):
        if tangent is None:
            continue
        if not isinstance(output, Tensor) or not (output.dtype.is_floating_point or output.dtype.is_complex):
            raise RuntimeError(
                f"Function's jvp returned a gradient at position {i}, but the corresponding forward output is not a "
                "differentiable Tensor.You should return None at that position instead."
            )
        if output.shape != tangent.shape:
            raise RuntimeError(
                f"jvp returned a forward gradient of shape {list(tangent.shape)} at position {i}, where the output has "
                f"the shape {list(output.shape)}"
            )
        _level[-1].append((output, tangent))


def _plain(tensor):
    """Return the value, detached unless leaves of the program itself (other than the duals) are in its graph."""
    own = {_C.gradient_edge(dual)[0] for dual, _ in _level[-1] if dual.is_leaf}
    todo, seen = [_C.gradient_edge(tensor)[0]], set()
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        following = [n for n, _ in node.next_functions if n is not None]
        if not following and node not in own and node.name() == "torch::autograd::AccumulateGrad":
            return tensor
        todo.extend(following)
    return tensor.detach()


def _pushed(tensor, duals):
    """Return the tangent of a tensor, or None if it does not depend on a dual tensor.

    It is the derivative with respect to u of the sum of (J_i^T u) . v_i over the dual tensors.
    """
    with enable_grad():
        u = ops.zeros_like(tensor.detach()).requires_grad_()
        outer, _state.pushing = _state.pushing, True
        try:
            back = grad(
                tensor, [d for d, _ in duals], u, retain_graph=True, create_graph=True, allow_unused=True
            )
        finally:
            _state.pushing = outer
        pairs = [(g, v) for g, (_, v) in zip(back, duals, strict=True) if g is not None]
        if not pairs:
            return None
        pairs = [(g, v) for g, v in pairs if g.requires_grad]
        if not pairs:
            return ops.zeros_like(u.detach())
        linked = any(v.requires_grad for _, v in pairs) or _plain(tensor) is tensor
        outs, vecs = zip(*pairs, strict=True)
        found = grad(outs, u, vecs, create_graph=linked, allow_unused=True)[0]
    return ops.zeros_like(u.detach()) if found is None else found

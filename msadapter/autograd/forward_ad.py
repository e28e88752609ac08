"""torch.autograd.forward_ad: forward-mode differentiation, operator by operator.

A dual tensor is a value with a tangent. Inside of a level, every operator with a dual argument is run as always, and then the
tangents of its results are computed. The table has derivatives for backward passes only, so this takes two of them: with J as
the operator's Jacobian, u -> J^T u is recorded and differentiated with respect to u, which gives J v, because it is linear in u.
A view of a dual tensor has the same view of the tangent as its own, so that a write to one is seen by the other.
"""

from __future__ import annotations

import threading
import weakref
from typing import NamedTuple

from .. import ops
from .._host import extensions
from .._host.native import load
from ..ops._declare import declaration_of
from ..ops._generator import default_generator
from ..tensor import Tensor
from ._passes import grad
from .grad_mode import enable_grad, no_grad

_C = load()
__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]
# the tangents of the current level, as the single element of this list; empty outside of a level
_level: list = []
# Functions that give up the tangent, or do not touch values.
_WITHOUT = {
    "detach",
    "detach_",
    "requires_grad_",
    "retain_grad",
    "backward",
    "register_hook",
    "__get__",
    "__set__",
    "set_",
}


class _Tangents:
    """Tangents by tensor. They live as long as their tensors."""

    def __init__(self):
        self._rows: dict = {}
        # (tensor, tangent) pairs from which the graph of the program leads to its results, so that gradients get tangents too
        self.sources: list = []
        self._hidden: dict = {}
        # bases that got a tangent by a write to a view; the view alone does not keep their Python objects
        self.bases: list = []

    def put(self, tensor, tangent, given: bool = False) -> None:
        """Set the tangent; None means that the tensor has none, whatever its base has. ``given``: by the program."""
        key = id(tensor)
        self._rows[key] = (weakref.ref(tensor, lambda _: self._rows.pop(key, None)), tangent, given)

    def was_given(self, tensor) -> bool:
        return self._rows[id(tensor)][2]

    def hidden(self, tensor):
        """Return a leaf with the tensor's values, which stands in the graph for a dual tensor that requires no grad."""
        key = id(tensor)
        row = self._hidden.get(key)
        if row is None or row[0]() is not tensor or row[1] != tensor._version:
            leaf = tensor.detach().requires_grad_()
            row = weakref.ref(tensor, lambda _: self._hidden.pop(key, None)), tensor._version, leaf
            self._hidden[key] = row
            self.sources.append((leaf, self.get(tensor).clone()))
        return row[2]

    def roots(self) -> list:
        """Return the (tensor, tangent) pairs on which graphs of the level begin."""
        leaves = [(row[0](), row[1]) for row in self._rows.values() if row[1] is not None]
        return self.sources + [(x, v) for x, v in leaves if x is not None and x.is_leaf and x.requires_grad]

    def get(self, tensor):
        """Return the tangent. That of a view is a view of its base's."""
        row = self._rows.get(id(tensor))
        if row is not None and row[0]() is tensor:
            return row[1]
        base = tensor._base if self._rows else None
        row = None if base is None else self._rows.get(id(base))
        if row is None or row[0]() is not base or row[1] is None or base.dtype is not tensor.dtype:
            return None
        made = _same_view(tensor, base, row[1])
        self.put(tensor, made)
        return made


def _is_whole(tensor, base) -> bool:
    """Return whether a view has the elements of its base in the same places."""
    return (
        tensor.shape == base.shape
        and tensor.stride() == base.stride()
        and tensor.storage_offset() == base.storage_offset()
    )


def _same_view(tensor, base, tangent):
    """Return the view of ``tangent`` that ``tensor`` is of ``base``."""
    if tensor.numel() == 0:
        return ops.zeros_like(tensor.detach(), dtype=tangent.dtype)
    offset = tensor.storage_offset() - base.storage_offset() + tangent.storage_offset()
    return tangent.as_strided(tensor.shape, tensor.stride(), offset)


def __getattr__(name: str) -> int:
    """Return the number of the current level, which programs read, or -1 outside of a level."""
    if name == "_current_level":
        return len(_level) - 1
    raise AttributeError(f"module 'torch.autograd.forward_ad' has no attribute {name!r}")


class _State(threading.local):
    """Whether a thread records tangents, and whether it computes with tangents now, so that operators are run without them."""

    enabled = True
    paused = False


_state = _State()


class paused:
    """A ``with`` block in which operators get no tangents."""

    def __enter__(self) -> None:
        self.outer, _state.paused = _state.paused, True

    def __exit__(self, *exc) -> None:
        _state.paused = self.outer


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
    _level.append(_Tangents())
    _C.add_torch_function_modes(1)  # operators ask _run now
    return 0


def exit_dual_level(*, level=None) -> None:
    """End the level and discard its tangents."""
    if not _level or level not in (None, 0):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    _level.pop()
    _C.add_torch_function_modes(-1)


class dual_level:
    """A ``with`` block that begins and ends a level."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc) -> None:
        exit_dual_level()


def make_dual(tensor, tangent, *, level=None):
    """Return a view of ``tensor`` with a tangent of the same shape. Both are floating point or complex."""
    if not _level:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for name, x in (("primal", tensor), ("tangent", tangent)):
        if not _differentiable(x):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {x.dtype}")
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            f"Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )
    if is_active() and _level[-1].get(tensor) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not supported."
        )
    if is_active() and _level[-1].get(tangent) is not None:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level0 is not supported."
        )
    with paused():
        made = _laid_out(tangent, tensor)
        dual = tensor.view_as(tensor)
        if dual.requires_grad:
            _level[-1].sources.append((dual, made.clone()))
            dual = dual.view_as(dual)
        _level[-1].put(dual, made, given=True)
    return dual


def _differentiable(x) -> bool:
    return x.dtype.is_floating_point or x.dtype.is_complex


def _laid_out(tangent, primal):
    """Return the tangent in the memory layout of its primal, so that views of both are alike."""
    if (
        primal.numel() == 0
        or _is_batched(primal)
        or (_is_batched(tangent) and tangent.stride() == primal.stride())
    ):
        return tangent
    if _is_batched(tangent):  # with the layout of its primal, but only as much memory as it needs
        made = ops.empty_strided(primal.shape, primal.stride(), dtype=tangent.dtype, device=tangent.device)
        return ops.zeros_like(tangent).as_strided(made.shape, made.stride()).copy_(tangent)
    count = primal.untyped_storage().nbytes() // primal.dtype.itemsize
    if (
        tangent.stride() == primal.stride()
        and tangent.storage_offset() == primal.storage_offset()
        and tangent.untyped_storage().nbytes() // tangent.dtype.itemsize == count
    ):
        return tangent
    memory = ops.zeros(count, dtype=tangent.dtype, device=tangent.device)
    return memory.as_strided(primal.shape, primal.stride(), primal.storage_offset()).copy_(tangent)


def _is_batched(tensor) -> bool:
    """Return whether a tensor is that of a function inside of vmap."""
    batches = extensions.batches.value
    return batches is not None and isinstance(tensor, batches.kind)


def unpack_dual(tensor, *, level=None) -> UnpackedDualTensor:
    """Return the value and the tangent of a tensor that was computed from dual tensors."""
    tangent = _level[-1].get(tensor) if is_active() else None
    if tangent is None:
        return UnpackedDualTensor(tensor, None)
    with paused():
        primal = tensor.view_as(tensor)
    _level[-1].put(primal, None)
    return UnpackedDualTensor(primal, tangent)


def is_active() -> bool:
    """Return whether tangents are recorded now: inside of a level."""
    return bool(_level) and _state.enabled


# ---- operators
def _tensors(value, found: list) -> list:
    """Collect the tensors of arguments or results."""
    if isinstance(value, Tensor):
        found.append(value)
    elif isinstance(value, (list, tuple)):
        for v in value:
            _tensors(v, found)
    elif isinstance(value, dict):
        for v in value.values():
            _tensors(v, found)
    return found


def _replaced(value, by: dict):
    """Return arguments with other tensors in place of those whose ids are keys of ``by``."""
    if isinstance(value, Tensor):
        return by.get(id(value), value)
    if isinstance(value, dict):
        return {k: _replaced(v, by) for k, v in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_replaced(v, by) for v in value)
    return value


def _run(function, args, kwargs):
    """Run an operator with dual arguments. NotImplemented if it has none, so that it is run as always."""
    if not _level or _state.paused or not _state.enabled:
        return NotImplemented
    tangents = _level[-1]
    name = getattr(function, "__name__", "")
    if name in _WITHOUT:
        return NotImplemented
    given = _tensors([args, kwargs], [])
    duals = {id(x): (x, v) for x in given if (v := tangents.get(x)) is not None}
    if not duals:
        return NotImplemented
    if isinstance(kwargs.get("out"), (Tensor, tuple, list)):
        raise NotImplementedError(
            f"Trying to use forward AD with {name}_out that does not support it because it is an out= function"
        )
    with paused():
        run = _run_in_place if _writes(function, name) else _run_new
        return run(function, args, kwargs, duals)


def _writes(function, name: str) -> bool:
    if name == "__setitem__" or (
        name.startswith("__i") and name.endswith("__") and name not in ("__index__", "__int__")
    ):
        return name not in ("__invert__",)
    return declaration_of(function)[1] or (name.endswith("_") and not name.endswith("__"))


class _SameNumbers:
    """Two runs of a random operator that draw the same numbers."""

    def __init__(self, function):
        declaration = declaration_of(function)[0]
        random = declaration is None or declaration.facts.random
        self.state = default_generator().get_state() if random else None

    def again(self) -> None:
        if self.state is not None:
            self.after = default_generator().get_state()
            default_generator().set_state(self.state)

    def finish(self) -> None:
        if self.state is not None:
            default_generator().set_state(self.after)


def _run_new(function, args, kwargs, duals):
    numbers = _SameNumbers(function)
    result = function(*args, **kwargs)
    own = {id(x) for x in _tensors([args, kwargs], [])}
    outputs = _tensors(result, [])
    shadows = _shadows(duals) if any(o.requires_grad and id(o) not in own for o in outputs) else None
    if shadows:  # a backward pass must reach the duals that require no grad
        numbers.again()
        result = function(*_replaced(args, shadows), **_replaced(kwargs, shadows))
        outputs = _tensors(result, [])
    places = [
        i
        for i, o in enumerate(outputs)
        if id(o) not in own and _differentiable(o) and not _is_view_of_dual(o, shadows or {}, duals)
    ]
    if places:
        numbers.again()
        found = _tangents_of(
            function.__name__, lambda a, k: _tensors(function(*a, **k), []), args, kwargs, duals
        )
        numbers.finish()
        for i in places:
            if found[i] is not None:
                _level[-1].put(outputs[i], _laid_out(found[i], outputs[i]))
    return result


def _is_view_of_dual(output, shadows: dict, duals) -> bool:
    """Give a view of a dual argument the same view of its tangent. Return whether it is one, or has a tangent for that reason."""
    base = output._base
    if base is None:
        return False
    for key, (x, tangent) in duals.items():
        x = shadows.get(key, x)
        if (base is x or base is x._base) and output.dtype is x.dtype:
            _level[-1].put(output, _same_view(output, x, tangent))
            return True
    return _level[-1].get(output) is not None


def _shadows(duals) -> dict:
    return {key: _level[-1].hidden(x) for key, (x, _) in duals.items() if not x.requires_grad}


def _run_in_place(function, args, kwargs, duals):
    target = args[0]

    def apart(a, k):
        batched = any(map(_is_batched, _tensors([a, k], [])))
        written = (extensions.batches.value.whole(a[0]) if batched else a[0]).clone()
        function(written, *a[1:], **k)
        return [written]

    numbers = _SameNumbers(function)
    found = None
    if _differentiable(target):
        (found,) = _tangents_of(function.__name__, apart, args, kwargs, duals)
    numbers.again()
    shadows = _shadows({k: d for k, d in duals.items() if d[0] is not target})
    linked = _C.is_grad_enabled() and any(x.requires_grad for x in _tensors([args, kwargs], []))
    result = (
        function(target, *_replaced(args[1:], shadows), **_replaced(kwargs, shadows))
        if linked
        else function(*args, **kwargs)
    )
    tangents = _level[-1]
    own = tangents.get(target)
    if own is not None:
        with enable_grad() if found is not None and found.requires_grad else no_grad():
            own.zero_() if found is None else own.copy_(found)
    elif found is not None:
        base = target._base
        if base is None or base.dtype is not target.dtype:
            tangents.put(target, _laid_out(found, target))
        else:  # the base gets a tangent, which is zero elsewhere
            zeros = ops.zeros_like(base.detach(), dtype=found.dtype)
            if _is_batched(found) and not _is_batched(base):
                zeros = extensions.batches.value.wrapped(
                    extensions.batches.value.plain(extensions.batches.value.whole(zeros)).clone(), found
                )
            whole = _laid_out(zeros, base)
            own = whole if _is_whole(target, base) else _same_view(target, base, whole)
            own.copy_(found)
            tangents.put(base, whole)
            tangents.bases.append(base)
            tangents.put(target, own)
    return result


def _tangents_of(name, function, args, kwargs, duals) -> list:
    """Return the tangent of each output of ``function(args, kwargs)``, and None for an output that depends on no dual tensor."""
    recording = _C.is_grad_enabled()
    linked = recording and (
        any(x.requires_grad for x in _tensors([args, kwargs], []))
        or any(v.requires_grad for _, v in duals.values())
    )
    with enable_grad():
        leaves = {
            key: x.view_as(x) if linked and x.requires_grad else x.detach().requires_grad_()
            for key, (x, _) in duals.items()
        }
        vectors = [v for _, v in duals.values()]
        batches = extensions.batches.value
        inside = batches is not None and any(
            isinstance(x, batches.kind) for x in (*vectors, *_tensors([args, kwargs], []))
        )
        if inside:  # every tensor gets all batch dims, so that the elements of the batches do not depend on each other
            leaves = {key: batches.whole(x) for key, x in leaves.items()}
        outputs = function(_replaced(args, leaves), _replaced(kwargs, leaves))
        try:
            if inside:
                plain = [batches.plain(x) for x in leaves.values()]
                directions = [batches.plain(batches.whole(v)) for v in vectors]
                whole = [batches.whole(o) for o in outputs]
                found = [_pushed(batches.plain(o), plain, directions, linked) for o in whole]
                return [
                    None if v is None else batches.wrapped(v, o) for v, o in zip(found, whole, strict=True)
                ]
            return [_pushed(o, list(leaves.values()), vectors, linked) for o in outputs]
        except NotImplementedError as error:
            raise NotImplementedError(
                f"Trying to use forward AD with {name} that does not support it because it has not been implemented yet."
            ) from error


def _pushed(output, leaves, vectors, linked: bool):
    """Return the derivative with respect to u of the sum of (J_i^T u) . v_i over the dual arguments."""
    if not output.requires_grad or not _differentiable(output):
        return None
    u = ops.zeros_like(output.detach()).requires_grad_()
    back = grad(output, leaves, u, retain_graph=True, create_graph=True, allow_unused=True)
    pairs = [(g, v) for g, v in zip(back, vectors, strict=True) if g is not None]
    if not pairs:
        return None
    pairs = [(g, v) for g, v in pairs if g.requires_grad]
    if not pairs:
        return ops.zeros_like(u.detach())
    outs, vecs = zip(*pairs, strict=True)
    found = grad(outs, u, vecs, create_graph=linked, allow_unused=True)[0]
    if found is None:
        return ops.zeros_like(u.detach())
    # The derivative of a copy is the tangent itself, which a write to the copy must not change.
    shared = any(found.data_ptr() == v.data_ptr() for v in vectors)
    return found.clone() if shared else found


def _gradients(run, outer, create_graph: bool):
    """Return the gradients that ``run(grad_outputs, create_graph)`` computes, and give them tangents."""
    if not is_active() or _state.paused:
        return run(outer, create_graph)
    tangents = _level[-1]
    given = [
        x if x is None or x.requires_grad or tangents.get(x) is None else tangents.hidden(x) for x in outer
    ]
    roots = tangents.roots()
    if not roots:
        return run(outer, create_graph)
    with paused():
        found = run(given, True)
        leaves, vectors = map(list, zip(*roots, strict=True))
        with enable_grad():
            pushed = [None if g is None else _pushed(g, leaves, vectors, create_graph) for g in found]
        if not create_graph:
            found = tuple(None if g is None else g.detach() for g in found)
        for g, v in zip(found, pushed, strict=True):
            if v is not None:
                tangents.put(g, _laid_out(v, g))
    return found


# ---- custom Functions
def tangents_of(inputs) -> list | None:
    """Return the tangents of the arguments of a custom Function, or None if no argument is dual."""
    if not is_active() or _state.paused:
        return None
    found = [_level[-1].get(x) if isinstance(x, Tensor) else None for x in inputs]
    return None if all(v is None for v in found) else found


def apply_jvp(cls, ctx, inputs, tangents, outputs) -> None:
    """Give the outputs of a custom Function the tangents that its jvp computes from those of its inputs.

    An input without a tangent counts as zeros, and as None if the Function does not want its gradients materialized.
    RuntimeError if the tangents do not fit the outputs: their number, what is not a tensor, what is a view, what is written.
    """
    given = tangents
    if ctx._materialize:
        with paused():
            given = [
                ops.zeros_like(x.detach())
                if t is None and isinstance(x, Tensor) and _differentiable(x)
                else t
                for x, t in zip(inputs, tangents, strict=True)
            ]
    versions = [None if t is None else t._version for t in tangents]
    ctx._in_jvp = True
    try:
        with paused():
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
        if not isinstance(output, Tensor) or not _differentiable(output) or id(output) in fixed:
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
        if output.shape != tangent.shape:
            raise RuntimeError(
                f"jvp returned a forward gradient of shape {list(tangent.shape)} at position {i}, where the output has "
                f"the shape {list(output.shape)}"
            )
        with paused():
            _level[-1].put(output, _laid_out(tangent, output))


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
            if _level[-1].was_given(x):
                raise RuntimeError(
                    "A custom Function is returning a view but the jvp is not returning a view of the given grad input."
                )
            raise RuntimeError(
                "A custom Function is returning a view but the jvp is not returning a view of the same base as the given grad "
                "input."
            )
        return


def drop_tangent(tensor) -> None:
    """Take the tangent from a tensor that is detached in place."""
    if _level:
        _level[-1].put(tensor, None)


def shown_tangent(tensor):
    """Return the tangent that the text of a tensor contains, or None."""
    return _level[-1].get(tensor) if is_active() and not _state.paused else None


extensions.forward_mode.provide(_run)
extensions.forward_gradients.provide(_gradients)
extensions.shown_tangent.provide(shown_tangent)
extensions.drop_tangent.provide(drop_tangent)

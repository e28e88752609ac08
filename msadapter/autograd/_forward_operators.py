"""How operators and gradients get tangents.

The table has derivatives for backward passes only, so a tangent takes two of them: with J as the operator's Jacobian,
u -> J^T u is recorded and differentiated with respect to u, which gives J v, because it is linear in u.
"""

from __future__ import annotations

from functools import partial

from .. import ops
from .._host import extensions
from .._host.native import load
from ..ops._declare import declaration_of
from ..ops._generator import default_generator
from ..tensor import Tensor
from ._passes import grad
from ._tangents import (
    differentiable,
    geometry,
    is_batched,
    laid_out,
    overlaps,
    paused,
    same_view,
    stand_in,
    visible,
    with_tangent_of,
)
from .grad_mode import enable_grad, no_grad

_C = load()
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


def run(function, args, kwargs):
    """Run an operator with dual arguments. NotImplemented if it has none, so that it is run as always.

    Inside of vmap only the plain tensors have tangents: with batched arguments vmap's rule calls the operators on these.
    """
    if function.__name__ in _WITHOUT:
        return NotImplemented
    given = _tensors([args, kwargs], [])
    if any(map(is_batched, given)):
        return NotImplemented
    for level in visible():
        duals = {id(x): (x, v) for x in given if (v := level.get(x)) is not None}
        if duals:
            return _run_at(level, function, args, kwargs, duals)
    return NotImplemented


def _run_at(level, function, args, kwargs, duals):
    """Run an operator with arguments that are dual at a level."""
    if isinstance(kwargs.get("out"), (Tensor, tuple, list)):
        raise NotImplementedError(
            f"Trying to use forward AD with {function.__name__}_out that does not support it because it is an out= function"
        )
    with paused(level):
        if not _writes(function, args, kwargs):
            return _run_new(level, function, args, kwargs, duals)
        if not args:  # the written tensor is the first argument, also if it was given by name
            kwargs = dict(kwargs)
            args = (kwargs.pop(declaration_of(function)[0].schema.parameters[0].name),)
        return _run_in_place(level, function, args, kwargs, duals)


def _writes(function, args, kwargs) -> bool:
    """Return whether a call writes its first argument: by the name of the in-place form, or by the argument ``inplace``."""
    name = function.__name__
    if name.endswith("_") and not name.endswith("__"):
        return True
    declaration = declaration_of(function)[0]
    place = (
        next((i for i, p in enumerate(declaration.schema.parameters) if p.name == "inplace"), None)
        if declaration
        else None
    )
    return place is not None and bool(args[place] if len(args) > place else kwargs.get("inplace"))


class _SameNumbers:
    """Two runs of a random operator that draw the same numbers."""

    def __init__(self, function):
        declaration = declaration_of(function)[0]
        random = declaration is None or declaration.facts.random
        self.state = default_generator().get_state() if random else None

    def again(self) -> None:
        if self.state is not None:
            default_generator().set_state(self.state)


def _run_new(level, function, args, kwargs, duals):
    numbers = _SameNumbers(function)
    result = function(*args, **kwargs)
    own = {id(x) for x in _tensors([args, kwargs], [])}
    outputs = _tensors(result, [])
    shadows = _shadows(level, duals) if any(o.requires_grad and id(o) not in own for o in outputs) else None
    if shadows:  # a backward pass must reach the duals that require no grad
        numbers.again()
        result = function(*_replaced(args, shadows), **_replaced(kwargs, shadows))
        outputs = _tensors(result, [])
    places = [
        i
        for i, o in enumerate(outputs)
        if id(o) not in own and differentiable(o) and not _is_view_of_dual(level, o, duals)
    ]
    if places:
        numbers.again()
        found = _tangents_of(
            function.__name__, lambda a, k: _tensors(function(*a, **k), []), args, kwargs, duals
        )
        for i in places:
            if found[i] is not None:
                level.put(outputs[i], laid_out(found[i], outputs[i]))
    return result


def _is_view_of_dual(level, output, duals) -> bool:
    """Give a view of a dual argument the same view of its tangent. Return whether it is one."""
    base = output._base
    for x, tangent in duals.values() if base is not None else ():
        parts = output.dtype is not x.dtype  # of complex numbers, or numbers of which they are the parts
        if parts and (output.dtype.to_real() is not x.dtype.to_real() or is_batched(tangent)):
            continue
        if base is x or base is x._base:
            level.put(output, same_view(output, x, tangent))
            return True
    return False


def _shadows(level, duals) -> dict:
    return {key: level.hidden(x) for key, (x, _) in duals.items() if not x.requires_grad}


def _run_in_place(level, function, args, kwargs, duals):
    target = args[0]

    def apart(a, k):
        others = _tensors([a, k], [])
        batched = any(map(is_batched, others))
        written = (extensions.batches.value.whole(a[0], others) if batched else a[0]).clone()
        function(written, *a[1:], **k)
        return [written]

    numbers = _SameNumbers(function)
    found = None
    if differentiable(target):
        # A graph needs these tangents, and that of the target is overwritten below.
        if _is_linked(args, kwargs, duals):
            duals = {key: (x, v.clone()) for key, (x, v) in duals.items()}
        (found,) = _tangents_of(function.__name__, apart, args, kwargs, duals)
    numbers.again()
    linked = _C.is_grad_enabled() and any(x.requires_grad for x in _tensors([args, kwargs], []))
    shadows = _shadows(level, duals) if linked else {}
    others, options = _replaced(args[1:], shadows), _replaced(kwargs, shadows)
    if id(target) in shadows:  # a backward pass must reach the leaf that stands for what is overwritten
        written = shadows[id(target)].clone()
        function(written, *others, **options)
        target.copy_(written)
    else:
        function(target, *others, **options)
    own = level.get(target)
    if own is not None:
        with enable_grad() if found is not None and found.requires_grad else no_grad():
            own.zero_() if found is None else own.copy_(found)
    elif found is not None:
        base = target._base
        if base is None or base.dtype.to_real() is not target.dtype.to_real():
            level.put_written(target, laid_out(found, target))
        elif geometry(target) == geometry(base):  # a view of the whole has the same tangent
            made = laid_out(found, target)
            level.put_written(base, made)
            level.put(target, made)
        else:  # the base gets a tangent, which is zero elsewhere
            dtype = found.dtype.to_complex() if base.dtype.is_complex else found.dtype.to_real()
            zeros = ops.zeros_like(base.detach(), dtype=dtype)
            if is_batched(found) and not is_batched(base):
                zeros = extensions.batches.value.whole(zeros, [found]).clone()
            level.put_written(base, laid_out(zeros, base))
            level.get(target).copy_(found)
    return target


def _is_linked(args, kwargs, duals) -> bool:
    """Return whether the tangents of results are part of the program's graph."""
    return _C.is_grad_enabled() and (
        any(x.requires_grad for x in _tensors([args, kwargs], []))
        or any(v.requires_grad for _, v in duals.values())
    )


def _tangents_of(name, function, args, kwargs, duals) -> list:
    """Return the tangent of each output of ``function(args, kwargs)``, and None for an output that depends on no dual tensor."""
    linked = _is_linked(args, kwargs, duals)
    with enable_grad():
        leaves = {
            key: x.view_as(x) if linked and x.requires_grad else stand_in(x) for key, (x, _) in duals.items()
        }
        vectors = [v for _, v in duals.values()]
        batches = extensions.batches.value
        inside = any(map(is_batched, vectors))
        if inside:  # every tensor gets the same batch dims, so that the elements of the batches do not depend on each other
            leaves = {key: batches.whole(x, vectors) for key, x in leaves.items()}
        outputs = function(_replaced(args, leaves), _replaced(kwargs, leaves))
        try:
            if inside:
                plain = [batches.plain(x) for x in leaves.values()]
                directions = [batches.plain(batches.whole(v, vectors)) for v in vectors]
                whole = [batches.whole(o, vectors) for o in outputs]
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
    if not output.requires_grad:
        return None
    u = stand_in(ops.zeros_like(output.detach()))
    back = grad(output, leaves, u, retain_graph=True, create_graph=True, allow_unused=True)
    pairs = [(g, v) for g, v in zip(back, vectors, strict=True) if g is not None]
    if not pairs:
        return None
    pairs = [(g, v) for g, v in pairs if g.requires_grad]
    if not pairs:
        return ops.zeros_like(u.detach())
    outs, vecs = zip(*pairs, strict=True)
    (found,) = grad(outs, u, vecs, create_graph=linked)
    # The derivative of a copy is the tangent itself, which a write to the copy must not change.
    shared = any(_address(found) == _address(v) for v in vectors)
    return found.clone() if shared else found


def _address(tensor) -> int:
    """Return the address of a tensor's memory: of that of the whole batch inside of vmap."""
    return (extensions.batches.value.plain(tensor) if is_batched(tensor) else tensor).data_ptr()


def gradients(run, outer, create_graph: bool, used_again=False):
    """Return the gradients that ``run(grad_outputs, create_graph, used_again)`` computes, and give them tangents."""
    for level in visible():
        given = [None if x is None else _on_plain(partial(_hidden, level), x) for x in outer]
        if roots := level.roots():  # those of `given` are among them
            with paused(level):
                return _gradients_at(level, run, given, roots, create_graph)
    return run(outer, create_graph, used_again)


def _gradients_at(level, run, given, roots, create_graph: bool):
    """Return the gradients, with the tangents that they have at a level."""
    found = gradients(run, given, True, used_again=True)  # their derivatives go through the same graph
    leaves, vectors = map(list, zip(*roots, strict=True))

    def followed(g):
        with enable_grad():
            tangent = _pushed(g, leaves, vectors, create_graph)
        made = g if create_graph else with_tangent_of(g, g.detach())
        if tangent is not None:
            # every element of a tangent has memory of its own, and so must those of the tensor
            made = made.clone() if overlaps(made) else made
            level.put(made, laid_out(tangent, made))
        return made

    return tuple(None if g is None else _on_plain(followed, g) for g in found)


def _hidden(level, x):
    """Return the leaf that stands for a dual tensor that requires no grad, or the tensor itself if it is none."""
    return x if x.requires_grad or level.get(x) is None else level.hidden(x)


def _on_plain(function, tensor):
    """Apply a function to a tensor: inside of vmap to the plain tensor of the whole batch."""
    if not is_batched(tensor):
        return function(tensor)
    batches = extensions.batches.value
    return batches.wrapped(function(batches.plain(tensor)), tensor)

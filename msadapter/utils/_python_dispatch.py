"""Operators that Python code implements: ``__torch_dispatch__`` of modes and of tensor subclasses.

A mode receives every operator of the table that runs, before it runs and is recorded. For a composite, these are the operators
that it consists of. A subclass receives the operators that are called with one of its tensors; its results have no gradient.
"""

from __future__ import annotations

import functools
import threading
from contextlib import contextmanager

from .. import ops as _ops
from .._aten import OpOverload, OpOverloadPacket
from .._errors import unsupported
from .._host.native import load
from ..ops._declare import declaration_of, declarations
from ..tensor import Tensor

_C = load()

__all__ = ["TorchDispatchMode", "return_and_correct_aliasing", "is_traceable_wrapper_subclass"]
_state = threading.local()


def modes() -> list:
    """Return the active modes of this thread. The innermost mode is the last one."""
    if not hasattr(_state, "modes"):
        _state.modes = []
    return _state.modes


def _get_current_dispatch_mode():
    """Return the innermost active mode of this thread, or None."""
    active = modes()
    return active[-1] if active else None


class TorchDispatchMode:
    """A ``with`` block in which `__torch_dispatch__(func, types, args, kwargs)` replaces every operator.

    Inside that method the mode is not active, so `func(*args, **kwargs)` runs the operator.
    """

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError(f"{type(self).__name__} has no __torch_dispatch__")

    def __enter__(self):
        modes().append(self)
        _C.add_torch_function_modes(1)
        return self

    def __exit__(self, *exc):
        modes().pop()
        _C.add_torch_function_modes(-1)


class _DisableTorchDispatch:
    """While such an object lives, operators of its thread do not ask a `__torch_dispatch__`."""

    def __init__(self):
        _state.disabled = getattr(_state, "disabled", 0) + 1

    def __del__(self):
        _state.disabled -= 1


class LoggingMode(TorchDispatchMode):
    """Writes the operators that run, with the shapes of their tensors, to a list of lines."""

    def __init__(self, lines: list[str]):
        self.lines = lines

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.lines.append(f"{func}({', '.join(map(_short, args))})")
        return func(*args, **(kwargs or {}))


def _short(value) -> str:
    return f"{value.dtype}{list(value.shape)}" if isinstance(value, Tensor) else repr(value)


@functools.cache
def _leaves() -> dict:
    """Return {function: name} of the operators that do not consist of other operators."""
    leaves = {}
    for name, declared in declarations.items():
        if declared.kind != "composite":
            short = name.removeprefix("nn.functional.").removeprefix("Tensor.").replace(".", "_")
            leaves[declared.function] = leaves[declared.method] = short
            if declared.inplace is not None:
                leaves[declared.inplace] = short + "_"
    return leaves


@functools.cache
def _overload(function) -> OpOverload:
    name = _leaves()[function]
    schema = declaration_of(function)[0].schema
    packet = getattr(_ops.aten, name, None) or OpOverloadPacket(name.removeprefix("_"), function)
    second = schema.parameters[1].type if len(schema.parameters) > 1 else ""
    return packet.Tensor if second == "TensorOrScalar" else packet.default


def answers(value) -> bool:
    """Return whether the class of a value defines `__torch_dispatch__`."""
    return hasattr(type(value), "__torch_dispatch__") and isinstance(value, Tensor)


def _tensors(values, found: list) -> list:
    for value in values:
        if isinstance(value, (list, tuple)):
            _tensors(value, found)
        elif isinstance(value, Tensor):
            found.append(value)
    return found


@contextmanager
def _without(mode):
    active = modes()
    active.pop()
    _C.add_torch_function_modes(-1)
    try:
        yield
    finally:
        active.append(mode)
        _C.add_torch_function_modes(1)


def run_in_mode(operator: OpOverload, args, kwargs):
    """Let the innermost active mode run an operator that a program has defined."""
    mode = modes()[-1]
    types = tuple(dict.fromkeys(type(a) for a in _tensors([*args, *kwargs.values()], []) if answers(a)))
    with _without(mode):
        return mode.__torch_dispatch__(operator, types, tuple(args), kwargs)


def below(function, args, kwargs):
    """Let modes and subclasses run an operator. Return NotImplemented if none of them handles it."""
    if getattr(_state, "disabled", 0):
        return NotImplemented
    active, tensors = modes(), _tensors([*args, *kwargs.values()], [])
    mute = next((a for a in tensors if "_wrapper_device" in a.__dict__ and not answers(a)), None)
    if mute is not None:
        raise NotImplementedError(
            f"{type(mute).__name__} has no memory and no __torch_dispatch__: {function.__name__} cannot run"
        )
    if function not in _leaves() or not (active or any(answers(a) for a in tensors)):
        return NotImplemented
    types = tuple(dict.fromkeys(type(a) for a in tensors if answers(a)))
    if active:
        mode = active[-1]
        with _without(mode):
            return mode.__torch_dispatch__(_overload(function), types, args, kwargs)
    if _C.is_grad_enabled() and any(a.requires_grad for a in tensors if answers(a)):
        raise unsupported(
            f"{_overload(function)}",
            f"gradients through {types[0].__name__}.__torch_dispatch__ are not supported",
        )
    for kind in sorted(types, key=lambda k: -len(k.__mro__)):
        result = kind.__torch_dispatch__(_overload(function), types, args, kwargs)
        if result is not NotImplemented:
            return result
    raise TypeError(
        f"Multiple dispatch failed for '{_overload(function)}'; all __torch_dispatch__ handlers returned "
        f"NotImplemented: {[k.__name__ for k in types]}"
    )


def intercept(cls) -> None:
    """Add the methods that do not exist as operators of the table to a class with a `__torch_dispatch__`."""
    if "detach" not in cls.__dict__:

        def detach(self):
            return type(self).__torch_dispatch__(_ops.aten.detach.default, (type(self),), (self,), {})

        cls.detach = detach


def return_and_correct_aliasing(func, args, kwargs, out):
    """Return `out`, or the written argument if the operator works in place."""
    return args[0] if func.overloadpacket.__name__.endswith("_") and args else out


def is_traceable_wrapper_subclass(value) -> bool:
    """Return whether a tensor, or a class of tensors, has `__tensor_flatten__` and `__tensor_unflatten__`."""
    kind = value if isinstance(value, type) else type(value)
    return (
        issubclass(kind, Tensor)
        and hasattr(kind, "__tensor_flatten__")
        and hasattr(kind, "__tensor_unflatten__")
    )

"""Operators that Python code implements: ``__torch_dispatch__`` of modes and of tensor subclasses.

A mode receives every operator of the table that runs, and a subclass those that are called with one of its tensors. For a
composite, these are the operators that it consists of. Both are below the graph, as in PyTorch: what they answer is recorded as
the result of the operator, and what they call is not recorded.
"""

from __future__ import annotations

import functools
import threading
from contextlib import contextmanager
from inspect import getattr_static

from .. import ops as _ops
from .._aten import OpOverload, OpOverloadPacket
from .._host.native import load
from ..ops._declare import declaration_of, declarations
from ..tensor import Tensor
from ._overloads import NAMES, as_aten_calls, overload_name

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


def _count_modes(more: int) -> None:
    _C.add_torch_function_modes(more)  # every call asks whether somebody answers it
    _C.add_dispatch_modes(more)


def _get_current_dispatch_mode_stack() -> list:
    return list(modes())


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Return whether a mode is active in this thread."""
    return bool(modes()) if include_infra_modes else any(not m.is_infra_mode() for m in modes())


class TorchDispatchMode:
    """A ``with`` block in which `__torch_dispatch__(func, types, args, kwargs)` replaces every operator.

    Inside that method the mode is not active, so `func(*args, **kwargs)` runs the operator.
    """

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Return whether the mode belongs to a library's own machinery. Such a class answers True."""
        return False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError(f"{type(self).__name__} has no __torch_dispatch__")

    def __enter__(self):
        modes().append(self)
        _count_modes(1)
        return self

    def __exit__(self, *exc):
        modes().pop()
        _count_modes(-1)


class _DisableTorchDispatch:
    """While such an object lives, operators of its thread do not ask a `__torch_dispatch__`."""

    def __init__(self):
        _C.disable_dispatch(1)

    def __del__(self):
        _C.disable_dispatch(-1)


def _disabled_torch_dispatch_impl(func, types, args=(), kwargs=None):
    """Run an operator without asking a `__torch_dispatch__`, on the memory that its tensors have as plain tensors."""
    _C.disable_dispatch(1)
    try:
        return func(*args, **(kwargs or {}))
    finally:
        _C.disable_dispatch(-1)


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
def _packet(function) -> tuple[str, OpOverloadPacket, str]:
    """Return the table's name of an operator, its packet, and the type of its second parameter."""
    name = _leaves()[function]
    parameters = declaration_of(function)[0].schema.parameters
    base = name.rstrip("_")
    public = NAMES.get(base, base) + name[len(base) :]
    packet = getattr(_ops.aten, public, None) or OpOverloadPacket(public.removeprefix("_"), function)
    return name, packet, parameters[1].type if len(parameters) > 1 else ""


def answers(value) -> bool:
    """Return whether the class of a value defines `__torch_dispatch__`."""
    return isinstance(value, Tensor) and _is_answering(type(value))


def _is_answering(kind: type) -> bool:
    return getattr_static(kind, "__torch_dispatch__") is not vars(Tensor)["__torch_dispatch__"]


def _tensors(values, found: list) -> list:
    for value in values:
        if isinstance(value, (list, tuple)):
            _tensors(value, found)
        elif isinstance(value, Tensor):
            found.append(value)
    return found


def _types(args, kwargs) -> tuple:
    """Return the classes with a `__torch_dispatch__` among the arguments, each once."""
    return tuple(dict.fromkeys(type(a) for a in _tensors([*args, *kwargs.values()], []) if answers(a)))


@contextmanager
def _pop_mode_temporarily():
    """Leave the innermost mode in this block, and give it."""
    active = modes()
    mode = active.pop()
    _count_modes(-1)
    try:
        yield mode
    finally:
        active.append(mode)
        _count_modes(1)


def run_in_mode(operator: OpOverload, args, kwargs):
    """Let the innermost active mode run an operator that a program has defined."""
    with _pop_mode_temporarily() as mode:
        return mode.__torch_dispatch__(operator, _types(args, kwargs), tuple(args), kwargs)


def refuse_mute(function, args, kwargs):
    """Raise an error for a tensor without memory whose class has no `__torch_dispatch__`. Else return NotImplemented."""
    for a in _tensors([*args, *kwargs.values()], []):
        if "_wrapper_device" in a.__dict__ and not answers(a):
            raise NotImplementedError(
                f"{type(a).__name__} has no memory and no __torch_dispatch__: {function.__name__} cannot run"
            )
    return NotImplemented


def answer(operator: OpOverload, args, kwargs):
    """Return what the innermost mode, or else the class of an argument, answers for an operator."""
    types = _types(args, kwargs)
    if modes():
        with _pop_mode_temporarily() as mode:
            result = mode.__torch_dispatch__(operator, types, args, kwargs)
        if result is not NotImplemented:
            return result
    for kind in sorted(types, key=lambda k: -len(k.__mro__)):
        result = kind.__torch_dispatch__(operator, types, args, kwargs)
        if result is not NotImplemented:
            return result
    raise TypeError(
        f"Multiple dispatch failed for '{operator.__module__}.{operator.__name__}'; all __torch_dispatch__ handlers returned "
        f"NotImplemented:\n\n" + "".join(f"  - tensor subclass {k}\n" for k in types) + _HINT
    )


_HINT = "\nFor more information, try re-running with TORCH_LOGS=not_implemented"


def _answer_call(function, args, kwargs):
    """Return the answer to a call of an operator of the table. The C++ layer records it."""
    name, packet, second = _packet(function)
    args, kwargs = as_aten_calls(name, args, kwargs)
    operator = getattr(packet, overload_name(packet.__name__, args, kwargs, second))
    return _checked(answer(operator, args, kwargs))


def _checked(result):
    """Return an answer. RuntimeError if it is nothing that an operator returns."""
    if result is None or isinstance(result, (Tensor, list, tuple, bool, int, float, complex)):
        return result
    raise RuntimeError(f"Unable to cast {result} to Tensor")


def _answer_named(name: str, tensor: Tensor):
    """Return the answer to an operator on one tensor that is not in the table. It is not recorded."""
    return _checked(answer(getattr(_ops.aten, name).default, (tensor,), {}))


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


_C.set_python_dispatch_handlers((_answer_call, _answer_named))

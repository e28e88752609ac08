"""torch.overrides: __torch_function__ for subclasses and modes."""

from __future__ import annotations

import functools
import threading

from ._native import load
from .tensor import Tensor
from .tensor._tensor import _convert, _DisableTorchFunction

_C = load()
_state = threading.local()


def _modes() -> list:
    if not hasattr(_state, "modes"):
        _state.modes = []
    return _state.modes


def _collect(args, out: list) -> None:
    for a in args:
        if isinstance(a, (list, tuple)):
            _collect(a, out)
        elif hasattr(type(a), "__torch_function__") and not any(type(a) is type(o) for o in out):
            out.append(a)


def dispatch(function, args, kwargs):
    """Gives modes, then the classes of the arguments, a chance; NotImplemented means: run it plainly."""
    result = _functions(function, args, kwargs)
    if result is not NotImplemented:
        return result
    from .utils._python_dispatch import below  # that one needs the table of operators

    return below(function, args, kwargs)


def _handler(value):
    """The function behind a value's __torch_function__."""
    handler = type(value).__torch_function__
    return getattr(handler, "__func__", handler)


def _functions(function, args, kwargs):
    found: list = []
    _collect(args, found)
    _collect(kwargs.values(), found)
    types = tuple(type(f) for f in found)
    modes = _modes()
    if modes:
        mode = modes.pop()
        _C.add_torch_function_modes(-1)
        try:
            return mode.__torch_function__(function, types, args, kwargs)
        finally:
            modes.append(mode)
            _C.add_torch_function_modes(1)
    if _DisableTorchFunction.active():
        return NotImplemented
    overriding = (
        [f for f in found if _handler(f) not in (Tensor.__torch_function__.__func__, _disabled_torch_function_impl)]
        if found
        else []
    )
    plain = [f for f in found if type(f) is not Tensor and _handler(f) is not _disabled_torch_function_impl]
    candidates = overriding or [f for f in plain if _is_subclass_result(f)]
    for f in sorted(candidates, key=lambda f: -len(type(f).__mro__)):
        result = (
            type(f).__torch_function__(function, types, args, kwargs)
            if overriding
            else _plain(function, type(f), args, kwargs)
        )
        if result is not NotImplemented:
            return result
    if overriding:
        raise TypeError(
            f"no implementation found for '{function.__name__}' on types that implement __torch_function__: {list(types)}"
        )
    return NotImplemented


def _is_subclass_result(f) -> bool:
    return not getattr(f, "_is_param", False) and type(f).__name__ not in ("Parameter", "Buffer")


def _plain(function, cls, args, kwargs):
    with DisableTorchFunctionSubclass():
        result = function(*args, **kwargs)
    return _convert(result, cls)


DisableTorchFunction = DisableTorchFunctionSubclass = _DisableTorchFunction


class TorchFunctionMode:
    """Sees every table function called inside."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        _modes().append(self)
        _C.add_torch_function_modes(1)
        return self

    def __exit__(self, *exc):
        _modes().pop()
        _C.add_torch_function_modes(-1)


def has_torch_function(args) -> bool:
    return any(
        type(a) is not Tensor
        and hasattr(type(a), "__torch_function__")
        and type(a).__torch_function__ is not _disabled_torch_function_impl
        for a in args
    )


def has_torch_function_unary(a) -> bool:
    return has_torch_function((a,))


def has_torch_function_variadic(*args) -> bool:
    return has_torch_function(args)


def is_tensor_like(x) -> bool:
    return isinstance(x, Tensor) or hasattr(x, "__torch_function__")


def handle_torch_function(function, relevant_args, *args, **kwargs):
    return dispatch(function, args, kwargs)


def _disabled_torch_function_impl(function, types, args=(), kwargs=None):
    with DisableTorchFunctionSubclass():
        return function(*args, **(kwargs or {}))


def wrap_torch_function(dispatcher):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            if has_torch_function(dispatcher(*args, **kwargs)):
                return dispatch(wrapper, args, kwargs)
            return function(*args, **kwargs)

        return wrapper

    return decorate


_C.set_torch_function_handler(dispatch)
_C._disabled_torch_function_impl = _disabled_torch_function_impl  # where classes ask for it

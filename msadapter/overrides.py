"""torch.overrides: __torch_function__ of tensor subclasses and modes."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading

from ._host import extensions
from ._host.native import load
from ._values.base import DisableTorchFunction
from .ops._declare import namespaces
from .tensor import Tensor
from .tensor._tensor import _convert

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
    """Call the handlers of modes, then those of the arguments' classes.

    NotImplemented means that no handler applies and the function is to be run directly.
    """
    result = _functions(function, args, kwargs)
    if result is not NotImplemented:
        return result
    result = extensions.refused_operand.value(function, args, kwargs)
    forward_mode = extensions.forward_mode.value
    if result is not NotImplemented or forward_mode is None:
        return result
    return forward_mode(function, args, kwargs)


def _handler(value):
    """Return the function behind a value's __torch_function__."""
    handler = type(value).__torch_function__
    return getattr(handler, "__func__", handler)


def _functions(function, args, kwargs):
    found: list = []
    _collect(args, found)
    _collect(kwargs.values(), found)
    types = tuple(type(f) for f in found if not _is_plain_tensor(type(f)) and not _is_parameter(f))
    modes = _modes()
    if modes:
        mode = modes.pop()
        _C.add_torch_function_modes(-1)
        try:
            return mode.__torch_function__(function, types, args, kwargs)
        finally:
            modes.append(mode)
            _C.add_torch_function_modes(1)
    if DisableTorchFunction.active():
        return NotImplemented
    overriding = (
        [
            f
            for f in found
            if _handler(f) not in (Tensor.__torch_function__.__func__, _disabled_torch_function_impl)
        ]
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


def _is_parameter(value) -> bool:
    """Return whether a value's class is that of parameters or buffers, which ``types`` leaves out like those of plain tensors."""
    return type(value).__name__ in ("Parameter", "Buffer")


def _is_subclass_result(f) -> bool:
    return not getattr(f, "_is_param", False) and not _is_parameter(f)


def _plain(function, cls, args, kwargs):
    with DisableTorchFunctionSubclass():
        result = function(*args, **kwargs)
    return _convert(result, cls)


DisableTorchFunctionSubclass = DisableTorchFunction


class TorchFunctionMode:
    """A mode whose __torch_function__ is called for every function inside a ``with`` block."""

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
    """Return whether a value's class has a __torch_function__ of its own.

    Parameters, which add none, do not count. Neither do the classes of other layouts, which in PyTorch are torch.Tensor.
    """
    return any(
        not _is_plain_tensor(type(a))
        and hasattr(type(a), "__torch_function__")
        and type(a).__torch_function__ is not _disabled_torch_function_impl
        and not (_handler(a) is Tensor.__torch_function__.__func__ and not _is_subclass_result(a))
        for a in args
    )


def _is_plain_tensor(cls) -> bool:
    return cls is Tensor or (cls.__module__, cls.__name__) == ("torch", "Tensor")


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


def redispatch_function(func, types, args, kwargs):
    """Run ``func`` without the handlers of tensor subclasses. A __torch_function__ does this at its end."""
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


@functools.cache
def _spaces() -> dict:
    """Return {module or class: {name: table function}} with the public names."""
    root = sys.modules[__package__]
    named = {"torch": root, "Tensor": Tensor}
    found: dict = {}
    for space, functions in namespaces.items():
        owner = named.get(space) or functools.reduce(
            lambda o, part: getattr(o, part, None), space.split("."), root
        )
        if owner is not None and space not in ("return_types", "torch_npu"):
            public = {n: f for n, f in functions.items() if not n.startswith("_")}
            found[owner] = {
                n: vars(owner).get(n, f) for n, f in public.items() if owner is Tensor or _takes_tensors(f)
            }
    return {owner: functions for owner, functions in found.items() if functions}


def _takes_tensors(function) -> bool:
    return "Tensor" in (function.__doc__ or "").partition("->")[0].partition("(")[2]


def get_overridable_functions() -> dict:
    """Return {module or class: functions} for functions that call __torch_function__ of their arguments."""
    return {owner: list(functions.values()) for owner, functions in _spaces().items()}


@functools.cache
def get_ignored_functions() -> set:
    """Return functions of torch and torch.nn.functional that do not call __torch_function__ themselves.

    They take no tensor, or call other functions that do it.
    """
    root = sys.modules[__package__]
    asked = {id(f) for functions in _spaces().values() for f in functions.values()}
    found = set()
    for space in (root, root.nn.functional):
        for name, value in vars(space).items():
            if (
                not name.startswith("_")
                and callable(value)
                and not isinstance(value, type)
                and id(value) not in asked
            ):
                found.add(value)
    return found


def get_testing_overrides() -> dict:
    """Return {function: a function with the same parameters that returns -1} for all that can be overridden."""
    return {f: _dummy(f) for functions in _spaces().values() for f in functions.values()}


def _dummy(function):
    def override(*args, **kwargs):
        return -1

    override.__name__ = override.__qualname__ = function.__name__
    override.__doc__ = function.__doc__
    return override


def resolve_name(f) -> str | None:
    """Return the name by which programs use ``f``, such as torch.add or torch.Tensor.add.

    None for a function that does not belong to torch.
    """
    named = getattr(f, "__self__", None)
    spaces = sorted(
        _spaces().items(), key=lambda row: -len(getattr(row[0], "__name__", ""))
    )  # linalg.inv is preferred to inverse
    for owner, functions in spaces:
        prefix = "torch.Tensor" if owner is Tensor else owner.__name__.replace(__package__, "torch", 1)
        for name, function in functions.items():
            if function is f or (named is not None and function is named):
                return f"{prefix}.{name}"
    return str(f) if type(f).__name__ in ("OpOverload", "OpOverloadPacket") else None


def is_tensor_method_or_property(func) -> bool:
    """Return whether ``func`` is a method of Tensor or the getter of a property."""
    return any(func is f for f in _spaces()[Tensor].values()) or getattr(func, "__name__", "") == "__get__"


@contextlib.contextmanager
def enable_reentrant_dispatch():
    """A block in which operators that a ``__torch_dispatch__`` calls are recorded, as if they were called outside of it."""
    before = _C.leave_dispatch()
    try:
        yield
    finally:
        _C.return_to_dispatch(before)


_C.set_torch_function_handler(dispatch)
extensions.foreign_operand.provide(dispatch)
extensions.overridden.provide(_functions)
_C._disabled_torch_function_impl = _disabled_torch_function_impl  # classes look for the function in torch._C

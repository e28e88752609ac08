"""torch.distributed.rpc.functions: functions whose result comes later."""

from __future__ import annotations

import functools

__all__ = ["async_execution"]


def async_execution(fn):
    """Mark a function that returns a ``torch.futures.Future``. Its caller gets the value of the future, when it is set.

    Meanwhile no thread of the worker waits. Below ``staticmethod`` or ``classmethod`` it is the inner decorator.
    """

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs)

    wrapper._wrapped_async_rpc_function = fn
    return wrapper


def is_async(function) -> bool:
    return hasattr(function, "_wrapped_async_rpc_function")

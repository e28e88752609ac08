"""Calls of functions on other workers."""

from __future__ import annotations

import contextlib
import threading

from ... import futures
from ...futures import Future
from . import state
from .agent import Message
from .constants import UNSET_RPC_TIMEOUT
from .internal import PythonUDF, _internal_rpc_pickler
from .options import WorkerInfo
from .results import value_of

_thread_local_var = threading.local()  # `future_list`: the futures of the block of _wait_all
_pickler = _internal_rpc_pickler


@contextlib.contextmanager
def _use_rpc_pickler(rpc_pickler):
    """Within the block, calls are pickled by another ``_InternalRPCPickler``."""
    global _pickler
    _pickler = rpc_pickler
    try:
        yield
    finally:
        _pickler = _internal_rpc_pickler


def get_worker_info(worker_name=None) -> WorkerInfo:
    """Return the name and the number of a worker, or of this one."""
    return state.agent().get_worker_info(worker_name)


def worker_of(to) -> int:
    """Return the number of a worker. ``to`` is a name, a number or a WorkerInfo."""
    state.agent()
    if isinstance(to, WorkerInfo):
        return to.id
    if isinstance(to, (str, int)):
        return get_worker_info(to).id
    raise ValueError(f"Cannot get WorkerInfo from name {to}")


def packed_call(func, args, kwargs) -> Message:
    """Return the message that asks for a call."""
    if not callable(func):
        raise TypeError("function should be callable.")
    data, tensors = _pickler.serialize(PythonUDF(func, tuple(args or ()), dict(kwargs or {})))
    return Message("call", (), data, tensors)


def _called(to, func, args, kwargs, timeout: float) -> Future:
    worker = worker_of(to)
    answers = state.agent().ask_recorded(worker, packed_call(func, args, kwargs), timeout)
    return value_of(answers, state.references())


def rpc_async(to, func, args=None, kwargs=None, timeout: float = UNSET_RPC_TIMEOUT) -> Future:
    """Call ``func(*args, **kwargs)`` on a worker, and return a future of its result at once.

    ``to`` is a name, a number or a WorkerInfo. The worker must be able to import ``func``. Tensors are copied. Waiting raises
    the error of the function, with the same class, or RuntimeError after ``timeout`` seconds (0: no timeout).
    """
    result = _called(to, func, args, kwargs, timeout)
    if hasattr(_thread_local_var, "future_list"):
        _thread_local_var.future_list.append(result)
    return result


def rpc_sync(to, func, args=None, kwargs=None, timeout: float = UNSET_RPC_TIMEOUT):
    """Call ``func(*args, **kwargs)`` on a worker and return its result (see ``rpc_async``)."""
    return _called(to, func, args, kwargs, timeout).wait()


@contextlib.contextmanager
def _wait_all():
    """Wait at the end of the block for all calls that ``rpc_async`` has begun in it, in this thread."""
    _thread_local_var.future_list = []
    try:
        yield
    finally:
        try:
            futures.wait_all(_thread_local_var.future_list)
        finally:
            del _thread_local_var.future_list

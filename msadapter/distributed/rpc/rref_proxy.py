"""Calls of the methods of a value through its reference."""

from __future__ import annotations

import functools

from ...futures import Future
from .constants import UNSET_RPC_TIMEOUT
from .functions import async_execution, is_async


def _call(rref, name: str, args: tuple, kwargs: dict):
    return getattr(rref.local_value(), name)(*args, **kwargs)


@async_execution
def _call_async(rref, name: str, args: tuple, kwargs: dict):
    return getattr(rref.local_value(), name)(*args, **kwargs)


class RRefProxy:
    """``proxy.name(...)`` calls the method of that name on the owner with ``rpc_api``, one of rpc_sync, rpc_async, remote."""

    def __init__(self, rref, rpc_api, timeout: float = UNSET_RPC_TIMEOUT):
        self.rref, self.rpc_api, self.rpc_timeout = rref, rpc_api, timeout

    def __getattr__(self, name: str):
        return functools.partial(self._invoke, name)

    def _invoke(self, name: str, /, *args, **kwargs):
        kind = self.rref._get_type(timeout=self.rpc_timeout, blocking=False)
        if self.rpc_api.__name__ != "rpc_async":
            return self._invoke_on(kind.wait(), name, args, kwargs)
        result: Future = Future()  # the class of the value is not known yet, and rpc_async must not wait

        def known(future):
            try:
                self._invoke_on(future.wait(), name, args, kwargs).add_done_callback(done)
            except Exception as error:
                result._fail(error)

        def done(future):
            try:
                value = future.wait()
            except Exception as error:
                result._fail(error)
            else:
                result.set_result(value)

        kind.add_done_callback(known)
        return result

    def _invoke_on(self, kind: type, name: str, args: tuple, kwargs: dict):
        function = _call_async if is_async(getattr(kind, name)) else _call
        return self.rpc_api(
            self.rref.owner(), function, args=(self.rref, name, args, kwargs), timeout=self.rpc_timeout
        )

"""torch.distributed.rpc.internal: how calls are pickled."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

from . import state
from .payload import packed, unpacked
from .results import RemoteException

__all__ = ["PythonUDF", "RPCExecMode", "RemoteException", "deserialize", "serialize"]


class PythonUDF(NamedTuple):
    """A function and its arguments."""

    func: Any
    args: tuple
    kwargs: dict


class RPCExecMode(enum.Enum):
    """The ways to call a function."""

    SYNC = "sync"
    ASYNC = "async"
    ASYNC_JIT = "async_jit"
    REMOTE = "remote"


class _InternalRPCPickler:
    """Pickles objects with tensors and RRefs. Reducers for further classes can be registered."""

    def __init__(self):
        self._class_reducer_dict: dict = {}

    def _register_reducer(self, obj_class: type, reducer) -> None:
        """Let ``reducer(obj)``, as ``__reduce__``, pickle the objects of a class. The first one of a class stays."""
        self._class_reducer_dict.setdefault(obj_class, reducer)

    def serialize(self, obj) -> tuple[bytes, list]:
        """Return the pickled object and the tensors in it."""
        return packed(obj, state.references(), self._class_reducer_dict)

    def deserialize(self, binary_data: bytes, tensor_table: list):
        """Return the object of ``serialize``."""
        return unpacked(binary_data, tensor_table, state.references())


_internal_rpc_pickler = _InternalRPCPickler()


def serialize(obj) -> tuple[bytes, list]:
    return _internal_rpc_pickler.serialize(obj)


def deserialize(binary_data: bytes, tensor_table: list):
    return _internal_rpc_pickler.deserialize(binary_data, tensor_table)

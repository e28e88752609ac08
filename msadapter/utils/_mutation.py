"""The work of torch.autograd.graph.allow_mutation_on_saved_tensors: copies of saved tensors that are written later."""

from __future__ import annotations

import weakref
from contextlib import contextmanager

from ..autograd import no_grad
from ..autograd.graph import saved_tensors_hooks
from ..tensor import Tensor
from ._python_dispatch import TorchDispatchMode

_active: list[SavedValues] = []


class _Handle:
    """Stands for a saved tensor in the graph. The values of a tensor are kept as long as its handle lives."""

    __slots__ = ("__weakref__",)


class SavedValues:
    """The tensors that are saved in the block: those that were not written, and copies of those that were."""

    def __init__(self):
        self.original: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
        self.cloned: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
        self.tid_to_weakhandle: weakref.WeakValueDictionary = weakref.WeakValueDictionary()
        self.sid_to_tid: dict[int, set] = {}

    def pack(self, tensor: Tensor) -> _Handle:
        storage = tensor.untyped_storage().data_ptr()
        name = (
            storage,
            tensor.storage_offset(),
            tensor.shape,
            tensor.stride(),
            tensor.dtype,
            tensor._version,
        )
        handle = self.tid_to_weakhandle.get(name)
        if handle is None:
            handle = _Handle()
            self.tid_to_weakhandle[name] = handle
            self.original[handle] = tensor
            self.sid_to_tid.setdefault(storage, set()).add(name)
        return handle

    def unpack(self, handle: _Handle) -> Tensor:
        if handle in self.cloned:
            return self.cloned[handle]
        if handle in self.original:
            return self.original[handle]
        raise AssertionError(
            "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was "
            "originally recorded."
        )

    def before_write(self, tensor: Tensor) -> None:
        """Copy every saved tensor that shares memory with a tensor that is about to be written."""
        storage = tensor.untyped_storage().data_ptr()
        for name in self.sid_to_tid.pop(storage, ()):
            handle = self.tid_to_weakhandle.get(name)
            if handle is not None and handle in self.original:
                with no_grad():
                    self.cloned[handle] = self.original.pop(handle).clone()

    def clear(self) -> None:
        for kept in (self.original, self.cloned, self.tid_to_weakhandle, self.sid_to_tid):
            kept.clear()


class _CopyBeforeWrite(TorchDispatchMode):
    def __init__(self, values: SavedValues):
        self.values = values

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        written = [args[0]] if args and func.overloadpacket.__name__.endswith("_") else []
        out = kwargs.get("out")
        written += out if isinstance(out, (tuple, list)) else [out]
        for tensor in written:
            if isinstance(tensor, Tensor):
                self.values.before_write(tensor)
        return func(*args, **kwargs)


@contextmanager
def allow_mutation_on_saved_tensors():
    """Inside this block, tensors that are saved for backward may be written. Backward gets their values from before.

    A saved tensor is copied when an operator writes to its memory. Backward must run inside the block.
    """
    if _active:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    values = SavedValues()
    _active.append(values)
    try:
        with saved_tensors_hooks(values.pack, values.unpack), _CopyBeforeWrite(values):
            yield values
    finally:
        values.clear()
        _active.pop()

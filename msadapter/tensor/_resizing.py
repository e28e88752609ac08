"""Methods of Tensor that give a tensor another storage, or other sizes and strides on its own."""

from __future__ import annotations

import math
import sys

from .._host.troubleshooting import see
from .._values import determinism
from .._values.base import _C, Base, is_batched
from .._values.dtype import cpp_name
from .._values.layout import FORMATS, format_strides, suggested_format
from ._arguments import check_wide
from ._construct import contiguous_strides
from .storage import UntypedStorage
from .typed_storage import TypedStorage


def set_(self, source=None, storage_offset=0, size=None, stride=None):
    """Take the storage of ``source``, a tensor or a storage, with these sizes and strides."""
    if is_batched(self):
        return self.set_(source, storage_offset, size, stride)
    _C.check_history(self)
    check_wide("set_", storage_offset, size, stride)
    _take(self, source, storage_offset, size, stride)
    _C.bump_version(self)
    _C.renew_accumulator(self)  # graphs that have used the tensor until now do not know it any more
    return self


def _check_dtype(self, source) -> None:
    if isinstance(source, UntypedStorage) or source.dtype is self.dtype:
        return
    wanted = cpp_name(self.dtype)
    if isinstance(source, Base):
        raise RuntimeError(
            f"Could not set tensor of type {cpp_name(source.dtype)} to a tensor of type {wanted}"
        )
    raise RuntimeError(
        f"Expected a Storage of type {wanted} or an UntypedStorage, but got type "
        f"{source.dtype.scalar_name} for argument 1 'storage'"
    )


def _take(self, source, storage_offset, size, stride) -> None:
    if source is None:
        source = _C.raw_empty((0,), None, self.dtype)
    _check_dtype(self, source)
    if isinstance(source, Base):
        if size is None:
            _C.set_geometry(self, source, source.shape, source.stride(), source.storage_offset())
            return
        base = source
    else:
        base = source.untyped()._holder if isinstance(source, TypedStorage) else source._holder
        if size is None:
            size = (source.nbytes() // self.dtype.itemsize,)
    size = (size,) if isinstance(size, int) else tuple(size)
    given = () if stride is None else tuple(stride)
    if stride is not None and len(given) != len(size):
        raise RuntimeError(f"unequal size length ({len(size)}) and stride length ({len(given)})")
    strides = contiguous_strides(size) if stride is None else given
    # PyTorch enlarges the storage only for a tensor that gets other sizes or strides.
    if self.shape == size and (stride is None or self.stride() == strides):
        _check_room(self, base, size, given, storage_offset)
    _make_room(self, base, size, strides, storage_offset)
    _C.set_geometry(self, base, size, strides, storage_offset)


def _check_room(self, base, size, stride, offset) -> None:
    """RuntimeError if the storage of ``base`` is too small for these sizes and strides."""
    need = _C.bytes_reached(size, stride or contiguous_strides(size), offset, self.dtype)
    have = _C.storage_nbytes(base)
    if need > have:
        error = RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize "
            f"{self.dtype.itemsize} requiring a storage size of {need} are out of bounds for storage of size {have}"
        )
        if sys.version_info >= (3, 11):  # earlier exceptions have no notes
            error.add_note(see("out-of-bounds"))  # PyTorch has this message, so it stays as it is
        raise error


def _make_room(self, base, size, stride, offset) -> None:
    """Enlarge the storage of ``base`` so that it holds these sizes and strides."""
    need, have = _C.bytes_reached(size, stride, offset, self.dtype), _C.storage_nbytes(base)
    if need <= have:
        return
    if not UntypedStorage.of(base).resizable():
        raise RuntimeError("Trying to resize storage that is not resizable")
    _C.resize_storage(base, need)
    if determinism.fills_memory():
        first = -(-have // self.dtype.itemsize)
        count = need // self.dtype.itemsize - first
        determinism.fill(_C.raw_view(base, (count,), (1,), first, self.dtype))


def resize_(self, *size, memory_format=None):
    """Change the sizes in place. The elements that fit are kept, and the memory is enlarged if necessary."""
    if is_batched(self):
        return self.resize_(*size, memory_format=memory_format)
    size = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    if self.requires_grad and not _C.is_inference_mode_enabled():
        raise RuntimeError("cannot resize variables that require grad")
    if memory_format is FORMATS["preserve_format"]:
        raise RuntimeError("Unsupported memory formatPreserve")
    asked = None if memory_format is None else format_strides(size, memory_format._name)
    if self.shape == size and memory_format is None:
        return self
    strides = contiguous_strides(size) if asked is None else tuple(asked)
    _check_product(size, strides)
    _make_room(self, self, size, strides, _C.storage_offset(self))
    changed = self.shape != size
    _C.set_geometry(self, self, size, strides, _C.storage_offset(self))
    if changed:
        _C.bump_version(self)
    return self


def _check_product(size, strides) -> None:
    """Raise PyTorch's errors for numbers of elements and strides beyond 64 bits, and for negative sizes."""
    if any(not -(2**63) <= step < 2**63 for step in strides):
        raise RuntimeError("Stride calculation overflowed")
    if any(n < 0 for n in size) or math.prod(size) >= 2**63:
        raise RuntimeError("numel: integer multiplication overflow")


def resize_as_(self, other, memory_format=None):
    """Give the tensor the sizes of another one, and with ``torch.preserve_format`` its order of dims in memory."""
    if memory_format is FORMATS["preserve_format"]:
        memory_format = suggested_format(other.shape, other.stride())
    return self.resize_(other.shape, memory_format=memory_format)


METHODS = {f.__name__: f for f in (set_, resize_, resize_as_)}

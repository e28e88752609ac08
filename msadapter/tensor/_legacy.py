"""The old constructors: torch.Tensor(...), torch.FloatTensor(...), torch.cuda.FloatTensor(...),
Tensor.new(...).

They share their signatures: sizes give an uninitialised tensor, a sequence gives a tensor with its values,
and a tensor or a storage shares its memory with the result.
"""

from __future__ import annotations

import numpy as np

from .._values import dtype as dtypes
from .._values.base import _C, Base, place
from .._values.device import device as Device
from .._values.size import Size
from ._construct import tensor
from .storage import UntypedStorage
from .typed_storage import TypedStorage

_SIGNATURES = (
    "(*, torch.device device = None), (Storage), (Tensor other), (tuple of ints size, *), (object data, *)"
)


def legacy_new(args, kwargs, dtype, device="cpu", any_tensor=False):
    """Return the tensor of an old constructor, with ``dtype`` on ``device``.

    any_tensor: whether a tensor argument may have another dtype and device, which it then keeps (torch.Tensor
    allows that, the other constructors do not).

    Raises:
        TypeError: no signature fits, or a tensor has another type.
        RuntimeError: the argument device names another kind of device.
    """
    wanted = Device(device)
    kwargs = dict(kwargs)
    given = kwargs.pop("device", None)
    if given is not None and Device(given).type != wanted.type:
        raise RuntimeError(
            f"legacy constructor expects device type: {wanted.type} but device type: {Device(given).type} was passed"
        )
    kind, value = _read(args, kwargs)
    if kind == "other":
        return _C.alias(_same_type(value, dtype, wanted, any_tensor))
    if kind == "storage":
        return place(_C.raw_empty((0,), None, dtype), wanted).set_(_checked_storage(value, dtype))
    made = _C.raw_empty(value, None, dtype) if kind == "size" else tensor(value, dtype=dtype)
    return place(made, wanted if given is None else Device(given))


def _read(args, kwargs) -> tuple:
    """Return which signature the arguments fit, and the single value that it takes."""
    if len(args) + len(kwargs) == 0:
        return "size", (0,)
    if kwargs:
        (name, value), *more = kwargs.items()
        fits = {"size": _is_size(value), "other": isinstance(value, Base), "data": True}.get(name, False)
        if args or more or not fits:
            raise no_signature(args, kwargs)
        return (name, tuple(value)) if name == "size" else (name, value) if name == "other" else _data(value)
    first = args[0]
    if _is_index(first):
        return "size", tuple(_index(i, n) for n, i in enumerate(args, 1))
    if len(args) > 1:
        raise no_signature(args, kwargs)
    if isinstance(first, Size):
        return "size", first
    if isinstance(first, Base):
        return "other", first
    if isinstance(first, UntypedStorage | TypedStorage):
        return "storage", first
    return _data(first)


def _is_index(value) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_size(value) -> bool:
    return isinstance(value, tuple | list) and all(map(_is_index, value))


def _index(value, place: int) -> int:
    if not _is_index(value):
        raise TypeError(
            f"new(): argument 'size' failed to unpack the object at pos {place} with error "
            f'"type must be tuple of ints,but got {type(value).__name__}"'
        )
    return int(value)


def _data(value) -> tuple:
    if isinstance(value, str | bytes):
        raise TypeError(f"new(): invalid data type '{type(value).__name__}'")
    if not hasattr(value, "__len__"):
        raise TypeError(f"new(): data must be a sequence (got {type(value).__name__})")
    return "data", value


def no_signature(args, kwargs, signatures: str = _SIGNATURES) -> TypeError:
    """Return the error of an old constructor for arguments that fit none of its signatures."""
    told = [type(a).__name__ for a in args] + [
        f"{name}={type(value).__name__}" for name, value in kwargs.items()
    ]
    listed = ", ".join(told) + ("" if args else ", ")
    return TypeError(
        f"new() received an invalid combination of arguments - got ({listed}), but expected one of:\n {signatures}"
    )


def _options(dtype, device) -> str:
    return (
        f"TensorOptions(dtype={dtypes.cpp_name(dtype)}, device={device}, layout=Strided, requires_grad=false (default), "
        "pinned_memory=false (default), memory_format=(nullopt))"
    )


def _same_type(value, dtype, wanted, any_tensor):
    if not any_tensor and (value.dtype != dtype or value.device.type != wanted.type):
        raise TypeError(f"expected {_options(dtype, wanted)} (got {_options(value.dtype, value.device)})")
    return value


def _checked_storage(value, dtype):
    if isinstance(value, TypedStorage) and value.dtype != dtype:
        names = [d.scalar_name for d in (dtype, value.dtype)]
        raise RuntimeError(
            f"Expected a Storage of type {names[0]} or an UntypedStorage, but got type {names[1]} for argument 1 'storage'"
        )
    return value

"""Parsing of the arguments of Tensor.to and Tensor.type."""

from __future__ import annotations

from .._values import dtype as dtypes
from .._values.base import Base
from .._values.device import device as Device


def parse_to(*args, **kwargs):
    device = kwargs.pop("device", None)
    dtype = kwargs.pop("dtype", None)
    copy_ = kwargs.pop("copy", False)
    memory_format = kwargs.pop("memory_format", None)
    kwargs.pop("non_blocking", None)
    other = kwargs.pop("other", None)
    if kwargs:
        raise TypeError(f"to() got an unexpected keyword argument '{next(iter(kwargs))}'")
    flags = []
    for a in args:
        if isinstance(a, dtypes.dtype):
            dtype = a
        elif isinstance(a, Base):
            other = a
        elif isinstance(a, bool):
            flags.append(a)
        elif isinstance(a, (str, Device, int)):
            device = a
        elif a is not None:
            raise TypeError(f"to() received an invalid combination of arguments - got ({type(a).__name__})")
    if len(flags) > 1:
        copy_ = flags[1]
    if other is not None:
        dtype, device = other.dtype, other.device
    return device, dtype, copy_, memory_format


def dtype_from_type_name(name: str) -> dtypes.dtype:
    short = name.rpartition(".")[2].removesuffix("Tensor")
    for d in dtypes.ALL.values():
        if d.storage_name == short + "Storage":
            return d
    raise ValueError(f"invalid type: '{name}'")

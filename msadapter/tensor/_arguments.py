"""Parsing of the arguments of Tensor.to and Tensor.type."""

from __future__ import annotations

from .._values import dtype as dtypes
from .._values.base import Base
from .._values.device import device as Device


def check_bool(function: str, name: str, value) -> None:
    """Raise PyTorch's TypeError unless the argument is a bool. An int is not accepted."""
    if not isinstance(value, bool):
        raise TypeError(f"{function}(): argument '{name}' must be bool, not {type(value).__name__}")


def check_wide(function: str, offset, size, stride) -> None:
    """Raise PyTorch's errors for numbers beyond 64 bits: ValueError for an offset, TypeError for sizes and strides."""
    if isinstance(offset, int) and not -(2**63) <= offset < 2**63:
        raise ValueError("Overflow when unpacking long long")
    for name, numbers in (("size", size), ("stride", stride)):
        for place, number in enumerate(numbers if isinstance(numbers, (tuple, list)) else ()):
            if isinstance(number, int) and not -(2**63) <= number < 2**63:
                raise TypeError(
                    f"{function}(): argument '{name}' failed to unpack the object at pos {place + 1} with error "
                    '"Overflow when unpacking long long"'
                )


def parse_to(*args, **kwargs):
    device = kwargs.pop("device", None)
    dtype = kwargs.pop("dtype", None)
    copy_ = kwargs.pop("copy", False)
    non_blocking = kwargs.pop("non_blocking", False)
    memory_format = kwargs.pop("memory_format", None)
    other = kwargs.pop("other", None)
    if kwargs:
        raise TypeError(f"to() got an unexpected keyword argument '{next(iter(kwargs))}'")
    flags = []
    for place, a in enumerate(args):
        if isinstance(a, dtypes.dtype):
            dtype = a
        elif isinstance(a, Base):
            other = a
        elif isinstance(a, bool):
            flags.append(a)
        elif isinstance(a, (str, Device)) or (isinstance(a, int) and place == 0):
            device = a
        elif a is not None:
            raise TypeError(f"to() received an invalid combination of arguments - got ({type(a).__name__})")
    for name, flag in (("copy", copy_), ("non_blocking", non_blocking)):
        if not isinstance(flag, bool):
            raise TypeError(
                f"to() received an invalid combination of arguments: '{name}' must be bool, not {type(flag).__name__}"
            )
    if flags:
        non_blocking = flags[0]
    if len(flags) > 1:
        copy_ = flags[1]
    if other is not None:
        dtype, device = other.dtype, other.device
    return device, dtype, copy_, memory_format, non_blocking


def dtype_from_type_name(name: str) -> dtypes.dtype:
    short = name.rpartition(".")[2].removesuffix("Tensor")
    for d in dtypes.ALL.values():
        if d.storage_name == short + "Storage":
            return d
    raise ValueError(f"invalid type: '{name}'")

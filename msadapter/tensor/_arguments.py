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


_DEVICE_FIRST = ("device", "dtype", "non_blocking", "copy")
_DTYPE_FIRST = ("dtype", "non_blocking", "copy")
_TENSOR_FIRST = ("tensor", "non_blocking", "copy")
_NUMBERS = {float: "float64", int: "int64", bool: "bool", complex: "complex128"}  # Python's types as dtypes
_DEFAULTS = {
    "device": None,
    "dtype": None,
    "tensor": None,
    "non_blocking": False,
    "copy": False,
    "memory_format": None,
}


def _stands_for_dtype(value) -> bool:
    return isinstance(value, type) and value in _NUMBERS


def _names_of_to(args, kwargs) -> tuple[str, ...]:
    """Return the names of the positional arguments of `to`. The first argument tells which of its three forms is meant."""
    first = args[0] if args else None
    if isinstance(first, dtypes.dtype) or _stands_for_dtype(first):
        return _DTYPE_FIRST
    return _TENSOR_FIRST if isinstance(first, Base) or "tensor" in kwargs else _DEVICE_FIRST


def _fits(name: str, value) -> bool:
    if name in ("non_blocking", "copy"):
        return isinstance(value, bool)
    if name == "tensor":
        return isinstance(value, Base)
    if name == "dtype":
        return value is None or isinstance(value, dtypes.dtype) or _stands_for_dtype(value)
    if name == "device":
        return value is None or isinstance(value, (str, Device)) or type(value) is int
    return True


def parse_to(*args, **kwargs):
    """Return (device, dtype, copy, memory_format, non_blocking) of a call of `Tensor.to`.

    The forms are (device, dtype, ...), (dtype, ...) and (tensor, ...), each with non_blocking and copy, and memory_format by
    name. TypeError for anything else.
    """
    names = _names_of_to(args, kwargs)
    if len(args) > len(_DEVICE_FIRST):
        raise TypeError(f"to() takes from 0 to 4 positional arguments but {len(args)} were given")
    given = dict(zip(names, args, strict=False))
    allowed = {*names, "memory_format"} - set(given)
    given.update(kwargs)
    if (
        len(args) > len(names)
        or not allowed.issuperset(kwargs)
        or not all(_fits(name, value) for name, value in given.items())
    ):
        raise _no_form_of_to(args, kwargs)
    found = _DEFAULTS | given
    if found["tensor"] is not None:
        found["dtype"], found["device"] = found["tensor"].dtype, found["tensor"].device
    dtype = found["dtype"] if not isinstance(found["dtype"], type) else dtypes.ALL[_NUMBERS[found["dtype"]]]
    return found["device"], dtype, found["copy"], found["memory_format"], found["non_blocking"]


def _no_form_of_to(args, kwargs) -> TypeError:
    told = ", ".join(
        [*map(_type_name, args), *(f"{name}={_type_name(value)}" for name, value in kwargs.items())]
    )
    return TypeError(
        f"to() received an invalid combination of arguments - got ({told}{'' if args else ', '}), but expected one of:\n"
        " * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = False, *, "
        "torch.memory_format memory_format = None)\n"
        " * (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n"
        " * (Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n"
    )


def _type_name(value) -> str:
    kind = type(value)
    return (
        kind.__name__
        if kind.__module__ == "builtins" or kind.__name__ == "Tensor"
        else f"torch.{kind.__name__}"
    )


def dtype_from_type_name(name: str) -> dtypes.dtype:
    short = name.rpartition(".")[2].removesuffix("Tensor")
    for d in dtypes.ALL.values():
        if d.storage_name == short + "Storage":
            return d
    raise ValueError(f"invalid type: '{name}'")

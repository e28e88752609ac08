"""The overload of ATen that a call of an operator of the table is, as `__torch_dispatch__` gets to see it.

The table has one declaration for all overloads of an operator. A program that compares `func` with `torch.ops.aten.sum.dim_IntList`
needs the name that PyTorch's dispatcher chooses by the arguments.
"""

from __future__ import annotations

from .._values.device import accelerator, device
from ..ops.pointwise_binary import _MODES
from ..tensor import Tensor

_ROUNDING = {number: name for name, number in _MODES.items()}

# Operators that ATen has under another name.
NAMES = {
    "_contiguous_copy": "clone",
    "_div_mode": "div",
    "_fill_scalar": "fill",
    "_max_all": "max",
    "_max_dim": "max",
    "_min_all": "min",
    "_min_dim": "min",
    "_sigmoid_backward": "sigmoid_backward",
    "_split": "split",
    "_tanh_backward": "tanh_backward",
    "_to_device": "_to_copy",
    "_to_dtype": "_to_copy",
    "_unbind": "unbind",
    "_where": "where",
    "true_divide": "div",
}

# Overloads that do not depend on the arguments, of operators without an overload `default`.
_ALWAYS = {
    "empty": "memory_format",
    "norm": "ScalarOpt_dim",
    "select": "int",
    "split": "Tensor",
    "transpose": "int",
    "unbind": "int",
    "where": "self",
}
# Overloads for a call with `dim`; without it the operator is called `default`.
_WITH_DIM = {
    "all": "dim",
    "any": "dim",
    "max": "dim",
    "mean": "dim",
    "median": "dim",
    "min": "dim",
    "prod": "dim_int",
    "squeeze": "dim",
    "sum": "dim_IntList",
}
# Operators that ATen has for a tensor and for a number. The others take a number as a tensor.
_TENSOR_OR_SCALAR = frozenset(
    (
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "eq",
        "fill",
        "fmod",
        "ge",
        "gt",
        "le",
        "lt",
        "masked_fill",
        "ne",
        "remainder",
    )
)


def _by_operand(name: str, args: tuple) -> str:
    value = args[-1] if args else None
    return "Tensor" if isinstance(value, Tensor) else "Scalar"


def _of_pow(args: tuple) -> str:
    kinds = ["Tensor" if isinstance(a, Tensor) else "Scalar" for a in args[:2]]
    return "Scalar" if kinds[0] == "Scalar" else "_".join(kinds)


def overload_name(name: str, args: tuple, kwargs: dict, second: str) -> str:
    """Return the name of an overload. ``second`` is the type that the schema of the table gives the second parameter."""
    base = name.rstrip("_")
    if base in _WITH_DIM:
        dim = args[1] if len(args) > 1 else kwargs.get("dim")
        found = "default" if dim is None else _WITH_DIM[base]
        if isinstance(dim, Tensor):
            found = "other"
        elif base == "squeeze" and isinstance(dim, (list, tuple)):
            found = "dims"
    elif base in _TENSOR_OR_SCALAR:
        found = _by_operand(base, args)
    elif base == "pow":
        found = _of_pow(args)
    elif base == "div" and kwargs.get("rounding_mode") is not None:
        found = "Tensor_mode"
    else:
        found = _ALWAYS.get(base) or ("Tensor" if second == "TensorOrScalar" else "default")
    if "out" not in kwargs:
        return found
    return "out" if found in ("default", "Tensor") else f"{found}_out"


def _device_of_tag(tag: int) -> device:
    return device("cpu") if tag == 0 else device(accelerator() or "cuda", tag - 1)


def as_aten_calls(name: str, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """Return the arguments of an operator of the table as ATen's operator of another name takes them."""
    if name == "_to_dtype":
        return args[:1], {**kwargs, "dtype": args[1]}
    if name.rstrip("_") == "_div_mode":
        return args[:2], {**kwargs, "rounding_mode": _ROUNDING[args[2]]}
    if name == "_to_device":
        return args[:1], {**kwargs, "device": _device_of_tag(args[1])}
    if (
        name.rstrip("_") == "squeeze"
        and len(args) > 1
        and isinstance(args[1], (list, tuple))
        and len(args[1]) == 1
    ):
        return (args[0], args[1][0]), kwargs
    return args, kwargs

# Written by python -m tests.stubs.make_stubs; do not edit.
# The types that the other stubs name. At run time there is no such module.
from collections.abc import Callable as _Callable, Iterator as _Iterator, Sequence as _Sequence
from typing import Any as _Any, overload as _overload

import torch.return_types as _return_types
from torch import (
    Generator as _Generator,
    device as _device_class,
    dtype as _dtype,
    layout as _layout,
    memory_format as _memory_format,
)
from torch._tensor import Tensor as _Tensor
from torch.nn.parameter import Parameter as _Parameter

_bool = bool
_int = int
_float = float
_str = str
_Number = int | float | complex
_Device = _device_class | str | int
__all__ = [
    "_Any", "_Callable", "_Device", "_Generator", "_Iterator", "_Number", "_Parameter", "_Sequence", "_Tensor",
    "_bool", "_dtype", "_float", "_int", "_layout", "_memory_format", "_overload", "_return_types", "_str",
]

"""torch.types: names for type annotations."""

import builtins
import os
from collections.abc import Sequence
from typing import IO, Any, TypeAlias, Union

from ._symbolic import SymBool, SymFloat, SymInt
from .tensor import Size, Tensor
from .tensor import device as _device
from .tensor import dtype as _dtype
from .tensor import layout as _layout

__all__ = ["Device", "FileLike", "Number", "Storage"]

_int, _float, _bool, _size = builtins.int, builtins.float, builtins.bool, Size | list[int] | tuple[int, ...]
_dtype, _device, _layout = _dtype, _device, _layout
_Number = (builtins.int, builtins.float, builtins.bool)
_complex = builtins.complex
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrTensorsOrGradEdge: TypeAlias = Tensor | Sequence[Tensor] | Any

Number: TypeAlias = builtins.int | builtins.float | builtins.bool
Device: TypeAlias = _device | str | builtins.int | None
FileLike: TypeAlias = Union[str, os.PathLike[str], IO[bytes]]  # noqa: UP007  as torch's, which programs compare by repr
IntLikeType: TypeAlias = builtins.int | SymInt
FloatLikeType: TypeAlias = builtins.float | SymFloat
BoolLikeType: TypeAlias = builtins.bool | SymBool
PySymType: TypeAlias = SymInt | SymFloat | SymBool
py_sym_types = (SymInt, SymFloat, SymBool)


class Storage:
    """The type of storages in annotations. Typed and untyped storages do not inherit from it."""

    _cdata: builtins.int
    device: _device
    dtype: _dtype

"""Tensor and the objects that describe one."""

from __future__ import annotations

from . import dtype as _dtypes
from ._tensor import Tensor  # noqa: F401
from .device import device, layout, memory_format  # noqa: F401
from .dtype import dtype  # noqa: F401
from .size import Size  # noqa: F401
from .storage import UntypedStorage  # noqa: F401
from .typed_storage import TypedStorage  # noqa: F401

globals().update(_dtypes.exports())

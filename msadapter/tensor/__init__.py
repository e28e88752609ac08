"""The Tensor class, storages, and the types that describe a tensor."""

from __future__ import annotations

from .._values import dtype as _dtypes
from .._values.device import device  # noqa: F401
from .._values.dtype import dtype  # noqa: F401
from .._values.layout import layout, memory_format  # noqa: F401
from .._values.size import Size  # noqa: F401
from . import _signatures  # noqa: F401  asks to be called
from ._tensor import Tensor  # noqa: F401
from .storage import UntypedStorage  # noqa: F401
from .typed_storage import TypedStorage  # noqa: F401

globals().update(_dtypes.exports())

"""The classes of the metadata of a distributed checkpoint."""

import os
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ..._values.base import _C
from ..._values.layout import FORMATS, LAYOUTS
from ..._values.size import Size

__all__ = [
    "BytesStorageMetadata",
    "ChunkStorageMetadata",
    "Metadata",
    "MetadataIndex",
    "StorageMeta",
    "TensorProperties",
    "TensorStorageMetadata",
]


@dataclass
class ChunkStorageMetadata:
    """The offsets and sizes of a chunk in its tensor."""

    offsets: Any
    sizes: Any


class _MEM_FORMAT_ENCODING(Enum):
    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


_FORMATS = {
    "contiguous_format": _MEM_FORMAT_ENCODING.TORCH_CONTIGUOUS_FORMAT,
    "channels_last": _MEM_FORMAT_ENCODING.TORCH_CHANNELS_LAST,
    "preserve_format": _MEM_FORMAT_ENCODING.TORCH_PRESERVE_FORMAT,
}


@dataclass
class TensorProperties:
    """The properties of a tensor apart from its size. They are pickled as a tuple with the memory format as a number."""

    dtype: Any = field(default_factory=_C.default_dtype)
    layout: Any = LAYOUTS["strided"]
    requires_grad: bool = False
    memory_format: Any = FORMATS["contiguous_format"]
    pin_memory: bool = False

    def __getstate__(self):
        name = str(self.memory_format).rpartition(".")[2]
        if name not in _FORMATS:
            raise RuntimeError(f"Invalid torch.memory_format: {self.memory_format}")
        return self.dtype, self.layout, self.requires_grad, _FORMATS[name], self.pin_memory

    def __setstate__(self, state):
        self.dtype, self.layout, self.requires_grad, encoding, self.pin_memory = state
        name = next(name for name, value in _FORMATS.items() if value == encoding)
        self.memory_format = FORMATS[name]

    @staticmethod
    def create_from_tensor(tensor) -> "TensorProperties":
        """The properties of a tensor."""
        return TensorProperties(
            dtype=tensor.dtype,
            layout=tensor.layout,
            requires_grad=tensor.requires_grad,
            pin_memory=tensor.is_pinned(),
        )


@dataclass
class TensorStorageMetadata:
    """The description of a saved tensor: properties, size and chunks."""

    properties: TensorProperties
    size: Any
    chunks: list


@dataclass
class BytesStorageMetadata:
    """The description of a saved object that is not a tensor."""


STORAGE_TYPES = TensorStorageMetadata | BytesStorageMetadata
STATE_DICT_TYPE = dict[str, Any]


@dataclass
class StorageMeta:
    """The ids of the checkpoint and of the save and load calls."""

    checkpoint_id: str | os.PathLike | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list = field(default_factory=list)


@dataclass
class Metadata:
    """The descriptions of all entries by name, and private data of planner and storage."""

    state_dict_metadata: dict
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True)
class MetadataIndex:
    """The key of an entry: its name, for a chunk its offset, and a hint for the chunk's index in the list."""

    fqn: str
    offset: Any = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(self, fqn, offset=None, index=None):
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "offset", Size(offset) if offset is not None else None)

"""Plans: what each process writes and reads."""

import abc
import math
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from .metadata import STATE_DICT_TYPE, ChunkStorageMetadata, MetadataIndex, TensorProperties

__all__ = [
    "BytesIOWriteData",
    "LoadItemType",
    "LoadPlan",
    "LoadPlanner",
    "ReadItem",
    "STATE_DICT_TYPE",
    "SavePlan",
    "SavePlanner",
    "TensorWriteData",
    "WriteItem",
    "WriteItemType",
]


class WriteItemType(Enum):
    """Kinds of things to write."""

    TENSOR = auto()
    SHARD = auto()
    BYTE_IO = auto()


class LoadItemType(Enum):
    """Kinds of things to read."""

    TENSOR = auto()
    BYTE_IO = auto()


@dataclass(frozen=True)
class BytesIOWriteData:
    """Size of pickled bytes."""

    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """A chunk of a tensor."""

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: Any


@dataclass(frozen=True)
class WriteItem:
    """One item to write."""

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None

    def tensor_storage_size(self) -> int | None:
        """Bytes of the whole tensor; None if it is not one."""
        if self.tensor_data is None:
            return None
        return math.prod(self.tensor_data.size) * self.tensor_data.properties.dtype.itemsize


@dataclass(frozen=True)
class ReadItem:
    """One item to read: its position in the stored entry and its position in the destination."""

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: Any
    storage_index: MetadataIndex
    storage_offsets: Any
    lengths: Any


@dataclass(frozen=True)
class SavePlan:
    """The items that one process writes."""

    items: list
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclass
class LoadPlan:
    """The items that one process reads."""

    items: list
    storage_data: Any = None
    planner_data: Any = None


class SavePlanner(abc.ABC):
    """Interface of planners that decide what each process writes."""

    @abc.abstractmethod
    def set_up_planner(self, state_dict, storage_meta=None, is_coordinator=False) -> None:
        """Called first, on every process."""

    @abc.abstractmethod
    def create_local_plan(self) -> SavePlan:
        """The plan of this process."""

    @abc.abstractmethod
    def create_global_plan(self, all_plans):
        """Called on the coordinator; returns (plans for all processes, Metadata)."""

    @abc.abstractmethod
    def finish_plan(self, new_plan) -> SavePlan:
        """This process's part of the global plan."""

    @abc.abstractmethod
    def resolve_data(self, write_item):
        """The data of an item."""


class LoadPlanner(abc.ABC):
    """Interface of planners that decide what each process reads."""

    @abc.abstractmethod
    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False) -> None:
        """Called first, on every process."""

    @abc.abstractmethod
    def create_local_plan(self) -> LoadPlan:
        """The plan of this process."""

    @abc.abstractmethod
    def create_global_plan(self, global_plan) -> list:
        """Called on the coordinator; returns the plans for all processes."""

    @abc.abstractmethod
    def finish_plan(self, central_plan) -> LoadPlan:
        """This process's part of the global plan."""

    @abc.abstractmethod
    def load_bytes(self, read_item, value) -> None:
        """Loads an object from pickled bytes."""

    def resolve_bytes(self, read_item):
        """A stream for bytes."""
        raise NotImplementedError("LoadPlanner.resolve_bytes is not implemented")

    @abc.abstractmethod
    def resolve_tensor(self, read_item):
        """The tensor to read into."""

    @abc.abstractmethod
    def commit_tensor(self, read_item, tensor) -> None:
        """Called after the tensor has been read."""

"""The interfaces of the storage of checkpoints."""

import abc
from dataclasses import dataclass
from typing import Any

from .metadata import MetadataIndex

__all__ = ["StorageReader", "StorageWriter", "WriteResult"]


@dataclass(frozen=True)
class WriteResult:
    """The result of writing an item."""

    index: MetadataIndex
    size_in_bytes: int
    storage_data: Any


class StorageWriter(abc.ABC):
    """Writes checkpoints."""

    @abc.abstractmethod
    def reset(self, checkpoint_id=None) -> None:
        """Prepares for a new checkpoint, at `checkpoint_id` if it is given."""

    @abc.abstractmethod
    def set_up_storage_writer(self, is_coordinator: bool, *args, **kwargs) -> None:
        """Called on every process before the plans are made."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan):
        """Adds to the plan of this process what the storage needs, and returns it."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans):
        """Called on the coordinator. Adds to the plans what the storage needs, and returns them."""

    @abc.abstractmethod
    def write_data(self, plan, planner):
        """Writes the items of the plan, and returns a future of the WriteResults."""

    @abc.abstractmethod
    def finish(self, metadata, results) -> None:
        """Writes the metadata, on the coordinator after all processes have written their data."""

    def storage_meta(self):
        """The StorageMeta of the checkpoint, or None."""
        return


class StorageReader(abc.ABC):
    """Reads checkpoints."""

    @abc.abstractmethod
    def reset(self, checkpoint_id=None) -> None:
        """Prepares for reading the checkpoint at `checkpoint_id`, if it is given."""

    @abc.abstractmethod
    def read_metadata(self, *args, **kwargs):
        """The metadata."""

    @abc.abstractmethod
    def set_up_storage_reader(self, metadata, is_coordinator: bool, *args, **kwargs) -> None:
        """Receives the metadata, on every process."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan):
        """Adds to the plan of this process what the storage needs, and returns it."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans):
        """Called on the coordinator. Adds to the plans what the storage needs, and returns them."""

    @abc.abstractmethod
    def read_data(self, plan, planner):
        """Reads the items of the plan, and returns a future that is done when all are read."""

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
        """Begin a checkpoint."""

    @abc.abstractmethod
    def set_up_storage_writer(self, is_coordinator: bool, *args, **kwargs) -> None:
        """Begin on this process."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan):
        """Complete the plan of this process."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans):
        """Complete all plans."""

    @abc.abstractmethod
    def write_data(self, plan, planner):
        """A future of WriteResults."""

    @abc.abstractmethod
    def finish(self, metadata, results) -> None:
        """Write the metadata."""

    def storage_meta(self):
        """Names of the checkpoint."""
        return


class StorageReader(abc.ABC):
    """Reads checkpoints."""

    @abc.abstractmethod
    def reset(self, checkpoint_id=None) -> None:
        """Begin with a checkpoint."""

    @abc.abstractmethod
    def read_metadata(self, *args, **kwargs):
        """The metadata."""

    @abc.abstractmethod
    def set_up_storage_reader(self, metadata, is_coordinator: bool, *args, **kwargs) -> None:
        """Begin on this process."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan):
        """Complete the plan of this process."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans):
        """Complete all plans."""

    @abc.abstractmethod
    def read_data(self, plan, planner):
        """Read; a future."""

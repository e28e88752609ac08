"""torch.distributed.checkpoint: descriptions and plans are there; saving and loading are not supported yet.
"""

from ._unsupported import refuse
from .api import CheckpointException
from .default_planner import DefaultLoadPlanner, DefaultSavePlanner
from .filesystem import FileSystemReader, FileSystemWriter
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from .planner import LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItem
from .storage import StorageReader, StorageWriter, WriteResult

save, load, async_save, save_state_dict, load_state_dict = map(
    refuse, ("save", "load", "async_save", "save_state_dict", "load_state_dict")
)

__all__ = [
    "BytesStorageMetadata",
    "CheckpointException",
    "ChunkStorageMetadata",
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "FileSystemReader",
    "FileSystemWriter",
    "LoadPlan",
    "LoadPlanner",
    "Metadata",
    "MetadataIndex",
    "ReadItem",
    "SavePlan",
    "SavePlanner",
    "StorageReader",
    "StorageWriter",
    "TensorProperties",
    "TensorStorageMetadata",
    "WriteItem",
    "WriteResult",
    "async_save",
    "load",
    "load_state_dict",
    "save",
    "save_state_dict",
]

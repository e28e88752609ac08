"""Checkpoints as folders of files."""
from dataclasses import dataclass

from ._unsupported import refuse, refusing_class

DEFAULT_SUFFIX = ".distcp"
CURRENT_DCP_VERSION = "1.0.0"


@dataclass
class _StorageInfo:
    """Where an item stands: file, offset, length."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: list | None = None


@dataclass
class _StoragePrefix:
    """Beginning of a process's file names."""

    prefix: str


class FileSystemWriter(refusing_class("FileSystemWriter")):
    """Writes folders of files."""


class FileSystemReader(refusing_class("FileSystemReader")):
    """Reads folders of files."""


_write_item = refuse("filesystem._write_item")
_item_size = refuse("filesystem._item_size")
_split_by_size_and_type = refuse("filesystem._split_by_size_and_type")

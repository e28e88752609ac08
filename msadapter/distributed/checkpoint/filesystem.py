"""Checkpoints as folders: one or more files per process, and .metadata, which records the position of every entry.

.metadata is written last, to a temporary name, flushed to disk and renamed. A folder without it is incomplete.
"""

import enum
import io
import os
import pathlib
import pickle
import uuid
from dataclasses import dataclass, replace
from pathlib import Path

from ..._errors import unsupported
from ..._serialization.files import errors_name
from ..._serialization.pickler import SaveContext, make_pickler
from ...autograd import no_grad
from ...futures import Future
from ...serialization import load, save
from ._metadata_file import read_metadata
from .default_planner import narrow_tensor_by_index
from .metadata import Metadata, StorageMeta
from .planner import LoadItemType, WriteItem, WriteItemType
from .storage import StorageReader, StorageWriter, WriteResult

__all__ = ["FileSystemReader", "FileSystemWriter"]

DEFAULT_SUFFIX = ".distcp"
CURRENT_DCP_VERSION = "1.0.0"
_metadata_fn = ".metadata"


@dataclass
class _StorageInfo:
    """The position of an item: file, offset, length."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: list | None = None

    def __getstate__(self):
        return {key: value for key, value in self.__dict__.items() if value is not None}


class SerializationFormat(enum.Enum):
    """The format of tensors in the files: that of torch.save or that of safetensors."""

    TORCH_SAVE = "torch_save"
    SAFETENSORS = "safetensors"


@dataclass
class _StoragePrefix:
    """The prefix of a process's file names."""

    prefix: str


class _StorageWriterTransforms:
    """Transforms of the byte stream before it is written. None are supported."""

    def __init__(self, extensions=None):
        if extensions:
            raise unsupported("torch.distributed.checkpoint", "stream extensions are not supported")
        self.extensions = ()


def _item_size(item: WriteItem) -> int:
    """The number of bytes that a tensor's item writes."""
    size = item.tensor_data.properties.dtype.itemsize
    for length in item.tensor_data.chunk.sizes:
        size *= length
    return size


def _split_by_size_and_type(bins: int, items) -> list:
    """Distributes the items to `bins` lists of about equal size."""
    if bins == 1:
        return [items]
    objects = [item for item in items if item.type == WriteItemType.BYTE_IO]
    tensors = [item for item in items if item.type != WriteItemType.BYTE_IO]
    lists, sizes = [[] for _ in range(bins)], [0] * bins
    for i, item in enumerate(objects):
        lists[i % bins].append(item)
    for item in sorted(tensors, key=_item_size, reverse=True):
        smallest = sizes.index(min(sizes))
        lists[smallest].append(item)
        sizes[smallest] += _item_size(item)
    return lists


def _write_item(
    transforms,
    stream,
    data,
    write_item: WriteItem,
    storage_key: str,
    serialization_format=SerializationFormat.TORCH_SAVE,
) -> WriteResult:
    """Appends a tensor, in the format of torch.save, or bytes to a file, and returns its position."""
    if serialization_format is not SerializationFormat.TORCH_SAVE:
        raise unsupported(
            "torch.distributed.checkpoint.filesystem", f"{serialization_format} is not supported"
        )
    offset = stream.tell()
    if write_item.type == WriteItemType.BYTE_IO:
        stream.write(data.getbuffer())
    else:
        buffer = io.BytesIO()  # offsets inside an archive count from its own beginning
        save(data, buffer)
        stream.write(buffer.getbuffer())
    length = stream.tell() - offset
    return WriteResult(write_item.index, length, _StorageInfo(storage_key, offset, length))


def _alone(tensor):
    """The tensor on the host with a storage of exactly its size, so that nothing else is written."""
    tensor = tensor.detach().cpu()
    return tensor.clone() if tensor.untyped_storage().nbytes() != tensor.nbytes else tensor


class _Folder:
    """The folder of a checkpoint."""

    def __init__(self, path):
        self.path = Path(path)

    def reset(self, checkpoint_id=None) -> None:
        """Prepares for a new checkpoint, at `checkpoint_id` if it is given."""
        if checkpoint_id:
            self.path = Path(checkpoint_id)
        self.save_id = self.load_id = str(uuid.uuid4())

    @property
    def checkpoint_id(self):
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id) -> bool:
        """True if the id is a path, and not a URL."""
        return isinstance(checkpoint_id, Path) or "://" not in str(checkpoint_id)


class FileSystemWriter(_Folder, StorageWriter):
    """Writes a checkpoint to a folder. sync_files: flush files to disk. thread_count: number of files per process."""

    def __init__(
        self,
        path,
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
        _extensions=None,
    ):
        super().__init__(path)
        self.single_file_per_rank, self.sync_files, self.thread_count = (
            single_file_per_rank,
            sync_files,
            thread_count,
        )
        self.per_thread_copy_ahead, self.overwrite = per_thread_copy_ahead, overwrite
        self.transforms = _StorageWriterTransforms(_extensions)
        self.save_id = str(uuid.uuid4())

    def set_up_storage_writer(self, is_coordinator: bool, *args, **kwargs) -> None:
        self.is_coordinator = is_coordinator

    def prepare_local_plan(self, plan):
        self.path.mkdir(parents=True, exist_ok=True)
        if self.is_coordinator and (self.path / _metadata_fn).exists():
            if not self.overwrite:
                raise RuntimeError("Checkpoint already exists and self.overwrite=False.")
            os.unlink(self.path / _metadata_fn)  # marks the folder as incomplete
        return plan

    def prepare_global_plan(self, plans):
        return [replace(plan, storage_data=_StoragePrefix(f"__{i}_")) for i, plan in enumerate(plans)]

    def write_data(self, plan, planner) -> Future:
        """Writes the plan's items immediately and returns a completed future of their WriteResults."""
        if self.single_file_per_rank:
            groups = [group for group in _split_by_size_and_type(self.thread_count, plan.items) if group]
        else:
            groups = [[item] for item in plan.items]
        results = []
        for number, items in enumerate(groups):
            name = f"{plan.storage_data.prefix}{number}{DEFAULT_SUFFIX}"
            with errors_name(self.path / name), open(self.path / name, "wb") as stream:
                for item in sorted(items, key=lambda item: item.type != WriteItemType.BYTE_IO):
                    data = planner.resolve_data(item)
                    data = data if item.type == WriteItemType.BYTE_IO else _alone(data)
                    results.append(_write_item(self.transforms, stream, data, item, name))
                self._sync(stream)
        future = Future()
        future.set_result(results)
        return future

    def _sync(self, stream):
        stream.flush()
        if self.sync_files:
            os.fsync(stream.fileno())

    def finish(self, metadata: Metadata, results) -> None:
        metadata.version = CURRENT_DCP_VERSION
        metadata.storage_data = {result.index: result.storage_data for one in results for result in one}
        metadata.storage_meta = self.storage_meta()
        beside = self.path / f"{_metadata_fn}.tmp"
        with errors_name(beside), open(beside, "wb") as stream:
            make_pickler(stream, pickle, 4, SaveContext()).dump(metadata)
            self._sync(stream)
        os.replace(beside, self.path / _metadata_fn)
        if self.sync_files:
            folder = os.open(self.path, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def storage_meta(self) -> StorageMeta:
        return StorageMeta(checkpoint_id=self.checkpoint_id, save_id=self.save_id)


class FileSystemReader(_Folder, StorageReader):
    """Reads a folder written by this FileSystemWriter or PyTorch's."""

    def __init__(self, path, _extension_registry=None):
        super().__init__(path)
        self.storage_data, self.load_id = {}, str(uuid.uuid4())

    def read_metadata(self, *args, **kwargs) -> Metadata:
        """The metadata.

        Raises:
            pickle.UnpicklingError: a file that is damaged, that holds something else, or names what is not allowed.
        """
        with open(self.path / _metadata_fn, "rb") as stream:
            metadata = read_metadata(stream)
        if getattr(metadata, "storage_meta", None) is None:
            metadata.storage_meta = StorageMeta()
        metadata.storage_meta.load_id = self.load_id
        return metadata

    def set_up_storage_reader(self, metadata, is_coordinator: bool, *args, **kwargs) -> None:
        self.storage_data = metadata.storage_data

    def prepare_local_plan(self, plan):
        return plan

    def prepare_global_plan(self, plans):
        return plans

    def read_data(self, plan, planner) -> Future:
        files = {}
        for item in plan.items:
            files.setdefault(self.storage_data[item.storage_index].relative_path, []).append(item)
        for name, items in files.items():
            with open(self._inside(name), "rb") as stream:
                # group the items of a saved chunk, so that the chunk is read once
                items.sort(key=lambda item: self.storage_data[item.storage_index].offset)
                self._read_items(stream, items, planner)
        future = Future()
        future.set_result(None)
        return future

    def _inside(self, name: str):
        """The path of a file in the folder. Raises RuntimeError if the name leads out of the folder."""
        found = pathlib.PurePosixPath(name)
        if found.is_absolute() or ".." in found.parts:
            raise RuntimeError(
                f"the checkpoint {self.path} names the file {name!r}, which is not in its folder"
            )
        return self.path / found

    def _read_items(self, stream, items, planner):
        last, whole = None, None
        for item in items:
            place = self.storage_data[item.storage_index]
            if getattr(place, "transform_descriptors", None):
                raise unsupported("torch.distributed.checkpoint", "stream extensions are not supported")
            if item.type == LoadItemType.BYTE_IO:
                stream.seek(place.offset)
                planner.load_bytes(item, io.BytesIO(stream.read(place.length)))
                continue
            if last != place.offset:
                stream.seek(place.offset)
                whole = load(io.BytesIO(stream.read(place.length)), map_location="cpu", weights_only=True)
                last = place.offset
            part = narrow_tensor_by_index(whole, item.storage_offsets, item.lengths)
            target = planner.resolve_tensor(item).detach()
            if target.size() != part.size():
                raise AssertionError(
                    f"req {item.storage_index} mismatch sizes {target.size()} vs {part.size()}"
                )
            with no_grad():
                target.copy_(part)
            planner.commit_tensor(item, target)

    def storage_meta(self) -> StorageMeta:
        return StorageMeta(checkpoint_id=self.checkpoint_id, load_id=self.load_id)

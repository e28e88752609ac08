"""Checkpoints as folders of safetensors files, as the models of Hugging Face have them.

The names of the files and the notes in their headers are those of PyTorch 2.13, so that either library reads the other's folders.
A rank that writes its own pieces (`save_distributed`) notes in each file where they begin in the whole tensors.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ..._serialization.files import open_for_writing
from ..._values.size import Size
from ...autograd import no_grad
from ...futures import Future
from ._consolidate_hf_safetensors import consolidate_safetensors_files, write_index
from ._safetensors_files import SUFFIX, Opened, contents, file_name, pieces_of, sharding_notes
from .filesystem import FileSystemReader, FileSystemWriter, _alone
from .metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from .planner import LoadItemType, WriteItem, WriteItemType
from .storage import WriteResult

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]

_SHARDED = "sharded"


@dataclasses.dataclass
class _HFStorageInfo:
    """The file of an item, and its shape and dtype there."""

    relative_path: str
    shape: Any
    dtype: Any
    length: int = 0


class HuggingFaceStorageWriter(FileSystemWriter):
    """Writes a checkpoint of tensors to a folder of safetensors files.

    path: the folder. fqn_to_index_mapping: the number of the file of each tensor, from 1; by default there is one file.
    thread_count: files that a process writes at a time. save_distributed: every rank writes its own pieces, to files of its own;
    otherwise the state must be whole. enable_consolidation: the pieces go to path/sharded and are then put together in path, by
    thread_count_consolidation threads.
    """

    def __init__(
        self,
        path: str,
        fqn_to_index_mapping: Mapping[str, int] | None = None,
        thread_count: int = 1,
        save_distributed: bool = False,
        enable_consolidation: bool = False,
        thread_count_consolidation: int = 1,
    ) -> None:
        super().__init__(path, thread_count=thread_count)
        self.fqn_to_index_mapping = fqn_to_index_mapping
        self.save_distributed = save_distributed
        self.enable_consolidation = enable_consolidation
        self.consolidated_output_path: str | None = None
        self.thread_count_consolidation = thread_count_consolidation
        if enable_consolidation:
            self.consolidated_output_path = str(self.path)
            self.path = self.path / _SHARDED

    def prepare_local_plan(self, plan):
        self.path.mkdir(parents=True, exist_ok=True)
        return plan

    def prepare_global_plan(self, plans):
        return [
            dataclasses.replace(plan, storage_data=number if self.save_distributed else None)
            for number, plan in enumerate(plans, start=1)
        ]

    def write_data(self, plan, planner) -> Future:
        """Writes the plan's items immediately and returns a completed future of their WriteResults.

        Raises:
            ValueError: an item is not a tensor, or a second piece of a tensor that the file has already.
            KeyError: fqn_to_index_mapping lacks a tensor.
        """
        mapping = self.fqn_to_index_mapping
        last = max(mapping.values()) if mapping else 1
        files: dict[int, list[WriteItem]] = {}
        for item in plan.items:
            files.setdefault(mapping[item.index.fqn] if mapping is not None else 1, []).append(item)
        jobs = [(file_name(number, last, plan.storage_data), items) for number, items in files.items()]
        with ThreadPoolExecutor(max(self.thread_count, 1)) as pool:
            written = list(pool.map(lambda job: self._write_file(*job, planner), jobs))
        future: Future = Future()
        future.set_result([result for results in written for result in results])
        return future

    def _write_file(self, name: str, items: Iterable[WriteItem], planner) -> list[WriteResult]:
        tensors, offsets, results = {}, {}, []
        for item in items:
            fqn = item.index.fqn
            if item.type == WriteItemType.BYTE_IO:
                raise ValueError(f"{fqn!r} is not a tensor, and safetensors files contain tensors only")
            if fqn in tensors:
                raise ValueError(
                    f"{fqn!r} has two pieces for the file {name}, which can hold one of each tensor"
                )
            tensors[fqn] = _alone(planner.resolve_data(item)).contiguous()
            offsets[fqn] = list(item.index.offset or [0] * tensors[fqn].dim())
            length = tensors[fqn].nbytes
            info = _HFStorageInfo(name, tensors[fqn].shape, tensors[fqn].dtype, length)
            results.append(WriteResult(item.index, length, info))
        notes = sharding_notes(offsets) if self.save_distributed else {"format": "pt"}
        with open_for_writing(self.path / name) as stream:
            stream.write(contents(tensors, notes))
        return results

    def finish(self, metadata: Metadata, results) -> None:
        if not self.save_distributed:
            found = [result for one in results for result in one]
            write_index(
                self.path,
                {result.index.fqn: result.storage_data.relative_path for result in found},
                sum(result.storage_data.length for result in found),
            )
        elif self.consolidated_output_path is not None:
            consolidate_safetensors_files(
                str(self.path),
                self.consolidated_output_path,
                self.fqn_to_index_mapping or dict.fromkeys(metadata.state_dict_metadata, 1),
                self.thread_count_consolidation,
            )


class HuggingFaceStorageReader(FileSystemReader):
    """Reads a folder of safetensors files: those of HuggingFaceStorageWriter, and a model of Hugging Face.

    path: the folder. thread_count: files that are read at a time.
    """

    def __init__(self, path: str, thread_count: int = 1) -> None:
        super().__init__(path)
        self.thread_count = thread_count

    def read_metadata(self, *args, **kwargs) -> Metadata:
        """The metadata, from the headers of the files.

        Raises:
            FileNotFoundError: the folder contains no safetensors file.
            RuntimeError: a file notes a place for a piece that cannot be, or files have different dtypes for a tensor.
            safetensors.SafetensorError: a file is damaged.
        """
        files = sorted(entry.path for entry in os.scandir(self.path) if entry.name.endswith(SUFFIX))
        if not files:
            raise FileNotFoundError(f"{self.path} contains no file *{SUFFIX}")
        tensors, places = {}, {}
        for file in files:
            for piece in pieces_of(Path(file)):
                offsets, sizes = Size(piece.offsets), Size(piece.shape)
                known = tensors.get(piece.fqn)
                if known is None:
                    known = tensors[piece.fqn] = TensorStorageMetadata(
                        TensorProperties(dtype=piece.dtype), Size([0] * len(sizes)), []
                    )
                if known.properties.dtype != piece.dtype or len(known.size) != len(sizes):
                    raise RuntimeError(
                        f"{file} has another dtype or rank for {piece.fqn!r} than earlier files"
                    )
                known.chunks.append(ChunkStorageMetadata(offsets, sizes))
                known.size = Size(
                    [max(whole, a + b) for whole, a, b in zip(known.size, offsets, sizes, strict=True)]
                )
                places[MetadataIndex(piece.fqn, offsets)] = _HFStorageInfo(file, sizes, piece.dtype)
        metadata = Metadata(state_dict_metadata=tensors, storage_data=places)
        metadata.storage_meta = StorageMeta(load_id=self.load_id)
        return metadata

    def read_data(self, plan, planner) -> Future:
        files: dict[str, list] = {}
        for item in plan.items:
            if item.type == LoadItemType.BYTE_IO:
                raise ValueError(
                    f"{item.storage_index.fqn!r} is not a tensor, and safetensors files contain tensors only"
                )
            files.setdefault(self.storage_data[item.storage_index].relative_path, []).append(item)
        with ThreadPoolExecutor(max(self.thread_count, 1)) as pool:
            list(pool.map(lambda job: _read_file(*job, planner), files.items()))
        future: Future = Future()
        future.set_result(None)
        return future


def _read_file(file: str, items, planner) -> None:
    opened = Opened(file)
    for item in items:
        slices = tuple(
            slice(begin, begin + length)
            for begin, length in zip(item.storage_offsets, item.lengths, strict=True)
        )
        part = opened.tensor(item.storage_index.fqn)[slices]
        target = planner.resolve_tensor(item).detach()
        if target.size() != part.size():
            raise AssertionError(f"req {item.storage_index} mismatch sizes {target.size()} vs {part.size()}")
        with no_grad():
            target.copy_(part)
        planner.commit_tensor(item, target)

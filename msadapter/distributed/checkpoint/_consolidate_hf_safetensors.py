"""Puts the pieces that ranks wrote to safetensors files together, into the files of a model of Hugging Face."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ... import distributed, ops
from ..._serialization.files import open_for_writing
from ._safetensors_files import SUFFIX, Opened, Piece, contents, file_name, pieces_of

INDEX = "model.safetensors.index.json"


def consolidate_safetensors_files(
    input_dir: str, output_dir: str, fqn_to_index_mapping: Mapping[str, int], num_threads: int = 1
) -> None:
    """Writes the whole tensors of a folder of pieces to another folder, with an index.

    input_dir: the folder of the pieces. fqn_to_index_mapping: the number of the file, from 1, of each tensor that is wanted.
    num_threads: files that are written at a time.

    Raises:
        KeyError: no file has a piece of a tensor.
        RuntimeError: the pieces of a tensor leave elements out, or overlap.
    """
    _consolidate(input_dir, output_dir, fqn_to_index_mapping, num_threads, lambda number: True)


def consolidate_safetensors_files_on_every_rank(
    input_dir: str,
    output_dir: str,
    fqn_to_index_mapping: Mapping[str, int],
    num_threads: int = 1,
    process_group: Any = None,
) -> None:
    """As consolidate_safetensors_files, with the files shared among the ranks of a group. All ranks wait for the last one."""
    rank, size = distributed.get_rank(process_group), distributed.get_world_size(process_group)
    _consolidate(
        input_dir, output_dir, fqn_to_index_mapping, num_threads, lambda number: (number - 1) % size == rank
    )
    distributed.barrier(process_group)


def write_index(folder: str | Path, files: Mapping[str, str], size: int) -> None:
    """Writes the index of a folder. files: the file of each tensor. size: the bytes of all tensors."""
    text = json.dumps({"metadata": {"total_size": size}, "weight_map": dict(files)}, indent=2)
    with open_for_writing(Path(folder) / INDEX) as stream:
        stream.write(text.encode())


def _consolidate(input_dir, output_dir, mapping: Mapping[str, int], threads: int, mine) -> None:
    found: dict[str, list[tuple[str, Piece]]] = {}
    for entry in sorted(os.scandir(input_dir), key=lambda entry: entry.name):
        if entry.name.endswith(SUFFIX):
            for piece in pieces_of(Path(entry.path)):
                found.setdefault(piece.fqn, []).append((entry.path, piece))
    missing = [fqn for fqn in mapping if fqn not in found]
    if missing:
        raise KeyError(f"{input_dir} has no piece of {missing[0]!r}")
    Path(output_dir).mkdir(parents=True, exist_ok=True)
    last = max(mapping.values(), default=1)
    numbers = sorted({number for number in mapping.values() if mine(number)})

    def write(number: int) -> None:
        tensors = {fqn: _whole(found[fqn]) for fqn, at in mapping.items() if at == number}
        with open_for_writing(Path(output_dir) / file_name(number, last)) as stream:
            stream.write(contents(tensors, {"format": "pt"}))

    with ThreadPoolExecutor(max(threads, 1)) as pool:
        list(pool.map(write, numbers))
    if mine(1):
        size = sum(_bytes(piece) for fqn in mapping for _, piece in found[fqn])
        write_index(output_dir, {fqn: file_name(number, last) for fqn, number in mapping.items()}, size)


def _bytes(piece: Piece) -> int:
    return math.prod(piece.shape) * piece.dtype.itemsize


def _whole(pieces: list[tuple[str, Piece]]) -> Any:
    """The tensor of which these are all pieces."""
    _, first = pieces[0]
    shape = [
        max(piece.offsets[axis] + piece.shape[axis] for _, piece in pieces)
        for axis in range(len(first.shape))
    ]
    if sum(math.prod(piece.shape) for _, piece in pieces) != math.prod(shape) or _overlap(
        [p for _, p in pieces]
    ):
        raise RuntimeError(f"the pieces of {first.fqn!r} do not make up a tensor of size {shape}")
    whole = ops.empty(shape, dtype=first.dtype)
    for file, piece in pieces:
        part = tuple(slice(at, at + length) for at, length in zip(piece.offsets, piece.shape, strict=True))
        whole[part] = Opened(file).tensor(piece.fqn)
    return whole


def _overlap(pieces: list[Piece]) -> bool:
    def common(a: Piece, b: Piece) -> bool:
        return all(
            max(p, q) < min(p + m, q + n)
            for p, m, q, n in zip(a.offsets, a.shape, b.offsets, b.shape, strict=True)
        )

    return any(common(a, b) for i, a in enumerate(pieces) for b in pieces[:i])

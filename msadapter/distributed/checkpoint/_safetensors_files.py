"""The names of the safetensors files of a distributed checkpoint, and what their headers note."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import TensorSpec, safe_open, serialize

from ..._values.dtype import exports, uint8
from ...tensor._construct import frombuffer

SUFFIX = ".safetensors"
_NOTE = "DCP_SHARDING_INFO"
_OFFSETS = "saved_offsets"
_DTYPES = {
    "BF16": "bfloat16",
    "BOOL": "bool",
    "C64": "complex64",
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2": "float8_e5m2",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "I8": "int8",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "U8": "uint8",
}


@dataclass(frozen=True)
class Piece:
    """A part of the tensor `fqn` in a file. offsets: where it begins in the whole tensor."""

    fqn: str
    offsets: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: Any


def file_name(number: int, last: int, rank: int | None = None) -> str:
    """The name of the file with a number from 1 to `last`. rank: the number, from 1, of the rank that writes pieces."""
    shard = "" if rank is None else f"shard-{rank:05}-"
    return f"{shard}model-{number:05}-of-{last:05}{SUFFIX}"


def sharding_notes(offsets: Mapping[str, Sequence[int]]) -> dict[str, str]:
    """What the header of a file of pieces notes. offsets: where the piece of each tensor begins."""
    found = {fqn: {_OFFSETS: list(begin)} for fqn, begin in offsets.items()}
    return {_NOTE: json.dumps(found), "DCP_VERSION": "1.0", "format": "pt"}


class Opened:
    """A safetensors file whose tensors are read when they are asked for.

    Raises:
        safetensors.SafetensorError: the file is damaged.
        RuntimeError: it contains a dtype that this package lacks.
    """

    def __init__(self, file: str | Path) -> None:
        with safe_open(str(file), framework="numpy"):
            pass  # this checked the header, the sizes, and that no contents overlap
        self._mapped = np.memmap(file, dtype=np.uint8, mode="c")
        end = 8 + int.from_bytes(self._mapped[:8].tobytes(), "little")
        header = json.loads(self._mapped[8:end].tobytes())
        self.notes: dict[str, str] = header.pop("__metadata__", None) or {}
        self.shapes = {name: tuple(entry["shape"]) for name, entry in header.items()}
        self.dtypes = {name: _dtype(file, entry["dtype"]) for name, entry in header.items()}
        self._places = {name: [end + at for at in entry["data_offsets"]] for name, entry in header.items()}

    def tensor(self, name: str) -> Any:
        """The tensor. It reads its elements from the file when they are used, and writing to it does not change the file."""
        begin, end = self._places[name]
        flat = frombuffer(self._mapped, dtype=uint8)[begin:end]
        if begin % self.dtypes[name].itemsize:  # the header's length need not be a multiple of an element's
            flat = flat.clone()
        return flat.view(self.dtypes[name]).reshape(self.shapes[name])


def contents(tensors: Mapping[str, Any], notes: Mapping[str, str]) -> bytes:
    """The contents of a file with these tensors, which are contiguous and on the host."""
    specs = {
        name: TensorSpec(
            dtype=str(tensor.dtype).rpartition(".")[2],
            shape=list(tensor.shape),
            data_ptr=tensor.data_ptr(),
            data_len=tensor.nbytes,
        )
        for name, tensor in tensors.items()
    }
    return serialize(specs, metadata=dict(notes))


def pieces_of(file: Path) -> list[Piece]:
    """The pieces in a file.

    Raises:
        safetensors.SafetensorError: the file is damaged.
        RuntimeError: the header notes something else than a place for each piece.
    """
    opened = Opened(file)
    noted, shapes = opened.notes.get(_NOTE), opened.shapes
    if noted is None:
        places = {name: (0,) * len(shape) for name, shape in shapes.items()}
    else:
        places = _places(file, noted, shapes)
    return [Piece(name, places[name], shapes[name], opened.dtypes[name]) for name in shapes]


def _dtype(file: str | Path, name: str) -> Any:
    found = exports().get(_DTYPES.get(name, ""))
    if found is None:
        raise RuntimeError(f"{file} has elements of the dtype {name}, which is not supported")
    return found


def _places(file: Path, noted: str, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    try:
        found = json.loads(noted)
        places = {name: tuple(found[name][_OFFSETS]) for name in shapes}
    except (ValueError, KeyError, TypeError) as error:
        raise RuntimeError(f"{file}: the note {_NOTE} is damaged: {error!r}") from error
    for name, place in places.items():
        right = len(place) == len(shapes[name]) and all(type(at) is int and 0 <= at < 2**62 for at in place)
        if not right:
            raise RuntimeError(
                f"{file}: {name!r} cannot begin at {list(place)} in a tensor of rank {len(shapes[name])}"
            )
    return places

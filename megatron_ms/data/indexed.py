"""Megatron's indexed data sets. PREFIX.bin holds the ids of all sequences; PREFIX.idx says where each of them begins.

The index begins with a header: nine bytes of magic, the version, the code of the ids' type, the number of sequences, and the
number of document marks. Then follow the length of each sequence (int32), its offset in bytes (int64), and the document
marks (int64): the number of sequences before each document, and at last the number of all.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy

from ..errors import UserError

MAGIC = b"MMIDIDX\x00\x00"
VERSION = 1
HEADER = struct.Struct("<9sQBQQ")
CODES = {
    numpy.dtype(name): code
    for code, name in enumerate(
        ["uint8", "int8", "int16", "int32", "int64", "float64", "float32", "uint16"], start=1
    )
}
TYPES = {code: dtype for dtype, code in CODES.items()}
_FITS_UINT16 = 65500  # Megatron's limit


def dtype_for(vocabulary: int) -> numpy.dtype:
    """The type of the ids that Megatron's own tool chooses for a vocabulary of this size."""
    return numpy.dtype(numpy.uint16 if vocabulary < _FITS_UINT16 else numpy.int32)


def bin_path(prefix: Path) -> Path:
    return prefix.with_name(prefix.name + ".bin")


def idx_path(prefix: Path) -> Path:
    return prefix.with_name(prefix.name + ".idx")


def write_index(
    path: Path, dtype: numpy.dtype, lengths: numpy.ndarray, sequences_of_documents: numpy.ndarray
) -> None:
    """Writes an index for sequences of these lengths, of which each document has as many as the last argument says."""
    pointers = numpy.zeros(len(lengths), numpy.int64)
    numpy.cumsum(lengths[:-1], dtype=numpy.int64, out=pointers[1:])
    marks = numpy.zeros(len(sequences_of_documents) + 1, numpy.int64)
    numpy.cumsum(sequences_of_documents, dtype=numpy.int64, out=marks[1:])
    with open(path, "wb") as file:
        file.write(HEADER.pack(MAGIC, VERSION, CODES[dtype], len(lengths), len(marks)))
        file.write(lengths.astype("<i4", copy=False).tobytes())
        file.write((pointers * dtype.itemsize).astype("<i8", copy=False).tobytes())
        file.write(marks.astype("<i8", copy=False).tobytes())


@dataclass(frozen=True)
class IndexedData:
    """An indexed data set that has been checked. Its arrays are mapped from the files, not read."""

    prefix: Path
    dtype: numpy.dtype
    lengths: numpy.ndarray
    pointers: numpy.ndarray
    marks: numpy.ndarray
    ids: numpy.ndarray

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def documents(self) -> int:
        return len(self.marks) - 1

    def __getitem__(self, sequence: int) -> numpy.ndarray:
        start = int(self.pointers[sequence]) // self.dtype.itemsize
        return self.ids[start : start + int(self.lengths[sequence])]

    def largest(self) -> int:
        """The largest id; -1 if there is none."""
        return int(self.ids.max()) if len(self.ids) else -1


def open_indexed(prefix: Path) -> IndexedData:
    """Opens an indexed data set and checks that both files are whole and fit each other.

    Raises:
        UserError: a file is absent, truncated or damaged. The message names it and says what is wrong.
    """
    if prefix.suffix in (".bin", ".idx"):
        prefix = prefix.with_suffix("")
    if not prefix.name:
        raise UserError(f"{prefix}: is a folder: name the beginning of the files' names, without .bin")
    index, data = idx_path(prefix), bin_path(prefix)
    for path in (index, data):
        if not path.is_file():
            raise UserError(f"{path}: there is no such file")
    dtype, counts = _read_header(index)
    lengths, pointers, marks = _map_index(index, counts)
    if len(lengths) and int(lengths.min()) < 0:
        raise UserError(f"{index}: is damaged: a sequence has the length {int(lengths.min())}")
    ends = numpy.cumsum(lengths, dtype=numpy.int64) * dtype.itemsize
    if not numpy.array_equal(pointers, ends - lengths.astype(numpy.int64) * dtype.itemsize):
        wrong = int(numpy.argmax(pointers != ends - lengths.astype(numpy.int64) * dtype.itemsize))
        raise UserError(f"{index}: is damaged: sequence {wrong} does not begin where the one before ends")
    if int(marks[0]) != 0 or int(marks[-1]) != len(lengths) or bool((numpy.diff(marks) < 0).any()):
        raise UserError(f"{index}: is damaged: the document marks do not go from 0 to {len(lengths)}")
    expected = int(ends[-1]) if len(ends) else 0
    if (size := data.stat().st_size) != expected:
        what = "is truncated" if size < expected else "does not belong to its index"
        raise UserError(f"{data}: {what}: it has {size} bytes, and {index.name} describes {expected}")
    ids = numpy.memmap(data, dtype, mode="r") if expected else numpy.zeros(0, dtype)
    return IndexedData(prefix, dtype, lengths, pointers, marks, ids)


def _read_header(index: Path) -> tuple[numpy.dtype, tuple[int, int]]:
    with open(index, "rb") as file:
        head = file.read(HEADER.size)
    if len(head) < HEADER.size:
        raise UserError(
            f"{index}: is truncated: it has {len(head)} bytes, its header alone has {HEADER.size}"
        )
    magic, version, code, sequences, marks = HEADER.unpack(head)
    if magic != MAGIC:
        raise UserError(f"{index}: is not an index of Megatron: it does not begin with {MAGIC!r}")
    if version != VERSION:
        raise UserError(f"{index}: has the version {version}; only version {VERSION} can be read")
    if code not in TYPES:
        raise UserError(f"{index}: is damaged: there is no type of ids with the code {code}")
    if marks < 1:
        raise UserError(f"{index}: is damaged: it has no document marks")
    return TYPES[code], (sequences, marks)


def _map_index(index: Path, counts: tuple[int, int]) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
    sequences, marks = counts
    expected = HEADER.size + 12 * sequences + 8 * marks
    size = index.stat().st_size
    if size == expected + sequences and sequences:
        raise UserError(f"{index}: is an index of a multimodal data set, which this command cannot read")
    if size != expected:
        what = "is truncated" if size < expected else "is damaged"
        raise UserError(f"{index}: {what}: it has {size} bytes, and its header describes {expected}")
    content = numpy.memmap(index, numpy.uint8, mode="r")
    places = numpy.cumsum([HEADER.size, 4 * sequences, 8 * sequences, 8 * marks])
    parts = [content[start:stop] for start, stop in zip(places[:-1], places[1:], strict=True)]
    return parts[0].view("<i4"), parts[1].view("<i8"), parts[2].view("<i8")

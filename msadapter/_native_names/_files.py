"""torch._C.PyTorchFileReader and PyTorchFileWriter: the zip container of torch.save, record by record."""

from __future__ import annotations

import os
from pathlib import Path

import msadapter as torch

from .._serialization.zip_reader import ZipReader
from .._serialization.zip_writer import ZipWriter


class PyTorchFileReader:
    """Reads the records of a file (a path, or a binary stream that can seek)."""

    def __init__(self, name_or_buffer) -> None:
        by_path = isinstance(name_or_buffer, (str, os.PathLike))
        self._stream = open(name_or_buffer, "rb") if by_path else name_or_buffer  # noqa: SIM115  open as long as the reader
        self._reader = ZipReader(self._stream, str(name_or_buffer) if by_path else "a stream")

    def has_record(self, name: str) -> bool:
        """Return whether the file has a record of this name."""
        return name in self._reader

    def get_all_records(self) -> list[str]:
        """Return the names of all records."""
        return self._reader.names()

    def get_record(self, name: str) -> bytes:
        """Return the bytes of a record. RuntimeError if it is not there, or damaged."""
        return self._reader.read(name)

    def get_record_size(self, name: str) -> int:
        """Return the number of bytes of a record."""
        return len(self._reader.read_array(name))

    def get_record_offset(self, name: str) -> int:
        """Return the position in the file at which the bytes of a record begin."""
        if not self.has_record(name):
            self._reader.read_array(name)  # raises the error of a record that is not there
        return self._reader.offset(name)

    def get_storage_from_record(self, name: str, numel: int, dtype):
        """Return a tensor without elements whose storage has ``numel`` elements, the bytes of a record.

        dtype: a torch.dtype, or torch.UntypedStorage for bytes.
        """
        if dtype is torch.UntypedStorage:
            dtype = torch.uint8
        if numel == 0:
            return torch.empty(0, dtype=dtype)
        return torch.frombuffer(bytearray(self._reader.read(name)), dtype=dtype, count=numel)[:0]

    def serialization_id(self) -> str:
        """Return the identifier that the writer stored in the file, or "" if there is none."""
        name = ".data/serialization_id"
        return self.get_record(name).decode() if self.has_record(name) else ""


class PyTorchFileWriter:
    """Writes records to a file (a path, or an object with `write`). `write_end_of_file` completes it."""

    def __init__(self, name_or_buffer, compute_crc32: bool = True, storage_alignment: int = 64) -> None:
        by_path = isinstance(name_or_buffer, (str, os.PathLike))
        self._opened = open(name_or_buffer, "wb") if by_path else None  # noqa: SIM115  closed by write_end_of_file
        self._archive = Path(name_or_buffer).stem if by_path else "archive"
        stream = self._opened or name_or_buffer
        self._writer = ZipWriter(stream, self._archive, compute_crc32, storage_alignment)
        self._names: list[str] = []

    def archive_name(self) -> str:
        """Return the folder of all records in the file."""
        return self._archive

    def write_record(self, name: str, data, size: int) -> None:
        """Append a record with the first ``size`` bytes of ``data``: bytes, text or a storage."""
        if isinstance(data, str):
            data = data.encode()
        elif (
            hasattr(data, "_untyped_storage") or hasattr(data, "nbytes") and not isinstance(data, memoryview)
        ):
            data = bytes(data)
        self._writer.write_record(name, memoryview(data)[:size])
        self._names.append(name)

    def get_all_written_records(self) -> set[str]:
        """Return the names of the records so far."""
        return set(self._names)

    def write_end_of_file(self) -> None:
        """Write the directory of the file, and close a file that this object opened."""
        self._writer.finish()
        if self._opened is not None:
            self._opened.close()


for _class in (PyTorchFileReader, PyTorchFileWriter):
    _class.__module__ = "torch._C"

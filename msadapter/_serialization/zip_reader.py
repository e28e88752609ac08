"""Reads the zip container of torch.save. Records are found by name, and can be views of a mapped file."""

import lzma
import struct
import zipfile
import zlib

import numpy as np

_ALIGNED = 16  # the number of bytes of the largest element
_CORRUPT = (
    "PytorchStreamReader failed {what}. There is a high likelihood that the checkpoint file is corrupted "
    "(not saved to its end, transferred incorrectly or modified afterwards): {file}"
)


class ZipReader:
    """The records of one archive.

    stream: a seekable binary file. file: its name for messages. mapped: a uint8 array of the whole file
    (np.memmap); records are then slices of it, without a copy.
    """

    def __init__(self, stream, file: str, mapped=None):
        self._stream = stream
        self._file = file
        self._mapped = mapped
        try:
            self._zip = zipfile.ZipFile(stream)
        except (zipfile.BadZipFile, struct.error, OSError, NotImplementedError) as err:
            raise self._corrupt("reading zip archive: failed finding central directory") from err
        self._length = stream.seek(0, 2)
        infos = self._zip.infolist()
        if not infos:
            raise self._corrupt("reading zip archive: it holds no records")
        self._folder = infos[0].filename.partition("/")[0] + "/"
        start = len(self._folder)
        mine = [info for info in infos if info.filename.startswith(self._folder)]
        self._records = {info.filename[start:]: info for info in mine}
        if len(self._records) != len(mine):
            raise self._corrupt("reading zip archive: a record stands in it twice")
        # Overlapping records could need many times more memory than the file has bytes.
        if sum(info.compress_size for info in infos) > self._length:
            raise self._corrupt("reading zip archive: its records are larger than the file")

    def _corrupt(self, what: str) -> RuntimeError:
        return RuntimeError(_CORRUPT.format(what=what, file=self._file))

    def __contains__(self, name: str) -> bool:
        return name in self._records

    def names(self):
        return list(self._records)

    def read(self, name: str) -> bytes:
        """Return the bytes of a record after checking the checksum."""
        return self.read_array(name).tobytes()

    def read_array(self, name: str) -> np.ndarray:
        """Return the bytes of a record as a writable uint8 array (a slice of the mapped file, if there is
        one).
        """
        info = self._records.get(name)
        if info is None:
            raise self._corrupt(f"locating file {name}: file not found in the archive")
        if info.compress_type != zipfile.ZIP_STORED:
            return self._inflate(info, name)
        if info.file_size != info.compress_size:
            raise self._corrupt(f"reading file {name}: it has two sizes")
        start = self.offset(name)
        if self._mapped is not None:
            if start + info.file_size > self._mapped.size:
                raise self._corrupt(f"reading file {name}: it ends behind the end of the file")
            mapped = self._mapped[start : start + info.file_size]
            # PyTorch's writers align the records; kernels cannot use numbers at other addresses
            return mapped if mapped.ctypes.data % _ALIGNED == 0 else mapped.copy()
        if start + info.file_size > self._length:  # checked before the memory is allocated
            raise self._corrupt(f"reading file {name}: it ends behind the end of the file")
        data = np.empty(info.file_size, dtype=np.uint8)
        self._stream.seek(start)
        if _read_into(self._stream, data) != info.file_size:
            raise self._corrupt(f"reading file {name}: unexpected end of file")
        # a writer may leave the checksum out (set_crc32_options(False)), and it is zero then
        if info.CRC and zlib.crc32(data) != info.CRC:
            raise self._corrupt(f"reading file {name}: its checksum does not match its contents")
        return data

    def _inflate(self, info, name):
        # the deflate format cannot compress better than this
        if info.file_size > 1100 * info.compress_size + 1024:
            raise self._corrupt(f"reading file {name}: its size is not that of its contents")
        try:
            return np.frombuffer(bytearray(self._zip.read(info)), dtype=np.uint8)
        except (
            zipfile.BadZipFile,
            zlib.error,
            lzma.LZMAError,
            OSError,
            EOFError,
            NotImplementedError,
        ) as err:
            raise self._corrupt(f"reading file {name}: {err}") from err

    def offset(self, name: str) -> int:
        """Return the position in the file at which the bytes of a record begin."""
        info = self._records[name]
        self._stream.seek(info.header_offset)
        header = self._stream.read(30)
        if len(header) != 30 or header[:4] != b"PK\x03\x04":
            raise self._corrupt(f"reading file {name}: its header is damaged")
        name_length, extra_length = struct.unpack("<HH", header[26:30])
        return info.header_offset + 30 + name_length + extra_length


def _read_into(stream, array) -> int:
    """Fill `array` from the stream and return the number of bytes that were read."""
    view, done = memoryview(array), 0
    readinto = getattr(stream, "readinto", None)
    while done < len(view):
        if readinto is not None:
            count = readinto(view[done:])
        else:
            chunk = stream.read(len(view) - done)
            count = len(chunk)
            view[done : done + count] = chunk
        if not count:
            break
        done += count
    return done

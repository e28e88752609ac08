"""Reads the zip container of torch.save: records by name, as views of a map of the file when asked."""

import struct
import zipfile
import zlib

import numpy as np

_ALIGNED = 16  # bytes of the largest element
_CORRUPT = (
    "PytorchStreamReader failed {what}. There is a high likelihood that the checkpoint file is corrupted "
    "(not saved to its end, transferred incorrectly or modified afterwards): {file}"
)


class ZipReader:
    """Records of one archive.

    stream: a seekable binary file; file: its name for messages; mapped: a uint8 array over the whole file
    (np.memmap), then records are slices of it and nothing is copied.
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
        # Records that lie on one another would take many times the memory of the file.
        if sum(info.compress_size for info in infos) > self._length:
            raise self._corrupt("reading zip archive: its records are larger than the file")

    def _corrupt(self, what: str) -> RuntimeError:
        return RuntimeError(_CORRUPT.format(what=what, file=self._file))

    def __contains__(self, name: str) -> bool:
        return name in self._records

    def names(self):
        return list(self._records)

    def read(self, name: str) -> bytes:
        """The bytes of a record, its checksum verified."""
        return self.read_array(name).tobytes()

    def read_array(self, name: str) -> np.ndarray:
        """The bytes of a record as a writable uint8 array (a slice of the map if there is one)."""
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
            # every writer aligns the records; numbers at odd addresses are not for kernels
            return mapped if mapped.ctypes.data % _ALIGNED == 0 else mapped.copy()
        if start + info.file_size > self._length:  # before memory is taken for it
            raise self._corrupt(f"reading file {name}: it ends behind the end of the file")
        data = np.empty(info.file_size, dtype=np.uint8)
        self._stream.seek(start)
        if _read_into(self._stream, data) != info.file_size:
            raise self._corrupt(f"reading file {name}: unexpected end of file")
        # a writer may leave the checksum out (set_crc32_options(False)): then it is zero
        if info.CRC and zlib.crc32(data) != info.CRC:
            raise self._corrupt(f"reading file {name}: its checksum does not match its contents")
        return data

    def _inflate(self, info, name):
        if info.file_size > 1100 * info.compress_size + 1024:  # more than deflate can save
            raise self._corrupt(f"reading file {name}: its size is not that of its contents")
        try:
            return np.frombuffer(bytearray(self._zip.read(info)), dtype=np.uint8)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as err:
            raise self._corrupt(f"reading file {name}: {err}") from err

    def offset(self, name: str) -> int:
        """Where the bytes of a record start in the file."""
        info = self._records[name]
        self._stream.seek(info.header_offset)
        header = self._stream.read(30)
        if len(header) != 30 or header[:4] != b"PK\x03\x04":
            raise self._corrupt(f"reading file {name}: its header is damaged")
        name_length, extra_length = struct.unpack("<HH", header[26:30])
        return info.header_offset + 30 + name_length + extra_length


def _read_into(stream, array) -> int:
    """Fill `array` from the stream; the number of bytes read."""
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

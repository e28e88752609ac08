"""Writes the zip container of torch.save, with uncompressed records that are aligned for mmap.

Sizes and checksums are known before a record is written, so the stream needs no seek. Zip64 fields are
written only if a size or an offset needs them.
"""

import struct
import zlib

ALIGNMENT = 64
_LIMIT32 = 0xFFFFFFFF
_LIMIT16 = 0xFFFF
_UTF8 = 0x0800
_DOS_DATE = (1980 - 1980) << 9 | 1 << 5 | 1  # a fixed date, so that equal contents give equal files


def _described(crc: int, size: int, encoded: bytes, extra: bytes) -> bytes:
    """Return what the header of a record and its entry in the directory say in the same words: flags, no compression, date,
    checksum, and the sizes of the data, the name and the extra fields.
    """
    size32 = min(size, _LIMIT32)
    lengths = len(encoded), len(extra)
    return struct.pack("<HHHHIIIHH", _UTF8, 0, 0, _DOS_DATE, crc, size32, size32, *lengths)


class ZipWriter:
    """`write_record(name, buffer)` appends a record, and `finish()` writes the directory.

    stream: an object with `write(bytes-like)`. archive_name: the folder of all records.
    """

    def __init__(self, stream, archive_name: str, compute_crc: bool = True, alignment: int = ALIGNMENT):
        self._stream = stream
        self._folder = archive_name
        self._compute_crc = compute_crc
        self._alignment = alignment
        self._position = 0
        self._directory = []

    def _write(self, data):
        self._stream.write(data)
        self._position += len(data)

    def write_record(self, name: str, data) -> None:
        """Append `data` (bytes, memoryview of bytes or uint8 array) as the record `name`."""
        data = memoryview(data).cast("B") if len(data) else b""
        encoded = f"{self._folder}/{name}".encode()
        crc = zlib.crc32(data) if self._compute_crc else 0
        size, offset = len(data), self._position
        extra = b""
        if size >= _LIMIT32:
            extra = struct.pack("<HHQQ", 1, 16, size, size)
        extra += self._padding(offset + 30 + len(encoded) + len(extra))
        version = 45 if size >= _LIMIT32 else 20
        self._write(struct.pack("<IH", 0x04034B50, version) + _described(crc, size, encoded, extra))
        self._write(encoded)
        self._write(extra)
        self._write(data)
        self._directory.append((encoded, crc, size, offset))

    def _padding(self, header_end: int) -> bytes:
        # the extra field "FB" of PyTorch's writer, which fills the space up to the aligned data
        fill = -(header_end + 4) % self._alignment
        return b"FB" + struct.pack("<H", fill) + b"Z" * fill

    def finish(self) -> None:
        """Write the central directory. No record can be appended after that."""
        start = self._position
        for encoded, crc, size, offset in self._directory:
            wide = []
            if size >= _LIMIT32:
                wide += [size, size]
            if offset >= _LIMIT32:
                wide.append(offset)
            extra = struct.pack(f"<HH{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
            version = 45 if wide else 20
            self._write(struct.pack("<IHH", 0x02014B50, version, version))
            self._write(_described(crc, size, encoded, extra))
            self._write(struct.pack("<HHHII", 0, 0, 0, 0, min(offset, _LIMIT32)))
            self._write(encoded)
            self._write(extra)
        self._write_end(start, self._position - start)

    def _write_end(self, start: int, length: int) -> None:
        count = len(self._directory)
        if count >= _LIMIT16 or start >= _LIMIT32 or length >= _LIMIT32:
            end64 = self._position
            self._write(struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, count, count, length, start))
            self._write(struct.pack("<IIQI", 0x07064B50, 0, end64, 1))
        count16 = min(count, _LIMIT16)
        self._write(
            struct.pack(
                "<IHHHHIIH",
                0x06054B50,
                0,
                0,
                count16,
                count16,
                min(length, _LIMIT32),
                min(start, _LIMIT32),
                0,
            )
        )

"""Where data comes from: files of several formats, folders of them, and Hugging Face's data sets.

A source yields entries in a fixed order. Lines of JSON stay undecoded here, so that the workers do that part of the work.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import json
import lzma
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ..errors import UserError, first_line

_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
FORMATS = ("jsonl", "json", "csv", "parquet", "arrow", "txt")
TEXT_UNITS = ("line", "paragraphs", "file")
_PARAGRAPHS = 2000  # characters that a document of joined paragraphs has at least
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Entry:
    """One entry: its values, or a line of JSON that has not been read. `place` names it in messages."""

    place: str
    content: bytes | dict[str, Any]
    size: int = 0  # how many bytes of the file it took, for the progress bar

    def values(self) -> dict[str, Any]:
        """The values by their keys.

        Raises:
            UserError: the line is not UTF-8, or is not a JSON object.
        """
        if isinstance(self.content, dict):
            return self.content
        text = decoded(self.content, self.place)
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{self.place}: is not JSON: {error}") from None
        if not isinstance(values, dict):
            raise UserError(f"{self.place}: is not a JSON object with keys, but {_short(values)}")
        return values


class Source(ABC):
    """A sequence of entries."""

    name: str
    size: int | None = None  # bytes of all files, for the progress bar; None if unknown

    @abstractmethod
    def entries(self) -> Iterator[Entry]:
        """The entries, each time in the same order."""

    @abstractmethod
    def identity(self) -> Any:
        """What differs between sources with different entries, as JSON."""


def decoded(raw: bytes, place: str) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{place}: byte {error.start + 1} (0x{raw[error.start]:02x}) is not UTF-8: convert the file to UTF-8"
        ) from None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:40] + "..."


class Files(Source):
    """The files of one path, in the order of their names."""

    def __init__(self, path: Path, columns: list[str] | None = None, unit: str = "line") -> None:
        self.name, self.path, self.columns, self.unit = path.name, path, columns, unit
        self.files = _files(path)
        self.size = sum(file.stat().st_size for file in self.files)

    def identity(self) -> Any:
        return [[str(file), file.stat().st_size, file.stat().st_mtime_ns] for file in self.files]

    def entries(self) -> Iterator[Entry]:
        for file in self.files:
            yield from self._of_file(file)

    def _of_file(self, file: Path) -> Iterator[Entry]:
        kind = format_of(file)
        try:
            if kind == "parquet":
                yield from _parquet(file, self.columns)
            elif kind == "arrow":
                yield from _arrow(file)
            elif kind == "json":
                yield from _json(file)
            else:
                with _open(file) as stream:
                    yield from _of_lines(kind, file, stream, self.unit)
        except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # of the system; bz2 and gzip raise the class without a number
            raise UserError(f"{file}: the compressed file is damaged or truncated: {error}") from None


def format_of(file: Path) -> str | None:
    """The format that the name of a file tells; None if it tells none."""
    name = file.name.lower()
    for ending in _OPENERS:
        name = name.removesuffix(ending)
    kind = {"ndjson": "jsonl", "text": "txt", "pq": "parquet"}.get(
        name.rpartition(".")[2], name.rpartition(".")[2]
    )
    return kind if kind in FORMATS else None


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise UserError(f"data.sources: there is no file or folder {path}")
    if path.is_file():
        if format_of(path) is None:
            raise UserError(
                f"{path}: its name ends with none of .{', .'.join(FORMATS)} (also with .gz, .bz2 or .xz behind)"
            )
        found = [path]
    else:
        found = sorted(
            file for file in path.rglob("*") if file.is_file() and not _hidden(file, path) and format_of(file)
        )
        if not found:
            raise UserError(
                f"{path}: the folder has no file whose name ends with one of .{', .'.join(FORMATS)}"
            )
    for file in found:
        if file.stat().st_size == 0:
            raise UserError(f"{file}: the file is empty")
    return found


def _hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)


def _open(file: Path) -> IO[bytes]:
    opener = _OPENERS.get(file.suffix.lower(), open)
    return opener(file, "rb")


def _of_lines(kind: str | None, file: Path, stream: IO[bytes], unit: str) -> Iterator[Entry]:
    if kind == "csv":
        yield from _csv(file, stream)
    elif kind == "txt" and unit == "file":
        raw = stream.read()
        yield Entry(str(file), {"text": decoded(raw.removeprefix(_BOM), str(file))}, len(raw))
    elif kind == "txt" and unit == "paragraphs":
        yield from _paragraphs(file, stream)
    else:
        for number, line in enumerate(stream, start=1):
            place = f"{file}, line {number}"
            content = line.removeprefix(_BOM) if number == 1 else line
            if kind == "txt":
                yield Entry(place, {"text": decoded(content, place).rstrip("\r\n")}, len(line))
            elif content.strip():
                yield Entry(place, content, len(line))


def _paragraphs(file: Path, stream: IO[bytes]) -> Iterator[Entry]:
    """Documents of paragraphs, which blank lines separate: joined until they have some thousand characters."""
    held: list[str] = []
    characters, size, began, paragraph = 0, 0, 1, ""

    def document() -> Entry:
        return Entry(f"{file}, line {began}", {"text": "\n\n".join(held)}, size)

    number = 0
    for number, line in enumerate(stream, start=1):
        text = decoded(line.removeprefix(_BOM) if number == 1 else line, f"{file}, line {number}")
        size += len(line)
        if text.strip():
            paragraph += text
            continue
        if paragraph:
            held.append(paragraph.rstrip("\n"))
            characters, paragraph = characters + len(held[-1]), ""
        if characters >= _PARAGRAPHS:
            yield document()
            held, characters, size, began = [], 0, 0, number + 1
    if paragraph:
        held.append(paragraph.rstrip("\n"))
    if held:
        yield document()


def _json(file: Path) -> Iterator[Entry]:
    """The objects of a JSON list; or JSON lines, which are common under this ending too."""
    with _open(file) as stream:
        first = stream.read(4096).removeprefix(_BOM).lstrip()[:1]
        stream.seek(0)
        if first != b"[":
            yield from _of_lines("jsonl", file, stream, "line")
            return
        raw = stream.read()
    try:
        found = json.loads(decoded(raw.removeprefix(_BOM), str(file)))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file}: is not JSON: {error}") from None
    for number, values in enumerate(found, start=1):
        place = f"{file}, entry {number}"
        if not isinstance(values, dict):
            raise UserError(f"{place}: is not a JSON object with keys, but {_short(values)}")
        yield Entry(place, values, len(raw) // len(found))


def _csv(file: Path, stream: IO[bytes]) -> Iterator[Entry]:
    sizes = [0]

    def lines() -> Iterator[str]:
        for number, line in enumerate(stream, start=1):
            sizes[0] += len(line)
            yield decoded(line.removeprefix(_BOM) if number == 1 else line, f"{file}, line {number}")

    csv.field_size_limit(1 << 30)
    reader = csv.reader(lines(), strict=True)
    header: list[str] | None = None
    begins = 1
    try:
        for fields in reader:
            place, begins = f"{file}, line {begins}", reader.line_num + 1
            if header is None:
                header = fields
            elif len(fields) != len(header):
                if fields:
                    raise UserError(
                        f"{place}: has {len(fields)} fields, and the first line names {len(header)}"
                    )
            else:
                yield Entry(place, dict(zip(header, fields, strict=True)), sizes[0])
                sizes[0] = 0
    except csv.Error as error:
        raise UserError(f"{file}, line {begins}: is not CSV: {error}") from None


def _parquet(file: Path, columns: list[str] | None) -> Iterator[Entry]:
    import pyarrow
    from pyarrow import parquet

    number = 0
    try:
        with parquet.ParquetFile(file) as table:
            whole = columns is not None and set(columns) <= set(table.schema_arrow.names)
            each = file.stat().st_size // max(1, table.metadata.num_rows)
            # If a column is missing, all are read: the message about the missing one then names them.
            for batch in table.iter_batches(batch_size=1024, columns=columns if whole else None):
                for row in batch.to_pylist():
                    number += 1
                    yield Entry(f"{file}, row {number}", row, each)
    except (pyarrow.ArrowException, OSError) as error:
        raise UserError(
            f"{file}: is not a complete parquet file (after row {number}): {first_line(error)}"
        ) from None


def _arrow(file: Path) -> Iterator[Entry]:
    import pyarrow

    number = 0
    try:
        with pyarrow.memory_map(str(file)) as mapped:
            try:
                reader: Any = pyarrow.ipc.open_stream(mapped)
                batches = iter(reader)
            except pyarrow.ArrowInvalid:
                reader = pyarrow.ipc.open_file(mapped)
                batches = (reader.get_batch(place) for place in range(reader.num_record_batches))
            for batch in batches:
                for row in batch.to_pylist():
                    number += 1
                    yield Entry(f"{file}, row {number}", row)
    except (pyarrow.ArrowException, OSError) as error:
        raise UserError(
            f"{file}: is not a complete Arrow file (after row {number}): {first_line(error)}"
        ) from None


class HubData(Source):
    """A data set of the library `datasets`: by its name on the Hugging Face hub, or saved to disk."""

    def __init__(
        self, name: str, subset: str | None, split: str, revision: str | None, streaming: bool
    ) -> None:
        self.name, self.subset, self.split = name, subset, split
        self.revision, self.streaming = revision, streaming
        self._loaded: Any = None

    def identity(self) -> Any:
        # A streamed data set has no fingerprint; its name and revision then have to do.
        mark = None if self.streaming else getattr(self._data(), "_fingerprint", None)
        return [self.name, self.subset, self.split, self.revision, mark]

    def entries(self) -> Iterator[Entry]:
        for number, row in enumerate(self._data(), start=1):
            yield Entry(f"{self.name} ({self.split}), row {number}", row)

    def _data(self) -> Any:
        if self._loaded is None:
            self._loaded = _saved(self.name, self.split) if is_saved(Path(self.name)) else self._from_hub()
        return self._loaded

    def _from_hub(self) -> Any:
        import datasets

        datasets.utils.logging.set_verbosity_error()
        try:
            return datasets.load_dataset(
                self.name, self.subset, split=self.split, revision=self.revision, streaming=self.streaming
            )
        except Exception as error:  # of many classes, by the data set and by the state of the network
            raise UserError(
                f"data.sources: the data set {self.name} cannot be loaded: {type(error).__name__}: {first_line(error)} "
                "(a name is looked up on the Hugging Face hub, or in its cache; a path must exist)"
            ) from None


def is_saved(path: Path) -> bool:
    """True if the folder was written by save_to_disk of the library `datasets`."""
    return path.is_dir() and ((path / "dataset_dict.json").is_file() or (path / "state.json").is_file())


def _saved(name: str, split: str) -> Any:
    import datasets

    try:
        data = datasets.load_from_disk(name)
    except Exception as error:  # of many classes, by what is wrong with the folder
        raise UserError(
            f"data.sources: {name}: the saved data set cannot be read: {first_line(error)}"
        ) from None
    if isinstance(data, Mapping):
        if split not in data:
            raise UserError(f"data.sources: {name} has no split {split}; it has {', '.join(data)}")
        return data[split]
    return data

"""The folder in which a data set grows. An interrupted run continues there, and finished files are moved out of it.

For each stream it holds three files: the ids, the lengths of the sequences, and the number of sequences of each document. The
journal says how long each of them was when the journal was written; what is longer was not finished, and is cut off.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy

from .. import locks
from ..convert.steps import file_sha256, write_atomically
from ..errors import UserError
from .encode import KEPT, Encoded, Stream

_PARTS = ("ids", "lengths", "sequences")
STAMP = ".data.json"


def stamp_path(prefix: Path) -> Path:
    """The file beside a finished data set that says what it was made from."""
    return prefix.with_name(prefix.name + STAMP)


def read_stamp(path: Path) -> dict[str, Any] | None:
    """The content of a stamp; None if there is none that can be read."""
    try:
        stamp = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    whole = (
        isinstance(stamp, dict) and isinstance(stamp.get("key"), str) and isinstance(stamp.get("files"), dict)
    )
    return stamp if whole else None


@dataclass(frozen=True)
class Progress:
    """How far the work has come. It is replaced at once, so that Ctrl-C never finds a half of it.

    sizes: name of a file in the folder -> how many of its bytes belong to these entries.
    """

    entries: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    left_out: dict[str, list[str]] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)


class Work:
    """The folder of one data set while it is made."""

    def __init__(self, prefix: Path, key: str, streams: Sequence[str], dtype: numpy.dtype) -> None:
        self.prefix, self.key, self.streams, self.dtype = prefix, key, streams, dtype
        self.folder = prefix.with_name(f".{prefix.name}.work")
        self.done = Progress()
        self.encoded = False
        self.moves: list[list[str]] = []
        self._files: dict[str, IO[bytes]] = {}

    def begun(self) -> bool:
        """True if an earlier run began to move finished files, which are then no strangers."""
        journal = self._journal()
        return journal is not None and bool(journal["moves"])

    @staticmethod
    def refuse_existing(paths: Sequence[Path]) -> None:
        """Raises UserError if there is a file with one of these names."""
        for path in paths:
            if os.path.lexists(path):
                raise UserError(
                    f"{path}: exists already and was made from something else: choose another data.output"
                )

    @contextmanager
    def held(self) -> Iterator[Work]:
        """Makes the folder, or finds what an earlier run left in it, and keeps other runs out."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.folder / "lock", "w") as lock:
            if not locks.take(lock):
                raise UserError(f"{self.prefix}: another run is making this data set: wait until it ends")
            self._continue()
            try:
                yield self
            finally:
                self._close()

    def _continue(self) -> None:
        journal = self._journal()
        if journal is None:
            for file in self.folder.iterdir():
                if file.name != "lock":
                    file.unlink()
            journal = {"entries": 0, "counts": {}, "left_out": {}, "sizes": {}, "encoded": False, "moves": []}
        self.encoded, self.moves = journal["encoded"], journal["moves"]
        counts = Counter(journal["counts"])
        self.done = Progress(journal["entries"], counts, journal["left_out"], journal["sizes"])
        if not self.moves:
            for path in (self.path(stream, part) for stream in self.streams for part in _PARTS):
                path.touch()
                os.truncate(path, self.done.sizes.get(path.name, 0))

    def _journal(self) -> dict[str, Any] | None:
        """What an earlier run left, if it was for the same data set and is whole."""
        try:
            journal = json.loads((self.folder / "journal.json").read_text(encoding="utf-8"))
            if journal["key"] != self.key:
                return None
            for name, size in journal["sizes"].items():
                if not journal["moves"] and (self.folder / name).stat().st_size < size:
                    return None
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return journal

    def path(self, stream: str, part: str) -> Path:
        return self.folder / f"{stream}.{part}"

    def append(self, encoded: Encoded) -> None:
        """Adds an encoded batch to the files."""
        sizes = dict(self.done.sizes)
        for name, stream in encoded.streams.items():
            for part in _PARTS:
                raw = getattr(stream, part).tobytes()
                path = self.path(name, part)
                self._file(path).write(raw)
                sizes[path.name] = sizes.get(path.name, 0) + len(raw)
        left_out = {reason: list(places) for reason, places in self.done.left_out.items()}
        for reason, places in encoded.left_out.items():
            left_out[reason] = (left_out.get(reason, []) + places)[:KEPT]
        entries = self.done.entries + encoded.counts["entries"]
        self.done = Progress(entries, self.done.counts + encoded.counts, left_out, sizes)

    def save(self, sync: bool = False) -> None:
        """Writes the journal: a later run can continue from here. With sync, also after the machine itself has failed."""
        for file in self._files.values():
            file.flush()
            if sync:
                os.fsync(file.fileno())
        journal = {
            "key": self.key,
            "entries": self.done.entries,
            "counts": self.done.counts,
            "left_out": self.done.left_out,
            "sizes": self.done.sizes,
            "encoded": self.encoded,
            "moves": self.moves,
        }
        write_atomically(self.folder / "journal.json", json.dumps(journal))

    def stream(self, name: str) -> Stream:
        """The whole stream, mapped from the files."""
        self._close()
        types = (self.dtype, numpy.dtype(numpy.int32), numpy.dtype(numpy.int32))
        found = []
        for part, dtype in zip(_PARTS, types, strict=True):
            path = self.path(name, part)
            empty = path.stat().st_size == 0
            found.append(numpy.zeros(0, dtype) if empty else numpy.memmap(path, dtype, mode="r"))
        return Stream(*found)

    def publish(self, files: Mapping[str, Path], facts: Mapping[str, Any]) -> None:
        """Moves finished files of the folder to their names, writes the stamp, and removes the folder.

        files: name in the folder -> final path. A run that was interrupted in between continues with the moves.
        """
        if not self.moves:
            self._close()
            self.refuse_existing([*files.values(), stamp_path(self.prefix)])
            hashes = {
                path.name: [(self.folder / name).stat().st_size, file_sha256(self.folder / name)]
                for name, path in files.items()
            }
            known = {"entries": self.done.entries, "counts": self.done.counts, "left_out": self.done.left_out}
            stamp = {"key": self.key, "files": hashes, **known, **facts}
            write_atomically(self.folder / "stamp", json.dumps(stamp, indent=1, ensure_ascii=False) + "\n")
            self.moves = [[name, path.name] for name, path in files.items()]
            self.moves.append(["stamp", stamp_path(self.prefix).name])
            self.save()
        for name, final in self.moves:
            source, destination = self.folder / name, self.prefix.with_name(final)
            if source.exists():
                self.refuse_existing([destination])
                os.rename(source, destination)
        self.remove()

    def remove(self) -> None:
        """Removes the folder and everything in it."""
        self._close()
        shutil.rmtree(self.folder)

    def _file(self, path: Path) -> IO[bytes]:
        if path.name not in self._files:
            self._files[path.name] = open(path, "ab")  # noqa: SIM115 (stays open until _close)
        return self._files[path.name]

    def _close(self) -> None:
        files, self._files = self._files, {}
        for file in files.values():
            file.close()

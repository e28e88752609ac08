"""Signs of life of ranks: each writes a small record into a file, and the supervisor of its machine reads them.

A thread of the rank writes the record every second, also while the rank waits for others. So only a process that is stopped,
dead, or keeps Python's lock for itself is silent. The record also names the step, so that a crash can be placed, since when it
runs (ranks that wait for each other forever are not silent), and whether the rank waits for others in a collective at this moment.
"""

from __future__ import annotations

import json
import os
import struct
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_RECORD = struct.Struct(
    "<8sqqqdd?"
)  # magic, pid, running iteration, finished steps, time of the beat, of the begin of the running step, whether it waits
_MAGIC = b"msbeat2\0"
INTERVAL = 1.0  # seconds between two beats
# A rank that waits for others is given more time than one that works, by this share of the limit and by at least so many seconds.
# The rank that it waits for may be on another machine, whose supervisor then ends that rank first.
_WAITING_SHARE, _WAITING_SECONDS = 0.1, 5.0


@dataclass(frozen=True)
class Beat:
    """A rank's last sign of life. Times are those of the machine's monotonic clock.

    since: when the running step has begun; 0 between two steps, where checkpoints are written and models validated.
    waits: whether the rank was in a collective, or waited for a message.
    """

    rank: int
    pid: int
    iteration: int
    finished: int
    beaten: float
    since: float
    waits: bool = False

    @property
    def state(self) -> str:
        """The kernel's word for the process: "T" if it is stopped, "" if it has ended."""
        return self._kernel()[0]

    @property
    def parent(self) -> int:
        """The process that started it; 0 if it has ended."""
        return int(self._kernel()[1])

    def _kernel(self) -> list[str]:
        """What the kernel says of the process after its name: state, parent ..."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8", errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            return ["", "0"]
        return stat.rpartition(")")[2].split()

    def said(self, now: float) -> str:
        """What is known of a silent rank."""
        known = {
            "T": "stopped by a signal",
            "t": "stopped by a debugger",
            "D": "waiting for a device or disk",
        }
        state = "ended" if not self.state or self.state == "Z" else known.get(self.state, "running")
        return (
            f"rank {self.rank} (pid {self.pid}, {state}) has given no sign of life for {now - self.beaten:.0f} s, "
            f"in iteration {self.iteration}"
        )

    def said_stalled(self, now: float) -> str:
        """What is known of a rank whose step does not end."""
        text = f"rank {self.rank} (pid {self.pid}) has not ended iteration {self.iteration} after {now - self.since:.0f} s"
        return text + (", and waits for other ranks" if self.waits else "")


class Heart:
    """The side of a rank. waits: tells whether the rank waits for others at this moment."""

    def __init__(self, folder: Path, rank: int, waits: Callable[[], bool] = lambda: False) -> None:
        self.folder, self.rank, self._waits = folder, rank, waits
        folder.mkdir(parents=True, exist_ok=True)
        self._handle = os.open(folder / f"rank-{rank}.beat", os.O_WRONLY | os.O_CREAT, 0o644)
        self._lock = threading.Lock()
        self.iteration = self.finished = 0
        self.since = 0.0

    def start(self) -> None:
        """Begins to beat, in a thread that does not keep the process alive."""
        self.beat()
        threading.Thread(target=self._run, name="heartbeat", daemon=True).start()

    def beat(self) -> None:
        """Writes the record."""
        with self._lock:
            now = time.monotonic()
            place = self.iteration, self.finished, now, self.since, self._waits()
            record = _RECORD.pack(_MAGIC, os.getpid(), *place)
            os.pwrite(self._handle, record, 0)

    def running(self, iteration: int) -> None:
        """The step with this number begins."""
        self.iteration, self.since = iteration, time.monotonic()
        self.beat()

    def done(self) -> None:
        """The step has ended."""
        self.finished += 1
        self.since = 0.0
        self.beat()

    def reason(self, kind: str, text: str, final: bool = False, **more: Any) -> None:
        """Leaves the reason for which this rank is about to end. final: a restart would be of no use. The first one counts."""
        place = self.folder / f"rank-{self.rank}.reason.json"
        content = {"rank": self.rank, "kind": kind, "text": text, "final": final, "time": time.time(), **more}
        beside = place.with_suffix(f".{os.getpid()}.part")
        beside.write_text(json.dumps(content), encoding="utf-8")
        try:
            os.link(beside, place)
        except FileExistsError:
            pass
        finally:
            beside.unlink()

    def failed(self, error: BaseException, where: str) -> None:
        """Leaves an error as the reason. An error that reports the end of another rank is not the cause of the failure."""
        kind = "other rank" if type(error).__name__ == "DistBackendError" else "error"
        self.reason(kind, f"{where}: {type(error).__name__}: {error}")

    def _run(self) -> None:
        while True:
            time.sleep(INTERVAL)
            self.beat()


def read(folder: Path) -> dict[int, Beat]:
    """The last sign of life of each rank that has given one in this folder."""
    found = {}
    for file in folder.glob("rank-*.beat"):
        number = file.stem.removeprefix("rank-")
        raw = file.read_bytes()
        if not number.isdigit() or len(raw) != _RECORD.size:
            continue  # a rank that is about to write its first record
        magic, *record = _RECORD.unpack(raw)
        if magic == _MAGIC:
            found[int(number)] = Beat(int(number), *record)
    return found


def reasons(folder: Path) -> list[dict[str, Any]]:
    """The reasons that ranks have left, the first one first."""
    found = []
    for file in folder.glob("rank-*.reason.json"):
        content = json.loads(file.read_text(encoding="utf-8"))
        found.append(content)
    return sorted(found, key=lambda one: one["time"])


def silent(beats: Mapping[int, Beat], patience: float, now: float) -> list[Beat]:
    """The running ranks that have been silent for longer than `patience` seconds, the longest first."""
    late = [beat for beat in beats.values() if now - beat.beaten > patience and beat.state not in ("", "Z")]
    return sorted(late, key=lambda beat: beat.beaten)


def stalled(beats: Mapping[int, Beat], patience: float, now: float) -> list[Beat]:
    """The ranks whose step runs for longer than `patience` seconds, the one to end first.

    A rank that works comes before those that wait, because they wait for it; then the one whose step began first.
    """
    waiting = patience + max(patience * _WAITING_SHARE, _WAITING_SECONDS)
    late = (
        beat
        for beat in beats.values()
        if beat.since and now - beat.since > (waiting if beat.waits else patience)
    )
    return sorted(late, key=lambda beat: (beat.waits, beat.since))

"""Memory, open files and threads of the processes of a long run, sampled while it trains."""

from __future__ import annotations

import statistics
import threading
from dataclasses import dataclass, field
from pathlib import Path

from megatron_ms.recovery import beats
from megatron_ms.training import folder as folders

PAUSE = 2.0  # seconds between two samples
NAMES = ("MB", "open files", "threads")


@dataclass(frozen=True)
class Sample:
    """What a process has at an iteration of the training: resident megabytes, open files, threads."""

    iteration: int
    megabytes: float
    files: int
    threads: int

    @property
    def values(self) -> tuple[float, int, int]:
        return self.megabytes, self.files, self.threads


def sample(pid: int, iteration: int) -> Sample | None:
    """What a process has now; None if it has ended."""
    place = Path(f"/proc/{pid}")
    try:
        lines = (place / "status").read_text(encoding="utf-8", errors="replace").splitlines()
        files = len(list((place / "fd").iterdir()))
    except (FileNotFoundError, ProcessLookupError):
        return None
    found = dict(line.split(":", 1) for line in lines if ":" in line)
    if "VmRSS" not in found:
        return None  # it is about to be collected by its parent
    return Sample(iteration, int(found["VmRSS"].split()[0]) / 1024, files, int(found["Threads"]))


@dataclass
class Growth:
    """Samples the ranks of a run and the toolkit that supervises them, in a thread, while it is open."""

    root: Path
    name: str
    samples: dict[str, list[Sample]] = field(default_factory=dict)

    def __enter__(self) -> Growth:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(PAUSE):
            for run in folders.runs(self.root, self.name)[-1:]:
                for attempt in sorted(run.path.glob("attempts/*"))[-1:]:
                    self._sample(beats.read(attempt))

    def _sample(self, ranks: dict[int, beats.Beat]) -> None:
        pids = {f"rank {rank}": beat.pid for rank, beat in ranks.items()}
        if 0 in ranks and (launcher := ranks[0].parent):
            pids["the toolkit"] = _parent(launcher)
        iteration = min((beat.iteration for beat in ranks.values()), default=0)
        for who, pid in pids.items():
            if iteration and pid and (found := sample(pid, iteration)) is not None:
                self.samples.setdefault(who, []).append(found)

    def compared(self, whole: int) -> dict[str, tuple[list[float], list[float]]]:
        """For each process the medians of the second tenth of a run of so many iterations, and those of its last tenth."""
        tenth = whole / 10
        found = {}
        for who, samples in self.samples.items():
            early = [one.values for one in samples if tenth < one.iteration <= 2 * tenth]
            late = [one.values for one in samples if one.iteration > 9 * tenth]
            found[who] = tuple(
                [statistics.median(column) for column in zip(*part, strict=True)] for part in (early, late)
            )
        return found


def _parent(pid: int) -> int:
    """The process that started another; 0 if that has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(stat.rpartition(")")[2].split()[1])

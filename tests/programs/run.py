"""Runs a program with one of the two interpreters, and compares the numbers that two runs print."""

from __future__ import annotations

import os
import re
import resource
import shutil
import statistics
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from tests.ports import free_port

from .catalogue import DRIVERS, Program

ROOT = Path(__file__).resolve().parents[2]
TIME_LIMIT = 900  # seconds for one run of a program
BUSY = 3.0  # a load of the machine from which on times say nothing
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|nan|inf)(?![\w])")

# What changes the last bits of PyTorch's numbers: a second thread, and the instructions of an older processor.
VARIANTS = (
    (("OMP_NUM_THREADS", "2"),),
    (("ATEN_CPU_CAPABILITY", "default"), ("ONEDNN_MAX_CPU_ISA", "SSE41")),
)


@dataclass(frozen=True)
class Side:
    """An interpreter: `python` real PyTorch's or ours, `adapter` whether torch is answered by msadapter.

    extra: further environment variables.
    """

    python: str
    adapter: bool
    packages: str = ""
    extra: tuple[tuple[str, str], ...] = ()

    def command(self, program: Program, script: str, arguments: tuple[str, ...]) -> list[str]:
        start = [self.python, *(["-m", "msadapter"] if self.adapter else [])]
        if program.ranks:
            launcher = [
                "-m",
                "torch.distributed.run",
                f"--nproc-per-node={program.ranks}",
                f"--master-port={free_port()}",
            ]
            return [*start, *launcher, script, *arguments]
        return [*start, script, *arguments]

    def environment(self) -> dict[str, str]:
        paths = [self.packages, *([str(ROOT)] if self.adapter else []), os.environ.get("PYTHONPATH", "")]
        return os.environ | {
            "PYTHONPATH": os.pathsep.join(p for p in paths if p),
            "CUDA_VISIBLE_DEVICES": "",
            "MSADAPTER_DEVICE": "cpu",
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": "1",
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            **dict(self.extra),
        }


@dataclass(frozen=True)
class Run:
    """What a run gave.

    seconds: the CPU time of the program and of the processes that it has started, the start of the interpreter included.
    error: the last line of stderr if it failed, else "".
    parts: the numbers of each model.
    """

    numbers: list[float]
    seconds: float
    error: str
    parts: dict[str, list[float]] = field(default_factory=dict)


def numbers_in(text: str, lines: str, without: str) -> list[float]:
    """Return the numbers on the lines in which `lines` is found, after what matches `without` is removed."""
    found = []
    for line in text.splitlines():
        if re.search(lines, line):
            found += [float(number) for number in _NUMBER.findall(re.sub(without, " ", line))]
    return found


def parts_in(text: str, lines: str, without: str) -> dict[str, list[float]]:
    """Return the numbers of each model: of the lines "name: numbers" that are chosen as in `numbers_in`."""
    named = [line.partition(":") for line in text.splitlines() if re.search(lines, line)]
    return {name.strip(): numbers_in(rest, ".", without) for name, colon, rest in named if colon}


def error_in(text: str) -> str:
    """Return the last line that names an error, or the last line. The error of a rank goes before that of its launcher."""
    lines = [line for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"(\[rank\d\]: )?[\w.]*(Error|Exception|Warning)\b", line)]
    return next(reversed([line for line in named if line.startswith("[rank")] or named or lines), "")


def difference(ours: list[float], theirs: list[float]) -> float:
    """Return the largest difference relative to max(1, size); infinity if the counts differ or one is not finite alone."""
    if len(ours) != len(theirs):
        return float("inf")
    worst = 0.0
    for a, b in zip(ours, theirs, strict=True):
        if a == b or (a != a and b != b):
            continue
        gap = abs(a - b) / max(1.0, abs(b))
        worst = max(worst, gap if gap == gap else float("inf"))
    return worst


def _cpu_seconds() -> float:
    """Return the CPU time of all processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def times(
    program: Program, theirs: Side, ours: Side, sources: Path, pairs: int
) -> tuple[list[tuple[float, float]], str]:
    """Return the CPU seconds of PyTorch and ours, of some pairs of runs, which alternate, and "".

    If a run fails, or other programs use the machine, whose caches and memory they share, there is no number, but the reason.
    """
    found: list[tuple[float, float]] = []
    for _ in range(pairs):
        if os.getloadavg()[0] >= BUSY:
            return [], "the machine is busy"
        first, second = (run(program, side, sources) for side in (theirs, ours))
        if first.error or second.error:
            return [], first.error or second.error
        found.append((first.seconds, second.seconds))
    return found, ""


def start_times(ranks: int, theirs: Side, ours: Side, sources: Path, pairs: int) -> tuple[list[float], str]:
    """Return the CPU seconds that PyTorch and we take to start, with so many processes and at least one, and "".

    It is the median of some pairs of runs. If they cannot be measured, there is no number, but the reason.
    """
    starting = Program("start", "", str(DRIVERS / "start.py"), ranks=ranks)
    found, reason = times(starting, theirs, ours, sources, pairs)
    return [statistics.median(side) for side in zip(*found, strict=True)], reason


def run(program: Program, side: Side, sources: Path) -> Run:
    """Run a program in a fresh copy of its source."""
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary) / "source"
        if program.source:
            shutil.copytree(sources / program.source, place, ignore=shutil.ignore_patterns(".git"))
        else:
            place.mkdir()
        own = not Path(program.script).is_absolute()
        folder = (place / program.script).parent if own else place
        script = Path(program.script).name if own else program.script
        if program.from_top:
            folder, script = place, program.script
        if program.prepare is not None:
            program.prepare(folder)
        environment = side.environment()
        environment["PYTHONPATH"] = os.pathsep.join([str(place), environment["PYTHONPATH"]])
        output, started = "", _cpu_seconds()
        for step in (*program.before, ""):
            arguments = () if step else program.arguments
            started = _cpu_seconds()
            try:
                done = subprocess.run(side.command(program, step or script, arguments), cwd=folder, env=environment, text=True,
                                      capture_output=True, timeout=TIME_LIMIT)  # fmt: skip
            except subprocess.TimeoutExpired:
                return Run([], TIME_LIMIT, f"no end after {TIME_LIMIT} s")
            if done.returncode:
                return Run([], 0.0, error_in(done.stderr) or f"exit code {done.returncode}")
            output = done.stdout
        seconds = _cpu_seconds() - started
    parts = parts_in(output, program.lines, program.without) if program.models else {}
    return Run(numbers_in(output, program.lines, program.without), seconds, "", parts)


def missing(program: Program, sources: Path, side: Side) -> str:
    """Return what a program needs and is not there, or ""."""
    if program.source and not (sources / program.source).is_dir():
        return f"no folder {program.source} in --sources"
    if program.packages:
        code = "import importlib.util, sys; print(*(n for n in sys.argv[1:] if importlib.util.find_spec(n) is None))"
        done = subprocess.run([side.python, "-c", code, *program.packages], env=side.environment(), text=True, capture_output=True,
                              check=True)  # fmt: skip
        if done.stdout.strip():
            return f"not installed: {done.stdout.strip()}"
    return ""

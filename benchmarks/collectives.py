"""Compares the speed of collectives on CPU ranks with gloo of real PyTorch in the same run.

    python -m benchmarks collectives --torch-python PATH [--ranks 2 4] [--table docs/collectives.md] [--json FILE]

Two jobs take turns: msadapter's through shared memory (MPI for small messages) and PyTorch's over gloo. While one measures, the
other is stopped. Each turn begins with a barrier. The time of a turn is the mean over its calls on rank 0, and a result is
the median over the turns.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
from pathlib import Path

from .sides import ROOT, cpu_name, environment

SIZES = (8, 1 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20)  # bytes
FEW_SIZES = (8, 1 << 20, 16 << 20)
DTYPES = ("float32", "bfloat16", "float16", "float64", "int64", "uint8")
OTHERS = (
    "all_gather_into_tensor",
    "all_gather",
    "reduce_scatter_tensor",
    "broadcast",
    "all_to_all_single",
    "ping-pong",
)
OTHER_SIZES = SIZES[:-1]
SMALL, LARGE = 64 << 10, 16 << 20  # bytes: small is up to SMALL, large is from LARGE
TARGETS = {"small": 5.0, "large": 2.0}


def works() -> list[tuple[str, str, int]]:
    """The (operation, dtype, bytes) of all measurements."""
    reductions = [
        ("all_reduce", dtype, size)
        for dtype in DTYPES
        for size in (SIZES if dtype in DTYPES[:2] else FEW_SIZES)
    ]
    others = [(name, "float32", size) for name in OTHERS for size in OTHER_SIZES]
    return [*reductions, *others, ("barrier", "float32", 0)]


class Job:
    """The ranks of one side, msadapter or PyTorch."""

    def __init__(self, python: str, ours: bool, ranks: int):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks)}
        self.ranks = [
            subprocess.Popen(
                [python, "-m", "benchmarks.collectives_worker"],
                cwd=ROOT,
                text=True,
                env=environment(ours, 1, **meeting, RANK=str(rank), LOCAL_RANK=str(rank)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
            )
            for rank in range(ranks)
        ]
        self.about = self._answer()
        self._signal(signal.SIGSTOP)

    def _signal(self, number) -> None:
        for rank in self.ranks:
            rank.send_signal(number)

    def _answer(self) -> dict:
        line = self.ranks[0].stdout.readline()
        if not line:
            raise RuntimeError(f"rank 0 terminated with code {self.ranks[0].wait()}")
        return json.loads(line)

    def seconds(self, work, slice_seconds: float) -> float:
        """The mean seconds of a call in a turn of about slice_seconds."""
        self._signal(signal.SIGCONT)
        for rank in self.ranks:
            rank.stdin.write(json.dumps([*work, slice_seconds]) + "\n")
            rank.stdin.flush()
        answer = self._answer()
        self._signal(signal.SIGSTOP)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["seconds"]

    def close(self) -> None:
        """Terminates the ranks."""
        for rank in self.ranks:
            with contextlib.suppress(ProcessLookupError):
                rank.kill()
            rank.wait()


def step_times(torch_python: str, ranks: int, rounds: int) -> dict:
    """The seconds of a data-parallel GPT step with this number of ranks on both sides, and the median ratio."""
    jobs = {}
    try:
        for who, python in (("ours", sys.executable), ("theirs", torch_python)):
            jobs[who] = Job(python, who == "ours", ranks)
        entry = _compare(jobs, ("GPT step", "float32", 0), ranks, rounds, 0.2)
        return {who: entry[who] for who in ("ours", "theirs", "ratio")}
    finally:
        for job in jobs.values():
            job.close()


def measure(torch_python: str, ranks: int, rounds: int, slice_seconds: float) -> tuple[list[dict], str]:
    """Returns (one entry per work with the seconds of both sides and the median ratio, PyTorch's version)."""
    jobs = {}
    try:
        for who, python in (("ours", sys.executable), ("theirs", torch_python)):
            jobs[who] = Job(python, who == "ours", ranks)
        entries = []
        for work in works():
            entries.append(_compare(jobs, work, ranks, rounds, slice_seconds))
            print(_row(entries[-1]), flush=True)
        return entries, jobs["theirs"].about["torch"]
    finally:
        for job in jobs.values():
            job.close()


def _compare(jobs, work, ranks, rounds, slice_seconds) -> dict:
    times = {who: [] for who in jobs}
    for turn in range(rounds):
        for who in sorted(jobs, reverse=bool(turn % 2)):
            times[who].append(jobs[who].seconds(work, slice_seconds))
    ratio = statistics.median(t / o for o, t in zip(times["ours"], times["theirs"], strict=True))
    operation, dtype, size = work
    return {
        "operation": operation,
        "dtype": dtype,
        "bytes": size,
        "ranks": ranks,
        "ratio": ratio,
        **{who: statistics.median(seen) for who, seen in times.items()},
    }


def alpha_beta(entries: list[dict], operation: str = "ping-pong", who: str = "ours") -> tuple[float, float]:
    """Estimates (latency in seconds, seconds per byte) of a message from the smallest and the largest message."""
    points = sorted(
        (e["bytes"], e[who] / 2) for e in entries if e["operation"] == operation and e["ranks"] == 2
    )
    (few, latency), (many, long) = points[0], points[-1]
    return latency, (long - latency) / (many - few)


def _size(count: int) -> str:
    for unit, factor in (("MB", 1 << 20), ("KB", 1 << 10)):
        if count >= factor:
            return f"{count // factor} {unit}"
    return f"{count} B"


def _row(entry: dict) -> str:
    def shown(seconds: float) -> str:
        return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us"

    goal = (
        TARGETS["small"] if entry["bytes"] <= SMALL else TARGETS["large"] if entry["bytes"] >= LARGE else None
    )
    below = " (below)" if goal and entry["ratio"] < goal else ""
    rate = f"{entry['bytes'] / entry['ours'] / 1e9:.2f} GB/s" if entry["bytes"] >= 1 << 20 else ""
    return (
        f"| {entry['operation']} | {entry['dtype']} | {_size(entry['bytes'])} | {entry['ranks']} | "
        f"{shown(entry['theirs'])} | {shown(entry['ours'])} | {entry['ratio']:.1f}{below} | {rate} |"
    )


_HEAD = """# Speed of collectives compared with gloo

Written by `python -m benchmarks collectives --torch-python PATH`; do not edit by hand.
Both jobs take turns on the same machine ({cpu},
{cores} cores, load average {load}). msadapter uses shared memory, and MPI for small messages (ping-pong).
PyTorch {torch} uses gloo. Date: {when}. A ratio is gloo's time
divided by msadapter's time. The goals are 5 for messages up to 64 KB and 2 from 16 MB.

A message between two ranks costs {latency:.1f} us + {per_mb:.0f} us/MB on this machine.

| operation | dtype | size | ranks | gloo | msadapter | ratio | our rate |
|---|---|---|---|---|---|---|---|
"""


def markdown(run: dict) -> str:
    """The text of docs/collectives.md for a run."""
    latency, per_byte = alpha_beta(run["entries"])
    head = _HEAD.format(**run["about"], latency=latency * 1e6, per_mb=per_byte * (1 << 20) * 1e6)
    return head + "\n".join(_row(entry) for entry in run["entries"]) + "\n"


def main(argv=None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks collectives", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "--torch-python", default=os.environ.get("MSADAPTER_TORCH_PYTHON"), help="python with real PyTorch"
    )
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--slice", type=float, default=0.1, help="approximate seconds per turn")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path)
    args = parser.parse_args(argv)
    if not args.torch_python:
        parser.error(
            "give the path of a python with real PyTorch: --torch-python PATH (or MSADAPTER_TORCH_PYTHON)"
        )
    entries, version = [], ""
    for ranks in args.ranks:
        measured, version = measure(args.torch_python, ranks, args.rounds, args.slice)
        entries += measured
    about = {
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "torch": version,
        "when": datetime.date.today().isoformat(),
        "load": round(os.getloadavg()[0], 1),
    }
    run = {"about": about, "entries": entries}
    if args.json:
        args.json.write_text(json.dumps(run, indent=1) + "\n")
    if args.table:
        args.table.write_text(markdown(run))
    return 0

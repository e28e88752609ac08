"""The two processes that are compared, and the timing of works in turns."""

from __future__ import annotations

import atexit
import datetime
import importlib.metadata
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHIM = ROOT / "msadapter" / "alias" / "shim"


PATIENCE = 15.0  # seconds for the turns of one work
STEADY = 1.2  # the middle half of the turns' ratios lies within this factor, or there are more turns
MORE = 4  # how many times the asked number of turns there are at most


class WorkFailed(Exception):
    """A side failed to run a work."""


class WorkAbsent(Exception):
    """A work needs something that is not installed on one of the sides."""


def environment(ours: bool, threads: int, **more: str) -> dict[str, str]:
    """The environment variables of a worker, with this checkout on the path; for our side, `torch` is msadapter."""
    paths = [str(SHIM)] * ours + [str(ROOT), os.environ.get("PYTHONPATH", "") * ours]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "OMP_NUM_THREADS": str(threads),
        **more,
    }


#: Flags of /proc/cpuinfo and the vector instructions that they stand for, the widest first.
_VECTORS = {"amx_tile": "AMX", "avx512f": "AVX-512", "avx2": "AVX2", "sve": "SVE", "asimd": "NEON"}


#: Variables with which both sides leave out wider vectors: those of msadapter, PyTorch, oneDNN, MKL and OpenBLAS.
LIMITS = {
    "avx2": {
        "MSADAPTER_CPU": "x86-64-v3",
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "DNNL_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
    }
}


def limit(instructions: str | None) -> None:
    """Lets both sides use no wider vectors than these, a name in `LIMITS`. None changes nothing."""
    os.environ.update(LIMITS[instructions] if instructions else {})


def cpu_name() -> str:
    """The processor's name as the system reports it, and its widest vector instructions that may be used."""
    name = _cpuinfo("model name") or platform.processor()
    if _limited():
        return f"{name}, limited to AVX2"
    flags = processor_flags()
    return ", ".join([name, *[vectors for flag, vectors in _VECTORS.items() if flag in flags][:1]])


def _limited() -> bool:
    return os.environ.get("MSADAPTER_CPU") == LIMITS["avx2"]["MSADAPTER_CPU"]


def processor_flags() -> set[str]:
    """The processor's units that may be used, under the system's names."""
    found = set((_cpuinfo("flags") or _cpuinfo("Features")).split())
    return {flag for flag in found if not flag.startswith(("avx512", "amx"))} if _limited() else found


def _cpuinfo(key: str) -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(key):
            return line.partition(":")[2].strip()
    return ""


class Side:
    """A worker process. It is stopped (SIGSTOP) while it is idle, so its waiting threads do not slow the other side."""

    def __init__(self, python: str, ours: bool, threads: int):
        start = time.perf_counter()
        self.process = subprocess.Popen(
            [python, "-m", "benchmarks.worker", str(threads)],
            stdin=subprocess.PIPE,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(ours, threads),
        )
        atexit.register(self.close)  # without this, a stopped worker would outlive this process
        self.about = self._answer()
        self.start_seconds = time.perf_counter() - start
        self.process.send_signal(signal.SIGSTOP)

    def _answer(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            raise WorkFailed(f"the worker terminated with code {self.process.wait()}")
        return json.loads(line)

    def ask(self, **order) -> dict:
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        answer = self._answer()
        self.process.send_signal(signal.SIGSTOP)
        if "absent" in answer:
            raise WorkAbsent(answer["absent"])
        if "error" in answer:
            raise WorkFailed(answer["error"])
        return answer

    def seconds(self, work: str, calls: int) -> float:
        return self.ask(work=work, calls=calls)["seconds"]

    def calls_within(self, work: str, seconds: float) -> tuple[int, float]:
        """Returns (number of calls, at least one, that take about `seconds`; seconds of one call)."""
        calls, taken = 1, self.seconds(work, 1)
        while taken < seconds / 4 and calls < 10**6:
            calls *= 4
            taken = self.seconds(work, calls)
        one = max(taken / calls, 1e-9)
        return max(1, round(seconds / one)), one

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def ratios(times: dict[str, list[float]]) -> list[float]:
    """PyTorch's time divided by ours, for each turn."""
    return [theirs / ours for ours, theirs in zip(times["ours"], times["theirs"], strict=True)]


def is_steady(found: list[float]) -> bool:
    """Whether the middle half of the ratios lies within the factor STEADY. A single ratio is."""
    ordered = sorted(found)
    quarter = len(ordered) // 4
    return ordered[-1 - quarter] <= STEADY * ordered[quarter]


class Pair:
    """The worker of msadapter and the worker of PyTorch."""

    def __init__(self, torch_python: str, threads: int):
        self.threads = threads
        self.make = {
            "ours": lambda: Side(sys.executable, True, threads),
            "theirs": lambda: Side(torch_python, False, threads),
        }
        self.sides = {who: make() for who, make in self.make.items()}

    def compare(self, work: str, rounds: int, slice_seconds: float) -> dict:
        """The median seconds per call of both sides, and the median of (theirs / ours).

        Slow works get fewer rounds. Works whose ratios differ from turn to turn, as on a busy machine, get more.
        """
        sizes, errors = {}, {}
        try:
            for who, side in self.sides.items():
                try:
                    sizes[who] = side.calls_within(work, slice_seconds)
                except WorkFailed as error:
                    errors[who] = str(error)
            if errors:
                self._revive()
                return {"error": errors.get("ours") or errors["theirs"], "failed": sorted(errors)}
            calls = {who: n for who, (n, _) in sizes.items()}
            rounds = max(1, min(rounds, round(PATIENCE / sum(n * one for n, one in sizes.values()))))
            times = {who: [] for who in self.sides}
            for turn in range(MORE * rounds):
                for who in sorted(self.sides, reverse=bool(turn % 2)):
                    times[who].append(self.sides[who].seconds(work, calls[who]) / calls[who])
                if turn + 1 >= rounds and is_steady(ratios(times)):
                    break
        except WorkAbsent as reason:
            return {"absent": str(reason)}
        except WorkFailed as error:
            self._revive()
            return {"error": str(error), "failed": []}
        found = ratios(times)
        return {
            **{who: statistics.median(seen) for who, seen in times.items()},
            "ratio": statistics.median(found),
            "spread": [min(found), max(found)],
        }

    def _revive(self) -> None:
        for who, side in self.sides.items():
            if side.process.poll() is not None:
                self.sides[who] = self.make[who]()

    def fresh(self, measure, rounds: int) -> dict:
        """The median of ``measure(side)`` over new processes of both sides, and the ratio as in ``compare``."""
        seen = {who: [] for who in self.make}
        for _ in range(rounds):
            for who, make in self.make.items():
                side = make()
                try:
                    seen[who].append(measure(side))
                finally:
                    side.close()
        result = {who: statistics.median(values) for who, values in seen.items()}
        return {**result, "ratio": result["theirs"] / result["ours"]}

    def memory(self, work: str, rounds: int = 3) -> dict:
        try:
            return self.fresh(lambda side: side.ask(memory=work, calls=3)["bytes"], rounds)
        except WorkFailed as error:
            return {"error": str(error)}

    def peaks(self, work: str) -> dict:
        """The peak bytes of one call of both sides, in the processes that timed it; nothing if it fails on one of them."""
        try:
            return {"peak": {who: side.ask(peak=work)["bytes"] for who, side in self.sides.items()}}
        except WorkFailed as error:
            self._revive()
            return {"peak_error": str(error)}

    def import_time(self, rounds: int = 3) -> dict:
        return self.fresh(lambda side: side.start_seconds, rounds)

    def import_memory(self, rounds: int = 3) -> dict:
        return self.fresh(lambda side: side.ask(memory=None, calls=0)["bytes"], rounds)

    def circumstances(self, rounds: int, load: float) -> dict:
        """What a page says of a measurement: processor, threads, rounds, day, versions, and the machine's load before."""
        return {
            "cpu": cpu_name(),
            "threads": self.threads,
            "rounds": rounds,
            "when": datetime.date.today().isoformat(),
            "torch": self.sides["theirs"].about["torch"],
            "mindspore": importlib.metadata.version("mindspore"),
            "load": round(load, 1),
        }

    def close(self) -> None:
        for side in self.sides.values():
            side.close()

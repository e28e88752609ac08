"""One side of the comparison. It reads requests as JSON lines and answers each with a JSON line, until its input ends.

{"work": name, "calls": n}    returns the seconds of n calls (a new work is called once before that)
{"memory": name, "calls": n}  returns the growth of the peak resident set in n calls, in bytes; needs a new worker
{"memory": null, "calls": 0}  returns the peak resident set so far
{"peak": name}                returns by how many bytes one call raises the resident set at its peak, with empty caches
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import resource
import sys
import time
from pathlib import Path

import torch

from benchmarks.works import NotHere, find


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def resident(line: str) -> int:
    """A line of the process's status in bytes: VmRSS, the resident set, or VmHWM, its peak since the last reset."""
    for text in Path("/proc/self/status").read_text().splitlines():
        if text.startswith(line + ":"):
            return int(text.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no line {line}")


class Bench:
    """Caches the latest prepared work."""

    def __init__(self):
        self.name, self.call = None, None

    def prepare(self, name: str):
        if name != self.name:
            self.call = None  # free the data of the previous work first
            self.name, self.call = name, find(name).prepare()
            self.call()
        return self.call

    def seconds(self, name: str, calls: int) -> float:
        call = self.prepare(name)
        start = time.perf_counter()
        for _ in range(calls):
            call()
        return time.perf_counter() - start

    def peak_of_call(self, name: str) -> int:
        call = self.prepare(name)
        call()
        gc.collect()
        torch.cuda.empty_cache()  # msadapter's pool of host memory; nothing in PyTorch without a GPU
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM
        before = resident("VmRSS")
        result = call()
        peak = resident("VmHWM") - before
        del result
        return peak

    def memory(self, name: str | None, calls: int) -> int:
        if name is None:
            return peak()
        before = peak()
        call = find(name).prepare()
        for _ in range(calls):
            call()
        return peak() - before


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # redirect the output of libraries to stderr, so that the pipe carries answers only
    torch.set_num_threads(int(sys.argv[1]))
    print(
        json.dumps({"torch": torch.__version__, "threads": torch.get_num_threads()}), file=answers, flush=True
    )
    bench = Bench()
    for line in sys.stdin:
        order = json.loads(line)
        try:
            if "memory" in order:
                answer = {"bytes": bench.memory(order["memory"], order["calls"])}
            elif "peak" in order:
                answer = {"bytes": bench.peak_of_call(order["peak"])}
            else:
                answer = {"seconds": bench.seconds(order["work"], order["calls"])}
        except NotHere as reason:
            answer = {"absent": str(reason)}
        except Exception as error:  # sent to the driver, which shows it in the table
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


main()

"""The suite extreme_integers: what an operator does with an integer that no memory, tensor or 64-bit number holds.

The cases are those of the suite samples, with one integer (a size, count, dim, index, step or number) replaced by each of
`EXTREMES` in turn. The outcome of a case is the name of the exception, or "ok" with dtypes and shapes. Cases run in child
processes whose memory and time are limited, so that a crash or a hang is an outcome as well.
"""

from __future__ import annotations

import copy
import json
import os
import re
import resource
import signal
import warnings
from pathlib import Path

from tests.golden import second_order, store

EXTREMES = [0, 2**31, 2**62, 2**63 - 1, -1, -(2**63), 2**64]
VARIANTS = 3  # calls of one operator that give different arguments
MEMORY = 1 << 30  # bytes that a child process may take in addition to what it has when it starts
SECONDS = 3 * int(os.environ.get("MSADAPTER_SLOWER", "1"))


def places(value, path=()) -> list[tuple]:
    """The paths to the integers of an encoded argument. Of several in a row, the first and the last."""
    if isinstance(value, int) and not isinstance(value, bool):
        return [path]
    if isinstance(value, dict):
        return places(value["tuple"], (*path, "tuple")) if "tuple" in value else []
    if isinstance(value, list):
        found = [places(v, (*path, k)) for k, v in enumerate(value)]
        kept = [found[0], found[-1]] if len(found) > 2 and all(len(f) == 1 for f in found) else found
        return [p for part in kept for p in part]
    return []


def replaced(value, path: tuple, number: int):
    """A copy of an encoded argument with one integer replaced."""
    fresh = copy.deepcopy(value)
    parent = fresh
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = number
    return fresh


def arguments(case: dict) -> dict:
    return {**dict(enumerate(case["args"])), **case["kwargs"]}


def calls(sampled: dict) -> dict[str, dict]:
    """The cases by name: sample, argument and number."""
    chosen: dict[str, dict[str, str]] = {}  # operator -> which arguments hold integers -> the sample
    for name, case in sampled.items():
        where = [(key, path) for key, value in arguments(case).items() for path in places(value, (key,))]
        known = chosen.setdefault(operator(name), {})
        if where and len(known) < VARIANTS:
            known.setdefault(str(where), name)
    found = {}
    for name in (name for known in chosen.values() for name in known.values()):
        case = sampled[name]
        given = arguments(case)
        for path in (p for key, value in given.items() for p in places(value, (key,))):
            for number in EXTREMES:
                fresh = replaced(given, path, number)
                args = [fresh[k] for k in range(len(case["args"]))]
                kwargs = {k: fresh[k] for k in case["kwargs"]}
                label = ".".join(str(p) for p in path if p != "tuple")
                found[f"{name} {label}={number}"] = {"path": case["path"], "args": args, "kwargs": kwargs}
    return found


def outcome(torch, case: dict, arrays) -> str:
    try:
        args = second_order.decoded(torch, case["args"], arrays)
        kwargs = {k: second_order.decoded(torch, v, arrays) for k, v in case["kwargs"].items()}
        found = second_order.tensors(second_order.call(torch, case["path"], args, kwargs))
    except Exception as error:
        return type(error).__name__
    return "ok " + " ".join(f"{str(x.dtype)[6:]}{list(x.shape)}".replace(" ", "") for x in found)


def child(torch, names: list[str], cases: dict, arrays, pipe: int) -> None:
    """Evaluate the cases in turn and write each outcome to the pipe as soon as it is known."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    for name in names:
        signal.alarm(SECONDS)
        torch.manual_seed(1)
        os.write(pipe, (json.dumps([name, outcome(torch, cases[name], arrays)]) + "\n").encode())


def run(torch, names: list[str], cases: dict, arrays) -> dict[str, str]:
    """The outcomes of cases. After a crash a new child process goes on with the next case."""
    found: dict[str, str] = {}
    left = list(names)
    while left:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            try:
                child(torch, left, cases, arrays, writing)
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as lines:
            for line in lines:
                name, told = json.loads(line)
                found[name] = told
        status = os.waitpid(pid, 0)[1]
        left = left[next((k for k, name in enumerate(left) if name not in found), len(left)) :]
        if left and status:
            ended = os.WTERMSIG(status) if os.WIFSIGNALED(status) else -1
            found[left.pop(0)] = "hang" if ended == signal.SIGALRM else f"crash {ended}"
    return found


def differs(ours: str, theirs: str, name: str) -> str | None:
    """The difference between two outcomes of the case `name`, or None.

    Integers of more than 64 bits are refused while the arguments are parsed. The class of that error depends on how PyTorch
    declares the argument, so either error is accepted there.
    """
    if ours == theirs or (name.endswith(f"={2**64}") and "Error" in ours and "Error" in theirs):
        return None
    return f"{ours} instead of {theirs}"


def operator(name: str) -> str:
    """The operator of a case or a sample."""
    return re.sub(r"-\w+-\d+( .*)?$", "", name)


def load() -> tuple[dict, dict]:
    """The cases by name, and the arrays that they refer to."""
    told = store.load("samples")
    return calls(told.cases), told.arrays


def golden_answers(torch) -> dict:
    cases, arrays = load()
    return run(torch, list(cases), cases, arrays)

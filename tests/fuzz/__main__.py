"""`python -m tests.fuzz --cases N --seed S`: the cases 0 ... N - 1 of a seed, and what was wrong with them."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 20.0  # seconds that one case may take
START = 600.0  # seconds until a worker is at its first case; it may have to build the kernels
BATCH = 2500  # cases of one process


def run(seed: int, cases: int, first: int = 0, patience: float = PATIENCE) -> list[tuple[int, str]]:
    """Run the cases first ... first + cases - 1, and return (number, problem). A crash or a hang costs only its own case."""
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder, at, end = Path(name), first, first + cases
        while at < end:
            stop = min(at + BATCH, end)
            ended, last, text = _work(seed, at, stop, folder, patience)
            if ended == "done":
                at = stop
                continue
            found.append((last, f"{ended}: {text[-800:]}"))
            at = last + 1
        report = folder / "found"
        for line in report.read_text().splitlines() if report.exists() else ():
            number, _, what = line.partition("\t")
            found.append((int(number), what))
    return sorted(found)


def _work(seed: int, first: int, last: int, folder: Path, patience: float) -> tuple[str, int, str]:
    """Run a worker over these cases. Return ("done" or what happened, the case at that time, what the worker wrote)."""
    now = folder / "now"
    now.write_text("start")
    command = [
        sys.executable,
        "-X",
        "faulthandler",
        "-m",
        "tests.fuzz.worker",
        str(seed),
        str(first),
        str(last),
        str(folder),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with open(folder / "errors", "w+") as errors:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=errors, stderr=errors)
        seen, since = "start", time.monotonic()
        while (code := process.poll()) is None:
            time.sleep(0.05)
            state = now.read_text().strip()
            if state != seen:
                seen, since = state, time.monotonic()
            elif time.monotonic() - since > (patience if state.isdigit() else START):
                process.kill()
                process.wait()
                break
        errors.seek(0)
        text = errors.read()
    state = now.read_text().strip()
    if state == "done" and code == 0:
        return "done", last, ""
    if not state.isdigit():
        raise RuntimeError(f"a worker ended with {code}: {text[-2000:]}")
    if code is None:
        return f"took more than {patience} s", int(state), ""
    return f"ended with {code}", int(state), text


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--only", type=int, help="run this case alone and say what it is")
    options = parser.parse_args()
    if options.only is not None:
        from .cases import make

        case = make(options.seed, options.only)
        print(case.kind, "weights_only =", case.weights_only, "mmap =", case.mmap)
        options.first, options.cases = options.only, 1
    start = time.monotonic()
    found = run(options.seed, options.cases, options.first)
    for number, what in found:
        print(f"case {number}: {what}")
    print(
        f"{options.cases} cases of seed {options.seed} in {time.monotonic() - start:.0f} s, {len(found)} problems"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

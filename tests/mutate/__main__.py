"""Makes small changes to a module, one at a time, and reports those that no test notices.

    python -m tests.mutate msadapter/optim --samples 40 --seed 1 [--jobs 2] [--tests tests/optim ...]

Works in temporary copies of the repository, never in the tree. The tests that `selection.py` names for the module run
once on a copy whose sampled places note which test passes there; that run must be clean. Then each change is made and
only the tests that reach its place run, fastest files first, until one fails. A change that no test reaches has survived.
The exit code is 0 if at least `--least` percent (90) of the changes were noticed. A change whose tests reach the time limit
is noticed only if the unchanged code takes less than half of the limit at the same load; otherwise it is undecided and not
counted.

`equivalent.tsv` lists changes that alter no behaviour, each with the reason; they are not counted.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import functools
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from .changes import Change, changes_of, instrumented, parses
from .selection import folders_of

ROOT = Path(__file__).resolve().parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.tsv")
LATE = 124  # the exit code of run_tests after the time limit
UNDECIDED = "undecided: the time limit, which the unchanged code does not keep either"


def sources_of(module: str) -> list[str]:
    """Python files of a module, given as a path or with dots, relative to the repository's root."""
    place = ROOT / (module if "/" in module or module.endswith(".py") else module.replace(".", "/"))
    if not place.exists():
        place = place.with_suffix(".py")
    if not place.exists():
        raise SystemExit(f"no module {module!r} below {ROOT}")
    found = [place] if place.is_file() else sorted(place.rglob("*.py"))
    return [str(p.relative_to(ROOT)) for p in found]


@functools.cache
def source(file: str) -> bytes:
    """The content of a file of the repository when it was first read, so that later edits do not change results."""
    return (ROOT / file).read_bytes()


def draw(files: list[str], samples: int, seed: int) -> list[Change]:
    """A random sample of changes: every place has the same probability, and so has every change of one place."""
    places: dict[tuple[str, int, int], list[Change]] = {}
    for file in files:
        for change in changes_of(file, source(file)):
            places.setdefault((file, change.start, change.end), []).append(change)
    generator = random.Random(seed)
    order = generator.sample(sorted(places), len(places))
    drawn = (generator.choice(places[place]) for place in order)
    fit = (change for change in drawn if parses(change, source(change.file)))
    return sorted(itertools.islice(fit, samples), key=lambda c: (c.file, c.start))


def copy_of_tree(target: Path) -> Path:
    """A copy of the files that git tracks or does not ignore, with a link to the environment."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).is_file() and not (ROOT / name).is_symlink():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    for name in (".venv", "build"):
        if (ROOT / name).exists():
            (target / name).symlink_to((ROOT / name).resolve())
    return target


def run_tests(
    copy: Path, tests: list[str], *options: str, limit: float | None = None, **extra
) -> tuple[int, str]:
    """Run pytest in a copy. Return its exit code (LATE after the time limit) and its output. Its processes end with it."""
    chosen = copy / "tests_to_run.txt"
    chosen.write_text("\n".join(tests) + "\n")
    path = os.pathsep.join([str(copy), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"} | extra
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", *options]
    with subprocess.Popen(
        [*command, f"@{chosen}"],
        cwd=copy,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output = process.communicate(timeout=limit)[0]
            return process.returncode, output
        except subprocess.TimeoutExpired:
            return LATE, ""
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def reach(
    copy: Path, changes: list[Change], tests: list[str]
) -> tuple[dict[int, set[str]], dict[str, float]]:
    """The tests that reach each change, and the seconds of every test. Ends the program if a test fails."""
    for file in {c.file for c in changes}:
        marks = {k: c for k, c in enumerate(changes) if c.file == file}
        (copy / file).write_bytes(instrumented(source(file), marks))
    seen, times = copy / "seen.tsv", copy / "times.json"
    seen.touch()
    code, output = run_tests(
        copy,
        tests,
        "-p",
        "tests.mutate.recorder",
        MSADAPTER_MUTATE_SEEN=str(seen),
        MSADAPTER_MUTATE_TIMES=str(times),
    )
    if code != 0:
        raise SystemExit(f"the tests fail without any change:\n{output[-4000:]}")
    seconds = json.loads(times.read_text())
    of_file: dict[str, set[str]] = {}
    for test in seconds:
        of_file.setdefault(test.split("::")[0], set()).add(test)
    found: dict[int, set[str]] = {k: set() for k in range(len(changes))}
    for line in seen.read_text().splitlines():
        mark, process, where = line.split("\t")
        test, _, phase = where.rpartition(" ")
        if changes[int(mark)].at_import or where == "import":
            found[int(mark)] |= seconds.keys()
        elif process == "child" or phase != "(call)":  # a fixture or a job may serve all tests of its file
            found[int(mark)] |= of_file.get(test.split("::")[0], set())
        else:
            found[int(mark)].add(test)
    for file in {c.file for c in changes}:
        (copy / file).write_bytes(source(file))
    return found, seconds


def in_order(tests: set[str], seconds: dict[str, float]) -> list[str]:
    """The tests file by file, the fastest file first, because pytest makes a file's fixtures again for each visit to it."""
    costs: dict[str, float] = {}
    for test in tests:
        file = test.split("::")[0]
        costs[file] = costs.get(file, 0.0) + seconds[test]
    places = {test: place for place, test in enumerate(seconds)}
    return sorted(tests, key=lambda t: (costs[t.split("::")[0]], t.split("::")[0], places[t]))


def noticed(copy: Path, change: Change, tests: set[str], seconds: dict[str, float]) -> str | None:
    """How the change was noticed: by a failing test, the time limit or a crash. None if it survived, or UNDECIDED."""
    if not tests:
        return None
    before = source(change.file)
    (copy / change.file).write_bytes(change.apply(before))
    ordered = in_order(tests, seconds)
    limit = 60 + 5 * sum(seconds[t] for t in tests)
    try:
        code, output = run_tests(copy, ordered, "-x", "--no-header", "--tb=no", limit=limit)
    finally:
        (copy / change.file).write_bytes(before)
    if code == 0:
        return None
    if code == LATE:
        started = time.monotonic()
        code, _ = run_tests(copy, ordered, "-x", "--no-header", "--tb=no", limit=limit)
        kept = code == 0 and time.monotonic() - started < limit / 2
        return "the time limit" if kept else UNDECIDED
    failed = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0][:160] if failed else f"exit code {code}"


def shown(change: Change) -> str:
    """The change as part of a unified diff."""
    before = source(change.file)
    lines = difflib.unified_diff(
        before.decode().splitlines(), change.apply(before).decode().splitlines(), lineterm="", n=0
    )
    return "\n".join(f"    {line}" for line in lines if not line.startswith(("---", "+++", "@@")))


def key_of(change: Change) -> tuple[str, str, str, str]:
    """The key of a change in `equivalent.tsv`: file, first line, old text and new text, each on one line."""
    whole = source(change.file)
    line = whole[whole.rfind(b"\n", 0, change.start) + 1 :].split(b"\n", 1)[0].decode()
    before = whole[change.start : change.end].decode()
    return change.file, line.strip(), " ".join(before.split()), " ".join(change.text.split())


def equivalents() -> set[tuple[str, str, str, str]]:
    """The changes that do not alter the behaviour."""
    rows = [line.split("\t") for line in EQUIVALENT.read_text().splitlines() if line and line[0] != "#"]
    for row in rows:
        if len(row) != 5 or not all(row):
            raise SystemExit(
                f"{EQUIVALENT}: a row is file, line, before, after, reason, with tabs between: {row}"
            )
    return {(file, line, before, after) for file, line, before, after, _ in rows}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__.splitlines()[0])
    parser.add_argument("module", nargs="+", help="packages or files: msadapter/optim, patches.manager")
    parser.add_argument("--samples", type=int, default=20, help="how many changes are drawn")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="changes tried at a time")
    parser.add_argument("--tests", nargs="+", help="test files or folders instead of those of selection.py")
    parser.add_argument(
        "--least", type=float, default=90.0, help="percent that must be noticed for exit code 0"
    )
    parser.add_argument("--list", action="store_true", help="show the drawn changes and run nothing")
    return parser.parse_args()


def try_all(options, changes: list[Change], tests: list[str], folder: Path) -> list[str | None]:
    """How each change was noticed."""
    copies: SimpleQueue[Path] = SimpleQueue()
    first = copy_of_tree(folder / "0")
    started = time.monotonic()
    found, seconds = reach(first, changes, tests)
    print(f"{len(seconds)} tests pass in {time.monotonic() - started:.0f} s", flush=True)
    copies.put(first)
    for k in range(1, options.jobs):
        copies.put(copy_of_tree(folder / str(k)))

    def attempt(k: int) -> str | None:
        copy = copies.get()
        try:
            told = noticed(copy, changes[k], found[k], seconds)
        finally:
            copies.put(copy)
        where = f"{changes[k].file}:{changes[k].line}"
        if told is None:
            print(
                f"SURVIVED {where} ({changes[k].kind}; {len(found[k])} tests)\n{shown(changes[k])}",
                flush=True,
            )
        elif told == UNDECIDED:
            print(f"{told}: {where} ({changes[k].kind})", flush=True)
        else:
            print(f"noticed  {where} ({changes[k].kind}) by {told}", flush=True)
        return told

    with ThreadPoolExecutor(options.jobs) as pool:
        return list(pool.map(attempt, range(len(changes))))


def main() -> int:
    options = arguments()
    files = [file for module in options.module for file in sources_of(module)]
    tests = options.tests or sorted({t for file in files for t in folders_of(file) if (ROOT / t).exists()})
    same = equivalents()
    changes = [c for c in draw(files, options.samples, options.seed) if key_of(c) not in same]
    if options.list or not changes:
        for change in changes:
            print(f"{change.file}:{change.line} ({change.kind})\n{shown(change)}")
        return 0
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        told = try_all(options, changes, tests, Path(folder))
    decided = [t for t in told if t != UNDECIDED]
    killed = sum(t is not None for t in decided)
    share = 100 * killed / max(1, len(decided))
    undecided = f", {len(told) - len(decided)} undecided" if len(decided) < len(told) else ""
    print(f"{killed} of {len(decided)} changes noticed ({share:.0f} %), seed {options.seed}{undecided}")
    return 0 if share >= options.least else 1


if __name__ == "__main__":
    sys.exit(main())

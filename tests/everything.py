"""All tests of this project, those that take hours and those of other projects too, as a list of steps that can be resumed.

    bash tests/run.sh --all              # every step that the last run has not finished
    bash tests/run.sh --all STEP ...     # these steps, finished or not
    python -m tests.everything --page    # docs/all_tests.md again, from tests/everything.tsv

The state of a run is in build/everything: which steps are finished, and the output of each. When all are, the next run begins
again. A step that needs something from outside is left out with the name of what is missing, and its last result stays.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree  # of files that pytest has just written
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE, TABLE = ROOT / "docs/all_tests.md", ROOT / "tests/everything.tsv"
STATE = ROOT / "build/everything"

_RUN = "bash tests/run.sh -q {junit}"
_UPSTREAMS = 'bash tests/upstreams.sh "$MSADAPTER_UPSTREAMS"'
_LLM = f"{_UPSTREAMS} --llm -q {{junit}}"
# the files of tests/toolkit that train a tree of MindSpeed-LLM; the suite skips these tests and runs the others
_TOOLKIT_ON_LLM = sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "tests/toolkit").rglob("test_*.py")
    if "tests.toolkit.llm" in path.read_text(encoding="utf-8")
)
_MEGATRON = "build/upstreams/Megatron-LM-core_v0.12.1"
_NEWEST = "build/upstreams/Megatron-LM-core_v0.19.0"
_PYTHON_3_12 = ".venv-3.12/bin/python"  # made by the step "Megatron-LM"
_MINDSPEED = "build/upstreams/MindSpeed-2.3.0_core_r0.12.1"


@dataclass(frozen=True)
class Step:
    """A command of the shell, run in the repository.

    Attributes: command: {junit} is pytest's option for a file of results, whose tests are then counted, and {results} this file
    alone. needs: variables of the environment that must be set, and, with a slash, paths that must exist in the repository.
    """

    name: str
    command: str
    needs: tuple[str, ...] = ()

    @property
    def missing(self) -> list[str]:
        return [
            need
            for need in self.needs
            if not ((ROOT / need).exists() if "/" in need else os.environ.get(need))
        ]


@dataclass(frozen=True)
class Result:
    """The last run of a step. Without a file of pytest's results, a command counts as one test."""

    step: str
    day: str
    commit: str
    passed: int
    failed: int
    skipped: int
    minutes: float


# what a command returns that SIGINT, SIGKILL or SIGTERM has ended, and a shell of which they have ended a command
STOPPED = (-2, -9, -15, 130, 137, 143)

STEPS = [
    Step("gates", "bash tests/gates.sh"),
    Step("documentation", "bash tests/site.sh"),
    Step("suite", "MSADAPTER_TEST_JUNIT={results} bash tests/run.sh"),
    # what needs MindSpeed-LLM is in the step "toolkit on MindSpeed-LLM"
    Step("what the suite leaves out", f"env -u MSADAPTER_LLM {_RUN} -m extended"),
    Step("operators without the fast path", f"MSADAPTER_FAST=0 {_RUN} tests/ops"),
    Step("wheel", "bash tests/wheel.sh"),
    Step("course", f"MSADAPTER_COURSE=1 {_RUN} tests/course"),
    Step("faults of collectives", f"MSADAPTER_FAULTS=1 {_RUN} tests/distributed/test_faults.py"),
    Step("fused operators, ten times the examples", f"MSADAPTER_EXAMPLES=10 {_RUN} tests/kernels"),
    Step("random placements of DTensor", f"MSADAPTER_DTENSOR_ROUNDS=12 {_RUN} tests/distributed -k dtensor"),
    Step("sanitizers", "bash tests/sanitize.sh"),
    Step("Megatron-LM", f"{_UPSTREAMS} --newest -q {{junit}} tests/megatron", ("MSADAPTER_UPSTREAMS",)),
    Step(
        "MindSpeed and patches",
        f"{_UPSTREAMS} -q {{junit}} tests/npu/test_mindspeed_training.py tests/patches",
        ("MSADAPTER_UPSTREAMS",),
    ),
    Step("MindSpeed-LLM, flags", f"{_LLM} tests/npu/test_mindspeed_llm.py", ("MSADAPTER_UPSTREAMS",)),
    Step(
        "MindSpeed-LLM, example scripts",
        f"{_LLM} tests/npu/test_mindspeed_llm_examples.py",
        ("MSADAPTER_UPSTREAMS",),
    ),
    Step(
        "MindSpeed-LLM, programs",
        f"{_LLM} tests/npu/test_mindspeed_llm_tools.py tests/npu/test_mindspeed_llm_data.py"
        " tests/npu/test_mindspeed_llm_evaluation.py tests/npu/test_mindspeed_llm_fsdp2.py",
        ("MSADAPTER_UPSTREAMS",),
    ),
    Step("MindSpeed-LLM, recovery", f"{_LLM} tests/npu/test_high_availability.py", ("MSADAPTER_UPSTREAMS",)),
    Step("toolkit on MindSpeed-LLM", f"{_RUN} {' '.join(_TOOLKIT_ON_LLM)}", ("MSADAPTER_LLM",)),
    Step("MindSpeed-MM", f"{_RUN} tests/npu/test_mindspeed_mm.py", ("MSADAPTER_MM_ENV",)),
    Step(
        "MindSpeed-RL",
        f"{_UPSTREAMS} --rl -q {{junit}} tests/npu/test_mindspeed_rl.py",
        ("MSADAPTER_UPSTREAMS",),
    ),
    Step(
        "Megatron-LM's unit tests",
        f".venv/bin/python -m tests.megatron.unit_tests {_MEGATRON} --json build/everything/megatron.json --resume"
        " --table docs/megatron_unit_tests.md",
        (_MEGATRON,),
    ),
    Step(
        "Megatron-LM's unit tests, core_v0.19.0",
        f"{_PYTHON_3_12} -m tests.megatron.unit_tests {_NEWEST} --ranks 1 --json build/everything/newest.json --resume"
        " --table docs/megatron_newest_unit_tests.md",
        (_PYTHON_3_12, _NEWEST),
    ),
    Step(
        "MindSpeed's unit tests",
        f".venv/bin/python -m tests.npu.mindspeed_unit_tests {_MINDSPEED} {_MEGATRON}"
        " --json build/everything/mindspeed.json --resume --table docs/mindspeed_unit_tests.md",
        (_MINDSPEED, _MEGATRON),
    ),
    Step(
        "MindSpeed-RL's unit tests",
        '.venv/bin/python -m tests.npu.mindspeed_rl_unit_tests "$MSADAPTER_RL_ENV" --json build/everything/rl.json'
        " --table docs/mindspeed_rl_unit_tests.md",
        ("MSADAPTER_RL_ENV",),
    ),
    Step("faults of trainings", f".venv/bin/python -m tests.megatron.reliability {_MEGATRON}", (_MEGATRON,)),
    *(
        Step(
            f"tests of {name}",
            f'.venv/bin/python -m tests.suites run {name} "$MSADAPTER_{name.upper()}" --records build/everything/{name}',
            (f"MSADAPTER_{name.upper()}",),
        )
        for name in ("transformers", "safetensors", "einops")
    ),
]


def read() -> dict[str, Result]:
    """The last results, by step."""
    if not TABLE.exists():
        return {}
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = [
            Result(step, day, commit, int(passed), int(failed), int(skipped), float(minutes))
            for step, day, commit, passed, failed, skipped, minutes in csv.reader(file, delimiter="\t")
        ]
    return {row.step: row for row in rows}


def write(results: dict[str, Result]) -> None:
    """Writes the results of the known steps in their order, and the page."""
    rows = [results[step.name] for step in STEPS if step.name in results]
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t", lineterminator="\n").writerows(
            (row.step, row.day, row.commit, row.passed, row.failed, row.skipped, f"{row.minutes:.1f}")
            for row in rows
        )
    PAGE.write_text(page(read()), encoding="utf-8")


def page(results: dict[str, Result]) -> str:
    lines = []
    for step in STEPS:
        row = results.get(step.name)
        cells = (
            (row.day, f"`{row.commit}`", row.passed, row.failed, row.skipped, f"{row.minutes:.1f}")
            if row
            else ("not run yet", "", "", "", "", "")
        )
        needs = ", ".join(f"`{need}`" for need in step.needs)
        lines.append(f"| {step.name} | {' | '.join(map(str, cells))} | {needs} |")
    table = "\n".join(lines)
    return f"""# All tests

Generated by `bash tests/run.sh --all`, which runs every step of `tests/everything.py`, one after the other, and takes hours.
It can be stopped: the next call goes on with the steps that are not finished. A step that needs something from outside is left
out if it is missing. The last column has the variables and folders that it needs; `tests/README.md` explains them.
`MSADAPTER_UPSTREAMS` is the folder that `tests/upstreams.sh` takes.

Each row is the last run of its step, on the commit that is named. A command that does not run pytest counts as one test.

| step | day | commit | passed | failed | skipped | minutes | needs |
|---|---|---|---|---|---|---|---|
{table}
"""


def counts(file: Path, code: int) -> tuple[int, int, int]:
    """(passed, failed, skipped) of a result file of pytest; without one, the command itself. A broken end is a failure too."""
    if not file.exists():
        return int(code == 0), int(code != 0), 0
    suites = list(ElementTree.parse(file).getroot().iter("testsuite"))
    tests, failed, skipped = (
        sum(int(suite.get(key, 0)) for suite in suites for key in keys)
        for keys in (("tests",), ("failures", "errors"), ("skipped",))
    )
    passed = tests - failed - skipped
    return passed, max(failed, int(code != 0)), skipped


def commit() -> str:
    """The commit of the tree, with a plus sign if tracked files differ. Pages and this table do not count: steps write them."""
    head = subprocess.run(
        ["git", "rev-parse", "--short=9", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()
    files = [".", ":(exclude)docs", ":(exclude)tests/everything.tsv"]
    changed = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", *files], cwd=ROOT).returncode
    return head + ("+" if changed else "")


def run(step: Step) -> Result:
    """Runs a step; what it prints goes to build/everything/STEP.log."""
    name = "".join(letter if letter.isalnum() else "-" for letter in step.name)
    junit, log = STATE / f"{name}.xml", STATE / f"{name}.log"
    junit.unlink(missing_ok=True)
    begin, day, tree = time.monotonic(), datetime.now(timezone.utc).date().isoformat(), commit()
    with log.open("w") as file:
        command = step.command.format(junit=f"--junitxml={junit}", results=junit)
        code = subprocess.run(
            command, shell=True, executable="/bin/bash", cwd=ROOT, stdout=file, stderr=subprocess.STDOUT
        ).returncode
    if code in STOPPED:
        sys.exit(f"{step.name} was stopped; its last row stays, and the next call goes on with it")
    passed, failed, skipped = counts(junit, code)
    return Result(step.name, day, tree, passed, failed, skipped, (time.monotonic() - begin) / 60)


def main(names: list[str]) -> int:
    """Runs the steps; returns 1 if one failed, and 2 for a name that no step has."""
    if names == ["--page"]:
        write(read())
        return 0
    unknown = set(names) - {step.name for step in STEPS}
    if unknown:
        known = "\n".join(step.name for step in STEPS)
        print(f"no step has the name {', '.join(sorted(unknown))}. These exist:\n{known}", file=sys.stderr)
        return 2
    STATE.mkdir(parents=True, exist_ok=True)
    state = STATE / "finished.json"
    finished = json.loads(state.read_text()) if state.exists() else []
    failed = []
    for step in STEPS:
        if names and step.name not in names or not names and step.name in finished:
            continue
        if step.missing:
            print(f"{step.name}: left out, {', '.join(step.missing)} is missing", flush=True)
            continue
        print(f"{step.name} ...", flush=True)
        result = run(step)
        write(read() | {step.name: result})
        counted = f"{result.passed} passed, {result.failed} failed, {result.skipped} skipped"
        print(f"{step.name}: {counted}, {result.minutes:.1f} minutes", flush=True)
        if result.failed:
            failed.append(step.name)
        if not names:
            finished.append(step.name)
            state.write_text(json.dumps(finished))
    if not names:
        state.unlink(missing_ok=True)
    if failed:
        print(f"failed: {', '.join(failed)}; their output is in {STATE}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

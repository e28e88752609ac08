"""Runs MindSpeed-RL's own unit tests (tests/ut), with msadapter and with PyTorch itself, and writes what became of them.

    python -m tests.npu.mindspeed_rl_unit_tests build/rl/env.sh --oracle PYTHON --json results.json \\
        --table docs/mindspeed_rl_unit_tests.md

env.sh is that of `bash auto_convert.sh rl`. PYTHON is one of an environment with PyTorch. There, what needs an NPU is a mock
(rl_oracle/sitecustomize.py), and packages that it lacks come from --packages. Each file is a process of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml
from collections import Counter
from pathlib import Path

from megatron_ms.rollout import job

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TESTS = "tests/ut/"
# What a failure says -> why. The first that is contained counts. Failures that PyTorch has too are named so beside it.
REASONS = {
    "/data/": "reads a model or a data set of its authors' machines, which is not public",
    "list.remove(x): x not in list": "the upstream class for distributed tests does not accept tests that mock.patch decorates",
    "expected call not found": "expects a call with other arguments than the upstream code makes",
    "not enough GPUs": "asks for eight devices",
    "has no attribute 'npu'": "needs torch.npu",
    "too many values to unpack": "its mock returns one value where the upstream code takes two",
    "Expected 3 log records": "counts each record twice: the logger propagates, and has a handler of its own",
    "when instantiating SelfAttention": "MindSpeed takes the number of query groups from Megatron's arguments, where it is 1, "
    "and tensor ranks cannot share one",
    "object of type 'NoneType' has no len()": "its dock is made without GBS_train, and hands out no samples",
}
# Part of a test's name -> why it does not end in time.
LATE = {
    "test_distributed_get_experience": "waits forever for samples: its dock is made without GBS_train, and hands out none",
}
Outcomes = dict[str, list[str]]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("env", type=Path, help="the env.sh of auto_convert.sh rl")
    parser.add_argument("--oracle", type=Path, help="a Python with PyTorch, to run the tests with it, too")
    parser.add_argument(
        "--packages", default="", help="folders of packages for the oracle, with colons between"
    )
    parser.add_argument("--only", nargs="*", default=[""], help="files whose path contains one of these")
    parser.add_argument("--limit", type=float, default=240, help="seconds that a file may take")
    parser.add_argument(
        "--json", type=Path, help="results: read first, entries of files that run are replaced"
    )
    parser.add_argument("--table", type=Path, help="write the Markdown page here")
    args = parser.parse_args()
    settings = _settings(args.env)
    tree = Path(settings["MINDSPEED_RL"])
    names = sorted(str(path.relative_to(tree)) for path in (tree / TESTS).rglob("test_*.py"))
    results = json.loads(args.json.read_text()) if args.json and args.json.exists() else {}
    for name in names:
        if not any(word in name for word in args.only):
            continue
        kinds = {"msadapter": (settings, "python")}
        if args.oracle:
            kinds["PyTorch"] = (_with_pytorch(settings, args.packages), str(args.oracle))
        for kind, (environment, python) in kinds.items():
            began = time.monotonic()
            found = run(tree, name, environment, [python, "-m", "pytest"], args.limit)
            results.setdefault(kind, {})[name.removeprefix(TESTS)] = found
            print(f"{name} with {kind}: {_counted(found)} in {time.monotonic() - began:.0f} s", flush=True)
            if args.json:
                args.json.write_text(json.dumps(results, indent=0, sort_keys=True) + "\n")
    if args.table:
        args.table.write_text(page(results))
    return 0


def _settings(env: Path) -> dict[str, str]:
    """The environment after `source env.sh`, with eight devices, and with CPUs enough for upstream's transfer docks of ten each."""
    text = subprocess.run(
        ["bash", "-c", f". {shlex.quote(str(env))} && env -0"], capture_output=True, text=True, check=True
    ).stdout
    found = dict(line.split("=", 1) for line in text.split("\0") if "=" in line)
    more = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "MSADAPTER_DEVICE_COUNT": "8"}
    ray = {
        "RAY_OVERRIDE_RESOURCES": '{"CPU": 80}',
        "RAY_enable_worker_prestart": "0",
        "RAY_prestart_worker_first_driver": "0",
    }
    return {**found, **more, **ray}


def _with_pytorch(settings: dict[str, str], packages: str) -> dict[str, str]:
    """The same without the folders that answer `import torch`, and with the module of mocks."""
    places = [place for place in settings["PYTHONPATH"].split(":") if "msadapter/alias" not in place]
    given = [place for place in packages.split(":") if place]
    path = ":".join([str(HERE / "rl_oracle"), *given, *places, str(ROOT)])
    return {name: value for name, value in settings.items() if not name.startswith("MSADAPTER")} | {
        "PYTHONPATH": path
    }


def run(tree: Path, name: str, environment: dict[str, str], command: list[str], limit: float) -> Outcomes:
    """Outcome and reason of every test of a file. A test that does not end in time is left out, and the others are run again."""
    late: Outcomes = {}
    left_out: list[str] = []
    while True:
        left = [f"--deselect={one}" for one in left_out]
        words = [*command, "-q", "--rootdir=.", "-p", "no:cacheprovider", *left, name]
        found, running = _once(tree, words, environment, limit)
        if found is not None:
            return found | late
        if running is None or running in left_out:
            return {name: ["failed", f"did not end in {limit:.0f} s"]}
        left_out.append(running)
        test = running.replace(".py::", ".").replace("::", ".").replace("/", ".")
        late[test] = ["failed", f"did not end in {limit:.0f} s"]


def _once(
    tree: Path, words: list[str], environment: dict[str, str], limit: float
) -> tuple[Outcomes | None, str | None]:
    """The outcomes of a run of pytest. If it does not end in time: None, and the test that was running, if pytest named one."""
    name = words[-1]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        report = Path(folder) / "report.xml"
        with open(Path(folder) / "output", "w+") as output:
            child = subprocess.Popen(
                [*words, f"--junitxml={report}"],
                cwd=tree,
                # Ray would join a cluster that another program has named in the usual folder, even if that has ended.
                env=environment | {"RAY_TMPDIR": folder},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                child.wait(limit)
                ended = True
            except subprocess.TimeoutExpired:
                ended = False
            finally:
                _end(child, Path(folder))
            output.seek(0)
            text = output.read()
        if not ended:
            begun = re.findall(rf"^({re.escape(name)}::\S+)", text, re.MULTILINE)
            return None, begun[-1] if begun else None
        if not report.is_file():
            lines = [line for line in text.splitlines() if line.strip()]
            return {name: ["failed", f"did not start: {lines[-1][:200] if lines else 'no output'}"]}, None
        return dict(_outcome(case) for case in xml.parse(report).getroot().iter("testcase")), None


def _end(child: subprocess.Popen, folder: Path) -> None:
    """Ends what a file has left: the session of its process, and Ray's processes, whose environment names the folder."""
    with contextlib.suppress(ProcessLookupError):  # it may have left nothing
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    for one in job.members(folder):
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)


def _outcome(case: xml.Element) -> tuple[str, list[str]]:
    test = f"{case.get('classname')}.{case.get('name')}"
    for tag, outcome in (("failure", "failed"), ("error", "failed"), ("skipped", "skipped")):
        found = case.find(tag)
        if found is not None:
            return test, [outcome, " ".join(f"{found.get('message', '')}".split())[:400]]
    return test, ["passed", ""]


def why(reason: str, test: str = "") -> str:
    """The reason in words of ours, or as it was told."""
    if reason.startswith("did not end"):
        return next((words for part, words in LATE.items() if part in test), reason)
    return next(
        (words for sign, words in REASONS.items() if sign in reason), reason[:160].replace("|", "\\|")
    )


def _counted(outcomes: Outcomes) -> dict[str, int]:
    return dict(Counter(outcome for outcome, _ in outcomes.values()))


def page(results: dict[str, dict[str, Outcomes]]) -> str:
    """The Markdown page."""
    ours, theirs = results["msadapter"], results.get("PyTorch", {})
    total, oracle = (
        Counter(one[0] for file in part.values() for one in file.values()) for part in (ours, theirs)
    )
    rows, same = [], 0
    for name, found in sorted(ours.items()):
        other = theirs.get(name)
        equal = other is not None and {k: v[0] for k, v in found.items()} == {
            k: v[0] for k, v in other.items()
        }
        same += equal
        counts, expected = (Counter(one[0] for one in part.values()) for part in (found, other or {}))
        reasons = sorted(
            {why(reason, test) for test, (outcome, reason) in found.items() if outcome != "passed"}
        )
        others = sorted(
            {
                why(reason, test)
                for test, (outcome, reason) in (other or {}).items()
                if outcome != "passed" and found.get(test, [""])[0] == "passed"
            }
        )
        reasons += [f"PyTorch alone: {one}" for one in others]
        with_pytorch = (
            "not run" if other is None else f"{expected['passed']}/{expected['failed']}/{expected['skipped']}"
        )
        rows.append(
            f"| `{name}` | {counts['passed']} | {counts['failed']} | {counts['skipped']} | {with_pytorch} | "
            f"{'; '.join(reasons)} |"
        )
    head = (
        "# MindSpeed-RL's unit tests\n\n"
        "Written by `python -m tests.npu.mindspeed_rl_unit_tests`. These are the files in `tests/ut` of MindSpeed-RL 2.3.0,\n"
        "unmodified, in the environment of `auto_convert.sh rl` on CPU processes, and the same files with PyTorch itself, where\n"
        "mocks take the place of what needs an NPU.\n\n"
        f"{len(ours)} files have {sum(total.values())} tests: {total['passed']} passed, {total['failed']} failed and "
        f"{total['skipped']} were skipped.\nWith PyTorch {oracle['passed']} passed, {oracle['failed']} failed and "
        f"{oracle['skipped']} were skipped. In {same} of {len(ours)} files every test has the same outcome.\n\n"
        "| file | passed | failed | skipped | PyTorch: passed/failed/skipped | why not |\n| --- | --- | --- | --- | --- | --- |\n"
    )
    return head + "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.exit(main())

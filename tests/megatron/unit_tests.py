"""Runs Megatron-LM's own unit tests on 1, 2 and 4 ranks, and writes what became of them.

    python tests/megatron/unit_tests.py CHECKOUT --ranks 1 2 4 --json results.json --table docs/megatron_unit_tests.md

CHECKOUT is core_v0.12.1; it is copied, its files stay as they are. Each file is a job of its own. A job that hangs or
crashes costs one test: the first that some rank has not finished counts as failed, and the tests behind it run in
another job.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE)]

import lm_checkout  # noqa: E402 its place is known now
import unit_tests_report as report  # noqa: E402

GROUPS = ("tensor_parallel", "pipeline_parallel", "distributed", "transformer", "dist_checkpointing", "data", "models",
          "fusions", "ssm", "inference")

LARGE = ("models/test_heterogeneous_gpt_model.py",)  # 5 GB a rank: on one rank only


def arguments(argv=None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path, nargs="?", default=os.environ.get("MSADAPTER_MEGATRON"),
                        help="Megatron-LM core_v0.12.1 (default: MSADAPTER_MEGATRON)")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--only", default="", help="files whose path contains this")
    parser.add_argument("--limit", type=float, default=60, help="seconds a test may take")
    parser.add_argument("--file-limit", type=float, default=900, help="seconds the jobs of a file may take together")
    parser.add_argument("--json", type=Path, help="results: read first, entries of files that run are replaced")
    parser.add_argument("--table", type=Path, help="write the Markdown page here")
    parser.add_argument("--tree", type=Path, help="a tree that was prepared before, instead of a copy of the checkout")
    args = parser.parse_args(argv)
    if not (args.checkout or args.tree):
        parser.error("name a checkout of Megatron-LM (or MSADAPTER_MEGATRON)")
    return args


def files(tree: Path, only: str) -> list[str]:
    """The test files, as paths in the tree."""
    top = tree / "tests/unit_tests"
    found = sorted(top.glob("test_*.py")) + sorted(p for g in GROUPS for p in (top / g).rglob("test_*.py"))
    names = [str(path.relative_to(tree)) for path in found if path.name != "test_utilities.py"]
    return [name for name in names if only in name]


class FileRun:
    """One file on a number of ranks: jobs until every test has an outcome."""

    def __init__(self, tree: Path, name: str, ranks: int, limit: float, file_limit: float):
        self.tree, self.name, self.ranks, self.limit = tree, name, ranks, limit
        self.end = time.monotonic() + file_limit
        self.outcomes: dict[str, list[str]] = {}

    def run(self) -> dict[str, list[str]]:
        """Outcome and reason of every test."""
        while True:
            before = len(self.outcomes)
            if self._job() or len(self.outcomes) == before:
                return self.outcomes

    def _job(self) -> bool:
        """Run what has no outcome; whether all have one now."""
        with tempfile.TemporaryDirectory() as folder:
            base = Path(folder)
            (base / "done").write_text(json.dumps(list(self.outcomes)))
            output, seconds = self._torchrun(base)
            events = [_events(Path(f"{base / 'record'}.{rank}")) for rank in range(self.ranks)]
        if not all(any(e["event"] in ("collected", "file") for e in rank) for rank in events):
            self.outcomes[self.name] = ["failed", f"the job did not start: {_last(output)}"]
            return True
        return self._judge(events, output, seconds)

    def _torchrun(self, base: Path) -> tuple[str, float]:
        shim = ROOT / "msadapter/alias/shim"
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(shim), str(HERE), str(ROOT)]).lstrip(":"),
            "MSADAPTER_DEVICE": "cuda", "MSADAPTER_TRANSFORMER_ENGINE": "1",
            "CUDA_DEVICE_MAX_CONNECTIONS": "1", "OMP_NUM_THREADS": "1",
            "MSADAPTER_UT_RECORD": str(base / "record"), "MSADAPTER_UT_DONE": str(base / "done"),
            "MSADAPTER_UT_LIMIT": str(self.limit), "TMPDIR": str(base),
        }
        command = [sys.executable, ROOT / "msadapter/distributed/_torchrun.py", "--standalone", "--nproc-per-node",
                   self.ranks, "-m", "pytest", "-q", "-p", "unit_tests_recorder", "-p", "no:cacheprovider",
                   "--rootdir", self.tree, self.name]
        begin = time.monotonic()
        job = subprocess.Popen([str(word) for word in command], cwd=self.tree, env=environment, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            output = job.communicate(timeout=max(self.end - begin, 10))[0]
        except subprocess.TimeoutExpired:
            job.terminate()
            output = job.communicate()[0] + "\nthe time of the file is over"
        return output, time.monotonic() - begin

    def _judge(self, events, output, seconds) -> bool:
        for rank in events:
            for event in rank:
                if event["event"] == "file":
                    self._note(self.name, event["outcome"], event["reason"])
        order = next((e["tests"] for e in events[0] if e["event"] == "collected"), [])
        ends = [{e["test"]: e for e in rank if e["event"] == "end"} for rank in events]
        for test in order:
            known = [rank[test] for rank in ends if test in rank]
            for event in known:
                self._note(test, event["outcome"], event["reason"])
            if len(known) < self.ranks:
                late = "did not end" if seconds > self.limit else f"the process ended: {_last(output)}"
                self._note(test, "failed", late)
                if time.monotonic() < self.end:
                    return False
                self.outcomes |= {t: ["failed", "no time left for this file"] for t in order if t not in self.outcomes}
                return True
        return True

    def _note(self, test, outcome, reason) -> None:
        """The worst outcome of any rank counts, with the first reason for it."""
        rank = ("passed", "skipped", "failed").index
        if test not in self.outcomes or rank(outcome) > rank(self.outcomes[test][0]):
            self.outcomes[test] = [outcome, reason]


def _events(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _last(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip() and not line.startswith("torchrun:")]
    return lines[-1][:200] if lines else ""


def main() -> int:
    args = arguments()
    results = json.loads(args.json.read_text()) if args.json and args.json.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        tree = args.tree.resolve() if args.tree else lm_checkout.scratch_copy(args.checkout, Path(folder), tests=True)
        for name in files(tree, args.only):
            for ranks in args.ranks if not name.endswith(LARGE) else [n for n in args.ranks if n == 1]:
                begin = time.monotonic()
                outcomes = FileRun(tree, name, ranks, args.limit, args.file_limit).run()
                results.setdefault(name.removeprefix("tests/unit_tests/"), {})[str(ranks)] = outcomes
                said = {what: sum(o[0] == what for o in outcomes.values()) for what in ("passed", "failed", "skipped")}
                print(f"{name} on {ranks}: {said} in {time.monotonic() - begin:.0f} s", flush=True)
                if args.json:
                    args.json.write_text(json.dumps(results, indent=0, sort_keys=True) + "\n")
    if args.table:
        args.table.write_text(report.markdown(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs one file of upstream's tests in jobs of its own until every test has an outcome; for Megatron-LM and MindSpeed.

A job that hangs or crashes costs one test: the first that some rank has not finished counts as failed, and the tests
behind it run in another job.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PLUGINS = "-q -p unit_tests_recorder -p no:cacheprovider"  # the recorder writes what FileRun reads


def python_path(*folders: Path) -> str:
    """PYTHONPATH of a job: its present entries, then these folders, the adapter and the recorder."""
    mine = [ROOT / "msadapter/alias/shim", HERE, ROOT, *folders]
    return os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH", ""), *map(str, mine)]))


class FileRun:
    """The run of one file: `command` runs pytest on it in `folder`, as `ranks` processes that each record their tests.

    `limit` is the number of seconds for a test, and `file_limit` that for all jobs of the file.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        command: list,
        environment: dict,
        ranks: int,
        limit: float,
        file_limit: float,
    ):
        self.folder, self.name, self.command, self.environment = folder, name, command, environment
        self.ranks, self.limit = ranks, limit
        self.end = time.monotonic() + file_limit
        self.outcomes: dict[str, list[str]] = {}
        self.outputs: list[str] = []  # what each job printed

    def run(self) -> dict[str, list[str]]:
        """Outcome and reason of every test."""
        while True:
            before = len(self.outcomes)
            if self._job() or len(self.outcomes) == before:
                return self.outcomes

    def _job(self) -> bool:
        """Run the tests without an outcome. Return whether all tests have one now."""
        with tempfile.TemporaryDirectory() as folder:
            base = Path(folder)
            (base / "done").write_text(json.dumps(list(self.outcomes)))
            output, seconds = self._run(base)
            events = [_events(Path(f"{base / 'record'}.{rank}")) for rank in range(self.ranks)]
        if not all(any(e["event"] in ("collected", "file") for e in rank) for rank in events):
            self.outcomes[self.name] = ["failed", f"the job did not start: {_last(output)}"]
            return True
        return self._judge(events, output, seconds)

    def _run(self, base: Path) -> tuple[str, float]:
        """The output of the job and its seconds. All its processes have ended then."""
        environment = (
            os.environ
            | self.environment
            | {
                "MSADAPTER_UT_RECORD": str(base / "record"),
                "MSADAPTER_UT_DONE": str(base / "done"),
                "MSADAPTER_UT_LIMIT": str(self.limit),
                "TMPDIR": str(base),
            }
        )
        begin = time.monotonic()
        with open(
            base / "output", "w+"
        ) as output:  # no pipe: a process that outlives the job would keep it open
            job = subprocess.Popen(
                [str(word) for word in self.command],
                cwd=self.folder,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            late = ""
            try:
                job.wait(max(self.end - begin, 10))
            except subprocess.TimeoutExpired:
                late = "\nthe time of the file is over"
                job.terminate()
                job.wait()
            _end_session(job.pid)
            output.seek(0)
            self.outputs.append(output.read() + late)
            return self.outputs[-1], time.monotonic() - begin

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
                self.outcomes |= {
                    t: ["failed", "no time left for this file"] for t in order if t not in self.outcomes
                }
                return True
        return True

    def _note(self, test, outcome, reason) -> None:
        """Store the worst outcome of any rank, with its first reason."""
        rank = ("passed", "skipped", "failed").index
        if test not in self.outcomes or rank(outcome) > rank(self.outcomes[test][0]):
            self.outcomes[test] = [outcome, reason]


def _events(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _last(output: str) -> str:
    lines = [
        line.strip() for line in output.splitlines() if line.strip() and not line.startswith("torchrun:")
    ]
    return lines[-1][:200] if lines else ""


def _end_session(group: int) -> None:
    """Terminate the processes that the job has left."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def counts(outcomes: dict) -> dict:
    """How many tests passed, failed and were skipped."""
    return {what: sum(o[0] == what for o in outcomes.values()) for what in ("passed", "failed", "skipped")}


class Finished:
    """The jobs that an interrupted run has finished. They are kept in a file beside that of the results, until all have."""

    def __init__(self, results: Path | None, resume: bool):
        self._path = results and results.with_suffix(".finished")
        kept = self._path.read_text().splitlines() if resume and self._path and self._path.exists() else []
        self._names = set(kept)

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def add(self, name: str) -> None:
        self._names.add(name)
        if self._path:
            self._path.write_text("".join(f"{one}\n" for one in sorted(self._names)))

    def end(self) -> None:
        """The run is complete: the next one begins again."""
        if self._path:
            self._path.unlink(missing_ok=True)


RESUME = "skip what an interrupted run has finished; needs --json"

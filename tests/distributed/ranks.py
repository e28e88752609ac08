"""Starts ranks for the tests, and makes sure that none is left."""

import ast
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
JOBS = Path(__file__).with_name("jobs")
PATIENCE = (
    300  # seconds after which a test gives up on a job; many times what it takes, for the machine may be busy
)
TORCHRUN = (str(ROOT / "msadapter/distributed/_torchrun.py"),)


def _parsed(job: str) -> ast.Module:
    """Parse a module of jobs/. It is not imported, because it works on ranks only."""
    return ast.parse((JOBS / job).read_text(encoding="utf-8"))


def checks_of(job: str) -> list[str]:
    """Return the names of the functions ``check_...`` that a module of jobs/ defines, in order."""
    return [
        step.name
        for step in _parsed(job).body
        if isinstance(step, ast.FunctionDef) and step.name.startswith("check_")
    ]


def constant_of(job: str, name: str):
    """Return the value of a literal that a module of jobs/ assigns to ``name``. KeyError if there is none."""
    for step in _parsed(job).body:
        if isinstance(step, ast.Assign) and [t.id for t in step.targets if isinstance(t, ast.Name)] == [name]:
            return ast.literal_eval(step.value)
    raise KeyError(f"{job} assigns no {name}")


def environment(**extra) -> dict:
    """Return the environment of the test, with a mark that identifies the processes of this job."""
    path = os.pathsep.join(
        [str(ROOT / "msadapter/alias/shim"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    clean = {
        k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "MASTER_PORT", "LOCAL_RANK")
    }
    return clean | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"} | {k: str(v) for k, v in extra.items()}


def torchrun(*arguments, timeout=PATIENCE, **extra) -> subprocess.CompletedProcess:
    """Run torchrun to its end. The test fails if one of its processes is left."""
    mark = f"job-{os.getpid()}-{time.monotonic_ns()}"
    try:
        return subprocess.run(
            [sys.executable, *TORCHRUN, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=timeout,
            env=environment(MSADAPTER_TEST_JOB=mark, **extra),
            check=False,
        )
    finally:
        assert not left(mark), "processes are left"


def left(mark: str) -> list:
    """Return the processes with this job's mark in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if mark.encode() in (entry / "environ").read_bytes() and state != "Z":
                    found.append(int(entry.name))
            except OSError:  # the process has ended, or this user may not read it
                continue
    return found


def outcomes_of(checks: str, size: int, folder, limit: int = PATIENCE, **extra) -> list:
    """Return the results of every rank for every check of a module in jobs/, within ``limit`` seconds.

    extra: more environment variables.
    """
    job = JOBS / "run_checks.py", JOBS / checks, folder / "rank"
    done = torchrun("--nproc-per-node", size, *job, timeout=limit + 60, MSADAPTER_TEST_LIMIT=limit, **extra)
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads((folder / f"rank.{rank}").read_text()) for rank in range(size)]

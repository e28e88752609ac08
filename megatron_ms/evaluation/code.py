"""Runs a program that a model has written, in a process of its own with limits.

The limits protect against programs that do not end or take all memory. They do not protect against a program that means harm:
it has the rights of the user. This is why the command asks for --allow-code.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import tempfile

SECONDS = 10
MEMORY = 1 << 30
_OUTPUT = 1 << 20


def passes(program: str, seconds: float = SECONDS) -> bool:
    """Return whether a program ends with exit code 0 within its limits. Its output is dropped."""
    with tempfile.TemporaryDirectory(prefix="evaluate-") as folder:
        process = subprocess.Popen(
            [sys.executable, "-I", "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={"PATH": os.environ.get("PATH", ""), "HOME": folder, "TMPDIR": folder},
            start_new_session=True,
            preexec_fn=_limit,
        )
        try:
            process.communicate(program.encode("utf-8", "replace"), timeout=seconds)
        except subprocess.TimeoutExpired:
            return False
        finally:
            _end(process)
        return process.returncode == 0


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_OUTPUT, _OUTPUT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _end(process: subprocess.Popen) -> None:
    """Ends the program and everything that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()

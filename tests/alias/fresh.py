"""Programs in a python of their own, in which `import torch` gives msadapter."""

from __future__ import annotations

import atexit
import functools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {"PYTHONPATH": f"{ROOT / 'msadapter/alias/shim'}:{ROOT}", "PATH": "/usr/bin:/bin"}

# Each line names a file with a program and one for what it prints. The program runs in a copy of this process.
_COPIES = """
import json, os, sys, traceback
import torch
for line in sys.stdin:
    program, output = json.loads(line)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            opened = os.open(output, os.O_WRONLY)
            os.dup2(opened, 1)
            os.dup2(opened, 2)
            exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    print(os.waitpid(child, 0)[1], flush=True)
"""


def python(program: str) -> str:
    """Run a program in a new python, and return what it prints. It must end well."""
    done = subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@functools.cache
def _with_torch() -> subprocess.Popen:
    """Start a python that has imported torch and nothing else, for ``python_with_torch``. It ends with this process."""
    process = subprocess.Popen(
        [sys.executable, "-c", _COPIES],
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(process.kill)
    return process


def python_with_torch(program: str) -> str:
    """Run a program in a copy of a python that has just imported torch, and return what it prints. It must end well.

    Programs share that import, which takes a second.
    """
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as output:
        process = _with_torch()
        print(json.dumps([program, output.name]), file=process.stdin, flush=True)
        status = process.stdout.readline()
        printed = output.read()
    assert status == "0\n", f"{os.waitstatus_to_exitcode(int(status)) if status else 'no answer'}: {printed}"
    return printed

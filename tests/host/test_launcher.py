"""python -m msadapter: what the processes that a program starts find."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import multiprocessing, subprocess, sys
import torch

def child(queue):
    queue.put((torch.ones(2).sum().item(), torch.__version__))

if __name__ == "__main__":
    method = sys.argv[1]
    if method == "python":
        code = "import torch; print(torch.ones(2).sum().item(), torch.__version__)"
        print(subprocess.run([sys.executable, "-c", code], check=True, text=True, capture_output=True).stdout.strip())
    else:
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        process = context.Process(target=child, args=(queue,))
        process.start()
        process.join(60)
        assert process.exitcode == 0, process.exitcode
        print(*queue.get(timeout=10))
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver", "python"])
def test_children_of_a_program_find_torch(tmp_path, method):
    """The program stands in a folder of its own, and the package is found through the working folder alone."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run([sys.executable, "-m", "msadapter", str(script), method], cwd=ROOT, env=environment, text=True,
                          capture_output=True, timeout=120)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["2.0", "2.13.0"]

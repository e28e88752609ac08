"""Runs the recorded answers of PyTorch's operator samples, in a process in which torch is msadapter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_SHIM = ROOT / "msadapter" / "alias" / "shim"


def report_of(
    conformance: Path, folder: Path, dtypes: str, *words: Any, patience: int, **environment: str
) -> dict:
    """Return the report of run_conformance.py.

    conformance: the folder of the program and its golden answers. folder: for its logs and the report. words: further
    arguments. patience: seconds. environment: further variables of the process.
    """
    command = [sys.executable, conformance / "run_conformance.py", "--golden", conformance / "golden"]
    command += ["--dtypes", dtypes, "--jobs", min(2, os.cpu_count() or 1), "--logdir", folder / "logs"]
    command += [*words, "--out", folder / "report.json"]
    done = subprocess.run(
        [str(word) for word in command],
        env=os.environ | {"PYTHONPATH": f"{_SHIM}{os.pathsep}{ROOT}"} | environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=patience,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    return json.loads((folder / "report.json").read_text())

"""Calling the kernels directly and through MindSpore's dispatch must give the same answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden.verdict import difference

HERE = Path(__file__).parent


def _answers(fast: str):
    environment = dict(os.environ, MSADAPTER_FAST=fast, PYTHONPATH=str(HERE.parents[1]))
    done = subprocess.run(
        [sys.executable, HERE / "two_paths.py"], env=environment, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_same_answers():
    fast = _answers("1")
    assert all(
        any(v != 0 for row in gradient for v in (row if isinstance(row, list) else [row]))
        for gradient in fast[-3:]
    )
    assert difference(_answers("0"), fast) is None

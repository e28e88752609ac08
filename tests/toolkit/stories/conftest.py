"""The tiny model of tests/toolkit/inference, and a shell for the stories."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.toolkit.inference.conftest import model_folder  # noqa: F401

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def tell():
    """Runs a story and returns what it prints."""

    def tell(name: str, *words: object) -> str:
        script = ROOT / "megatron_ms" / "examples" / "stories" / name
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = os.environ | {"PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(paths)}
        run = subprocess.run(
            ["bash", str(script), *map(str, words)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
        return run.stdout

    return tell

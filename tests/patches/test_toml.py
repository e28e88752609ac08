"""TOML is read under every Python, also before any package is installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from patches import toml

ROOT = Path(__file__).resolve().parents[2]
TEXT = '[project]\nname = "x"\ndependencies = [\n    "a==1",  # why\n]\n'


def test_what_is_read() -> None:
    assert toml.loads(TEXT) == {"project": {"name": "x", "dependencies": ["a==1"]}}
    with pytest.raises(toml.TOMLDecodeError):
        toml.loads("[project\n")
    assert issubclass(toml.TOMLDecodeError, ValueError)


def test_without_any_package() -> None:
    """-S leaves out what is installed, as for a Python that has just been installed itself."""
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from patches import toml; print(toml.loads({TEXT!r}))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True)
    assert done.stdout == f"{toml.loads(TEXT)}\n", done.stderr

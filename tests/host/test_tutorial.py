"""The programs and commands of docs/tutorial.md do what the page says, but for those that set everything up."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_tutorial(tmp_path, converted) -> None:
    """Its programs are saved as it says, its commands run one after the other, and print the lines below them."""
    said = ""
    ran, seen = [], 0
    for kind, title, text in BLOCK.findall((ROOT / "docs/tutorial.md").read_text(encoding="utf-8")):
        if kind == "python":
            (tmp_path / title).write_text(text, encoding="utf-8")
        elif kind == "bash" and "auto_convert.sh" not in text:
            said = _run(text, converted.parent / "core/env.sh", tmp_path)
            ran.append(text.split()[0])
        elif kind == "text":
            assert set(text.splitlines()) <= set(said.splitlines()), said
            seen += 1
    assert (tmp_path / "model.pt").is_file()
    assert len(ran) >= 4 and seen == len(ran)


def _run(command: str, environment: Path, folder: Path) -> str:
    """What a command prints in the environment that the conversion's env.sh makes."""
    line = f'set -e; . "{environment}"; {command}'
    variables = {
        name: value for name, value in os.environ.items() if not name.startswith(("MSADAPTER_", "PYTHON"))
    }
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout

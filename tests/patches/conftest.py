"""The toy upstream that the tests of the patch manager copy and change."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.patches.toy import ENGINE


@pytest.fixture
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder with the toy upstream: `toy/version.txt`, and `toy/engine.py` with the test module's ENGINE or that of toy.py.

    A module adds files, or replaces these, by a dictionary FILES: {path in the folder: content in bytes}.
    """
    folder = tmp_path / "upstream"
    files = {"toy/version.txt": b"1.4\n", "toy/engine.py": getattr(request.module, "ENGINE", ENGINE).encode()}
    for name, content in (files | getattr(request.module, "FILES", {})).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder

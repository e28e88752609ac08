"""The type stubs of torch are those of the present declarations, and a type checker reads them as a user expects."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys

import pytest

from tests.stubs import check, make_stubs

MYPY = check.ROOT / "build" / "gates" / "bin" / "mypy"


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, str]:
    """The stubs, made in a process of their own: libraries that other tests import add names to torch's modules."""
    made = tmp_path_factory.mktemp("stubs") / "files.json"
    program = "import json, sys; from tests.stubs import make_stubs; json.dump(make_stubs.Stubs().files(), open(sys.argv[1], 'w'))"
    subprocess.run([sys.executable, "-c", program, made], check=True, cwd=check.ROOT)
    return json.loads(made.read_text(encoding="utf-8"))


def test_the_stubs_are_current(files) -> None:
    there = {
        str(path.relative_to(make_stubs.FOLDER)): path.read_text(encoding="utf-8")
        for path in make_stubs.FOLDER.rglob("*.pyi")
    }
    changed = sorted(name for name in files | there if files.get(name) != there.get(name))
    assert not changed, f"run: python -m tests.stubs.make_stubs ({changed[:5]})"


def test_every_stub_is_python(files) -> None:
    for name, text in files.items():
        ast.parse(text, name)


def test_operators_have_their_names_and_types(files) -> None:
    tensor, functions = files["_tensor.pyi"], files["__init__.pyi"]
    assert (
        "    def add_(self, other: _Tensor | _Number, alpha: _Tensor | _Number = ...) -> _Tensor: ...".replace(
            "alpha", "*, alpha"
        )
        in tensor
    )
    assert "def matmul(input: _Tensor, other: _Tensor, *, out=...) -> _Tensor: ..." in functions
    assert "def chunk(input: _Tensor, chunks: _int, dim: _int = ...) -> tuple[_Tensor, ...]: ..." in functions
    # the three forms of max
    assert functions.count("\ndef max(") == 3


def test_mypy_accepts_a_right_program_and_reports_wrong_lines() -> None:
    mypy = shutil.which("mypy") or (str(MYPY) if MYPY.exists() else None)
    if mypy is None:
        pytest.skip("mypy is not installed; tests/gates.sh installs it and makes the same check")
    assert check.differences(mypy) == []

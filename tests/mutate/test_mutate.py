"""The mutation tool itself: what it changes, that watching alters nothing, and that a survivor is told."""

from __future__ import annotations

import ast
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.mutate import __main__ as tool
from tests.mutate.changes import changes_of, instrumented
from tests.mutate.selection import TESTS, folders_of

SOURCE = b'''"""A page of code."""
from __future__ import annotations
import math

def f(x, y=2, *, eps: float = 1e-3):
    """Text."""
    if x < 0:
        raise ValueError(f"negative {x - 1}")
    elif x == 9 and y: y += 1
    total = -math.sqrt(x) + eps
    for _ in range(3):
        total -= min(x, y) * pow(x, y)
    return total if not y else max(total, y, key=abs)
'''


def _texts():
    return {(c.kind, c.text) for c in changes_of("f.py", SOURCE)}


@pytest.mark.parametrize(
    "change",
    [
        ("comparison", "(x <= 0)"),
        ("statement dropped", "pass"),
        ("sign", "(math.sqrt(x))"),
        ("operator", "(-math.sqrt(x) - eps)"),
        ("one turn less", "(range(3 - 1))"),
        ("without key=", "(max(total, y))"),
        ("order of arguments", "(pow(y, x))"),
        ("name", "(max)"),
        ("negation", "(y)"),
        ("constant", "(0.002)"),
        ("and/or", "(x == 9 or y)"),
        ("branches", "(max(total, y, key=abs) if not y else total)"),
    ],
)
def test_changes(change):
    assert change in _texts()


def test_texts_and_annotations_stay():
    assert not any("negative" in text or "float" in text or "Text" in text for _, text in _texts())


def test_a_term_goes_into_the_root():
    texts = {c.text for c in changes_of("f.py", b"a = v.sqrt().add_(eps)\nb = sqrt(v) + eps\n")}
    assert {"((v + eps).sqrt())", "(sqrt(v + eps))"} <= texts


def test_dims_that_are_exchanged_have_no_order():
    texts = {
        c.text for c in changes_of("f.py", b"x.transpose(a, b)\nt.transpose(x, a, b)\nx.movedim(a, b)\n")
    }
    assert texts >= {"(t.transpose(a, x, b))", "(x.movedim(b, a))"} and "(x.transpose(b, a))" not in texts


def test_watching_alters_no_result(tmp_path, monkeypatch):
    changes = dict(enumerate(changes_of("f.py", SOURCE)))
    monkeypatch.setenv("MSADAPTER_MUTATE_SEEN", str(tmp_path / "seen"))
    plain, watched = {}, {}
    exec(compile(SOURCE, "f", "exec"), plain)
    exec(compile(instrumented(SOURCE, changes), "f", "exec"), watched)
    assert watched["f"](4.0) == plain["f"](4.0)
    with pytest.raises(ValueError, match="negative -2"):
        watched["f"](-1)
    seen = {int(line.split("\t")[0]) for line in (tmp_path / "seen").read_text().splitlines()}
    assert {changes[k].kind for k in seen} >= {"comparison", "sign", "operator", "branches"}
    assert all(changes[k].at_import == (changes[k].line == 5) for k in changes)


def test_changes_of_this_project():
    for file in tool.sources_of("msadapter/optim"):
        changes = changes_of(file, tool.source(file))
        ast.parse(instrumented(tool.source(file), dict(enumerate(changes))))
    drawn = tool.draw(["msadapter/optim/adam.py"], 30, 5)
    assert drawn == tool.draw(["msadapter/optim/adam.py"], 30, 5) and len(set(drawn)) == 30


def test_selection_names_folders_that_exist():
    assert all((tool.ROOT / folder).exists() for folders in TESTS.values() for folder in folders)
    assert folders_of("msadapter/optim/adam.py") == TESTS["msadapter/optim"]
    with pytest.raises(KeyError, match="selection.py"):
        folders_of("setup.py")


def test_tests_run_file_by_file():
    """A file whose fixtures are slow comes last, with all its tests, however fast they are."""
    seconds = {"slow.py::a": 9.0, "slow.py::b": 0.1, "fast.py::b": 2.0, "fast.py::a": 1.0, "fast.py::c": 7.0}
    wanted = ["fast.py::b", "fast.py::a", "slow.py::a", "slow.py::b"]
    assert tool.in_order(set(wanted), seconds) == wanted


def test_survivors_are_told(tmp_path, monkeypatch, capsys):
    """A small project with a tested and an untested function, and one change of each kind."""
    here = Path(tool.__file__).parent
    (tmp_path / "tests/mutate").mkdir(parents=True)
    for name in ("__init__", "changes", "recorder"):
        shutil.copy(here / f"{name}.py", tmp_path / "tests/mutate")
    (tmp_path / "sums.py").write_text(
        "def tested(x):\n    return x + x\n\ndef untested(x):\n    return x * x\n"
    )
    (tmp_path / "tests/test_sums.py").write_text(
        "import sums\n\ndef test_it():\n    assert sums.tested(3) == 6\n"
    )
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    tool.source.cache_clear()
    words = ["mutate", "sums.py", "--samples", "9", "--tests", "tests"]
    monkeypatch.setattr("sys.argv", words)
    assert tool.main() == 1
    told = capsys.readouterr().out
    assert "SURVIVED sums.py:5" in told and "noticed  sums.py:2" in told
    assert "1 of 2 changes noticed (50 %)" in told
    tool.source.cache_clear()


@pytest.mark.parametrize(
    ("codes", "told"),
    [
        ([0], None),
        ([1], "exit code 1"),
        ([tool.LATE, 0], "the time limit"),
        ([tool.LATE, tool.LATE], tool.UNDECIDED),
        ([tool.LATE, 1], tool.UNDECIDED),
    ],
)
def test_a_late_end_counts_only_if_the_unchanged_code_is_in_time(tmp_path, monkeypatch, codes, told):
    change = changes_of("f.py", SOURCE)[0]
    contents, left = [], list(codes)

    def run(copy, tests, *options, limit):
        contents.append((copy / "f.py").read_bytes())
        return left.pop(0), ""

    monkeypatch.setattr(tool, "source", lambda file: SOURCE)
    monkeypatch.setattr(tool, "run_tests", run)
    assert tool.noticed(tmp_path, change, {"a"}, {"a": 1.0}) == told
    assert contents == [change.apply(SOURCE), SOURCE][: len(codes)] and not left
    assert (tmp_path / "f.py").read_bytes() == SOURCE


def test_undecided_changes_do_not_count(monkeypatch, capsys):
    monkeypatch.setattr(tool, "try_all", lambda *a: ["a test", tool.UNDECIDED, tool.UNDECIDED, None])
    monkeypatch.setattr(tool, "draw", lambda *a: changes_of("f.py", SOURCE)[:4])
    monkeypatch.setattr(tool, "source", lambda file: SOURCE)
    monkeypatch.setattr("sys.argv", ["mutate", "msadapter/optim/adam.py", "--least", "50"])
    assert tool.main() == 0
    assert "1 of 2 changes noticed (50 %), seed 0, 2 undecided" in capsys.readouterr().out

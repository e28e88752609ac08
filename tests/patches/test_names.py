"""What a next release of an upstream needs: names of torch, found by its syntax trees, and rules that drift."""

from __future__ import annotations

from pathlib import Path

import pytest

from patches import PatchError
from patches.__main__ import main
from patches.names import missing, new_names, used

SOURCE = """
import torch
import torch.nn.functional as F
from torch import nn, optim as o
from torch.nowhere import thing
from . import torch_of_ours
from numpy import linalg
try:
    from torch.perhaps import other
except ImportError:
    other = None
if hasattr(torch, "fast"):
    torch.fast()
def f(x):
    torch.cuda.Stream.more = 1
    torch.version.cuda.split(".")
    x.torch.no_name()
    linalg.norm(x)
    return F.gelu(nn.Linear(2, 2)(x)) + o.Adam + torch.fast_too(x).sum() + other
"""


def tree_of(folder: Path, source: str) -> Path:
    (folder / "megatron/core").mkdir(parents=True)
    (folder / "tests").mkdir()
    (folder / "tests/test_x.py").write_text("import torch\ntorch.only_in_tests\n")
    (folder / "megatron/core/package_info.py").write_text("MAJOR = 0\nMINOR = 99\nPATCH = 0\n")
    (folder / "megatron/core/x.py").write_text(source)
    return folder


def test_names_are_found_with_their_first_place(tmp_path: Path) -> None:
    names = used(tree_of(tmp_path, SOURCE))
    assert names["torch.nn.functional.gelu"].place == "megatron/core/x.py:19"
    assert names["torch.nowhere.thing"].place == "megatron/core/x.py:5"
    assert {
        "torch.nn.Linear",
        "torch.optim.Adam",
        "torch.version.cuda.split",
        "torch.fast_too",
    } <= names.keys()
    assert {name for name, use in names.items() if use.guarded} == {"torch.perhaps.other", "torch.fast"}
    assert not [name for name in names if "only_in_tests" in name or "more" in name or "no_name" in name]


def test_a_file_that_is_no_python(tmp_path: Path) -> None:
    with pytest.raises(PatchError, match=r"x\.py does not parse"):
        used(tree_of(tmp_path, "def f(:\n"))


OPEN, GUARDED = "torch.maybe()\n", 'if hasattr(torch, "maybe"):\n    torch.maybe()\n'


@pytest.mark.parametrize("uses", [[GUARDED, OPEN], [OPEN, GUARDED], [GUARDED, GUARDED]], ids=str)
@pytest.mark.parametrize("files", [1, 2])
def test_a_name_is_optional_if_every_use_of_it_is(tmp_path: Path, uses: list[str], files: int) -> None:
    parts = uses if files == 2 else ["".join(uses)]
    for number, part in enumerate(parts):
        (tmp_path / f"part{number}.py").write_text("import torch\n" + part)
    use = used(tmp_path)["torch.maybe"]
    assert use.guarded == (OPEN not in uses)
    assert use.place == ("part0.py:2" if uses[0] == OPEN else "part0.py:3")


def test_what_is_missing_here_is_named(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """In the whole release, and in what is new since an earlier one."""
    before = tree_of(tmp_path / "before", SOURCE)
    after = tree_of(tmp_path / "after", SOURCE + "torch.brand_new\ntorch.float32\n")
    assert main(["drift", "megatron_core", str(after)]) == 1
    told = capsys.readouterr().out
    assert "norm-under-sequence-parallel: wrong" in told and "no-parameters-in-8-bits: other version" in told
    lacking = [line.split()[0] for line in told.splitlines() if line.startswith("  torch")]
    assert lacking == [
        "torch.brand_new",
        "torch.fast_too",
        "torch.nowhere.thing",
        "torch.fast",
        "torch.perhaps.other",
    ]
    assert "torch.brand_new  megatron/core/x.py:20\n      there is no such name" in told
    assert new_names(after, before).keys() == {"torch.brand_new", "torch.float32"}
    assert missing([]) == {}

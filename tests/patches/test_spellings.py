"""Names that some file systems do not keep apart are kept apart, or refused."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest

from patches import MANIFEST, PatchError, apply, revert, verify
from patches import tree as trees
from tests.patches.toy import ENGINE, UPSTREAM, contents, forged, rule

COMPOSED, DECOMPOSED = "toy/caf\u00e9.py", "toy/cafe\u0301.py"


@pytest.fixture
def folding(monkeypatch):
    """A function that gives copies a file system which changes every name in this way."""

    def begin(change) -> None:
        def opened(path, mode="r"):
            return open(Path(path).with_name(change(Path(path).name)), mode)

        monkeypatch.setattr(trees, "open", opened, raising=False)
        monkeypatch.setattr(trees.shutil, "copystat", lambda *_: None)

    return begin


def test_names_that_differ_are_kept_apart(tree: Path, tmp_path: Path) -> None:
    """On this machine's file system. Neither a rule nor revert takes one for the other."""
    for name in ("toy/Engine.py", "toy/ENGINE.PY", COMPOSED, DECOMPOSED):
        (tree / name).write_text(name)
    out = tmp_path / "out"
    apply(UPSTREAM, [rule()], tree, out)
    wanted = {**contents(tree), "toy/engine.py": ENGINE.replace("fast", "exact").encode()}
    assert {name: raw for name, raw in contents(out).items() if name != MANIFEST} == wanted
    verify(out)
    revert(out)
    assert contents(out) == contents(tree)


@pytest.mark.parametrize(
    "names, change",
    [
        (("toy/Notes.txt", "toy/notes.txt"), str.lower),
        (("toy/stra\u00dfe", "toy/strasse"), str.casefold),
        ((COMPOSED, DECOMPOSED), lambda name: unicodedata.normalize("NFC", name)),
        ((DECOMPOSED,), lambda name: unicodedata.normalize("NFC", name)),
    ],
    ids=["case", "folding", "two normal forms", "another normal form"],
)
def test_a_file_system_that_does_not_keep_names_apart(tree, tmp_path, folding, names, change) -> None:
    """Nothing is overwritten, and no copy is made that lacks a file."""
    for name in names:
        (tree / name).write_text(name)
    before = contents(tmp_path)
    folding(change)
    with pytest.raises(PatchError, match="does not keep .* apart"):
        apply(UPSTREAM, [rule()], tree, tmp_path / "out")
    assert contents(tmp_path) == before and sorted(os.listdir(tmp_path)) == ["upstream"]


def test_a_rule_is_not_applied_to_another_spelling(tree: Path, tmp_path: Path) -> None:
    (tree / "toy/engine.py").rename(tree / "toy/Engine.py")
    with pytest.raises(PatchError, match=r"the target toy/engine\.py is missing"):
        apply(UPSTREAM, [rule()], tree, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "name",
    [
        "toy/.GIT/config",
        "toy/.g\u200cit/hooks/post-checkout",
        "\uff0egit/config",
        "GIT~1/config",
        ".git./config",
        "toy/.Git",
        "Manifest.JSON",
        "manifest.j\u017fon",
    ],
)
def test_a_second_spelling_of_a_repository_or_manifest_is_refused(tree, tmp_path, name: str) -> None:
    """In a copy on such a file system, git would run its hooks, or our manifest would overwrite a file."""
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    (tree / name).write_text("x")
    with pytest.raises(PatchError, match="some file systems take .* nothing is written"):
        apply(UPSTREAM, [rule()], tree, tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["upstream"]


def test_the_file_that_leads_to_a_repository_is_not_copied(tree: Path, tmp_path: Path) -> None:
    """A worktree of git has one. In a copy, git would work in the repository of the source."""
    (tree / ".git").write_text("gitdir: /elsewhere\n")
    (tree / "toy/manifest.json").write_text("{}")
    apply(UPSTREAM, [rule()], tree, tmp_path / "out")
    assert not (tmp_path / "out/.git").exists() and (tmp_path / "out/toy/manifest.json").exists()


@pytest.mark.parametrize("name", ["toy/Engine.py", "TOY/engine.py", "toy/engine.py/", "toy/eng\u0131ne.py"])
def test_a_manifest_with_another_spelling_of_a_file(tree: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    apply(UPSTREAM, [rule()], tree, out)
    forged(out, name)
    before = contents(out)
    for act in (verify, revert):
        with pytest.raises(PatchError, match="missing|not the name"):
            act(out)
    assert contents(out) == before

"""What the user has at a destination, or puts into a patched tree, is never lost."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from patches import MANIFEST, PatchError, apply, revert
from patches import tree as trees
from tests.patches.toy import ENGINE, UPSTREAM, contents, rule, users_folder


def users_manifest(out: Path) -> None:
    users_folder(out)
    (out / MANIFEST).write_text('{"files": {}, "name": "a web page"}')


def users_repository(out: Path) -> None:
    (out / ".git").mkdir(parents=True)
    (out / ".git/HEAD").write_text("ref: refs/heads/mine")


def users_file(out: Path) -> None:
    out.write_text("years of work")


def users_link(out: Path) -> None:
    users_folder(out.with_name("elsewhere"))
    out.symlink_to(out.with_name("elsewhere"))


def users_dangling_link(out: Path) -> None:
    out.symlink_to(out.with_name("nowhere"))


NOT_OURS = (
    users_folder,
    users_manifest,
    users_repository,
    users_file,
    users_link,
    users_dangling_link,
)


@pytest.mark.parametrize("make", NOT_OURS)
def test_what_apply_did_not_write_is_left_alone(tree: Path, tmp_path: Path, make) -> None:
    out = tmp_path / "out"
    make(out)
    before = contents(tmp_path)
    with pytest.raises(PatchError, match=r"out is a (folder that this program did not write|link or a file)"):
        apply(UPSTREAM, [rule()], tree, out)
    assert contents(tmp_path) == before


def user_changes_a_file(out: Path) -> None:
    (out / "toy/engine.py").write_text("my work")


def user_takes_a_name_of_the_new_tree(out: Path) -> None:
    (out / "toy/engine.py").unlink()
    (out / "toy/engine.py").mkdir()
    (out / "toy/engine.py/notes.txt").write_text("my work")


def user_adds_a_file(out: Path) -> None:
    (out / "toy/notes.txt").write_text("my work")


def user_adds_a_repository(out: Path) -> None:
    (out / ".git").mkdir()
    (out / ".git/config").write_text("my work")


def user_adds_a_file_in_a_cache(out: Path) -> None:
    (out / "toy/__pycache__").mkdir()
    (out / "toy/__pycache__/notes.txt").write_text("my work")


def user_adds_compiled_python(out: Path) -> None:
    (out / "toy/only.pyc").write_bytes(b"my work")


CHANGED = (user_changes_a_file, user_takes_a_name_of_the_new_tree)
ADDED = (
    user_adds_a_file,
    user_adds_a_repository,
    user_adds_a_file_in_a_cache,
    user_adds_compiled_python,
)


@pytest.mark.parametrize("act", CHANGED)
@pytest.mark.parametrize("how", ["apply", "revert"])
def test_a_tree_that_the_user_changed_is_kept_beside(
    tree: Path, tmp_path: Path, act, how: str, capsys
) -> None:
    out = tmp_path / "out"
    apply(UPSTREAM, [rule()], tree, out)
    act(out)
    before = contents(out)
    if how == "apply":
        apply(UPSTREAM, [rule()], tree, out)
        assert "# exact" in (out / "toy/engine.py").read_text()
    else:
        try:
            revert(out)
        except PatchError:
            assert contents(out) == before
            return
    (aside,) = tmp_path.glob("out.changed-*")
    assert contents(aside) == before
    assert str(aside) in capsys.readouterr().err


@pytest.mark.parametrize("act", ADDED)
@pytest.mark.parametrize("how", ["apply", "revert"])
def test_what_the_user_added_keeps_its_place(tree: Path, tmp_path: Path, act, how: str, capsys) -> None:
    out = tmp_path / "out"
    apply(UPSTREAM, [rule()], tree, out)
    fresh = contents(out)
    act(out)
    mine = {name: text for name, text in contents(out).items() if name not in fresh}
    assert list(mine.values()) == [b"my work"]
    apply(UPSTREAM, [rule()], tree, out) if how == "apply" else revert(out)
    found = contents(out)
    assert mine.items() <= found.items() and found.keys() - mine.keys() <= fresh.keys()
    assert sorted(os.listdir(tmp_path)) == ["out", "upstream"]
    assert "keeps what is not upstream's" in capsys.readouterr().err


@pytest.mark.parametrize("folder", ["toy", "toy/part", "toy/part/deep"])
def test_what_the_user_added_is_not_carried_through_a_link(tree: Path, tmp_path: Path, folder: str) -> None:
    """A link of the new tree may lead to files that belong to another user."""
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    elsewhere.mkdir()
    old, new = tmp_path / "old", tmp_path / "new"
    (old / folder).mkdir(parents=True)
    (old / folder / "notes.txt").write_text("my work")
    (new / folder).parent.mkdir(parents=True)
    (new / folder).symlink_to(elsewhere)
    os.rename(old, out)
    trees.replace_tree(new, out, {})
    (aside,) = tmp_path.glob("out.changed-*")
    assert (aside / folder / "notes.txt").read_text() == "my work"
    assert not os.listdir(elsewhere) and (out / folder).is_symlink()


def test_what_the_user_added_stays_if_the_same_tree_was_changed(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    apply(UPSTREAM, [rule()], tree, out)
    user_changes_a_file(out)
    (out / "checkpoints").mkdir()
    (out / "checkpoints/step").write_text("hours")
    apply(UPSTREAM, [rule()], tree, out)
    assert (out / "checkpoints/step").read_text() == "hours"
    (aside,) = tmp_path.glob("out.changed-*")
    assert (aside / "toy/engine.py").read_text() == "my work" and not (aside / "checkpoints").exists()


def test_an_unchanged_tree_is_replaced_and_an_empty_folder_filled(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    apply(UPSTREAM, [rule()], tree, out)
    (out / "toy/__pycache__").mkdir()
    (out / "toy/__pycache__/engine.cpython-311.pyc").write_bytes(b"python's own")
    apply(UPSTREAM, [], tree, out)
    assert sorted(os.listdir(tmp_path)) == ["out", "upstream"]
    assert (out / "toy/engine.py").read_text() == ENGINE


@pytest.mark.parametrize(
    "place", [".", "..", "toy", "toy/new/deep", "new", "link", "link/new", "../link/toy"]
)
def test_source_and_destination_that_contain_one_another_are_refused(
    tree: Path, tmp_path: Path, place
) -> None:
    (tmp_path / "link").symlink_to(tree)
    before = contents(tmp_path)
    destination = tmp_path / place if place.startswith("link") else tree / place
    with pytest.raises(PatchError, match="contain one another|is a link"):
        apply(UPSTREAM, [rule()], tree, destination)
    with pytest.raises(PatchError, match="contain one another|is a link"):
        apply(UPSTREAM, [rule()], tmp_path / "link", destination)
    assert contents(tmp_path) == before and sorted(os.listdir(tmp_path)) == ["link", "upstream"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_one_folder_under_two_names_is_refused(tree: Path, tmp_path: Path) -> None:
    other = tmp_path / "bound"
    other.mkdir()
    if subprocess.run(["mount", "--bind", tree, other], capture_output=True).returncode:
        pytest.skip("this machine does not allow mounts")
    try:
        with pytest.raises(PatchError, match="contain one another"):
            apply(UPSTREAM, [rule()], tree, other / "new")
    finally:
        subprocess.run(["umount", other], check=True)


@pytest.mark.parametrize("fails", [{2}, {2, 3}])
def test_a_rename_that_fails_half_way(tree: Path, tmp_path: Path, monkeypatch, fails: set[int]) -> None:
    """If the second rename fails, the old tree is back in its place, or the error says where it is."""
    out = tmp_path / "out"
    apply(UPSTREAM, [rule()], tree, out)
    before, calls, plain = contents(out), [], os.rename

    def rename(old, new) -> None:
        calls.append(1)
        if len(calls) in fails:
            raise OSError(5, "Input/output error", str(new))
        plain(old, new)

    monkeypatch.setattr(trees.os, "rename", rename)
    with pytest.raises((OSError, PatchError)) as caught:
        apply(UPSTREAM, [], tree, out)
    if len(fails) == 1:
        assert contents(out) == before and sorted(os.listdir(tmp_path)) == ["out", "upstream"]
    else:
        (kept,) = tmp_path.glob("out.changed-*")
        assert str(kept) in str(caught.value) and contents(kept) == before

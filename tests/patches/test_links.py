"""No link leads out of a copy, and no tree that changes, is hidden or cannot be read is taken for a whole one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from patches import PatchError, apply, revert, verify
from patches import tree as trees
from patches.__main__ import main
from tests.patches.toy import ENGINE, UPSTREAM, contents, rule, sha, users_folder


def absolute(tree: Path) -> str:
    return str(tree / "toy/version.txt")


LINKS = {
    "absolute, into the source": (absolute, "names the absolute path"),
    "absolute, elsewhere": (lambda tree: "/etc/passwd", "names the absolute path"),
    "up and out": (lambda tree: "../../secret", "link out of the tree"),
    "up through the tree's own name": (
        lambda tree: f"../../{tree.name}/toy/version.txt",
        "link out of the tree",
    ),
    "through another link": (lambda tree: "up/../secret", "link out of the tree"),
    "to itself": (lambda tree: "odd", "in a circle"),
    "to nothing, outside": (lambda tree: "../../nothing", "link out of the tree"),
}


@pytest.mark.parametrize("where, message", LINKS.values(), ids=LINKS)
def test_links_that_leave_the_copy_are_refused(tree: Path, tmp_path: Path, where, message: str) -> None:
    (tmp_path / "secret").write_text("secret")
    if where(tree).startswith("up/"):
        (tree / "toy/up").symlink_to("..")
    (tree / "toy/odd").symlink_to(where(tree))
    before = contents(tmp_path)
    with pytest.raises(PatchError, match=message):
        apply(UPSTREAM, [rule()], tree, tmp_path / "out")
    assert contents(tmp_path) == before
    assert main(["plan", "megatron_core", str(tree)]) == 1  # an error, not a traceback


@pytest.mark.parametrize("folder", [False, True])
def test_a_rule_does_not_write_through_a_link(tree: Path, tmp_path: Path, folder: bool) -> None:
    if folder:
        (tree / "alias").symlink_to("toy")
        target = "alias/engine.py"
    else:
        (tree / "toy/alias.py").symlink_to("engine.py")
        target = "toy/alias.py"
    with pytest.raises(PatchError, match="reached through the link"):
        apply(UPSTREAM, [rule(target)], tree, tmp_path / "out")
    assert (tree / "toy/engine.py").read_text() == ENGINE and not (tmp_path / "out").exists()


def test_a_version_file_that_leads_out_or_is_no_text(tree: Path, tmp_path: Path) -> None:
    (tree / "toy/version.txt").write_bytes(b"\xff1.4")
    with pytest.raises(PatchError, match="not UTF-8"):
        apply(UPSTREAM, [], tree, tmp_path / "out")
    (tree / "toy/version.txt").unlink()
    (tmp_path / "version").write_text("1.4")
    (tree / "toy/version.txt").symlink_to("../../version")
    with pytest.raises(PatchError, match="out of the tree"):
        apply(UPSTREAM, [], tree, tmp_path / "out")


def test_a_source_that_changes_meanwhile(tree: Path, tmp_path: Path, monkeypatch) -> None:
    """The source changes after it was checked: a file becomes a link or gets other contents."""
    from patches import manager

    plain = manager.copy

    def swapped(source, new, found):
        (source / "toy/engine.py").unlink()
        (source / "toy/engine.py").symlink_to(source / "toy/version.txt")
        return plain(source, new, found)

    monkeypatch.setattr(manager, "copy", swapped)
    with pytest.raises(PatchError, match="names the absolute path"):
        apply(UPSTREAM, [rule()], tree, tmp_path / "out")
    assert (tree / "toy/version.txt").read_text() == "1.4\n"
    (tree / "toy/engine.py").unlink()
    (tree / "toy/engine.py").write_text(ENGINE)

    def edited(source, new, found):
        (source / "toy/engine.py").write_text("speed = 2\n")
        return plain(source, new, found)

    monkeypatch.setattr(manager, "copy", edited)
    with pytest.raises(PatchError, match="was changed while it was copied"):
        apply(UPSTREAM, [rule()], tree, tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["upstream"]


def test_a_destination_that_appears_meanwhile(tree: Path, tmp_path: Path, monkeypatch) -> None:
    from patches import manager

    plain, out = manager.copy, tmp_path / "out"

    def slow(source, new, found):
        users_folder(out)
        return plain(source, new, found)

    monkeypatch.setattr(manager, "copy", slow)
    with pytest.raises(PatchError, match="out"):
        apply(UPSTREAM, [rule()], tree, out)
    assert contents(out) == {"thesis.txt": b"years of work"}
    assert sorted(os.listdir(tmp_path)) == ["out", "upstream"]


def test_what_is_behind_a_link_is_not_hashed(tree: Path, tmp_path: Path) -> None:
    """At any depth: the file belongs to another tree, or is another file of this one."""
    (tree / "toy/deep/er").mkdir(parents=True)
    (tree / "toy/deep/er/x.py").write_text("x")
    (tree / "top").symlink_to("toy")
    (tree / "toy/deep/loop").symlink_to("er")
    names = ["toy/engine.py", "toy/deep/er/x.py", "top", "top/engine.py", "top/deep/er/x.py", "toy/deep/loop",
             "toy/deep/loop/x.py", "toy/absent.py"]  # fmt: skip
    found = trees.hashes(tree, names)
    assert sorted(found) == ["top", "toy/deep/er/x.py", "toy/deep/loop", "toy/engine.py"]
    assert found["toy/engine.py"] == sha(ENGINE) and found["top"] == sha("toy")


def test_names_that_are_no_text(tree: Path, tmp_path: Path) -> None:
    """File names and link targets that are not valid text are copied, hashed and verified."""
    name = os.fsdecode(b"toy/b\xfccher")
    (tree / name).write_text("x")
    (tree / "toy/line\nbreak").write_text("x")
    (tree / "toy/link").symlink_to(os.fsdecode(b"b\xfccher"))
    apply(UPSTREAM, [rule()], tree, tmp_path / "out")
    verify(tmp_path / "out")
    revert(tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tree)


@pytest.fixture
def closed(monkeypatch) -> str:
    """The name of folders that the system does not let anyone list, root included."""
    listed = os.scandir

    def scandir(path="."):
        if Path(os.fsdecode(path)).name == "closed":
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    return "closed"


@pytest.mark.parametrize(
    "look",
    [
        lambda tree, out: apply(UPSTREAM, [rule()], tree, out),
        lambda tree, out: trees.files_of(tree),
        lambda tree, out: list(trees._entries(tree)),
        lambda tree, out: trees.untracked(tree, ["toy/closed/known.py"]),
        lambda tree, out: trees.strangers_in(tree, {}),
    ],
    ids=["apply", "files_of", "entries", "untracked", "strangers_in"],
)
def test_a_folder_that_cannot_be_read_is_not_an_empty_one(
    tree: Path, tmp_path: Path, closed: str, look
) -> None:
    """A copy would lack its files, and what the user keeps in it would count as nothing."""
    (tree / "toy" / closed).mkdir()
    with pytest.raises(PatchError, match="closed cannot be read: Permission denied"):
        look(tree, tmp_path / "out")
    assert not (tmp_path / "out").exists()

"""The patch manager never loses a file of the user, and no name in a tree or manifest leads out of the tree."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import unicodedata
import zlib
from pathlib import Path

import pytest

from patches import MANIFEST, Patch, PatchError, Upstream, apply, revert, verify
from patches import tree as trees
from patches.__main__ import main
from patches.edits import replace
from patches.history import changed_lines, diff, report

ROOT = Path(__file__).resolve().parents[2]
ENGINE = "speed = 1  # fast\n"
UPSTREAM = Upstream("toy", "toy/version.txt", lambda text: text.strip(), since="1.2", before="2.0")


def sha(content: str | bytes) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def rule(target: str = "toy/engine.py") -> Patch:
    return Patch(
        id="speed", target=target, reason="for the test", reason_class="device", since="1.0", before="2.0",
        fingerprints=(sha(ENGINE),), edit=replace("# fast", "# exact"),
    )  # fmt: skip


def contents(folder: Path) -> dict[str, bytes | str]:
    return {
        path.relative_to(folder).as_posix(): os.readlink(path) if path.is_symlink() else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


# ---- what stands at the destination


def users_folder(out: Path) -> None:
    out.mkdir()
    (out / "thesis.txt").write_text("years of work")


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
    """A link of the new tree may lead to files that belong to somebody else."""
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
        pytest.skip("this machine lets nobody mount")
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


# ---- links


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


# ---- names that some file systems do not keep apart


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


# ---- manifests of strangers


def forged(out: Path, name: str, text: bytes = b"pwned") -> None:
    """Write a manifest with the original of another file. Everything else in it is correct."""
    manifest = json.loads((out / MANIFEST).read_text())
    manifest["originals"][name] = base64.b85encode(zlib.compress(text)).decode()
    manifest["files"].setdefault(name, sha("x"))
    manifest["patches"].append(
        {**manifest["patches"][0], "id": "forged", "target": name, "sha256_before": sha(text)}
    )
    (out / MANIFEST).write_text(json.dumps(manifest))


NAMES = [
    "../victim",
    "/{outside}/victim",
    "toy/../../victim",
    "",
    ".",
    "toy//engine.py",
    "./../victim",
    "toy/\0x",
    "toy/..",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_manifest_that_names_a_file_outside(tree: Path, tmp_path: Path, name: str, capsys) -> None:
    out = tmp_path / "out"
    apply(UPSTREAM, [rule()], tree, out)
    (tmp_path / "victim").write_text("x")
    forged(out, name.replace("/{outside}", str(tmp_path)))
    before = contents(tmp_path)
    for act in (revert, verify, diff, changed_lines, lambda tree: report(tree, tmp_path / "none")):
        with pytest.raises(PatchError, match="not the name of a file inside the tree"):
            act(out)
    assert main(["revert", str(out)]) == 1
    assert "not the name of a file" in capsys.readouterr().err
    assert contents(tmp_path) == before


@pytest.mark.parametrize("target", ["..", "{outside}", "../upstream"])
def test_a_manifest_that_names_a_file_behind_a_link(tree: Path, tmp_path: Path, target: str) -> None:
    """The tree contains a link, which the manifest lists. Still nothing is written or read through it."""
    out = tmp_path / "out"
    apply(UPSTREAM, [rule()], tree, out)
    (tmp_path / "victim").write_text("x")
    where = target.format(outside=tmp_path)
    (out / "way").symlink_to(where)
    manifest = json.loads((out / MANIFEST).read_text())
    manifest["files"]["way"] = sha(where)
    (out / MANIFEST).write_text(json.dumps(manifest))
    forged(out, "way/victim")
    before = contents(tmp_path)
    for act in (revert, diff, changed_lines):
        with pytest.raises(PatchError):
            act(out)
    assert contents(tmp_path) == before


def test_a_link_inside_the_tree_is_no_way_either(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (tree / "toy/alias.py").symlink_to("version.txt")
    apply(UPSTREAM, [rule()], tree, out)
    forged(out, "toy/alias.py")
    with pytest.raises(PatchError, match="reached through the link"):
        revert(out)
    assert (out / "toy/version.txt").read_text() == "1.4\n"


BROKEN = {
    "an original of other bytes": lambda m: m["originals"].update(
        {"toy/engine.py": base64.b85encode(zlib.compress(b"import os\n")).decode()}
    ),
    "an original cut off": lambda m: m["originals"].update(
        {"toy/engine.py": m["originals"]["toy/engine.py"][:-10]}
    ),
    "an original that is no text": lambda m: m["originals"].update({"toy/engine.py": 3}),
    "an original that nobody changed": lambda m: m.update(patches=[]),
    "no original": lambda m: m.update(originals={}),
    "no table of originals": lambda m: m.pop("originals"),
    "originals that are a list": lambda m: m.update(originals=[]),
    "rules that are a text": lambda m: m.update(patches="speed"),
    "a rule without a target": lambda m: m["patches"][0].pop("target"),
    "a target that is a list": lambda m: m["patches"][0].update(target=[]),
    "a sha256 before the rule that is a list": lambda m: m["patches"][0].update(sha256_before=[]),
    "a sha256 before the rule that is absent": lambda m: m["patches"][0].pop("sha256_before"),
    "a content of a file that is a number": lambda m: m["files"].update({"toy/version.txt": 3}),
    "an origin that is a text": lambda m: m.update(origin="here"),
}


@pytest.mark.parametrize("damage", BROKEN.values(), ids=BROKEN)
def test_verify_covers_the_whole_manifest(tree: Path, tmp_path: Path, damage) -> None:
    out = tmp_path / "out"
    apply(UPSTREAM, [rule()], tree, out)
    manifest = json.loads((out / MANIFEST).read_text())
    damage(manifest)
    (out / MANIFEST).write_text(json.dumps(manifest))
    before = contents(out)
    for act in (verify, revert):
        with pytest.raises(PatchError):
            act(out)
    assert contents(out) == before


@pytest.mark.parametrize("text", ["[" * 100_000, "[]", "null", '{"files": []}', "\x00"])
def test_a_manifest_that_is_none(tree: Path, tmp_path: Path, text: str) -> None:
    out = tmp_path / "out"
    apply(UPSTREAM, [rule()], tree, out)
    (out / MANIFEST).write_text(text)
    with pytest.raises(PatchError, match="cannot be read"):
        verify(out)


def test_an_original_that_unpacks_without_end(tree: Path, tmp_path: Path, monkeypatch) -> None:
    from patches import manager

    out = tmp_path / "out"
    apply(UPSTREAM, [rule()], tree, out)
    monkeypatch.setattr(manager, "LARGEST", 100_000)
    bomb = base64.b85encode(zlib.compress(b"\0" * 10_000_000)).decode()
    assert len(bomb) < 100_000
    with pytest.raises(PatchError, match="has more than"):
        manager.original_of({"originals": {"x": bomb}}, "x")


def test_a_manifest_that_is_a_link(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    apply(UPSTREAM, [rule()], tree, out)
    shutil.move(out / MANIFEST, tmp_path / "elsewhere.json")
    (out / MANIFEST).symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(PatchError, match="not a regular file"):
        verify(out)


@pytest.mark.parametrize("command", ["verify", "revert"])
def test_a_pipe_in_a_patched_tree_is_not_read(tree: Path, tmp_path: Path, command: str) -> None:
    """Reading a pipe would wait for ever, so a child process tries."""
    out = tmp_path / "out"
    apply(UPSTREAM, [rule()], tree, out)
    (out / "toy/engine.py").unlink()
    os.mkfifo(out / "toy/engine.py")
    words = [sys.executable, "-m", "patches", command, str(out)]
    answer = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=20)
    assert answer.returncode == 1
    assert "engine.py is neither a file nor a folder nor a link" in answer.stderr


@pytest.mark.parametrize("text", ["\ud800", "\x1b[2J", "a\nb", 3, None])
@pytest.mark.parametrize("key", ["upstream", "version", "id"])
def test_texts_of_a_manifest_that_cannot_be_printed(tree: Path, tmp_path: Path, key: str, text) -> None:
    out = tmp_path / "out"
    manifest = apply(UPSTREAM, [rule()], tree, out)
    (manifest["patches"][0] if key == "id" else manifest)[key] = text
    (out / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(PatchError, match="must be printable strings"):
        verify(out)


def test_a_version_file_that_is_too_large(tree: Path, tmp_path: Path) -> None:
    os.truncate(tree / "toy/version.txt", 1 << 34)  # it has no blocks, only a size
    with pytest.raises(PatchError, match="version.txt has more than"):
        apply(UPSTREAM, [rule()], tree, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_full_disk_is_one_line(tree: Path, tmp_path: Path) -> None:
    """A limit on the size of files simulates the full disk. It gives the same error in the same call."""
    info = tree / "megatron/core/package_info.py"
    info.parent.mkdir(parents=True)
    info.write_text("MAJOR = 0\nMINOR = 99\nPATCH = 0\n")
    (tree / "large").write_bytes(b"x" * 2_000_000)
    program = (
        "import resource, signal, sys; from patches.__main__ import main; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000)); sys.exit(main(sys.argv[1:]))"
    )
    words = [sys.executable, "-c", program, "apply", "megatron_core", str(tree), str(tmp_path / "out")]
    answer = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert answer.returncode == 1 and "File too large" in answer.stderr and "Traceback" not in answer.stderr
    assert not (tmp_path / "out").exists() and sorted(os.listdir(tmp_path)) == ["upstream"]

"""The patch manager with small upstreams that are made here."""

import hashlib
import os
import shutil
from dataclasses import replace as replace_in
from pathlib import Path

import pytest

from patches import MANIFEST, Patch, PatchError, Upstream, added, apply, discover, upstreams, verify
from patches.__main__ import main, newer_words
from patches.edits import chain, codemod, insert_after, replace

ENGINE = "import math\n\n\ndef speed(x):\n    return math.sqrt(x)  # fast\n"
FILES = {"toy/version.txt": b"1.4.0rc1\n", "toy/windows.py": b"x = 1\r\ny = 2\r\n"}
UPSTREAM = Upstream("toy", "toy/version.txt", lambda text: text.strip(), since="1.2", before="2.0")


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def rule(edit=None, **changes) -> Patch:
    fields = {
        "id": "speed",
        "target": "toy/engine.py",
        "reason": "no fast path here",
        "reason_class": "environment",
        "since": "1.0",
        "before": "2.0",
        "fingerprints": (sha(ENGINE),),
        "edit": edit or replace("# fast", "# exact"),
    }
    return Patch(**(fields | changes))


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def test_a_copy_is_changed_and_the_source_is_not(tree: Path, tmp_path: Path) -> None:
    before = contents(tree)
    manifest = apply(UPSTREAM, [rule()], tree, tmp_path / "out", origin={"from": "here"})
    assert contents(tree) == before
    assert (tmp_path / "out/toy/engine.py").read_text() == ENGINE.replace("# fast", "# exact")
    assert manifest["version"] == "1.4.0rc1" and manifest["origin"] == {"from": "here"}
    assert manifest["patches"][0]["sha256_before"] == sha(ENGINE)
    assert manifest["patches"][0]["sha256_after"] == manifest["files"]["toy/engine.py"]
    assert verify(tmp_path / "out") == manifest
    keys = ["manifest_version", "upstream", "version", "origin", "patches", "files", "originals"]
    assert list(manifest) == keys and (manifest["manifest_version"], manifest["upstream"]) == (2, "toy")


def test_the_same_input_gives_the_same_tree(tree: Path, tmp_path: Path) -> None:
    apply(UPSTREAM, [rule()], tree, tmp_path / "one")
    apply(UPSTREAM, [rule()], tree, tmp_path / "two")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_a_converted_tree_is_no_source(tree: Path, tmp_path: Path) -> None:
    apply(UPSTREAM, [rule()], tree, tmp_path / "out")
    with pytest.raises(PatchError, match="already patched"):
        apply(UPSTREAM, [rule()], tmp_path / "out", tmp_path / "again")


REFUSED = {
    "target missing": (rule(target="toy/gone.py"), "missing"),
    "other fingerprint": (rule(fingerprints=(sha("other"),)), "not the file that the rule was written for"),
    "fragment absent": (rule(replace("# slow", "")), "0 times"),
    "fragment twice": (rule(replace("math", "cmath")), "2 times"),
    "edit without effect": (rule(lambda source: source), "changes nothing"),
    "edit that breaks the syntax": (rule(replace("return", "return return")), "does not compile"),
}


@pytest.mark.parametrize("patch, message", REFUSED.values(), ids=REFUSED)
def test_a_rule_that_fails_leaves_nothing(tree: Path, tmp_path: Path, patch: Patch, message: str) -> None:
    good = rule(
        id="first",
        target="toy/windows.py",
        edit=replace("x = 1", "x = 3"),
        fingerprints=(hashlib.sha256(b"x = 1\r\ny = 2\r\n").hexdigest(),),
    )
    with pytest.raises(PatchError, match=message):
        apply(UPSTREAM, [good, patch], tree, tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["upstream"]


def test_a_failure_keeps_the_earlier_result(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    apply(UPSTREAM, [rule()], tree, out)
    before = contents(out)
    with pytest.raises(PatchError):
        apply(UPSTREAM, [rule(replace("absent", ""))], tree, out)
    assert contents(out) == before
    apply(UPSTREAM, [rule(replace("# fast", "# new"))], tree, out)
    assert "# new" in (out / "toy/engine.py").read_text()
    assert sorted(os.listdir(tmp_path)) == ["out", "upstream"]


def test_line_ends_survive(tree: Path, tmp_path: Path) -> None:
    patch = rule(
        replace("x = 1", "x = 3"),
        target="toy/windows.py",
        fingerprints=(hashlib.sha256(b"x = 1\r\ny = 2\r\n").hexdigest(),),
    )
    apply(UPSTREAM, [patch], tree, tmp_path / "out")
    assert (tmp_path / "out/toy/windows.py").read_bytes() == b"x = 3\r\ny = 2\r\n"


@pytest.mark.parametrize("version", ["1.1.9", "2.0", "2.0.1", "10.0"])
def test_versions_outside_the_range(tree: Path, tmp_path: Path, version: str) -> None:
    (tree / "toy/version.txt").write_text(version)
    with pytest.raises(PatchError, match="the rules are for versions"):
        apply(UPSTREAM, [], tree, tmp_path / "out")


def test_a_rule_of_another_version_is_left_out(tree: Path, tmp_path: Path) -> None:
    manifest = apply(UPSTREAM, [rule(since="1.5"), rule(before="1.4")], tree, tmp_path / "out")
    assert manifest["patches"] == []


def test_another_tree_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(PatchError, match="not a toy source tree"):
        apply(UPSTREAM, [], tmp_path / "empty", tmp_path / "out")


@pytest.mark.parametrize(
    "target", ["../outside.py", "/etc/passwd", "toy/../../x.py", "C:x.py", "toy\\x.py", ""]
)
def test_targets_outside_the_tree_are_refused(target: str) -> None:
    with pytest.raises(PatchError, match="inside the tree"):
        rule(target=target)


def test_links_out_of_the_tree_are_refused(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text("x = 1\n")
    (tree / "toy" / "link.py").symlink_to(tmp_path / "secret.py")
    with pytest.raises(PatchError, match="link out of the tree"):
        apply(UPSTREAM, [rule(target="toy/link.py")], tree, tmp_path / "out")
    assert (tmp_path / "secret.py").read_text() == "x = 1\n"


@pytest.mark.parametrize("changes", [{"reason": " "}, {"reason_class": "because"}, {"fingerprints": ()}])
def test_a_rule_must_say_why_and_for_what(changes: dict) -> None:
    with pytest.raises(PatchError, match="a rule needs"):
        rule(**changes)


def test_verify_finds_every_kind_of_damage(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    apply(UPSTREAM, [rule()], tree, out)
    good = tmp_path / "good"
    shutil.copytree(out, good)

    def damage(what: str, act) -> None:
        shutil.rmtree(out)
        shutil.copytree(good, out)
        act()
        with pytest.raises(PatchError, match=what):
            verify(out)

    damage("missing toy/engine.py", lambda: (out / "toy/engine.py").unlink())
    damage("changed toy/engine.py", lambda: (out / "toy/engine.py").write_text("x"))
    damage("not a complete tree", lambda: (out / MANIFEST).unlink())
    damage("cannot be read", lambda: (out / MANIFEST).write_text((good / MANIFEST).read_text()[:50]))
    shutil.rmtree(out)
    shutil.copytree(good, out)
    (out / "toy/__pycache__").mkdir()
    (out / "toy/__pycache__/engine.cpython-311.pyc").write_bytes(b"")
    verify(out)


def test_what_a_run_adds_is_listed_and_no_damage(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    apply(UPSTREAM, [rule()], tree, out)
    assert added(out) == []
    (out / "dataset/deep").mkdir(parents=True)
    (out / "dataset/deep/text.bin").write_bytes(b"x")
    (out / "toy/log.txt").write_text("x")
    os.mkfifo(out / "toy/pipe")  # reading it would never end
    (out / "weights").symlink_to("/large/disk")
    assert added(out) == ["dataset/", "toy/log.txt", "toy/pipe", "weights"]
    verify(out)


def test_versions_after_the_known_ones(tree: Path, tmp_path: Path, capsys) -> None:
    """They are accepted if the upstream says so. A rule that ends earlier is not tried, and one that drifted is named."""
    (tree / "toy/version.txt").write_text("2.1\n")
    newer = replace_in(UPSTREAM, newer=True)
    with pytest.raises(PatchError, match="holds toy 2.1"):
        apply(UPSTREAM, [rule()], tree, tmp_path / "out")
    manifest = apply(newer, [rule(), rule(id="old", target="none.py", before="1.9")], tree, tmp_path / "out")
    assert [one["id"] for one in manifest["patches"]] == ["speed"] and manifest["drifted"] == []
    assert "all rules of the newest one fit" in newer_words(verify(tmp_path / "out"))
    (tree / "toy/engine.py").write_text(ENGINE + "# more\n")
    manifest = apply(newer, [rule()], tree, tmp_path / "out")
    assert manifest["patches"] == [] and manifest["drifted"] == ["speed"]
    assert "left out: speed" in newer_words(manifest)


def test_edits() -> None:
    assert chain(insert_after("a\n", "b\n"), replace("b", "c"))("a\n") == "a\nc\n"
    assert replace("a", "b", count=2)("a a") == "b b"
    with pytest.raises(PatchError, match="0 times"):
        insert_after("z", "b")("a")


def test_codemod_keeps_what_it_does_not_touch() -> None:
    libcst = pytest.importorskip("libcst")

    class Rename(libcst.CSTTransformer):
        def leave_Name(self, original_node, updated_node):
            return updated_node.with_changes(value="cmath") if updated_node.value == "math" else updated_node

    assert codemod(Rename)(ENGINE) == ENGINE.replace("math", "cmath")
    with pytest.raises(PatchError, match="nothing to change"):
        codemod(Rename)("x  =  1 # as it was\n")


def test_every_shipped_rule_is_well_formed() -> None:
    assert "megatron_core" in upstreams()
    for name in upstreams():
        upstream, patches = discover(name)
        assert upstream.name == name
        assert len({patch.id for patch in patches}) == len(patches)
    with pytest.raises(PatchError, match="there is no upstream"):
        discover("nothing")


@pytest.mark.parametrize(
    "text, version", [("MAJOR = 0\nMINOR = 12\nPATCH = 1\n", "0.12.1"), ("MAJOR = 0\n", None)]
)
def test_megatron_version(text: str, version: str | None) -> None:
    upstream, _ = discover("megatron_core")
    if version:
        assert upstream.read_version(text) == version
    else:
        with pytest.raises(PatchError, match="no MAJOR"):
            upstream.read_version(text)


def test_command_line(tmp_path: Path, capsys) -> None:
    info = tmp_path / "tree/megatron/core/package_info.py"
    info.parent.mkdir(parents=True)
    info.write_text("MAJOR = 0\nMINOR = 11\nPATCH = 0\n")
    assert main(["list"]) == 0 and "megatron_core" in capsys.readouterr().out
    assert main(["apply", "megatron_core", str(tmp_path / "tree"), str(tmp_path / "out")]) == 1
    assert "0.11.0" in capsys.readouterr().err
    assert main(["verify", str(tmp_path / "out")]) == 1


def test_the_shipped_rules_apply_to_a_checkout(megatron_checkout: Path, tmp_path: Path) -> None:
    manifest = apply(*discover("megatron_core"), megatron_checkout, tmp_path / "out")
    assert len(manifest["files"]) > 200
    assert verify(tmp_path / "out") == manifest

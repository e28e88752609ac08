"""A manifest from another source cannot lead to files outside of its tree, or to endless work."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from patches import MANIFEST, PatchError, apply, revert, verify
from patches.__main__ import main
from patches.history import changed_lines, diff, report
from tests.patches.toy import UPSTREAM, contents, forged, rule, sha

ROOT = Path(__file__).resolve().parents[2]

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
    "an original that is not text": lambda m: m["originals"].update({"toy/engine.py": 3}),
    "an original without a change": lambda m: m.update(patches=[]),
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
    """Reading a pipe would wait forever, so a child process tries."""
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

"""What upstream's programs are told by environment variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from megatron_ms.upstream import trees

_INFO = "MAJOR = {}\nMINOR = {}\nPATCH = {}\n"


def _checkout(folder: Path, release: str) -> trees.Trees:
    (folder / "megatron" / "training").mkdir(parents=True)
    (folder / "megatron" / "core").mkdir()
    (folder / "pretrain_gpt.py").touch()
    if release:
        text = _INFO.format(*release.split("."))
        (folder / "megatron" / "core" / "package_info.py").write_text(text)
    return trees.find([str(folder)])


@pytest.mark.parametrize(
    ("release", "asked", "told"),
    [
        ("0.12.1", None, None),
        ("0.15.0", None, "1"),
        ("0.16.1", "0", "0"),
        ("0.12.1", "1", None),
        ("", None, None),
    ],
)
def test_newer_releases_find_triton(tmp_path, monkeypatch, release, asked, told) -> None:
    """They import it before anything else, and the user's own variable counts."""
    monkeypatch.delenv("MSADAPTER_TRITON", raising=False)
    if asked is not None:
        monkeypatch.setenv("MSADAPTER_TRITON", asked)
    found = _checkout(tmp_path / "tree", release)
    assert trees.version(found) == (release or trees.UNKNOWN)
    given = found.environment("cuda", 2)
    assert given.get("MSADAPTER_TRITON") == told
    assert given["MSADAPTER_TRANSFORMER_ENGINE"] == "1" and given["MSADAPTER_DEVICE"] == "cuda"


def test_a_tree_with_the_rules_of_patches_needs_no_transformer_engine(tmp_path) -> None:
    found = _checkout(tmp_path / "tree", "0.12.1")
    (found.programs / trees.MANIFEST).touch()
    assert "MSADAPTER_TRANSFORMER_ENGINE" not in found.environment("cpu", 1)

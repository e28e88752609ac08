"""What upstream's programs are told by environment variables."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from megatron_ms.errors import UserError
from megatron_ms.upstream import flags, trees

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


def test_where_flags_are_kept_without_a_home(monkeypatch) -> None:
    """A container may run as a user whom the system does not know."""
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/ada")
    assert flags.cache() == Path("/home/ada/.cache/msadapter/megatron_ms")
    monkeypatch.setattr(
        os.path, "expanduser", lambda path: path
    )  # what it does where HOME and user are unknown
    with pytest.raises(UserError, match="set HOME, or XDG_CACHE_HOME"):
        flags.cache()
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert flags.cache() == Path("/caches/msadapter/megatron_ms")


def test_a_feature_may_look_at_the_command_line_while_it_registers(tmp_path) -> None:
    """One of MindSpeed-LLM does. Flags that are registered after it are flags too."""
    (tmp_path / "megatron" / "training").mkdir(parents=True)
    (tmp_path / "pretrain_gpt.py").write_text(
        "import argparse\n"
        "def register_args(parser):\n"
        "    parser.add_argument('--framework')\n"
        "    assert parser.parse_known_args()[0].framework is None\n"
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('--num-layers', type=int)\n"
        "register_args(parser)\n"
        "parser.add_argument('--later', action='store_true')\n"
        "parser.parse_args()\n"
    )
    found = trees.find([str(tmp_path)])
    assert {name for one in flags._ask(found, found.program("pretrain_gpt.py")) for name in one["names"]} == {
        "--num-layers",
        "--framework",
        "--later",
    }

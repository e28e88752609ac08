"""MindSpeed-LLM's trees as auto_convert.sh lays them out, from checkouts that variables name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from megatron_ms.convert import packages, sources
from tests.conftest import ROOT

_TREES = {
    "MindSpeed-LLM": "MSADAPTER_MINDSPEED_LLM",
    "MindSpeed": "MSADAPTER_MINDSPEED",
    "Megatron-LM": "MSADAPTER_MEGATRON",
}


def laid_out(folder: Path) -> Path:
    """A folder with links to the checkouts of MindSpeed-LLM 2.3.0, beside the packages that its tools import."""
    release = sources.release_of("llm", "2.3.0")
    home = folder / f"llm-{release.number}"
    home.mkdir(parents=True)
    for name, variable in _TREES.items():
        if not os.environ.get(variable):
            pytest.skip(f"needs a checkout of {name}: set {variable} to its path")
        (home / name).symlink_to(Path(os.environ[variable]).resolve())
    build = Path(os.environ.get("MSADAPTER_BUILD", ROOT / "build"))
    held = Path(os.environ.get("MSADAPTER_LLM_PACKAGES", packages.folder_of(build, release)))
    if not (held / "transformers").is_dir():
        pytest.skip(f"needs the packages of {home.name} in {held}, or where MSADAPTER_LLM_PACKAGES says")
    packages.folder_of(folder, release).symlink_to(held.resolve())
    return home

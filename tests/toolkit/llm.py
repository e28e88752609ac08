"""MindSpeed-LLM's trees as auto_convert.sh lays them out, from checkouts that variables name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conftest import ROOT

_TREES = {
    "MindSpeed-LLM": "MSADAPTER_MINDSPEED_LLM",
    "MindSpeed": "MSADAPTER_MINDSPEED",
    "Megatron-LM": "MSADAPTER_MEGATRON",
}


def laid_out(folder: Path) -> Path:
    """A folder with links to the checkouts and to the packages that MindSpeed-LLM's tools import."""
    (folder / "llm").mkdir(parents=True)
    for name, variable in _TREES.items():
        if not os.environ.get(variable):
            pytest.skip(f"needs a checkout of {name}: set {variable} to its path")
        (folder / "llm" / name).symlink_to(Path(os.environ[variable]).resolve())
    build = Path(os.environ.get("MSADAPTER_BUILD", ROOT / "build"))
    packages = Path(os.environ.get("MSADAPTER_LLM_PACKAGES", build / "packages"))
    if not (packages / "transformers").is_dir():
        pytest.skip(
            f"needs the packages of `auto_convert.sh llm` in {packages}, or where MSADAPTER_LLM_PACKAGES says"
        )
    (folder / "packages").symlink_to(packages.resolve())
    return folder

"""MindSpeed-LLM's trees as auto_convert.sh lays them out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from megatron_ms.upstream import trees


def laid_out() -> Path:
    """The folder that `auto_convert.sh llm` wrote, such as build/llm, beside the packages that its tools import."""
    named = os.environ.get("MSADAPTER_LLM")
    if not named:
        pytest.skip("needs MindSpeed-LLM: set MSADAPTER_LLM to the folder that auto_convert.sh llm wrote")
    found = trees.find(named)
    assert any(path.name.startswith("packages-") for path in found.paths), (
        f"{named} has no packages beside it"
    )
    return Path(named).resolve()

"""MindSpeed-LLM's trees as auto_convert.sh lays them out, and a toy for them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from megatron_ms.inference.engine import provide_torch
from megatron_ms.models.toys import TOYS, Toy
from megatron_ms.upstream import trees
from tests.toolkit.data import toys


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


def small_qwen(folder: Path) -> tuple[Path, list[str]]:
    """A tiny Qwen2.5 with a tokenizer of bytes, in a new folder below `folder`, and KEY=VALUE of its sizes."""
    provide_torch()
    import transformers

    family = TOYS["Qwen2.5"]
    place = toys.make_tokenizer(folder)
    size = -(-len(transformers.AutoTokenizer.from_pretrained(place)) // 64) * 64
    ids = {"vocab_size": size, "bos_token_id": 256, "eos_token_id": 257, "pad_token_id": 258}
    longest = {"max_position_embeddings": 256}
    toy = Toy(
        family.recipe, family.kind, {**family.config, **ids, **longest}, {"vocab_size": size, **longest}
    )
    toy.make(place)
    return place, [*toy.words(), "dataset.sequence_length=256"]

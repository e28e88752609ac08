"""`train` with MindSpeed-LLM: recipes of families at toy size."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from megatron_ms import commands
from megatron_ms.models import toys
from megatron_ms.training import folder as folders
from tests.npu.conftest import trainer  # noqa: F401  (the fixture)

pytestmark = pytest.mark.slow
TRAIN = [
    "train.micro_batch=2",
    "train.global_batch=8",
    "train.lr=1e-3",
    "dataset.sequence_length=64",
    "model.vocab_size=256",
]
RECIPES = ["llama2-7b", "mixtral-8x7b"]


@pytest.fixture
def place(trainer, tmp_path, monkeypatch) -> Path:  # noqa: F811
    """A folder with a configuration that names the checkouts and a small corpus."""
    monkeypatch.chdir(tmp_path)
    named = [os.environ["MSADAPTER_MINDSPEED_LLM"], os.environ["MSADAPTER_MINDSPEED"], str(trainer.megatron)]
    data = f"{{path: {trainer.folder / 'text_document'}, tokenizer: {trainer.folder / 'tokenizer'}}}"
    text = f"run: {{trees: {json.dumps(named)}, device: npu}}\ndataset: {data}\ntrain: {{iterations: 2}}\n"
    (tmp_path / "toy.yaml").write_text(text)
    return tmp_path


def smaller(recipe: str) -> list[str]:
    """KEY=VALUE that make a recipe's geometry small and leave everything else as it is."""
    return [*toys.words_of(toys.small(recipe) | {"num_layers": 2}), *TRAIN]


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_recipe_trains(place, recipe) -> None:
    assert commands.main(["train", "toy.yaml", f"recipe={recipe}", *smaller(recipe)]) == 0
    (run,) = folders.runs(Path("runs"))
    found = [record["lm loss"] for record in run.records()]
    assert len(found) == 2 and all(5 < loss < 7 for loss in found)  # ln 256 is 5.5
    layers = re.search(r" num_layers \.+ (\d+)", run.log.read_text())
    assert layers is not None and layers[1] == "2"

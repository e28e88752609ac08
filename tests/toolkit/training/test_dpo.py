"""Preference pairs with MindSpeed-LLM: data, a start from a checkpoint, and a DPO training on two ranks."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from megatron_ms import commands
from megatron_ms.models.toys import TOYS
from megatron_ms.training import folder as folders
from megatron_ms.training import lines
from tests.toolkit.llm import laid_out, small_qwen

pytestmark = pytest.mark.slow
pytest.importorskip("mpi4py")


def losses(name: str) -> list[float]:
    """The losses of the only training of that name."""
    (run,) = folders.runs(Path("runs"), name)
    return [loss for record in run.records() if (loss := lines.loss_of(record)) is not None]


def test_chosen_answers_become_likelier_than_rejected_ones(tmp_path, monkeypatch) -> None:
    """Before it has learned, a model prefers no answer more than its reference does: the loss is ln 2. Then it falls."""
    trees = laid_out()
    monkeypatch.chdir(tmp_path)
    folder, words = small_qwen(tmp_path / "model")
    rows = [
        {"instruction": f"Count to {n}", "input": "", "chosen": "one two", "rejected": f"nine {n}"}
        for n in range(24)
    ]
    (tmp_path / "pairs.json").write_text(json.dumps(rows))
    (tmp_path / "toy.yaml").write_text(
        f"recipe: {TOYS['Qwen2.5'].recipe}\nrun: {{trees: {trees}, device: npu, processes: 2}}\n"
        f"data: {{sources: pairs.json, tokenizer: {folder}, output: pairs, task: pairs, template: default, seq_length: 256}}\n"
        "train: {iterations: 4, micro_batch: 1, global_batch: 8, lr: 1e-3}\nparallel: {tensor: 2}\n"
        f"convert: {{source: {folder}, output: start, to: megatron}}\n"
    )
    for command, *more in (
        ("data",),
        ("convert",),
        ("train", "run.task=dpo", "resume.load=start", "name=whole"),
        ("train", "run.task=dpo", "resume.load=start", "name=matrices", "tune.rank=4", "tune.alpha=8"),
    ):
        assert commands.main([command, "toy.yaml", *words, *more]) == 0, command
    for name, fall in (("whole", 0.05), ("matrices", 0.005)):
        found = losses(name)
        assert len(found) == 4 and found[0] == pytest.approx(math.log(2), abs=1e-4)
        assert found[-1] < found[0] - fall, name

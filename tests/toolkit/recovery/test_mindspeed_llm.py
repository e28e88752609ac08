"""Recovery over MindSpeed-LLM's own programs, whose functions replace Megatron's. The whole table is made by reliability.py."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from pathlib import Path

import pytest

from megatron_ms import commands
from megatron_ms.models.prove_megatron import make
from megatron_ms.models.toys import TOYS
from megatron_ms.training import folder as folders
from tests.megatron import reliability
from tests.toolkit.llm import laid_out

pytestmark = pytest.mark.slow
pytest.importorskip("transformers", reason="needs the extra hf")
TOY, STEPS = TOYS["Qwen2.5"], 12
# A schedule whose train_step replaces Megatron's.
DUALPIPEV = (
    "parallel.pipeline=2",
    "parallel.schedules_method=dualpipev",
    "model.num_layers=4",
    "model.untie_embeddings_and_output_weights=true",
)


@pytest.fixture(scope="module")
def suite(tmp_path_factory) -> reliability.Suite:
    return reliability.Suite(tmp_path_factory.mktemp("faults"), laid_out())


@pytest.mark.parametrize(
    "name",
    [
        "nan",
        pytest.param("memory", marks=pytest.mark.extended),
        pytest.param("SIGTERM", marks=pytest.mark.extended),
    ],
)
def test_a_part_of_the_table(suite, name) -> None:
    reliability.FAULTS[name].check(suite)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param((), marks=pytest.mark.extended, id="Megatron's step"),
        pytest.param(DUALPIPEV, id="DualPipeV's step"),
    ],
)
def test_a_gradient_that_is_too_large_changes_no_parameter(suite, words) -> None:
    """With upstream's own function for a step too, which has to be observed as well."""
    reliability.large_once(suite, *words)


def losses(name: str) -> dict[int, float]:
    (run,) = folders.runs(Path("runs"), name)
    return {record["iteration"]: record["lm loss"] for record in run.records() if "lm loss" in record}


def told(name: str) -> list[str]:
    (run,) = folders.runs(Path("runs"), name)
    return [json.loads(line)["text"] for line in (run.path / "events.jsonl").read_text().splitlines()]


def kill_a_rank(name: str, step: int) -> None:
    """Ends rank 1 of the run with SIGKILL, as soon as it has made a step."""
    end = time.monotonic() + 300
    while time.monotonic() < end:
        text = "".join(file.read_text() for file in Path("runs", name).glob("*/losses.jsonl"))
        if re.search(rf'"iteration": {step}\b', text):
            break
        time.sleep(0.05)
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words, variables = ((place / part).read_bytes().split(b"\0") for part in ("cmdline", "environ"))
        except OSError:  # the process has ended meanwhile, or belongs to another user
            continue
        here = any(f"/runs/{name}/".encode() in word and str(Path.cwd()).encode() in word for word in words)
        if here and b"LOCAL_RANK=1" in variables:
            os.kill(int(place.name), signal.SIGKILL)
            return


@pytest.mark.extended
def test_a_run_is_the_same_after_a_kill_and_after_a_flipped_bit(tmp_path, monkeypatch, torch_by_name) -> None:
    trees = laid_out()
    monkeypatch.chdir(tmp_path)
    make(TOY, tmp_path / "model")
    rows = [" ".join(str(3 + (start + 5 * step) % 200) for step in range(64)) for start in range(40)]
    Path("rows.jsonl").write_text("".join(json.dumps({"text": row}) + "\n" for row in rows))
    Path("run.yaml").write_text(
        f"recipe: {TOY.recipe}\nrun: {{trees: {json.dumps(str(trees))}, device: npu, processes: 2}}\n"
        "data: {sources: rows.jsonl, tokenizer: model, output: texts}\ndataset: {sequence_length: 32}\n"
        f"train: {{iterations: {STEPS}, micro_batch: 1, global_batch: 8, lr: 3e-3}}\n"
        "save: {interval: 4, format: safetensors}\nrecovery: {restarts: 2, backoff: 0.1}\n"
    )
    assert commands.main(["data", "run.yaml"]) == 0
    train = ["train", "run.yaml", *TOY.words()]
    assert commands.main([*train, "name=whole"]) == 0
    whole = losses("whole")
    assert len(whole) == STEPS

    killer = threading.Thread(target=kill_a_rank, args=("killed", 6))
    killer.start()
    assert commands.main([*train, "name=killed"]) == 0
    killer.join()
    assert losses("killed") == whole
    said = told("killed")
    assert any("ended with signal SIGKILL" in text for text in said)
    # The newest checkpoint is one on disk, or one that the rank that is left writes before its end.
    (number,) = {int(text.split()[-1]) for text in said if text.startswith("goes on from checkpoint ")}
    together = f"checkpoint {number} was put together from the parts that ranks have written before their end"
    assert number >= 4 and (together in said or f"checkpoint {number} is written" in said)

    (run,) = folders.runs(Path("runs"), "whole")
    damaged = sorted((run.path / "checkpoints" / f"iter_{STEPS:07}").rglob("*.safetensors"))[0]
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 16
    damaged.write_bytes(content)
    assert commands.main([*train, "name=whole", "--resume"]) == 0
    said = told("whole")
    assert any(
        text.startswith(f"checkpoint {STEPS} is not used: ") and "another content" in text for text in said
    )
    assert "goes on from checkpoint 8" in said and losses("whole") == whole

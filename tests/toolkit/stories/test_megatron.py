"""The stories with MindSpeed-LLM: instructions to a chat, and pretraining on blended sources to scores."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from megatron_ms.models.toys import TOYS
from megatron_ms.recovery import manifest
from tests.toolkit.data import toys
from tests.toolkit.evaluation import files
from tests.toolkit.llm import laid_out, small_qwen

pytestmark = pytest.mark.slow
pytest.importorskip("lm_eval", reason="needs the extra toolkit")


@pytest.fixture(scope="module")
def trees() -> Path:
    return laid_out()


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> tuple[Path, list[str]]:
    return small_qwen(tmp_path_factory.mktemp("qwen"))


def losses(out: str) -> list[float]:
    return [float(loss) for loss in re.findall(r"^  \d+/\d+  loss (\S+)", out, re.MULTILINE)]


def manifests(folder) -> list[bool]:
    """For each checkpoint of a training below a folder, whether it is whole and has its manifest."""
    return [manifest.fault(place) == "" for place in sorted(folder.glob("runs/*/*/checkpoints/iter_*"))]


@pytest.mark.extended
def test_from_instructions_to_a_chat(tell, trees, model, tmp_path) -> None:
    folder, words = model
    rows = [{"instruction": f"Count to {n}", "input": "", "output": "one two"} for n in range(40)]
    (tmp_path / "alpaca.json").write_text(json.dumps(rows))
    out = tell(
        "alpaca_to_chat.sh",
        folder,
        tmp_path / "alpaca.json",
        trees,
        tmp_path / "made",
        TOYS["Qwen2.5"].recipe,
        *words,
    )
    assert "⟦one two" in out and "start: proven" in out and "tuned: proven" in out
    found = losses(out)
    assert len(found) == 20 and found[-1] < found[0] - 0.5
    assert "checkpoint 20  torch" in out and out.count("bit for bit") == 2
    assert manifests(tmp_path / "made") == [True] * 2
    proofs = json.loads((tmp_path / "made/tuned/manifest.json").read_text())["proofs"]
    assert proofs["layout"] == "TP 2 x PP 1" and proofs["logits"] < 1e-4
    assert out.splitlines()[-1].strip()  # the answer


@pytest.mark.extended
def test_from_blended_texts_to_scores(tell, trees, model, tmp_path) -> None:
    folder, words = model
    for name in ("one", "two"):
        toys.write_rows(tmp_path / f"{name}.jsonl", [{"text": f"{name} {n} " * 40} for n in range(60)])
    files.boolq(tmp_path / "boolq")
    (tmp_path / "like").mkdir()
    for file in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / "like" / file).write_bytes((folder / file).read_bytes())
    out = tell("pretrain_to_scores.sh", tmp_path / "like", tmp_path / "one.jsonl", tmp_path / "two.jsonl", trees,
               tmp_path / "boolq", tmp_path / "made", TOYS["Qwen2.5"].recipe, *words)  # fmt: skip
    found = losses(out)
    assert len(found) == 8 and found[-1] < found[0]
    assert manifests(tmp_path / "made") == [True] * 2
    assert "checkpoint 4  torch_dist" in out and "checkpoint 8  torch_dist" in out
    assert "TP 1 x PP 1" in out and "exported: proven" in out and "written to scores" in out

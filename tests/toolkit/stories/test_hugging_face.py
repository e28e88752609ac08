"""The story without git sources: LoRA, merge, evaluate."""

from __future__ import annotations

import json

import pytest

from tests.toolkit.data import toys
from tests.toolkit.evaluation import files
from tests.toolkit.packages import needs_packages

pytest.importorskip("lm_eval", reason="needs the extra toolkit")


@needs_packages
def test_lora_merge_and_evaluate(tell, model_folder, tmp_path) -> None:  # noqa: F811
    """Each step prints what a user must see, and the merged model is another one than the first."""
    (tmp_path / "alpaca.json").write_text(json.dumps([row for row in toys.ALPACA if row["output"]]))
    files.boolq(tmp_path / "boolq")
    out = tell(
        "hugging_face.sh", model_folder, tmp_path / "alpaca.json", tmp_path / "boolq", tmp_path / "made", 4
    )
    for part in ("⟦", "story: lora on 1 processes", "4/4  loss", "done: loss", "proven; hashes are in merged/manifest.json",
                 "boolq", "written to scores", "Say hello"):  # fmt: skip
        assert part in out
    proofs = json.loads((tmp_path / "made/merged/manifest.json").read_text())["proofs"]
    assert proofs["tensors"] == 21 and proofs["changed"] == 14 and proofs["logits"] < 1e-5
    assert "boolq" in json.loads((tmp_path / "made/scores/results.json").read_text())["results"]

"""GPT-OSS with Megatron-LM core_v0.19.0, which alone has all its parts: from a folder of Hugging Face to Megatron, and back."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.megatron import lm_checkout

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_it_is_proven(newest_megatron: Path, python_3_12: Path, tmp_path: Path) -> None:
    """The command that records the proofs, in a Python that this release accepts."""
    asked = [python_3_12, "-c", "import transformers, omegaconf, pydantic"]
    if subprocess.run(asked, capture_output=True, check=False).returncode:
        pytest.skip(f"{python_3_12} lacks the extras hf and toolkit")
    (tmp_path / "megatron").symlink_to(
        lm_checkout.plain_copy(newest_megatron, tmp_path)
    )  # which compiles a helper there
    (tmp_path / "conversion.json").write_text('{"release": "0.19.0"}')
    words = [python_3_12, "-m", "megatron_ms.models.prove_megatron", tmp_path, "GPT-OSS"]
    run = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    line = next(line for line in run.stdout.splitlines() if line.startswith("GPT-OSS: {"))
    found = json.loads(line.removeprefix("GPT-OSS: "))["gpt-oss-20b"]
    assert found["back"] == "bit for bit" and found["logits"] < 1e-4
    assert found["tokens"] == 72 and found["last loss"] < found["first loss"]

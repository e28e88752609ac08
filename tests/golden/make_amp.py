"""Golden data of tests/amp from real PyTorch 2.13.0: python -m tests.golden.make_amp (no random numbers)."""

import json
from pathlib import Path

import torch

from tests.amp import amp_cases as cases

HERE = Path(__file__).resolve().parent

(HERE / "amp.json").write_text(
    json.dumps({"torch": torch.__version__, "scaler": cases.run_scaler(torch)}) + "\n"
)

"""Golden data of tests/amp from real PyTorch 2.13.0: python tests/golden/make_amp.py (no random numbers)."""

import json
import sys
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "amp"))
import amp_cases as cases  # noqa: E402

(HERE / "amp.json").write_text(
    json.dumps({"torch": torch.__version__, "scaler": cases.run_scaler(torch)}) + "\n"
)

"""Golden data of tests/data from real PyTorch 2.13.0: python tests/golden/make_data.py (seeds in the cases)."""

import json
import sys
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "data"))
import data_cases as cases  # noqa: E402

golden = {
    "torch": torch.__version__,
    "loaders": {"|".join(map(str, case)): cases.run_loader(torch, *case) for case in cases.CASES},
    "samplers": {name: cases.run_sampler(torch, name) for name in cases.SAMPLERS},
}
(HERE / "data.json").write_text(json.dumps(golden) + "\n")

"""Golden data of tests/data from real PyTorch 2.13.0: python -m tests.golden.make_data (seeds in the cases)."""

import json
from pathlib import Path

import torch

from tests.data import data_cases as cases

HERE = Path(__file__).resolve().parent

golden = {
    "torch": torch.__version__,
    "loaders": {"|".join(map(str, case)): cases.run_loader(torch, *case) for case in cases.CASES},
    "samplers": {name: cases.run_sampler(torch, name) for name in cases.SAMPLERS},
}
(HERE / "data.json").write_text(json.dumps(golden) + "\n")

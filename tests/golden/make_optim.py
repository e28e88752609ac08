"""Golden data of tests/optim from real PyTorch 2.13.0: python tests/golden/make_optim.py (seeds in the cases)."""

import json
import sys
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "optim"))
import optim_cases as cases  # noqa: E402

golden = {
    "torch": torch.__version__,
    "optimizers": {name: cases.run_optimizer(torch, name) for name in cases.OPTIMIZERS},
    "schedules": {name: cases.run_schedule(torch, name) for name in cases.SCHEDULES},
    "errors": {name: cases.error_of(torch, name) for name in cases.ERRORS},
}
(HERE / "optim.json").write_text(json.dumps(golden) + "\n")

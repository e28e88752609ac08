"""trl's trainers on a small random model: the losses and measures of twenty steps of SFT, DPO, a reward model and GRPO."""

import sys
import tempfile
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).resolve().parents[3]))  # for the cases, which the tests of trl have too
from tests.huggingface import trl_cases

for case in trl_cases.CASES:
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        found = trl_cases.run(torch, case, folder)
    measures = [step[name] for step in found["measures"] for name in sorted(step)]
    print(f"{case}:", *found["losses"], *measures, flush=True)

"""Writes nn_ops.json: the answers of real PyTorch (2.13) to nn_ops_cases.py.

<python with torch> -m tests.golden.make_nn_ops
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

from tests.golden import make_pointwise, nn_ops_cases

if __name__ == "__main__":
    make_pointwise.SETUP = nn_ops_cases.SETUP
    target = Path(__file__).with_name("nn_ops.json")
    answers = {case: make_pointwise.evaluate(case, torch) for case in nn_ops_cases.CASES}
    lines = (f"{json.dumps(k)}: {json.dumps(v, default=str)}" for k, v in answers.items())
    target.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(answers)} answers in {target}", file=sys.stderr)

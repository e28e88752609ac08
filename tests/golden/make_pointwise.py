"""Writes pointwise.json: the answers of real PyTorch (2.13) to pointwise_cases.py.

<python with torch> -m tests.golden.make_pointwise
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import torch

from tests.golden.pointwise_cases import CASES, SETUP


def number(v):
    """A JSON value that keeps NaN, infinities and signed zeros."""
    if isinstance(v, complex):
        return {"complex": [number(v.real), number(v.imag)]}
    return repr(v) if isinstance(v, float) and (not math.isfinite(v) or v == 0) else v


def record(value):
    """What the test compares of an answer."""
    if isinstance(value, torch.Tensor):
        return {
            "dtype": str(value.dtype),
            "shape": list(value.shape),
            "stride": list(value.stride()),
            "values": [number(v) for v in value.detach().flatten().tolist()],
        }
    if isinstance(value, (tuple, list)):
        return [record(v) for v in value]
    return {"value": value}


def evaluate(case: str, torch_module):
    """The value of a case, or the class and first line of its error."""
    space = {"torch": torch_module}
    exec(SETUP, space)
    *statements, last = case.split("; ")
    try:
        for s in statements:
            exec(s, space)
        return record(eval(last, space))
    except Exception as e:
        return {"error": type(e).__name__, "text": str(e).split("\n")[0]}


if __name__ == "__main__":
    target = Path(__file__).with_name("pointwise.json")
    answers = {case: evaluate(case, torch) for case in CASES}
    lines = (f"{json.dumps(k)}: {json.dumps(v)}" for k, v in answers.items())
    target.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(answers)} answers in {target}", file=sys.stderr)

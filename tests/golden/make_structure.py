"""Writes structure.json: the answers of real PyTorch (2.13) to structure_cases.py.

<python with torch> -m tests.golden.make_structure
"""

from __future__ import annotations

import json
import math
import sys
import warnings
from pathlib import Path

import torch

from tests.golden.structure_cases import CASES, SETUP


def number(v):
    """A JSON value that keeps NaN and infinities."""
    return repr(v) if isinstance(v, float) and not math.isfinite(v) else v


def record(value):
    """What the tests compare of an answer."""
    if isinstance(value, torch.Tensor):
        return {
            "dtype": str(value.dtype),
            "shape": list(value.shape),
            "values": [number(v) for v in value.detach().flatten().tolist()],
        }
    if isinstance(value, (tuple, list)):
        return [record(v) for v in value]
    return {"value": str(value) if isinstance(value, torch.dtype) else value}


def evaluate(case: str, torch_module):
    """The answer of a case, or the class and first line of its error."""
    space = {"torch": torch_module}
    exec(SETUP, space)
    *statements, last = case.split("; ")
    try:
        for s in statements:
            exec(s, space)
        return record(eval(last, space))
    except SyntaxError:  # an assignment as last statement: only its error matters
        try:
            exec(last, space)
        except Exception as e:
            return {"error": type(e).__name__, "text": str(e).split("\n")[0]}
        return {"value": None}
    except Exception as e:
        return {"error": type(e).__name__, "text": str(e).split("\n")[0]}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    target = Path(__file__).with_name("structure.json")
    answers = {family: {case: evaluate(case, torch) for case in cases} for family, cases in CASES.items()}
    parts = []
    for family, entries in answers.items():
        lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in entries.items())
        parts.append(f"{json.dumps(family)}: {{\n{lines}\n}}")
    target.write_text("{\n" + ",\n".join(parts) + "\n}\n")
    print({k: len(v) for k, v in answers.items()}, file=sys.stderr)

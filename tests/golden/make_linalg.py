"""Writes linalg.json: the answers of real PyTorch (2.13, CPU) to linalg_cases.py.

<python with torch> -m tests.golden.make_linalg
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import torch

from tests.golden.linalg_cases import CASES, SETUP

warnings.simplefilter("ignore")


def plain(value):
    """Numbers as JSON keeps them: complex as [re, im], others by repr where JSON has no word."""
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, complex):
        return {"re": value.real, "im": value.imag}
    return value


def answer(case: str) -> dict:
    space = {"torch": torch}
    exec(SETUP, space)
    try:
        value = eval(case, space)
    except Exception as e:
        return {"error": type(e).__name__.lstrip("_"), "message": str(e).splitlines()[0]}
    return {
        "dtype": str(value.dtype),
        "shape": list(value.shape),
        "stride": list(value.stride()),
        "values": plain(value.tolist()),
    }


if __name__ == "__main__":
    Path(__file__).with_name("linalg.json").write_text(
        json.dumps({c: answer(c) for c in CASES}, indent=0) + "\n"
    )

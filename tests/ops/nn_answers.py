"""The recorded answers of nn_ops_cases.py and how one is checked: shared by test_matmul.py and test_nn.py."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

import msadapter as torch

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def _module(name):
    spec = importlib.util.spec_from_file_location(name, GOLDEN / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _number(v):
    if isinstance(v, dict):
        return complex(*(_number(p) for p in v["complex"]))
    return float(v) if isinstance(v, str) else v


ANSWERS = json.loads((GOLDEN / "nn_ops.json").read_text())
_CASES = _module("nn_ops_cases")
MATMUL = _CASES.MATMUL
_TOLERANCE = {"torch.float16": 2e-3, "torch.bfloat16": 1.6e-2, "torch.float32": 2e-5, "torch.complex64": 2e-5}


def _check(have, want):
    if isinstance(want, list):
        assert len(have) == len(want)
        for h, w in zip(have, want, strict=True):
            _check(h, w)
        return
    if "value" in want:
        assert str(have) == str(want["value"])
        return
    assert [str(have.dtype), list(have.shape)] == [want["dtype"], want["shape"]]
    if not isinstance(want["values"], list) or not want["values"]:
        return
    tolerance = _TOLERANCE.get(want["dtype"], 1e-11)
    values = torch.tensor([_number(v) for v in want["values"]], dtype=have.dtype)
    torch.testing.assert_close(
        have.detach().reshape(-1), values, rtol=tolerance, atol=tolerance * _size(values), equal_nan=True
    )


def _size(values):
    """The largest finite magnitude, at least 1: sums of large terms may cancel."""
    finite = values.abs()[values.isfinite()]
    return max(1.0, finite.max().item()) if finite.numel() else 1.0


def check_case(case):
    """Runs an expression and compares its value, or the class and first sentence of its error."""
    space = {"torch": torch}
    exec(_CASES.SETUP, space)
    *statements, last = case.split("; ")
    want = ANSWERS[case]
    if isinstance(want, dict) and "error" in want:
        with pytest.raises(Exception) as caught:
            for s in statements:
                exec(s, space)
            eval(last, space)
        assert type(caught.value).__name__ == want["error"]
        assert str(caught.value).split("\n")[0].split(". ")[0] == want["text"].split(". ")[0]
        return
    for s in statements:
        exec(s, space)
    _check(eval(last, space), want)

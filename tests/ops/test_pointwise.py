"""Element-wise operators against recorded answers of real PyTorch: see tests/golden/pointwise_cases.py."""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path

import pytest

import msadapter as torch

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
ANSWERS = json.loads((GOLDEN / "pointwise.json").read_text())
_LOOSE = {
    "torch.float16": 1e-3,
    "torch.bfloat16": 1.6e-2,
    "torch.float32": 2e-6,
    "torch.float64": 1e-12,
    "torch.complex64": 2e-6,
    "torch.complex128": 1e-12,
}


def _module(name):
    spec = importlib.util.spec_from_file_location(name, GOLDEN / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SETUP = _module("pointwise_cases").SETUP


def _number(v):
    if isinstance(v, dict):
        return complex(*(_number(p) for p in v["complex"]))
    return float(v) if isinstance(v, str) else v


def _same(have, want, tolerance):
    if isinstance(want, complex):
        size = abs(want) if math.isfinite(abs(want)) else 0
        parts = (
            (have.real + 0.0, want.real + 0.0),
            (have.imag + 0.0, want.imag + 0.0),
        )  # the sign of zero is not compared
        return all(_close(h, w, tolerance, max(abs(w), size)) for h, w in parts)
    if isinstance(want, float):
        return _close(have, want, tolerance, abs(want))
    return have == want and type(have) is type(want)


def _close(have, want, tolerance, size):
    if math.isnan(want) or math.isinf(want):
        return math.isnan(have) if math.isnan(want) else have == want
    if want == 0 and have == 0:
        return math.copysign(1, have) == math.copysign(1, want)
    return abs(have - want) <= 1e-7 + tolerance * size


def _check(have, want):
    if isinstance(want, list):
        assert len(have) == len(want)
        for h, w in zip(have, want, strict=True):
            _check(h, w)
        return
    if "value" in want:
        value = list(have) if isinstance(have, tuple) else have
        assert value == want["value"]
        return
    assert [str(have.dtype), list(have.shape), list(have.stride())] == [
        want["dtype"],
        want["shape"],
        want["stride"],
    ]
    tolerance = _LOOSE.get(want["dtype"], 0)
    for at, (h, w) in enumerate(zip(have.detach().flatten().tolist(), want["values"], strict=True)):
        assert _same(h, _number(w), tolerance), f"element {at}: {h} instead of {w}"


@pytest.mark.parametrize("case", list(ANSWERS))
def test_case(case):
    space = {"torch": torch}
    exec(SETUP, space)
    *statements, last = case.split("; ")
    want = ANSWERS[case]
    if isinstance(want, dict) and "error" in want:
        with pytest.raises(Exception) as caught:
            for s in statements:
                exec(s, space)
            eval(last, space)
        assert type(caught.value).__name__ == want["error"]
        if want["error"] != "TypeError":  # the argument parser's texts list every overload
            have = str(caught.value).split("\n")[0]
            assert have.split(". ")[0].rstrip(".") == want["text"].split(". ")[0].rstrip(".")
        return
    for s in statements:
        exec(s, space)
    _check(eval(last, space), want)

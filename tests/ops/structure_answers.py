"""Compares answers with those of real PyTorch in tests/golden/structure.json."""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path

import msadapter as torch

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
ANSWERS = json.loads((GOLDEN / "structure.json").read_text())
_spec = importlib.util.spec_from_file_location("structure_cases", GOLDEN / "structure_cases.py")
_cases = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_cases)


def _values_agree(have, want):
    if len(have) != len(want):
        return False
    for h, w in zip(have, want, strict=True):
        w = float(w) if isinstance(w, str) else w
        if isinstance(w, float) and (math.isnan(w) or math.isnan(h)):
            if math.isnan(w) != math.isnan(h):
                return False
        elif (
            isinstance(w, float)
            and not math.isclose(h, w, rel_tol=1e-3 if abs(w) < 1e-4 else 2e-6, abs_tol=1e-6)
            or not isinstance(w, float)
            and h != w
        ):
            return False
    return True


def _check(have, want):
    if isinstance(want, list):
        assert isinstance(have, (tuple, list)), f"got {type(have).__name__}, expected a sequence"
        assert len(have) == len(want)
        for h, w in zip(have, want, strict=True):
            _check(h, w)
    elif "values" in want:
        assert isinstance(have, torch.Tensor), f"got {have!r}, expected a tensor"
        assert (str(have.dtype), list(have.shape)) == (want["dtype"], want["shape"])
        got = have.detach().flatten().tolist()
        assert _values_agree(got, want["values"]), f"{got} != {want['values']}"
    else:
        assert (str(have) if isinstance(have, torch.dtype) else have) == want["value"]


def check(case: str, want) -> None:
    """Runs a case; asserts the recorded answer, or the recorded error's class and first line."""
    space = {"torch": torch}
    exec(_cases.SETUP, space)
    *statements, last = case.split("; ")

    def run():
        for s in statements:
            exec(s, space)
        try:
            code = compile(last, "<case>", "eval")
        except SyntaxError:
            exec(last, space)
            return None
        return eval(code, space)

    if isinstance(want, dict) and "error" in want:
        try:
            got = run()
        except Exception as e:
            assert type(e).__name__ == want["error"], f"{type(e).__name__}: {e} instead of {want}"
            assert str(e).split("\n")[0] == want["text"]
            return
        raise AssertionError(f"no error, got {got!r}; expected {want}")
    _check(run(), want)

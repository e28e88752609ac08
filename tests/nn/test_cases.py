"""Every case of ``cases.py``: initial values, outputs, gradients, states and text must equal PyTorch's."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import msadapter as torch
from tests.nn import cases

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def _load():
    stored = np.load(GOLDEN / "nn_cases.npz")
    index = json.loads(stored["index"].tobytes())
    grouped = {}
    for key, (start, size) in index.items():
        name, what = key.split("|")
        grouped.setdefault(name, {})[what] = stored["values"][start : start + size]
    reprs = json.loads((GOLDEN / "nn_scenarios.json").read_text())["reprs"]
    return grouped, reprs


EXPECTED, REPRS = _load()


def test_every_case_has_golden_data():
    assert set(REPRS) == set(cases.CASES)
    assert set(EXPECTED) == set(cases.CASES)


@pytest.mark.parametrize("name", cases.CASES)
def test_case(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = cases.run(torch, name)
    assert seen.pop("repr") == REPRS[name]
    assert list(seen) == list(EXPECTED[name])
    for what, tensor in seen.items():
        # Initial values depend on the generator only, so they must agree to the last bits.
        tolerance = 1e-6 if what.startswith("init/") else 2e-5
        np.testing.assert_allclose(
            cases.digest(tensor),
            EXPECTED[name][what],
            rtol=tolerance,
            atol=tolerance,
            err_msg=f"{name} {what}",
        )

"""torch.distributions, compared with the answers recorded from PyTorch. Seeds must give PyTorch's samples."""

from __future__ import annotations

import pytest

import msadapter as torch
from tests.distributions import distribution_cases, transform_cases
from tests.golden.contracts import cases_of, difference, golden, outcome

RECORDED = golden("distributions")
MODULES = {m.__name__.rpartition(".")[2]: m for m in (distribution_cases, transform_cases)}
CASES = [(name, case) for name, m in MODULES.items() for case in cases_of(m)]


def _without_strides(record):
    if isinstance(record, dict):
        return {k: _without_strides(v) for k, v in record.items() if k != "stride"}
    if isinstance(record, str):
        # some messages of PyTorch contain the indentation of their source code
        return " ".join(record.split())
    return [_without_strides(v) for v in record] if isinstance(record, list) else record


@pytest.fixture(autouse=True)
def _names(torch_by_name):
    """The cases import torch by name."""


@pytest.mark.parametrize(("module", "case"), CASES, ids=[case for _, case in CASES])
def test_case(module, case):
    ours = _without_strides(outcome(cases_of(MODULES[module])[case], torch))
    # PyTorch computes the derivative of gamma samples with an error of about 1e-4
    tolerance = 1e-3 if case.startswith("slopes") else 2e-5
    assert difference(ours, _without_strides(RECORDED[module][case]), tolerance) is None

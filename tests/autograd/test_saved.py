"""What PyTorch lets a program change in place before the backward pass may be changed here too."""

from __future__ import annotations

import warnings

import pytest

import msadapter as torch
from tests.batches import operator, together
from tests.golden import saved, store
from tests.golden.verdict import judge

GOLDEN = store.load("saved").cases
SAMPLES = store.load("samples")


@together(GOLDEN, operator)
def test_what_may_be_changed(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            allowed = saved.changeable(torch, SAMPLES.cases[name], SAMPLES.arrays)
        except RuntimeError as error:
            judge("saved", name, str(error))
            return
    if len(allowed or []) != len(GOLDEN[name]):
        judge("saved", name, f"{len(allowed or [])} tensors instead of {len(GOLDEN[name])}")
        return
    refused = [k for k, theirs in enumerate(GOLDEN[name]) if theirs == "1" and not allowed[k]]
    judge("saved", name, f"tensors {refused} may not be changed" if refused else None)


def test_the_quotient_may_be_changed():
    a, b, c = (torch.tensor([v, 2 * v], dtype=torch.float64, requires_grad=True) for v in (1.0, 3.0, 5.0))
    (a / b).mul_(c).sum().backward()
    assert b.grad.tolist() == pytest.approx([-5 / 9, -10 * 2 / 36])
    (a * 1).div_(b).mul_(c).sum().backward()
    assert b.grad.tolist() == pytest.approx([-10 / 9, -10 * 4 / 36])

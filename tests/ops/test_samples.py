"""Values and first derivatives of PyTorch's own samples of every operator, with options away from their defaults."""

from __future__ import annotations

import msadapter as torch
from tests.batches import operator, together
from tests.golden import samples, store
from tests.golden.verdict import check

GOLDEN = store.load("samples")


@together(GOLDEN.cases, operator)
def test_sample(name):
    case = GOLDEN.cases[name]
    check("samples", name, lambda torch: samples.answer(torch, case, GOLDEN.arrays), torch)

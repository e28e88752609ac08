"""Megatron-LM on several processes gives the curve of one.

The weights are those of PyTorch's own checkpoints. Rows with the local layers run a tree with the rules of `patches`,
which answer what Megatron asks of TransformerEngine; the others run upstream's own files with the adapter's
transformer_engine.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.megatron.layouts import ROWS, assert_equal, iterations, train


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if row.daily else pytest.mark.extended) for name, row in ROWS.items()],
)
def test_curve_of_one_process(name: str, reference: Path, trees, weights, tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    row = ROWS[name]
    load = f"{weights[row.curve]} {row.common}"
    if row.curve:
        expected = iterations(json.loads((reference / "losses.json").read_text())[row.curve])
    else:
        expected = train(row, load, 1, trees, tmp_path)
    measured = train(row, f"{load} {row.arguments}", row.processes, trees, tmp_path)
    assert_equal(row, measured, expected)

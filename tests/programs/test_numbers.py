"""How the runner of programs reads numbers, compares them and reports; no program is run."""

from __future__ import annotations

import pytest

from tests.programs import report
from tests.programs.catalogue import PROGRAMS
from tests.programs.run import difference, numbers_in

NAN = float("nan")


def test_numbers_of_chosen_lines():
    text = "Epoch 1 loss: 0.5 (12 ms)\nversion 3.1\nloss -2.5e-3 nan inf\n"
    assert numbers_in(text, "loss", r"\d+ ms") == pytest.approx(
        [1, 0.5, -0.0025, NAN, float("inf")], nan_ok=True
    )


def test_names_with_digits_are_no_numbers():
    assert numbers_in("conv2d layer1.weight x3 0x1f 7", ".", "0x[0-9a-f]+") == [7]


@pytest.mark.parametrize(
    "ours, theirs, gap",
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([1.001], [1.0], 1e-3),
        ([2002.0], [2000.0], 1e-3),
        ([0.001], [0.0], 1e-3),
        ([1.0], [1.0, 2.0], float("inf")),
        ([NAN], [NAN], 0.0),
        ([NAN], [1.0], float("inf")),
        ([1.0], [NAN], float("inf")),
    ],
)
def test_difference(ours, theirs, gap):
    assert difference(ours, theirs) == pytest.approx(gap)


def test_the_page_counts_what_pytorch_runs():
    rows = [
        {
            "name": "a",
            "verdict": "equal",
            "seconds": 2.0,
            "torch_seconds": 3.0,
            "numbers": 4,
            "difference": 1e-9,
            "note": "",
        },
        {
            "name": "b",
            "verdict": "fails",
            "seconds": 0.0,
            "torch_seconds": 3.0,
            "numbers": 4,
            "note": "ValueError: x | y",
        },
        {
            "name": "c",
            "verdict": "not in PyTorch",
            "seconds": 0.0,
            "torch_seconds": 0.0,
            "numbers": 0,
            "note": "too old",
        },
        {
            "name": "d",
            "verdict": "runs",
            "seconds": 1.0,
            "torch_seconds": 1.0,
            "numbers": 0,
            "note": "prints no numbers",
        },
    ]
    page = report.page(rows)
    # a program that prints no numbers has none that could be equal
    assert "1 of 2 programs" in page and "1 more print none" in page
    assert "more print none" not in report.page(rows[:3])
    assert "| a | equal | 4 | 1.0e-09 | 1.50 |  |" in page
    assert "| b | fails | 4 |  |  | ValueError: x \\| y |" in page
    assert "| a | equal | 4 | 1.0e-09 |  |" in report.page(rows, speed=False)


def test_names_are_unique():
    names = [program.name for program in PROGRAMS]
    assert len(names) == len(set(names))

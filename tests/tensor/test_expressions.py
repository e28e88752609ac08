"""Expressions against the recorded answers of real PyTorch: tests/golden/expressions."""

from __future__ import annotations

import pytest

import msadapter as torch
from tests.golden.suites import cases
from tests.golden.verdict import check

TOPICS = (
    "accepted_arguments",
    "argument_checks",
    "aten",
    "determinism",
    "complex32",
    "float8",
    "further_names",
    "layer_checks",
    "created_values",
    "number_ranges",
    "rare_methods",
    "storages",
    "result_layouts",
    "tensor_numbers",
)
CASES = {topic: cases(topic) for topic in TOPICS}
ALL = [(topic, case) for topic in TOPICS for case in CASES[topic]]


@pytest.mark.parametrize("topic, case", ALL, ids=[f"{topic}: {case}" for topic, case in ALL])
def test_answer_is_that_of_torch(topic, case):
    check(topic, case, CASES[topic][case], torch)

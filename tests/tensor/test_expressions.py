"""Expressions against the recorded answers of real PyTorch: tests/golden/expressions."""

from __future__ import annotations

import msadapter as torch
from tests.batches import together
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
    "named_results",
    "created_values",
    "number_ranges",
    "rare_methods",
    "storages",
    "result_layouts",
    "tensor_numbers",
)
CASES = {topic: cases(topic) for topic in TOPICS}
ALL = {f"{topic}: {case}": (topic, case) for topic in TOPICS for case in CASES[topic]}


@together(ALL)
def test_answer_is_that_of_torch(name):
    topic, case = ALL[name]
    check(topic, case, CASES[topic][case], torch)

"""Expressions against the recorded answers of real PyTorch: tests/golden/expressions."""

from __future__ import annotations

import pytest

import msadapter as torch
from tests.golden import expressions

CASES = [(topic, case) for topic in expressions.topics() for case in expressions.load(topic).CASES]
TOPICS = {topic: (expressions.load(topic), expressions.answers(topic)) for topic in expressions.topics()}


@pytest.mark.parametrize("topic, case", CASES, ids=[f"{topic}: {case}" for topic, case in CASES])
def test_answer_is_that_of_torch(topic, case):
    cases, answers = TOPICS[topic]
    want, have = dict(answers[case]) if isinstance(answers[case], dict) else answers[case], None
    have = expressions.evaluate(cases, case, torch)
    if isinstance(want, dict) and case.startswith("~"):
        assert have["error"] == want["error"]
        return
    found = expressions.differences(have, want)
    assert not found, found[0]

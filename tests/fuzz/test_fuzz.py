"""The fuzzing harness: a few hundred cases, the seeds that found something, and that it finds what is wrong."""

from __future__ import annotations

import io
import re

import pytest

import msadapter as torch

from . import cases, worker
from .__main__ import run


@pytest.mark.parametrize("seed, count", [(0, 400), (1, 100), (2, 100)])
def test_nothing_is_wrong(seed, count):
    assert run(seed, count) == []


def test_an_ordinary_pickle_may_break_its_tensors():
    """Case 9492 replaces the indices of a sparse tensor by bytes. Only weights_only=True promises to refuse this."""
    assert not cases.make(14, 9492).weights_only
    assert run(14, 1, first=9492) == []


def test_a_case_is_a_function_of_its_seed():
    for number in range(50):
        assert cases.make(3, number) == cases.make(3, number)
    assert cases.make(3, 0) != cases.make(4, 0)


def test_some_cases_are_sound():
    """If every file were refused at its first byte, the fuzzing would test nothing."""
    loaded = 0
    for number in range(200):
        case = cases.make(5, number)
        if case.kind in ("zip", "legacy"):
            try:
                torch.load(io.BytesIO(case.content))
                loaded += 1
            except worker.REFUSED:
                pass
    assert loaded > 15


@pytest.mark.parametrize(
    "what, text",
    [
        ("open('here', 'w').close()", "wrote|open"),
        ("os.kill(os.getpid(), 11)", "ended with -11"),
        ("os.system('true')", "os.system"),
        ("time.sleep(60)", "took more than"),
        ("bytearray(400 << 20)", "took .* MB"),
        ("raise KeyError('x')", "KeyError"),
    ],
)
def test_what_the_harness_finds(what, text, monkeypatch):
    monkeypatch.setenv("MSADAPTER_FUZZ_PROBE", what)
    found = run(0, 1, patience=5)
    assert len(found) >= 1
    assert any(re.search(text, line) for _, line in found), found

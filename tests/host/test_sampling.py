"""The choice of tests by --every (tests/sampling.py)."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.sampling import sampled

NAMES = ("add-f32-0", "add-f32-1", "add-f64-0", "sin-f32-0", "sin-f32-1", "add-f64-1")
CASES = [f"a.py::test_values[{name}]" for name in NAMES]


def test_each_word_is_kept_once():
    assert sampled(CASES, 100) == {CASES[0], CASES[2], CASES[3]}


def test_every_nth_case_is_kept_too():
    assert sampled(CASES, 4) == {CASES[0], CASES[2], CASES[3], CASES[4]}
    assert sampled(CASES, 1) == set(CASES)


def test_functions_are_chosen_from_separately():
    names = ["a.py::test_one[add]", "a.py::test_two[add]", "b.py::test_one[add]", "b.py::test_plain"]
    assert sampled(names, 10) == set(names)


def test_names_of_modules_are_one_word():
    names = [
        f"a.py::test[{name}-0]" for name in ("nn.functional.relu", "nn.functional.gelu", "nn.functional.relu")
    ]
    assert sampled(names, 10) == set(names[:2])


@pytest.mark.parametrize(
    ("value", "code", "words"),
    [("0", 4, "--every must be at least 1, not 0"), ("100", 0, "4 deselected")],
)
def test_the_option_of_pytest(value, code, words):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--every={value}"]
    command += ["--collect-only", f"{__file__}::test_nothing_else"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == code and words in done.stdout + done.stderr, done.stdout + done.stderr


@pytest.mark.parametrize("number", range(5))
def test_nothing_else(number):
    """Cases for the test above to count."""
    assert number in range(5)

"""Tests of many cases (tests/batches.py)."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests import batches
from tests.conftest import ROOT

NAMES = [f"{operator}-float32-{number}" for operator in ("add", "sin") for number in range(25)]


def test_all_failures_are_told_and_all_cases_run():
    ran = []

    def function(case):
        ran.append(case)
        assert case != "a", "first"
        if case == "c":
            raise KeyError("second")

    with pytest.raises(pytest.fail.Exception) as failure:
        batches.run(["a", "b", "c", "d"], function)
    assert ran == ["a", "b", "c", "d"]
    text = str(failure.value)
    assert (
        text.startswith("2 of 4 cases:\na\nfirst")
        and "\nc\nTraceback" in text
        and "KeyError: 'second'" in text
    )


def test_the_failures_of_pytest_end_no_other_case():
    """pytest.fail and pytest.raises raise what is no Exception."""
    ran = []

    def function(case):
        ran.append(case)
        with pytest.raises(ValueError):
            int(case)

    with pytest.raises(pytest.fail.Exception) as failure:
        batches.run(["1", "a", "2"], function)
    assert ran == ["1", "a", "2"] and str(failure.value).count("DID NOT RAISE") == 2


def test_one_case_fails_with_its_own_traceback():
    with pytest.raises(KeyError):
        batches.run(["a"], {}.__getitem__)


@pytest.mark.parametrize(
    ("key", "sizes"),
    [(batches.operator, {"add": 25, "sin": 25}), (None, {"0 and on": 20, "20 and on": 20, "40 and on": 10})],
)
def test_cases_are_grouped(key, sizes):
    def function(name, tmp_path):
        """Of one case."""

    made = batches.together(NAMES, key)(function)
    (mark,) = made.pytestmark
    assert dict(zip(mark.kwargs["ids"], map(len, mark.args[1]), strict=True)) == sizes
    assert [name for group in mark.args[1] for name in group] == NAMES and made.__doc__ == "Of one case."


WRONG = "sin-float32-3"


@batches.together(NAMES, batches.operator)
def test_a_case_of_the_tests_below(name):
    assert name != os.environ.get("MSADAPTER_WRONG_CASE")


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ([], 1, "1 failed, 1 passed"),
        (["--case", "sin-float32-1"], 0, "1 passed"),
        (["--case", "add"], 0, "1 passed"),
        (["--case", WRONG], 1, "1 failed"),
        (["--every", "3"], 0, "2 passed"),  # the wrong case is left out
        (["--every", "2"], 1, "1 failed, 1 passed"),
    ],
)
def test_options_choose_cases(options, code, words):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    command.append(f"{__file__}::test_a_case_of_the_tests_below")
    environment = {**os.environ, "MSADAPTER_WRONG_CASE": WRONG}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == code and words in done.stdout, done.stdout + done.stderr
    assert code == 0 or WRONG in done.stdout

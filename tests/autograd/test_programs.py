"""Random programs of views, in-place operations and arithmetic: values, strides, versions, errors and gradients."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msadapter as torch
from tests.batches import together
from tests.golden import make_programs_digests, programs, store
from tests.golden.suites import cases
from tests.golden.verdict import check, difference

CASES = cases("programs")
# Hashes of many more programs: errors, geometry, numbers and gradients.
DIGESTS = store.load("programs_digests").cases


@together(CASES)
def test_recorded(seed):
    check("programs", seed, CASES[seed], torch)


def test_thousands_of_random_programs_agree_with_pytorch():
    """Programs must agree with PyTorch in every error, size, stride, version, flag, number and gradient."""
    wrong = []
    for seed, recorded in DIGESTS.items():
        found = make_programs_digests.answer(torch, int(seed))
        if found != recorded:
            wrong.append((seed, found, recorded))
    assert len(DIGESTS) >= 3000
    assert not wrong, f"{len(wrong)} programs differ, the first: {wrong[:5]}"


_SERVER = """
import json, sys, torch
from tests.golden import make_programs_digests, programs
for line in sys.stdin:
    print(json.dumps(programs.run(torch, json.loads(line))), flush=True)
"""


@pytest.mark.slow
def test_fresh(torch_python):
    """Programs that were not recorded. PyTorch computes their answers during the test."""
    root = Path(__file__).resolve().parents[2]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [torch_python, "-c", _SERVER], stdin=pipe, stdout=pipe, text=True, cwd=root
    ) as server:

        @settings(max_examples=300, deadline=None)
        @given(st.data())
        def check(data):
            program = programs.build(
                lambda n: data.draw(st.integers(0, n - 1)), data.draw(st.integers(1, 10))
            )
            server.stdin.write(json.dumps(program) + "\n")
            server.stdin.flush()
            theirs = json.loads(server.stdout.readline())
            assert difference(json.loads(json.dumps(programs.run(torch, program))), theirs) is None, program

        check()
        server.stdin.close()

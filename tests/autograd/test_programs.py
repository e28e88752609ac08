"""Random programs of views, in-place operations and arithmetic: values, strides, versions, errors and gradients."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msadapter as torch
from tests.golden import programs
from tests.golden.contracts import difference, golden

RECORDED = golden("programs")
# Hashes of many more programs: errors, geometry, numbers and gradients, for the seeds from 10000 on.
DIGESTS = golden("programs_digests")


@pytest.mark.parametrize("seed", list(RECORDED))
def test_recorded(seed):
    program = programs.from_seed(int(seed))
    found = json.loads(json.dumps(programs.run(torch, program)))
    assert difference(found, RECORDED[seed]) is None, program


def test_thousands():
    """Programs must agree with PyTorch in every error, size, stride, version, flag, number and gradient."""
    wrong = []
    for offset, recorded in enumerate(DIGESTS["programs"]):
        seed = DIGESTS["first_seed"] + offset
        answer = json.loads(json.dumps(programs.run(torch, programs.from_seed(seed))))
        found = programs.digest(answer)
        if found != recorded:
            wrong.append((seed, found, recorded))
    assert len(DIGESTS["programs"]) >= 3000
    assert not wrong, f"{len(wrong)} programs differ, the first: {wrong[:5]}"


_SERVER = """
import json, sys, torch
from tests.golden import programs
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

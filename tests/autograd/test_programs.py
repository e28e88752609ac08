"""Random programs of views, in-place operations and arithmetic: values, strides, versions, errors and gradients as PyTorch's."""
from __future__ import annotations

import json
import subprocess
from pathlib import Path

import programs
import pytest
from contracts import difference, golden
from hypothesis import given, settings
from hypothesis import strategies as st

import msadapter as torch

RECORDED = golden("programs")


@pytest.mark.parametrize("seed", RECORDED)
def test_recorded(seed):
    program = programs.from_seed(int(seed))
    found = json.loads(json.dumps(programs.run(torch, program)))
    assert difference(found, RECORDED[seed]) is None, program


_SERVER = """
import json, sys
import programs, torch
for line in sys.stdin:
    print(json.dumps(programs.run(torch, json.loads(line))), flush=True)
"""


@pytest.mark.slow
def test_fresh(torch_python):
    """Programs that nobody has recorded, answered by PyTorch as they come."""
    folder = Path(programs.__file__).parent
    with subprocess.Popen([torch_python, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder) as server:
        @settings(max_examples=300, deadline=None)
        @given(st.data())
        def check(data):
            program = programs.build(lambda n: data.draw(st.integers(0, n - 1)), data.draw(st.integers(1, 10)))
            server.stdin.write(json.dumps(program) + "\n")
            server.stdin.flush()
            theirs = json.loads(server.stdout.readline())
            assert difference(json.loads(json.dumps(programs.run(torch, program))), theirs) is None, program
        check()
        server.stdin.close()

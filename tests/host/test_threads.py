"""How many threads a program has, which MindSpore must not change."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import subprocess
import msadapter as torch
torch.ones(3).sum()
child = subprocess.run(["sh", "-c", "echo $OMP_NUM_THREADS"], capture_output=True, text=True)
print(torch.get_num_threads(), child.stdout.strip() or "unset")
"""
ALL = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("variables", "threads", "child"),
    [
        ({}, ALL, "unset"),
        ({"OMP_NUM_THREADS": "1"}, 1, "1"),
        ({"OMP_NUM_THREADS": "3"}, 3, "3"),
        ({"MPI_LOCALNRANKS": "2"}, 1, "unset"),
        ({"MPI_LOCALNRANKS": "1"}, ALL, "unset"),
        ({"LOCAL_WORLD_SIZE": "4", "OMP_NUM_THREADS": "2"}, 2, "2"),
    ],
)
def test_a_program_has_all_processors_unless_the_user_says_otherwise(variables, threads, child):
    assert _found(PROGRAM, variables) == [str(threads), child]


def test_mindspore_may_be_imported_first():
    assert _found("import mindspore\n" + PROGRAM, {}) == [str(ALL), "unset"]


def _found(program, variables):
    clean = {
        name: value
        for name, value in os.environ.items()
        if name
        not in ("OMP_NUM_THREADS", "LOCAL_WORLD_SIZE", "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE")
    }
    done = subprocess.run(
        [sys.executable, "-c", program], env=clean | variables, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()

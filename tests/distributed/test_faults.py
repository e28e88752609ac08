"""A rank is killed, stopped, late, raises an error or runs another operation.

The job must end soon, name the rank and leave no process.

Every third operation gets one fault. MSADAPTER_FAULTS=1 runs all pairs of operation and fault (5 minutes),
and fifty jobs in a row.
"""

import os
import re

import pytest

from tests.distributed.ranks import JOBS, torchrun

OPERATIONS = re.findall(r'^    "(\w+)": ', (JOBS / "fault.py").read_text(), re.M)
# the expected message and exit code
FAULTS = {
    "killed": (r"rank 1 .* ended with signal SIGKILL", 137),
    "raising": (r"ValueError: the fault of rank 1", 1),
    "stopped": (r"Rank 1 does not answer", 1),
    # on a busy machine, rank 2 can be late too
    "late": (r"Ranks that have not arrived: \[1(, 2)?\]|Rank 0 is in RECV from 1", 1),
    "out of step": (r"Rank 1 is running collective|ranks \[1\] did not|RECV from 1", 1),
}
ALL = os.environ.get("MSADAPTER_FAULTS") == "1"
SOME = [(operation, list(FAULTS)[i % len(FAULTS)]) for i, operation in enumerate(OPERATIONS[::3])]
PAIRS = [(operation, fault) for operation in OPERATIONS for fault in FAULTS] if ALL else SOME


@pytest.mark.parametrize("operation, fault", PAIRS)
def test_the_job_ends_and_names_the_rank(operation, fault):
    pytest.importorskip("mpi4py")
    said, code = FAULTS[fault]
    extra = {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"} if fault == "out of step" else {}
    done = torchrun("--standalone", "--nproc-per-node", 3, JOBS / "fault.py", operation, fault, **extra)
    assert done.returncode == code, done.stderr[-3000:]
    assert re.search(said, done.stderr), done.stderr[-3000:]


@pytest.mark.skipif(not ALL, reason="fifty jobs take 2 minutes: set MSADAPTER_FAULTS=1")
def test_fifty_jobs_in_a_row():
    for _ in range(50):
        done = torchrun("--nproc-per-node", 2, JOBS / "fault.py", "all_reduce", "none")
        assert done.returncode == 0, done.stderr

"""The collectives between real processes: each check of jobs/collectives.py on two and on three ranks.

Once more without shared memory, as between several machines: then all collectives go through MPI.
"""

import pytest

from tests.distributed.ranks import checks_of, outcomes_of

CHECKS = checks_of("collectives.py")


@pytest.fixture(
    scope="module", params=[(2, {}), (3, {}), (3, {"MSADAPTER_TEST_MPI": "1"})], ids=["2", "3", "3-mpi"]
)
def outcomes(request, tmp_path_factory):
    """Run one job and return the results of every rank for every check."""
    size, extra = request.param
    return outcomes_of("collectives.py", size, tmp_path_factory.mktemp("outcomes"), **extra)


@pytest.mark.parametrize("name", CHECKS)
def test_check(outcomes, name):
    for rank, outcome in enumerate(outcomes):
        assert outcome[name] == "ok", f"rank {rank}: {outcome[name]}"

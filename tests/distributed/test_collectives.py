"""The collectives between real processes: each check of jobs/collectives.py on two and on three ranks."""

import pytest

from tests.distributed.ranks import checks_of, outcomes_of

CHECKS = checks_of("collectives.py")


@pytest.fixture(scope="module", params=[2, 3])
def outcomes(request, tmp_path_factory):
    """Run one job and return the results of every rank for every check."""
    return outcomes_of("collectives.py", request.param, tmp_path_factory.mktemp("outcomes"))


@pytest.mark.parametrize("name", CHECKS)
def test_check(outcomes, name):
    for rank, outcome in enumerate(outcomes):
        assert outcome[name] == "ok", f"rank {rank}: {outcome[name]}"

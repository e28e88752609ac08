"""Products fused with communication between real processes: each check of jobs/fused_products.py on two and four ranks."""

import pytest

from tests.distributed.ranks import checks_of, outcomes_of

CHECKS = checks_of("fused_products.py")


@pytest.fixture(scope="module", params=[2, pytest.param(4, marks=pytest.mark.extended)])
def outcomes(request, tmp_path_factory):
    """The results of every rank for every check, from one job."""
    return outcomes_of("fused_products.py", request.param, tmp_path_factory.mktemp("outcomes"))


@pytest.mark.parametrize("name", CHECKS)
def test_check(outcomes, name):
    for rank, outcome in enumerate(outcomes):
        assert outcome[name] == "ok", f"rank {rank}: {outcome[name]}"

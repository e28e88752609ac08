"""Groups that are not all ranks: each check of jobs/subgroups.py on four ranks."""

import pytest

from tests.distributed.ranks import checks_of, outcomes_of

CHECKS = checks_of("subgroups.py")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    return outcomes_of("subgroups.py", 4, tmp_path_factory.mktemp("outcomes"))


@pytest.mark.parametrize("name", CHECKS)
def test_check(outcomes, name):
    for rank, outcome in enumerate(outcomes):
        assert outcome[name] == "ok", f"rank {rank}: {outcome[name]}"

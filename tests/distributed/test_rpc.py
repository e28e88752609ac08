"""Remote procedure calls on three workers: each check of jobs/rpc.py."""

import pytest

from tests.distributed.ranks import checks_of, outcomes_of

CHECKS = checks_of("rpc.py")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    return outcomes_of("rpc.py", 3, tmp_path_factory.mktemp("outcomes"))


@pytest.mark.parametrize("name", CHECKS)
def test_check(outcomes, name):
    for rank, outcome in enumerate(outcomes):
        assert outcome[name] == "ok", f"rank {rank}: {outcome[name]}"

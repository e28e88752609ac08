"""Communication that is aborted and made anew: each check of jobs/aborting.py on four ranks."""

import pytest

from tests.distributed.ranks import checks_of, outcomes_of

CHECKS = checks_of("aborting.py")


@pytest.fixture(scope="module", params=[{}, {"MSADAPTER_TEST_MPI": 1}])
def outcomes(request, tmp_path_factory):
    """With shared memory, and through MPI alone."""
    return outcomes_of("aborting.py", 4, tmp_path_factory.mktemp("outcomes"), 120, **request.param)


@pytest.mark.parametrize("name", CHECKS)
def test_check(outcomes, name):
    for rank, outcome in enumerate(outcomes):
        assert outcome[name] == "ok", f"rank {rank}: {outcome[name]}"


def test_ranks_that_compare_their_collectives_first(tmp_path):
    """With TORCH_DISTRIBUTED_DEBUG=DETAIL, a rank waits in the store for the others to begin."""
    for outcome in outcomes_of("aborting_detail.py", 4, tmp_path, 120, TORCH_DISTRIBUTED_DEBUG="DETAIL"):
        assert list(outcome.values()) == ["ok", "ok", "ok"], outcome

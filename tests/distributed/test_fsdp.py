"""fully_shard on two and on four ranks: each check of jobs/fsdp.py."""

import re

import pytest

from tests.distributed.ranks import JOBS, outcomes_of

CHECKS = re.findall(r"^def (check_\w+)", (JOBS / "fsdp.py").read_text(), re.M)


@pytest.fixture(scope="module", params=[2, 4])
def outcomes(request, tmp_path_factory):
    return outcomes_of("fsdp.py", request.param, tmp_path_factory.mktemp("outcomes"), limit=120)


@pytest.mark.parametrize("name", CHECKS)
def test_check(outcomes, name):
    if len(outcomes) == 4 and name not in outcomes[0]:
        pytest.skip("says nothing new on four ranks")
    for rank, outcome in enumerate(outcomes):
        assert outcome[name] == "ok", f"rank {rank}: {outcome[name]}"

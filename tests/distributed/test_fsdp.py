"""fully_shard on two and on four ranks: each check of jobs/fsdp.py."""

import pytest

from tests.distributed.ranks import checks_of, constant_of, outcomes_of

CHECKS = checks_of("fsdp.py")
WITH_FOUR = constant_of("fsdp.py", "WITH_FOUR")


@pytest.fixture(scope="module")
def of_two(tmp_path_factory):
    return outcomes_of("fsdp.py", 2, tmp_path_factory.mktemp("two"), limit=120)


@pytest.fixture(scope="module")
def of_four(tmp_path_factory):
    return outcomes_of("fsdp.py", 4, tmp_path_factory.mktemp("four"), limit=120)


@pytest.mark.parametrize("name", CHECKS)
def test_two(of_two, name):
    for rank, outcome in enumerate(of_two):
        assert outcome[name] == "ok", f"rank {rank}: {outcome[name]}"


@pytest.mark.extended
@pytest.mark.parametrize("name", [name for name in CHECKS if name.startswith(WITH_FOUR)])
def test_four(of_four, name):
    for rank, outcome in enumerate(of_four):
        assert outcome[name] == "ok", f"rank {rank}: {outcome[name]}"

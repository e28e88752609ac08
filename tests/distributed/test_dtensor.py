"""DTensor on two and on four ranks: each check of jobs/dtensor.py."""

import pytest

from tests.distributed.ranks import checks_of, constant_of, outcomes_of
from tests.golden import store

RECORDED = store.load("dtensor").cases
OF_TWO, OF_FOUR = (
    [case.partition(" ")[2] for case in RECORDED if case.startswith(f"{size} ")]
    for size in ("CASES", "CASES_OF_FOUR")
)
OWN = checks_of("dtensor.py")
WITH_FOUR = constant_of("dtensor.py", "WITH_FOUR")


@pytest.fixture(scope="module")
def of_two(tmp_path_factory):
    return outcomes_of("dtensor.py", 2, tmp_path_factory.mktemp("two"), limit=120)


@pytest.fixture(scope="module")
def of_four(tmp_path_factory):
    return outcomes_of("dtensor.py", 4, tmp_path_factory.mktemp("four"), limit=120)


@pytest.mark.parametrize("name", [*OWN, *("check_case_" + name for name in OF_TWO)])
def test_two(of_two, name):
    for rank, outcome in enumerate(of_two):
        assert outcome[name] == "ok", f"rank {rank}: {outcome[name]}"


OWN_OF_FOUR = [name for name in OWN if name.startswith(WITH_FOUR)]


@pytest.mark.parametrize("name", [*OWN_OF_FOUR, *("check_case_" + name for name in OF_FOUR)])
def test_four(of_four, name):
    for rank, outcome in enumerate(of_four):
        assert outcome[name] == "ok", f"rank {rank}: {outcome[name]}"


@pytest.mark.parametrize("size", [3, pytest.param(4, marks=pytest.mark.extended)])
def test_random_placements(size, tmp_path):
    """Three ranks in one mesh dimension give uneven and empty parts. Four ranks form two mesh dimensions."""
    outcomes = outcomes_of("dtensor_random.py", size, tmp_path, limit=120)
    assert len(outcomes[0]) > 35
    failed = {
        (name, rank): text for rank, o in enumerate(outcomes) for name, text in o.items() if text != "ok"
    }
    assert not failed

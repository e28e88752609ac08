"""Remote procedure calls on three workers: each check of jobs/rpc.py."""

import pytest

from msadapter.distributed import rpc
from tests.distributed.ranks import checks_of, outcomes_of

CHECKS = checks_of("rpc.py")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    return outcomes_of("rpc.py", 3, tmp_path_factory.mktemp("outcomes"))


@pytest.mark.parametrize("name", CHECKS)
def test_check(outcomes, name):
    for rank, outcome in enumerate(outcomes):
        assert outcome[name] == "ok", f"rank {rank}: {outcome[name]}"


def test_workers_that_join_later_are_refused(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with pytest.raises(NotImplementedError, match=r"init_rpc: without world_size.*\(docs/coverage.md\)"):
        rpc.init_rpc("worker0", rank=0)

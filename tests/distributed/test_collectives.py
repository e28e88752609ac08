"""The collectives between real processes: each check of jobs/collectives.py on two and on three ranks."""

import json
import re

import pytest

from tests.distributed.ranks import JOBS, torchrun

CHECKS = re.findall(r"^def (check_\w+)", (JOBS / "collectives.py").read_text(), re.M)


@pytest.fixture(scope="module", params=[2, 3])
def outcomes(request, tmp_path_factory):
    """What every rank says about every check, from one job."""
    results = tmp_path_factory.mktemp("outcomes") / "rank"
    done = torchrun("--nproc-per-node", request.param, JOBS / "run_checks.py", JOBS / "collectives.py", results)
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(results.with_name(f"rank.{rank}").read_text()) for rank in range(request.param)]


@pytest.mark.parametrize("name", CHECKS)
def test_check(outcomes, name):
    for rank, outcome in enumerate(outcomes):
        assert outcome[name] == "ok", f"rank {rank}: {outcome[name]}"

"""accelerate and transformers on two ranks: each check of jobs/hugging_face.py, where both are installed."""

import importlib.util

import pytest

from tests.distributed.ranks import checks_of, outcomes_of

CHECKS = checks_of("hugging_face.py")
ABSENT = [name for name in ("accelerate", "transformers") if importlib.util.find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(ABSENT), reason=f"needs {ABSENT}")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    return outcomes_of("hugging_face.py", 2, tmp_path_factory.mktemp("outcomes"), limit=120)


@pytest.mark.parametrize("name", CHECKS)
def test_check(outcomes, name):
    for rank, outcome in enumerate(outcomes):
        assert outcome[name] == "ok", f"rank {rank}: {outcome[name]}"

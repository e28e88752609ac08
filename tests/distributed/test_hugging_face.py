"""accelerate and transformers on two ranks: each check of jobs/hugging_face.py, where both are installed."""

import importlib.util
import sys

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
    if sys.version_info < (3, 11) and name == "check_tensor_parallel_plan":
        pytest.skip(
            "with transformers 5.20.2, the last release for Python 3.10, the loss differs from one process's"
        )
    for rank, outcome in enumerate(outcomes):
        assert outcome[name] == "ok", f"rank {rank}: {outcome[name]}"

"""Makes the cases of this folder and the tools of tests/golden importable by name."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "golden")]


@pytest.fixture(autouse=True)
def _named_torch(torch_by_name):
    """Tensors are pickled under torch's names."""

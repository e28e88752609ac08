"""Makes the cases of the nn tests importable by name."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))


@pytest.fixture(autouse=True)
def _named_torch(torch_by_name):
    """Modules are pickled under torch's names."""

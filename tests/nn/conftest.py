"""The tests of nn need its cases next to them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))


@pytest.fixture(autouse=True)
def _named_torch(torch_by_name):
    """Modules are pickled as torch's."""

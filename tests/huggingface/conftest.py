"""transformers on this project."""

from __future__ import annotations

import pytest


@pytest.fixture
def transformers(torch_by_name):
    return pytest.importorskip("transformers")

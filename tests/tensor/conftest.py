"""Tensors are pickled under torch's names in every test of this folder."""

import pytest


@pytest.fixture(autouse=True)
def _named_torch(torch_by_name):
    """Install the alias for each test."""

"""Hooks, states, containers, initialisers and errors: the scenarios must give PyTorch's results."""

import pytest

import msadapter as torch
from tests.batches import together
from tests.golden import store
from tests.golden.suites import cases
from tests.golden.verdict import check

CASES = cases("nn_scenarios")


@together(CASES)
def test_scenario(name):
    check("nn_scenarios", name, CASES[name], torch)


@pytest.mark.parametrize("namespace", ["nn", "nn.functional", "nn.init", "nn.utils"])
def test_every_public_name_is_there(namespace):
    module = torch
    for part in namespace.split("."):
        module = getattr(module, part)
    missing = [name for name in store.load("nn_names").cases[namespace] if not hasattr(module, name)]
    assert not missing

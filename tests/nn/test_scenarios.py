"""Hooks, states, containers, initialisers and errors: the scenarios must give PyTorch's results."""

import json
import warnings
from pathlib import Path

import pytest

import msadapter as torch
from tests.nn import (
    scenarios,
    scenarios_parts,  # noqa: F401  adds its stories
)

GOLDEN = json.loads((Path(__file__).resolve().parents[1] / "golden" / "nn_scenarios.json").read_text())


def _differences(got, want, path):
    """Return a readable list of the differences between two pieces of data."""
    if isinstance(want, dict) and isinstance(got, dict):
        found = [f"{path}: keys {sorted(set(got) ^ set(want))}"] if set(got) != set(want) else []
        return found + [d for k in want if k in got for d in _differences(got[k], want[k], f"{path}.{k}")]
    if isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        return [
            d
            for i, (g, w) in enumerate(zip(got, want, strict=True))
            for d in _differences(g, w, f"{path}[{i}]")
        ]
    if isinstance(want, float) and isinstance(got, (int, float)):
        return (
            []
            if got == pytest.approx(want, rel=1e-4, abs=2e-5, nan_ok=True)
            else [f"{path}: {got} for {want}"]
        )
    return [] if got == want else [f"{path}:\n  got  {got!r}\n  want {want!r}"]


@pytest.mark.parametrize("name", scenarios.SCENARIOS)
def test_scenario(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        told = json.loads(json.dumps(scenarios.SCENARIOS[name](torch)))
    found = _differences(told, GOLDEN["scenarios"][name], name)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("namespace", ["nn", "nn.functional", "nn.init", "nn.utils"])
def test_every_public_name_is_there(namespace):
    module = torch
    for part in namespace.split("."):
        module = getattr(module, part)
    missing = [name for name in GOLDEN[namespace] if not hasattr(module, name)]
    assert not missing

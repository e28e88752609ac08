"""Quantised tensors against the answers recorded from PyTorch."""

from __future__ import annotations

import pytest

import msadapter as torch
from tests.batches import together
from tests.golden.suites import cases
from tests.golden.verdict import check

CASES = cases("quantized")
TRAINING = cases("quantized_training")


@pytest.fixture(autouse=True)
def _names(torch_by_name):
    """Make `import torch` return this project, because some cases import torch by name."""


@together(CASES)
def test_case(name):
    check("quantized", name, CASES[name], torch)


@together(TRAINING)
def test_training_case(name):
    check("quantized_training", name, TRAINING[name], torch)


@pytest.mark.parametrize(
    "call",
    [
        lambda q: q.HistogramObserver(),
        lambda q: q.MinMaxObserver(dtype=torch.quint4x2),
        lambda q: q.get_default_qconfig().activation(),
    ],
)
def test_an_observer_that_is_not_supported_says_so(call):
    with pytest.raises(NotImplementedError, match=r"docs/coverage\.md"):
        call(torch.ao.quantization)


def test_what_is_not_supported_says_so():
    q = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)
    calls = [
        lambda: q + q,
        lambda: torch.relu(q),
        lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint4x2),
        lambda: torch.ao.quantization.quantize_dynamic(torch.nn.LSTM(2, 2)),
        lambda: torch.ao.quantization.quantize_dynamic(torch.nn.Linear(2, 2), dtype=torch.float16),
        lambda: torch.save(q, "/dev/null"),
    ]
    for call in calls:
        with pytest.raises(NotImplementedError, match=r"docs/coverage\.md"):
            call()
    model = torch.nn.Sequential(torch.nn.Linear(3, 2))
    made = torch.ao.quantization.quantize_dynamic(model)
    other = torch.ao.quantization.quantize_dynamic(torch.nn.Sequential(torch.nn.Linear(3, 2)))
    other.load_state_dict(made.state_dict())
    assert torch.equal(other[0].weight(), made[0].weight())
    assert torch.equal(other(torch.ones(1, 3)), made(torch.ones(1, 3)))

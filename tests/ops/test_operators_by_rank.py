"""Which of MindSpore's operators pooling, resizing and convolution run.

The kernels of a CPU often take any number of dims, so numbers do not tell. On an NPU the operator must be the right one.
"""

from __future__ import annotations

import re

import pytest

import msadapter as torch
from msadapter.ops import nn_conv, nn_misc, nn_pool

F = torch.nn.functional
PICTURES = {1: (2, 3, 8), 2: (2, 3, 8, 6), 3: (2, 3, 8, 6, 4)}


class Recorder:
    """MindSpore's operators, with the names of those that are called."""

    def __init__(self, raw, names):
        self._raw, self._names = raw, names

    def __getattr__(self, name):
        operator = getattr(self._raw, name)

        def called(*args, **kwargs):
            self._names.append(name)
            return operator(*args, **kwargs)

        return called


@pytest.fixture
def names(monkeypatch):
    found: list[str] = []
    for module in (nn_conv, nn_misc, nn_pool):
        monkeypatch.setattr(module, "raw", Recorder(module.raw, found))
    return found


CALLS = {
    "max_pool": lambda x, n: getattr(F, f"max_pool{n}d")(x, 2, stride=1, padding=1),
    "max_pool with indices": lambda x, n: getattr(F, f"max_pool{n}d")(x, 2, return_indices=True)[0],
    "avg_pool": lambda x, n: getattr(F, f"avg_pool{n}d")(x, 2, padding=1, count_include_pad=False),
    "adaptive_avg_pool": lambda x, n: getattr(F, f"adaptive_avg_pool{n}d")(x, 3),
    "adaptive_max_pool": lambda x, n: getattr(F, f"adaptive_max_pool{n}d")(x, 3),
    "nearest": lambda x, n: F.interpolate(x, scale_factor=2),
    "linear": lambda x, n: F.interpolate(x, scale_factor=2, mode=("linear", "bilinear", "trilinear")[n - 1]),
    "conv": lambda x, n: getattr(F, f"conv{n}d")(x, torch.ones(2, 3, *[2] * n)),
    "conv_transpose": lambda x, n: getattr(F, f"conv_transpose{n}d")(x, torch.ones(3, 2, *[2] * n)),
    "grid_sample": lambda x, n: F.grid_sample(x, torch.zeros(2, *[3] * n, n)) if n > 1 else x * 1,
    "replicate": lambda x, n: F.pad(x, (1, 1) * n, mode="replicate"),
    "reflect": lambda x, n: F.pad(x, (1, 1) * n, mode="reflect"),
}


@pytest.mark.parametrize("rank", PICTURES)
@pytest.mark.parametrize("call", CALLS)
def test_operators_are_those_of_the_rank(names, call, rank):
    x = torch.ones(PICTURES[rank], requires_grad=True)
    CALLS[call](x, rank).sum().backward()
    assert x.grad.shape == x.shape
    some = [
        name for name in names if name != "AdaptiveMaxPool2D"
    ]  # left to the host for other windows (docs/ascend.md)
    told = {int(n) for name in some for n in re.findall(r"(\d)[dD](?![a-z])", name)}
    assert told <= ({1, 2} if rank == 1 else {rank}), names

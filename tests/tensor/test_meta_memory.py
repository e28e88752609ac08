"""Operators on meta tensors touch no memory, whether one thread would do their work or several."""

from __future__ import annotations

import pytest

import msadapter as torch

ELEMENTS = 1 << 22  # 16 MB in float32
OPERATORS = {
    "neg": lambda x, y: x.neg(),
    "add": lambda x, y: x + y,
    "add to": lambda x, y: x.add_(y),
    "addcmul": lambda x, y: torch.addcmul(x, y, y),
    "pow": lambda x, y: x.pow(3),
    "atan2": lambda x, y: torch.atan2(x, y),
    "where": lambda x, y: torch.where(x > 0, x, y),
    "to float16": lambda x, y: x.half() * y.half(),
    "square": lambda x, y: x.square().sum().sqrt(),
    "fill": lambda x, y: x.fill_(1.0),
    "arange": lambda x, y: torch.arange(ELEMENTS, device="meta"),
    "linspace": lambda x, y: torch.linspace(0, 1, ELEMENTS, device="meta"),
    "logspace": lambda x, y: torch.logspace(0, 1, ELEMENTS, device="meta"),
    "softmax": lambda x, y: x.view(1024, -1).softmax(-1),
    "product": lambda x, y: x.view(1024, -1) @ y.view(-1, 1024),
}


def resident() -> int:
    """The bytes of this process that are in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", OPERATORS)
def test_no_memory_is_touched(name: str, threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        x, y = (torch.empty(ELEMENTS, device="meta") for _ in range(2))
        used = resident()
        result = OPERATORS[name](x, y)
        assert result.is_meta
        assert resident() - used < ELEMENTS, "a quarter of an operand was written or read"
    finally:
        torch.set_num_threads(before)

"""Operators on operands with random placements must give the values and gradients of ordinary tensors.

MSADAPTER_DTENSOR_ROUNDS is how often each operator is tried (default 1). MSADAPTER_DTENSOR_SEED selects other
placements.
"""

import os
import random

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor._dtensor import placed

from tests.distributed.dtensor_operators import OPERATORS

ROUNDS, SEED = (
    int(os.environ.get("MSADAPTER_DTENSOR_ROUNDS", 1)),
    int(os.environ.get("MSADAPTER_DTENSOR_SEED", 0)),
)


def chosen(generator, rank: int, mesh) -> list:
    every = [Replicate(), Partial(), *[Shard(d) for d in range(rank)] * 2]
    return [generator.choice(every) for _ in range(mesh.ndim)]


def _check(name, size):
    mesh = init_device_mesh("cpu", (2, 2) if size == 4 else (size,))
    function, *shapes = OPERATORS[name]
    generator = random.Random(f"{SEED} {name}")
    for turn in range(ROUNDS):
        placements = [chosen(generator, len(shape), mesh) for shape in shapes]
        torch.manual_seed(turn)
        plain = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
        expected = function(*plain)
        weights = torch.randn(expected.shape, dtype=torch.float64)
        (expected * weights).sum().backward()
        leaves = [
            distribute_tensor(x.detach(), mesh, [Replicate()] * mesh.ndim).requires_grad_() for x in plain
        ]
        got = function(*(placed(x, p) for x, p in zip(leaves, placements, strict=True)))
        assert got.shape == expected.shape
        whole = got.full_tensor()
        (whole * weights).sum().backward()
        assert torch.allclose(whole, expected, atol=1e-9), placements
        for x, leaf in zip(plain, leaves, strict=True):
            assert torch.allclose(leaf.grad.full_tensor(), x.grad, atol=1e-9), placements


# in a single round, each number of ranks tests every second operator
for _name in list(OPERATORS)[int(os.environ["WORLD_SIZE"]) % 2 :: 2] if ROUNDS == 1 else OPERATORS:
    globals()["check_" + _name] = lambda rank, size, name=_name: _check(name, size)

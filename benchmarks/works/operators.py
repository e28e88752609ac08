"""The works of `python -m benchmarks operators`. A work's name contains everything that is needed to prepare it."""

from __future__ import annotations

import json
import math

import torch

from .registry import NotHere, Work

PREFIX = "operator "


def find(name: str) -> Work:
    """The work of a name that operators.work_of() has made."""
    call, arguments, dtype, size, backward = json.loads(name.removeprefix(PREFIX))
    return Work("operators", lambda: prepared(call, arguments, getattr(torch, dtype), size, backward))


def lookup(call: str):
    if not hasattr(torch, call.split(".")[0]):
        return getattr(torch.Tensor, call)  # such as `repeat`, which is a method alone
    found = torch
    for part in call.split("."):
        found = getattr(found, part)
    return found


class Inputs:
    """The names that a line of arguments may use, for one element type and one number of elements."""

    def __init__(self, dtype: torch.dtype, size: int, backward: bool):
        self.dtype, self.backward = dtype, backward and dtype.is_floating_point
        self.leaves: list[torch.Tensor] = []
        side, cubic = math.isqrt(size), round(2 * size ** (1 / 3))
        self.names = {
            "n": size,
            "s": side,
            "c": cubic,
            "v": round(size ** (1 / 3)),
            "m": math.isqrt(size // 64),
            "k": size // 64,
            "r": self.normal,
            "p": self.positive,
            "i": self.integers,
            "b": self.bools,
            "d": self.definite,
            "w": self.weights,
            "x": self.complexes,
            "h": self.states,
            "g": self.gates,
            "torch": torch,
        }

    def leaf(self, tensor: torch.Tensor) -> torch.Tensor:
        tensor = tensor.to(self.dtype)
        if self.backward:
            self.leaves.append(tensor.requires_grad_())
        return tensor

    def normal(self, *shape):
        if not self.dtype.is_floating_point and not self.dtype.is_complex:
            return torch.randint(-9, 10, shape, dtype=self.dtype)
        return self.leaf(torch.randn(shape, dtype=self.dtype if self.dtype.is_complex else None))

    def positive(self, *shape):
        if not self.dtype.is_floating_point and not self.dtype.is_complex:
            return torch.randint(1, 10, shape, dtype=self.dtype)
        return self.leaf(torch.rand(shape) * 0.8 + 0.1)

    def integers(self, high, *shape):
        return torch.randint(0, high, shape)

    def bools(self, *shape):
        return torch.rand(shape) < 0.5

    def definite(self, side):
        half = torch.randn(side, side) / side**0.5
        return self.leaf(half @ half.T + torch.eye(side))

    def weights(self, *shape):
        return self.leaf(torch.randn(shape) / shape[-1] ** 0.5)

    def complexes(self, *shape):
        tensor = torch.randn(shape, dtype=torch.complex64)
        if self.backward:
            self.leaves.append(tensor.requires_grad_())
        return tensor

    def states(self, count, *shape):
        """States of a recurrent network with one layer."""
        return [self.leaf(torch.randn(1, *shape)) for _ in range(count)]

    def gates(self, gates, width):
        """The parameters of a recurrent layer with this number of gates."""
        sizes = ((gates * width, width), (gates * width, width), (gates * width,), (gates * width,))
        return [self.leaf(torch.randn(size) / width**0.5) for size in sizes]


def tensors(result) -> list[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, (tuple, list)):
        return [x for part in result for x in tensors(part)]
    return []


def prepared(call: str, arguments: str, dtype: torch.dtype, size: int, backward: bool):
    torch.manual_seed(1234)
    function, inputs = lookup(call), Inputs(dtype, size, backward)
    # the arguments are Python of this repository's table (operator_arguments.py)
    args, kwargs = eval(f"(lambda *a, **k: (a, k))({arguments})", inputs.names)  # noqa: S307
    if not backward:
        return lambda: function(*args, **kwargs)
    outputs = [y for y in tensors(function(*args, **kwargs)) if y.requires_grad]
    if not outputs:
        raise NotHere("it has no gradient")
    weights = [torch.randn(y.shape).to(y.dtype) for y in outputs]
    leaves = inputs.leaves

    def both():
        results = [y for y in tensors(function(*args, **kwargs)) if y.requires_grad]
        return torch.autograd.grad(results, leaves, weights, allow_unused=True)

    try:
        both()
    except (NotImplementedError, RuntimeError) as reason:
        if "derivative" not in str(reason):
            raise
        raise NotHere(f"it has no gradient: {reason}") from None
    return both

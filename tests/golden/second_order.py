"""Second derivatives along fixed directions: the cases of the suite second_order, evaluated alike under PyTorch and here.

A case is a public call with small float64 arguments. With x the differentiable arguments, y the results, c, u, v, w fixed
numbers of their shapes and g = d<y, c>/dx, its answer is <g, u>, d<g, u>/dx along v, d<g, u>/dc along w, and <y, c>.
"""

from __future__ import annotations

import math

import numpy as np


def direction(torch, like, start: float):
    """Numbers between 0.25 and 2.25 with the shape and dtype of ``like``, which depend on nothing else."""
    values = np.cos(0.7 * np.arange(like.numel()) + start) + 1.25
    if like.is_complex():
        values = values + 1j * np.sin(0.9 * np.arange(like.numel()) + start)
    return torch.tensor(values).reshape(like.shape).to(like.dtype)


def product(a, b):
    """The real part of the inner product."""
    total = (a * b.conj() if a.is_complex() else a * b).sum()
    return total.real if total.is_complex() else total


def tensors(value) -> list:
    """The tensors in nested tuples and lists."""
    if isinstance(value, (tuple, list)):
        return [t for part in value for t in tensors(part)]
    return [value] if hasattr(value, "requires_grad") else []


def decoded(torch, value, arrays):
    """The inverse of `encoded`: an argument from its JSON. Tensors are {"array", "grad"}."""
    if isinstance(value, list):
        return [decoded(torch, v, arrays) for v in value]
    if not isinstance(value, dict):
        return value
    if "tuple" in value:
        return tuple(decoded(torch, v, arrays) for v in value["tuple"])
    if "number" in value:
        return float(value["number"])
    if "name" in value:
        return getattr(torch, value["name"])
    array = arrays[value["array"]]
    x = torch.tensor(array.astype(np.float64) if array.dtype == np.float16 else array)
    if "dtype" in value:
        dtype = getattr(torch, value["dtype"])
        x = torch.view_as_complex(x).to(dtype) if dtype.is_complex else x.to(dtype)
    return x.requires_grad_() if value["grad"] else x


def call(torch, path: str, args, kwargs):
    target = torch
    for part in path.split(".")[1:]:
        target = getattr(target, part)
    return target(*args, **kwargs)


def answer(torch, case: dict, arrays) -> dict:
    """The four numbers of a case, as a tensor is recorded."""
    args = decoded(torch, case["args"], arrays)
    kwargs = {k: decoded(torch, v, arrays) for k, v in case["kwargs"].items()}
    inputs = [x for x in tensors([args, list(kwargs.values())]) if x.requires_grad]
    outputs = [y for y in tensors(call(torch, case["path"], args, kwargs)) if y.requires_grad]
    weights = [direction(torch, y.detach(), 0.3 + k).requires_grad_() for k, y in enumerate(outputs)]
    first = torch.autograd.grad(outputs, inputs, weights, create_graph=True, allow_unused=True)
    slope = sum(
        product(g, direction(torch, g.detach(), 1.1 + k)) for k, g in enumerate(first) if g is not None
    )
    wanted = [*inputs, *weights]
    second = (
        torch.autograd.grad(slope, wanted, allow_unused=True) if slope.requires_grad else [None] * len(wanted)
    )
    along = [
        0.0 if g is None else float(product(g.detach(), direction(torch, g.detach(), 2.7 + k)))
        for k, g in enumerate(second)
    ]
    value = math.fsum(float(product(y.detach(), w.detach())) for y, w in zip(outputs, weights, strict=True))
    parts = math.fsum(along[: len(inputs)]), math.fsum(along[len(inputs) :])
    return {"dtype": "torch.float64", "shape": [4], "values": [float(slope.detach()), *parts, value]}

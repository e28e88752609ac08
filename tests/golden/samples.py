"""Values and first derivatives of samples of every operator: the cases of the suite samples, run alike under PyTorch and here.

A case is a public call. Its answer has for every tensor of the result, then for every gradient, the dtype, the shape,
how many numbers are NaN, +inf and -inf, and the sum of the others times fixed numbers (`second_order.direction`) with the
sum of the magnitudes, by which a difference is judged.
"""

from __future__ import annotations

import math

from tests.golden.second_order import call, decoded, direction, tensors


def digest(torch, x, start: float) -> dict:
    """The part of a tensor that is recorded."""
    plain = x.detach()
    wide = torch.view_as_real(plain.to(torch.complex128)) if x.is_complex() else plain.to(torch.float64)
    numbers = wide.contiguous().reshape(-1).tolist()
    counts = [sum(map(math.isnan, numbers)), numbers.count(math.inf), numbers.count(-math.inf)]
    weights = direction(torch, torch.zeros(len(numbers), dtype=torch.float64), start).tolist()
    products = [v * w for v, w in zip(numbers, weights, strict=True) if math.isfinite(v)]
    return {
        "dtype": str(x.dtype),
        "shape": list(x.shape),
        "not finite": counts,
        "sum": math.fsum(products),
        "magnitude": math.fsum(map(abs, products)),
    }


def answer(torch, case: dict, arrays) -> list:
    """The digests of a case."""
    args = decoded(torch, case["args"], arrays)
    kwargs = {k: decoded(torch, v, arrays) for k, v in case["kwargs"].items()}
    inputs = [x for x in tensors([args, list(kwargs.values())]) if x.requires_grad]
    results = tensors(call(torch, case["path"], args, kwargs))
    told = [digest(torch, y, 0.3 + k) for k, y in enumerate(results)]
    outputs = [y for y in results if y.requires_grad]
    if not inputs or not outputs:
        return told
    weights = [direction(torch, y.detach(), 0.9 + k) for k, y in enumerate(outputs)]
    gradients = torch.autograd.grad(outputs, inputs, weights, allow_unused=True)
    return told + [None if g is None else digest(torch, g, 0.5 + k) for k, g in enumerate(gradients)]

"""Reductions, softmax and their gradients over a short last dim, where several rows are computed together, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

import msadapter as torch

KINDS = {"float32": 1e-6, "float64": 1e-13, "float16": 2e-3, "bfloat16": 1.6e-2}
WHOLE = ["bool", "uint8", "int32", "int64"]
COLUMNS = [1, 2, 3, 4, 5, 17, 31, 32]
ROWS = [63, 64, 65, 300]


def numbers(shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape) * 3


def tensor_of(x, kind):
    """The tensor with the elements of x in this dtype, and its elements in float64."""
    ours = torch.from_numpy(np.ascontiguousarray(x)).to(getattr(torch, kind))
    return ours, ours.double().numpy()


def log_sum(x):
    top = x.max(-1, keepdims=True)
    return np.log(np.exp(x - top).sum(-1)) + top[..., 0]


def softmax(x):
    return np.exp(x - log_sum(x)[..., None])


FLOATING = {
    "sum": (lambda x: x.sum(-1), lambda x: x.sum(-1)),
    "mean": (lambda x: x.mean(-1), lambda x: x.mean(-1)),
    "nansum": (lambda x: x.nansum(-1), lambda x: x.sum(-1)),
    "prod": (lambda x: (x / 3).prod(-1), lambda x: (x / 3).prod(-1)),
    "amax": (lambda x: x.amax(-1), lambda x: x.max(-1)),
    "amin": (lambda x: x.amin(-1), lambda x: x.min(-1)),
    "argmax": (lambda x: x.argmax(-1), lambda x: x.argmax(-1)),
    "argmin": (lambda x: x.argmin(-1), lambda x: x.argmin(-1)),
    "max": (lambda x: x.max(-1).values, lambda x: x.max(-1)),
    "var": (lambda x: x.var(-1, correction=0), lambda x: x.var(-1)),
    "std": (lambda x: x.std(-1, correction=0), lambda x: x.std(-1)),
    "norm": (lambda x: x.norm(2, -1), lambda x: np.sqrt((x * x).sum(-1))),
    "norm of order 3": (lambda x: x.norm(3, -1), lambda x: (abs(x) ** 3).sum(-1) ** (1 / 3)),
    "largest norm": (lambda x: x.norm(np.inf, -1), lambda x: abs(x).max(-1)),
    "logsumexp": (lambda x: x.logsumexp(-1), log_sum),
    "softmax": (lambda x: x.softmax(-1), softmax),
    "log_softmax": (lambda x: x.log_softmax(-1), lambda x: x - log_sum(x)[..., None]),
    "any": (lambda x: x.gt(2).any(-1), lambda x: (x > 2).any(-1)),
    "count_nonzero": (lambda x: x.gt(0).count_nonzero(-1), lambda x: (x > 0).sum(-1)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FLOATING)
def test_floating_rows(name, kind):
    ours, exact = FLOATING[name]
    bound = KINDS[kind] * (8 if name == "prod" else 4)
    for columns in COLUMNS:
        for rows in ROWS:
            x, reference = tensor_of(numbers((rows, columns)), kind)
            np.testing.assert_allclose(ours(x).double().numpy(), exact(reference), rtol=bound, atol=bound)


@pytest.mark.parametrize("kind", WHOLE)
@pytest.mark.parametrize("columns", COLUMNS)
def test_whole_numbers(kind, columns):
    reference = np.random.default_rng(2).integers(0, 2 if kind == "bool" else 5, (130, columns))
    x = torch.from_numpy(reference).to(getattr(torch, kind))
    for ours, exact in (
        (x.sum(-1), reference.sum(-1)),
        (x.prod(-1), reference.prod(-1)),
        (x.nansum(-1), reference.sum(-1)),
        (x.amax(-1), reference.max(-1)),
        (x.amin(-1), reference.min(-1)),
        (x.max(-1).indices, reference.argmax(-1)),
        (x.min(-1).indices, reference.argmin(-1)),
        (x.all(-1), reference.all(-1)),
        (x.any(-1), reference.any(-1)),
        (x.count_nonzero(-1), (reference != 0).sum(-1)),
    ):
        np.testing.assert_array_equal(ours.numpy().astype(np.int64), exact)


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
def test_complex_rows(kind):
    x = (numbers((130, 3)) + 1j * numbers((130, 3), 2)).astype(kind)
    ours = torch.from_numpy(x)
    np.testing.assert_allclose(ours.sum(-1).numpy(), x.sum(-1), rtol=1e-5)
    np.testing.assert_allclose(ours.mean(-1).numpy(), x.mean(-1), rtol=1e-5)
    np.testing.assert_allclose(ours.prod(-1).numpy(), x.prod(-1), rtol=1e-4)


LAYOUTS = {
    "several dims": lambda x: x.reshape(5, 20, 2, 3)[:, 3:],
    "two reduced dims": lambda x: x.reshape(100, 2, 3),
    "gaps between rows": lambda x: x.reshape(100, 6)[:, 2:5],
    "gaps in rows": lambda x: x.reshape(100, 6)[:, ::2],
    "turned": lambda x: x.reshape(3, 200).T,
    "repeated row": lambda x: np.broadcast_to(x.reshape(200, 3)[7], (200, 3)),
    "repeated element": lambda x: np.broadcast_to(x.reshape(200, 3)[:, :1], (200, 3)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout):
    whole = numbers(600).astype(np.float32)
    x = LAYOUTS[layout](whole)
    ours = torch.from_numpy(whole)
    ours = ours.as_strided(x.shape, [s // 4 for s in x.strides], (x.ctypes.data - whole.ctypes.data) // 4)
    dims = (-2, -1) if layout == "two reduced dims" else (-1,)
    for name in ("sum", "mean", "prod", "amax", "var"):
        if name == "prod" and len(dims) > 1:
            continue
        result = ours.prod(-1) if name == "prod" else getattr(ours, name)(dims)
        more = {"ddof": 1} if name == "var" else {}
        exact = getattr(x.astype(np.float64), name.replace("amax", "max"))(dims, **more)
        np.testing.assert_allclose(result.numpy(), exact, rtol=1e-5, atol=1e-6)
    if len(dims) == 1:
        np.testing.assert_allclose(ours.softmax(-1).numpy(), softmax(x), rtol=1e-5)
        np.testing.assert_array_equal(ours.argmax(-1).numpy(), x.argmax(-1))


@pytest.mark.parametrize("columns", [3, 40])
def test_special_values(columns):
    nan, inf = np.nan, np.inf
    x = np.tile(numbers((1, columns)), (100, 1)).astype(np.float32)
    heads = [(nan, 1, nan), (inf, 1, -inf), (-inf, nan, inf), (inf, inf, 1), (-inf, -inf, -inf), (0, -0.0, 0)]
    for row, head in enumerate(heads):
        x[row, :3] = head
        if head[0] == -inf and head[1] == -inf:
            x[row] = -inf
    ours = torch.from_numpy(x)
    with np.errstate(all="ignore"):
        for result, exact in (
            (ours.sum(-1), x.astype(np.float64).sum(-1)),
            (ours.nansum(-1), np.nansum(x.astype(np.float64), -1)),
            (ours.amax(-1), x.max(-1)),
            (ours.amin(-1), x.min(-1)),
            (ours.var(-1), x.astype(np.float64).var(-1, ddof=1)),
            (ours.norm(2, -1), np.sqrt((x.astype(np.float64) ** 2).sum(-1))),
            (ours.softmax(-1), softmax(x.astype(np.float64))),
        ):
            np.testing.assert_allclose(result.numpy(), exact, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(
            ours.argmax(-1).numpy(), x.argmax(-1)
        )  # numpy, too, finds the first NaN
        np.testing.assert_array_equal(ours.argmin(-1).numpy(), x.argmin(-1))
        sums = ours.logsumexp(-1).numpy()
    assert np.isnan(sums[0]) and sums[1] == inf and np.isnan(sums[2]) and sums[3] == inf and sums[4] == -inf


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", COLUMNS)
def test_gradients_of_softmax(kind, columns):
    x, reference = tensor_of(numbers((300, columns)), kind)
    weight, factors = tensor_of(numbers((300, columns), 5), kind)
    p, bound = softmax(reference), KINDS[kind] * 8
    for name, exact in (
        ("softmax", p * (factors - (p * factors).sum(-1, keepdims=True))),
        ("log_softmax", factors - p * factors.sum(-1, keepdims=True)),
    ):
        leaf = x.detach().requires_grad_()
        getattr(leaf, name)(-1).backward(weight)
        np.testing.assert_allclose(leaf.grad.double().numpy(), exact, rtol=bound, atol=bound * 8)

"""The bodies that operators have on an NPU give PyTorch's results. They consist of operators that a CPU has too."""

from __future__ import annotations

import math

import pytest

import msadapter as torch
from msadapter.ops import _on_npu, random
from msadapter.ops._declare import declarations
from tests.batches import together
from tests.golden.answers import outcome
from tests.golden.verdict import check, compare
from tests.ops.npu_cases import CALLS, CASES, _values_at


def _answer(key):
    name, _, operands, options = CALLS[key]
    args = operands(torch)
    options = {k: getattr(torch, v) if isinstance(v, str) else v for k, v in options.items()}
    found = declarations[name].npu(*args, **options)
    assert found is not NotImplemented
    return _values_at(torch, *args, found) if name in ("mode", "_nanmedian_dim") else found


@together(CALLS)
def test_body_for_an_npu(key):
    compare("npu_bodies", key, outcome(lambda torch: _answer(key), torch))


@together(CASES)
def test_operator(key):
    check("npu_bodies", key, CASES[key], torch)


def test_every_body_has_a_case():
    assert {name for name, d in declarations.items() if d.npu} == {name for name, *_ in CALLS.values()}


def _left_to_the_host():
    x, half, whole, empty = (
        torch.ones(2, 3),
        torch.ones(2, 3).half(),
        torch.ones(2, 3).long(),
        torch.ones(0, 3),
    )
    double, mask, scalar = x.double(), x > 0, torch.ones(())
    row, index = torch.tensor([0, 1]), torch.zeros(2, 3).long()
    square = torch.eye(3)
    options = {"upper": True, "left": True, "unitriangular": False}
    return [
        ("hypot", whole, whole), ("hypot", double, double), ("special.entr", whole), ("special.entr", double),
        ("_ndtr", double), ("sgn", whole.to(torch.uint8)), ("sgn", whole.to(torch.int8)), ("sgn", mask),
        ("copysign", 2.0, x), ("angle", whole), ("heaviside", x, double), ("lcm", mask, mask),
        ("bitwise_right_shift", 3, whole), ("bitwise_right_shift", mask, mask), ("nextafter", half, half),
        ("nextafter", whole, whole), ("special.xlog1py", x, -1), ("special.xlog1py", x, -2.5), ("logit", whole, None),
        ("_scaled_elu", double, 1.0, 1.0, 1.0), ("logcumsumexp", double, 0), ("logcumsumexp", empty, 1),
        ("logcumsumexp", x, 2), ("logcumsumexp", x, -3), ("mode", double, 0, False), ("mode", mask, 0, False),
        ("mode", empty, 1, False), ("mode", x, 2, False), ("_nanmedian_dim", double, 0, False),
        ("_nanmedian_dim", empty, 1, False), ("_nanmedian_dim", scalar, 0, False), ("_nanmedian_all", empty),
        ("_isin", double, double, False), ("_isin", empty, x, False), ("_isin", x, empty, False), ("_isin", mask, mask, False),
        ("index_copy", x, 0, row, double), ("index_copy", x, 2, row, x), ("index_copy", x, 0, row.int(), x),
        ("index_copy", x, 0, row[None], x), ("index_copy", x, 0, row, x[:1]), ("index_copy", scalar, 0, row, scalar),
        ("put", x, row.int(), torch.ones(2), False), ("put", x, row, torch.ones(3), False), ("put", x, row, double[0, :2], False),
        ("put", empty, row, torch.ones(2), False), ("put", x, row[:0], torch.ones(0), False),
        ("scatter_reduce", x, 0, index, x, "prod"), ("scatter_reduce", x, 0, index, x, "amax"),
        ("scatter_reduce", mask, 0, index, mask, "sum"), ("scatter_reduce", x, 0, index.int(), x, "sum"),
        ("scatter_reduce", x, 0, index, double, "sum"), ("scatter_reduce", x, 0, index, x[:1], "sum"),
        ("scatter_reduce", x[:, :2], 0, index, x, "sum"), ("scatter_reduce", x, 2, index, x, "sum"),
        ("scatter_reduce", x, 0, index[0], x[0], "sum"), ("scatter_reduce", x, 0, index[:0], x[:0], "sum"),
        ("index_reduce", x, 0, row, x, "prod"), ("index_reduce", x, 0, row[None], x, "mean"),
        ("index_reduce", x, 2, row, x, "mean"),
        ("index_reduce", x, 0, row, x[0], "mean"), ("index_reduce", x, 1, row, x, "mean"),
        ("linalg.solve_triangular", x, x, options), ("linalg.solve_triangular", square, x.T.double(), options),
        ("linalg.solve_triangular", square, x, options), ("linalg.solve_triangular", square, x.T, options | {"left": False}),
        ("linalg.solve_triangular", square[None], x.T, options), ("linalg.solve_triangular", square, x.T[:, :0], options),
        ("linalg.solve_triangular", torch.ones(2, 3, 3), torch.ones(3, 3, 2), options),
    ]  # fmt: skip


def test_other_calls_are_left_to_the_host():
    """A wrong result would be worse than a slow one, and the host raises PyTorch's errors."""
    taken = []
    for name, *args in _left_to_the_host():
        options = args.pop() if isinstance(args[-1], dict) else {}
        options |= {"include_self": True} if name in ("scatter_reduce", "index_reduce") else {}
        options |= {"dtype": None} if name == "cumprod" else {}
        if declarations[name].npu(*args, **options) is not NotImplemented:
            taken.append((name, args))
    assert not taken


def test_cumulative_products_of_nothing_are_left_to_the_host():
    body = declarations["cumprod"].npu
    for x, dim in ((torch.ones(0, 3), 1), (torch.ones(2, 3), 2), (torch.ones(2, 3), -3), (torch.ones(()), 0)):
        assert body(x, dim, dtype=None) is NotImplemented


@pytest.mark.parametrize("norm_type", [1.0, 2.0, math.inf])
def test_rows_of_an_embedding_are_scaled_down(norm_type):
    weight = (torch.arange(12.0).reshape(4, 3) - 4).requires_grad_()
    expected, found = weight.detach().clone(), weight.detach().clone()
    indices = torch.tensor([[3, 1], [1, 1]])
    torch.embedding_renorm_(expected, indices, 2.5, norm_type)
    _on_npu.embedding_renorm(found, indices, 2.5, norm_type)
    assert torch.allclose(found, expected, rtol=1e-6) and not torch.equal(expected, weight.detach())
    assert torch.equal(found[0], weight[0].detach()) and torch.equal(found[2], weight[2].detach())


@pytest.mark.parametrize(
    ("draw", "values", "quantile"),
    [
        (random._cauchy, (1.0, 2.0), lambda p: 1 + 2 * math.tan(math.pi * (p - 0.5))),
        (random._log_normal, (0.5, 0.25), None),
        (random._geometric, (0.3,), None),
    ],
    ids=["cauchy", "log_normal", "geometric"],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_numbers_are_drawn_from_their_distribution(draw, values, quantile, dtype):
    torch.manual_seed(3)
    like = torch.empty(40_000, dtype=dtype)
    numbers = draw(like, *values, *random._on(like, None)).double()
    assert numbers.shape == like.shape
    if quantile is not None:
        for p in (0.1, 0.25, 0.5, 0.75, 0.9):
            share = float((numbers <= quantile(p)).double().mean())
            assert abs(share - p) < 0.01
    elif draw is random._log_normal:
        logs = numbers.log()
        assert abs(float(logs.mean()) - 0.5) < 0.01 and abs(float(logs.std()) - 0.25) < 0.01
    else:
        for k in (1, 2, 3, 5):
            assert abs(float((numbers == k).double().mean()) - 0.3 * 0.7 ** (k - 1)) < 0.01
        assert float(numbers.min()) == 1 and torch.equal(numbers, numbers.round())

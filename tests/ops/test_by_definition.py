"""Results that PyTorch does not give, or gives wrongly, so that they are tested by their definition."""

from __future__ import annotations

import numpy as np
import pytest

import msadapter as torch
from msadapter.ops.view_window import _base_to_window, _replace_window, _window_to_base

F = torch.nn.functional


def x(*shape):
    return torch.arange(1.0, 1 + int(np.prod(shape)), dtype=torch.float64).reshape(shape).sin()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("rows", [[[0, 0, 0], [0, 2, 0], [0, 0, 3]], [[1, 2, 3], [2, 4, 7], [1, 2, 5]]])
def test_gradient_of_a_determinant_of_zero_is_the_matrix_of_cofactors(rows, dtype):
    a = torch.tensor(rows, dtype=dtype, requires_grad=True)
    torch.linalg.det(a).backward()
    wanted = np.zeros((3, 3))
    for i in range(3):
        for j in range(3):
            minor = np.delete(np.delete(np.array(rows, dtype=float), i, 0), j, 1)
            wanted[i, j] = (-1) ** (i + j) * np.linalg.det(minor)
    assert np.allclose(a.grad.numpy(), wanted, atol=1e-3 if dtype == torch.float32 else 1e-9)


@pytest.mark.parametrize("how", ["scatter", "scatter_add", "sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("own", [True, False])
def test_a_source_that_is_larger_than_the_index(how, own):
    """Only the first elements of the source are read, and the others have a gradient of zero."""
    index = torch.tensor([[2, 0], [2, 1]])

    def call(a, s):
        if how in ("scatter", "scatter_add"):
            return getattr(a, how)(0, index if how == "scatter_add" else index.flip(0)[:1], s)
        return a.scatter_reduce(0, index, s, how, include_self=own)

    a, s = x(3, 3).requires_grad_(), (x(4, 3) * 2).requires_grad_()
    rows = 1 if how == "scatter" else 2
    b, part = a.detach().clone().requires_grad_(), s.detach()[:rows, :2].clone().requires_grad_()
    weight = x(3, 3).cos()
    (call(a, s) * weight).sum().backward()
    (call(b, part) * weight).sum().backward()
    assert torch.equal(call(a, s), call(b, part)) and torch.equal(a.grad, b.grad)
    wanted = torch.zeros_like(s.detach())
    wanted[:rows, :2] = part.grad
    assert torch.equal(s.grad, wanted)


def test_second_derivative_of_an_embedding_by_frequency():
    """Rows that are looked up n times get 1 / n of their gradient. PyTorch leaves that out of the second derivative."""
    indices = torch.tensor([[0, 1], [2, 2]])
    w = x(3, 2).requires_grad_()
    (first,) = torch.autograd.grad(
        F.embedding(indices, w, padding_idx=1, scale_grad_by_freq=True).square().sum(), w, create_graph=True
    )
    share = torch.tensor(
        [[1.0], [0.0], [1.0]], dtype=torch.float64
    )  # 0.5 of each of two, none of the padding
    assert torch.allclose(first, 2 * w * share)
    (second,) = torch.autograd.grad(first.sum(), w)
    # the gradient of a row's lookups flows back through the first, which is again shared by frequency
    assert second[1].abs().sum() == 0 and second[0].tolist() == [2, 2] and second[2].tolist() == [1, 1]


def test_numbers_of_numpy_are_assigned():
    a = x(3)
    a[0], a[1], a[2] = np.float32(0.5), np.int8(3), np.bool_(True)
    assert a.tolist() == [0.5, 3, 1]
    a[1:] = np.array(7)
    assert a.tolist() == [0.5, 7, 7]


def test_positions_of_derivatives_at_equal_extremes():
    a = torch.tensor([[1.0, float("nan")]], requires_grad=True)
    a.amax(1).sum().backward()
    assert a.grad.tolist() == [[0, 1]]


WINDOWS = [
    ([3, 4], [4, 1], [2, 2], [4, 1], 5),
    ([3, 4], [8, 2], [2], [8], 2),
    ([4], [1], [3], [1], -2),
    ([2, 3], [3, 1], [0, 2], [2, 1], 1),
    ([0, 3], [3, 1], [2], [1], 4),
    ([2], [1], [2, 2], [0, 1], 1),
]


@pytest.mark.parametrize("base_sizes, base_strides, sizes, strides, offset", WINDOWS)
def test_gradients_of_windows(base_sizes, base_strides, sizes, strides, offset):
    """A base and its window are positions in one memory, which dictionaries from address to value represent here."""

    def addresses(sizes, strides, start):
        return [start + int(np.dot(at, strides)) for at in np.ndindex(*sizes)]

    geometry = base_sizes, base_strides, sizes, strides, offset
    base, window = addresses(base_sizes, base_strides, 0), addresses(sizes, strides, offset)
    g_base, g_window = x(*base_sizes) if base else torch.zeros(base_sizes, dtype=torch.float64), x(*sizes) + 3

    def memory(g, places):
        found: dict = {}
        for place, value in zip(places, g.flatten().tolist(), strict=True):
            found[place] = found.get(place, 0) + value
        return found

    def seen(found, places, like):
        values = [found.get(place, 0) for place in places]
        return torch.tensor(values, dtype=torch.float64).reshape(like)

    to_base = seen(memory(g_window, window), base, base_sizes)
    assert torch.allclose(_window_to_base(g_window, None, *geometry).double(), to_base)
    to_window = seen(memory(g_base, base), window, sizes)
    assert torch.allclose(_base_to_window(g_base, None, *geometry).double(), to_window)
    for other in (None, g_window):
        kept = {k: v for k, v in memory(g_base, base).items() if k not in window}
        if other is not None:
            kept |= memory(other, window)
        wanted = seen(kept, base, base_sizes)
        assert torch.allclose(_replace_window(g_base, other, *geometry).double(), wanted)


def test_contraction_keeps_the_dtype_of_integers():
    a, b = torch.arange(5, dtype=torch.int8).reshape(1, 5), torch.ones(1, 2, dtype=torch.int8)
    for made in (torch.tensordot(a, b, ([1], [0])), torch.tensordot(b.t(), a.t(), ([1], [0])).t()):
        assert made.dtype == torch.int8 and made.tolist() == [[10, 10]]


def test_unbatched_and_batched_volumes_are_dropped_by_channel():
    torch.manual_seed(3)
    whole = F.dropout3d(torch.ones(4, 5, 2, 2, 2), 0.5)
    by_channel = whole.reshape(4, 5, 8)
    assert by_channel.eq(by_channel[..., :1]).all() and set(whole.flatten().tolist()) == {0.0, 2.0}
    assert (
        2 < (by_channel[..., 0] == 0).sum() < 18
        and len({tuple(row) for row in by_channel[..., 0].tolist()}) > 1
    )


@pytest.mark.parametrize(
    "sizes", [[2, 9, 1, 8, 3], [5, 1, 7, 2, 6, 3], [10, 2, 30, 4], [1, 2, 3], [9, 8, 7, 6, 5, 4]]
)
def test_chains_are_split_where_they_cost_least(sizes):
    from msadapter.ops.matmul import _chain_order

    split = _chain_order(sizes)

    def by(i, j, chosen):
        if i == j:
            return 0
        places = [split[i][j]] if chosen else range(i, j)
        return min(
            by(i, k, chosen) + by(k + 1, j, chosen) + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in places
        )

    assert by(0, len(sizes) - 2, True) == by(0, len(sizes) - 2, False)

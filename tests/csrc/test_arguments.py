"""Arguments that kernels must check: wrong counts, zero steps, positions outside.

Each must raise an error.
"""

from __future__ import annotations

import pytest

import msadapter as torch

F = torch.nn.functional
IMAGE = torch.ones(1, 3, 5, 5)
FILTER = torch.ones(4, 3, 3, 3)

CALLS = {
    "max_pool2d, no padding": lambda: F.max_pool2d(IMAGE, 3, 2, []),
    "max_pool1d, no dilation": lambda: F.max_pool1d(IMAGE[0], 3, 2, 1, []),
    "max_pool2d, three sizes": lambda: F.max_pool2d(IMAGE, [2, 2, 2]),
    "max_pool2d, empty rows": lambda: F.max_pool2d(torch.zeros(1, 2, 3, 0), 2),
    "avg_pool2d, no padding": lambda: F.avg_pool2d(IMAGE, [3, 3], [1, 1], []),
    "avg_pool2d, negative": lambda: F.avg_pool2d(IMAGE, [2, -2]),
    "avg_pool3d, no padding": lambda: F.avg_pool3d(IMAGE[None], 2, 1, []),
    "conv2d, no padding": lambda: F.conv2d(IMAGE, FILTER, padding=[]),
    "conv2d, no stride": lambda: F.conv2d(IMAGE, FILTER, stride=[]),
    "conv2d, three strides": lambda: F.conv2d(IMAGE, FILTER, stride=[1, 1, 1]),
    "conv_transpose2d, no padding": lambda: F.conv_transpose2d(IMAGE, torch.ones(3, 4, 3, 3), padding=[]),
    "unfold, zero stride": lambda: F.unfold(IMAGE, 2, 1, 0, [0, 2]),
    "unfold, no stride": lambda: F.unfold(IMAGE, 2, 1, 0, []),
    "unfold, zero dilation": lambda: F.unfold(IMAGE, 2, 0),
    "unfold, negative padding": lambda: F.unfold(IMAGE, 2, 1, -1),
    "fold, zero stride": lambda: F.fold(torch.ones(1, 12, 16), [5, 5], 2, stride=0),
    "searchsorted, short sorter": lambda: torch.searchsorted(
        torch.arange(20.0), 1.8, sorter=torch.tensor([0])
    ),
    "searchsorted, foreign sorter": lambda: torch.searchsorted(
        torch.arange(2.0), 1.8, sorter=torch.tensor([0, 9])
    ),
    "native_group_norm, a number": lambda: torch.native_group_norm(
        torch.zeros(()), torch.ones(3), None, 1, 3, 1, 1, 1e-5
    ),
    "multinomial of nothing": lambda: torch.multinomial(torch.zeros(0), 5, True),
    "empty_strided": lambda: torch.zeros(5).new_empty_strided([10], []),
    "full, too large": lambda: torch.full([5, 2**63 - 1], 1.0),
}


@pytest.mark.parametrize("name", CALLS)
def test_is_an_error(name):
    with pytest.raises(RuntimeError):
        CALLS[name]()


@pytest.mark.parametrize(
    "call",
    [
        "torch.mvlgamma(torch.ones(3) * 9, 2**40)",
        "torch.nn.functional.pad(torch.ones(1, 1, 3), (2**40, 0), mode='replicate')",
        "torch.nn.functional.pad(torch.ones(1, 1, 3), (2**62, 2**62), mode='replicate')",
        "torch.multinomial(torch.ones(3), 2**62, True)",
        "torch.linspace(0, 1, 2**62)",
        "torch.histc(torch.ones(3), 2**62)",
        "torch.tril_indices(2**40, 2**40)",
        "torch.triu_indices(2**62, 2**62, 2**62)",
        "torch.combinations(torch.ones(60), 30)",
        "torch.combinations(torch.ones(3), 2**40, True)",
        "torch.tensor_split(torch.ones(3), 2**42)",
        "torch.nn.functional.interpolate(torch.ones(1, 1, 3), 2**62)",
        "torch.diag_embed(torch.ones(3), 2**40)",
        "torch.kaiser_window(2**62)",
        "torch.fft.irfft(torch.ones(3), 2**62)",
        "torch.empty_strided((2,), (2**62,))",
        "torch.bincount(torch.tensor([2**62]))",
        "torch.sparse_coo_tensor(torch.tensor([[2**61]]), torch.ones(1)).to_dense()",
    ],
)
def test_sizes_that_no_memory_holds(call):
    """RuntimeError immediately, as from PyTorch's allocator, instead of a crash or a long computation."""
    with pytest.raises(RuntimeError):
        eval(call, {"torch": torch})


def test_triangles_of_few_positions_in_large_matrices():
    """The rows without a position are not looked at, one after the other."""
    top = 2**62
    assert torch.tril_indices(top, 0).tolist() == [[], []]
    assert torch.tril_indices(top, 2, 3 - top).tolist() == [
        [top - 3, top - 2, top - 2, top - 1, top - 1],
        [0, 0, 1, 0, 1],
    ]
    assert torch.triu_indices(top, 1).tolist() == [[0], [0]]
    assert torch.triu_indices(2**31, 2**31, 2**31 - 2).tolist() == [
        [0, 0, 1],
        [2**31 - 2, 2**31 - 1, 2**31 - 1],
    ]
    for offset in (-(2**63), -3, -1, 0, 2, 2**63 - 1):
        for rows, columns in ((3, 5), (5, 3), (1, 4), (0, 2)):
            below = [(i, j) for i in range(rows) for j in range(columns) if j <= i + offset]
            above = [(i, j) for i in range(rows) for j in range(columns) if j >= i + offset]
            assert torch.tril_indices(rows, columns, offset).T.tolist() == [list(at) for at in below]
            assert torch.triu_indices(rows, columns, offset).T.tolist() == [list(at) for at in above]


@pytest.mark.parametrize(
    "bins, weight, message",
    [
        (0, None, "bins must be > 0, but got 0 for dimension 0"),
        (-5, None, "bins must be > 0, but got -5 for dimension 0"),
        ([0.5], None, "bins must be > 0, but got 0 for dimension 0"),
        ([], None, "should have at least 1 element"),
        (0.5, None, "should have one dimension, but got 0 dimensions"),
        ([[0.0, 1.0]], None, "should have one dimension, but got 2 dimensions"),
        (
            [0.0, 0.5, 1.0],
            [1.0],
            "should have the same shape as the input tensor excluding its innermost dimension",
        ),
    ],
)
def test_bins_of_a_histogram(bins, weight, message):
    """A regression test: without these checks, counts were written outside of their memory."""
    values = torch.rand(4, 4)
    bins = bins if isinstance(bins, int) else torch.tensor(bins)
    weight = None if weight is None else torch.tensor(weight)
    with pytest.raises(RuntimeError, match=message):
        torch.histogram(values, bins, weight=weight)
    with pytest.raises(RuntimeError, match=message):
        torch.histogramdd(values.reshape(16, 1), [bins], weight=weight)


def test_chain_of_one_matrix_is_a_copy():
    x, out = torch.rand(2, 3), torch.zeros(2, 3)
    assert torch.chain_matmul(x, out=out) is out and torch.equal(out, x)
    assert torch.chain_matmul(x).data_ptr() != x.data_ptr()


def test_views_of_negative_size():
    with pytest.raises(RuntimeError, match="must match the existing size"):
        torch.ones(4).expand(-6)
    with pytest.raises(RuntimeError):
        torch.ones(1).expand(-6)
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
        torch.as_strided(torch.ones(4), (-5,), (1,))


@pytest.mark.parametrize("counts", [[2**62] * 4, [2**62] * 3, [2**63 - 1, 1], [2**62]])
def test_repeats_that_no_memory_holds(counts):
    """A regression test: the sum of the counts overflowed, and positions were written past the end of their memory."""
    with pytest.raises(RuntimeError, match="does not fit 64 bits"):
        torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))

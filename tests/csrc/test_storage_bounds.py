"""No tensor reaches behind its storage: what would is refused, and nothing is changed by the refusal."""

from __future__ import annotations

import pytest

import msadapter as torch

BEYOND = "setStorage: sizes .* requiring a storage size of .* are out of bounds for storage of size"


@pytest.mark.parametrize(
    ("size", "stride", "offset"),
    [
        ((7,), (1,), 0),
        ((2, 3), (4, 1), 0),
        ((6,), (1,), 1),
        ((1,), (1,), 6),
        ((2,), (6,), 0),
        ((3, 1), (3, 9), 0),
    ],
)
def test_as_strided_beyond_the_storage_is_refused(size, stride, offset):
    x = torch.arange(6.0)
    with pytest.raises(RuntimeError, match=BEYOND):
        x.as_strided(size, stride, offset)
    with pytest.raises(RuntimeError, match=BEYOND):
        x.clone().as_strided_(size, stride, offset)
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0] and x.stride() == (1,)


@pytest.mark.parametrize(
    ("size", "stride", "offset", "values"),
    [
        ((6,), (1,), 0, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
        ((2, 2), (4, 1), 0, [[0.0, 1.0], [4.0, 5.0]]),
        ((0, 9), (9, 9), 5, []),
        ((3,), (0,), 5, [5.0, 5.0, 5.0]),
        ((1, 1), (99, 99), 5, [[5.0]]),
    ],
)
def test_as_strided_up_to_the_last_element(size, stride, offset, values):
    assert torch.arange(6.0).as_strided(size, stride, offset).tolist() == values


def test_negative_geometry_is_refused():
    x = torch.arange(6.0)
    with pytest.raises(RuntimeError, match="[Nn]egative|negative"):
        x.as_strided((2,), (-1,), 3)
    with pytest.raises(RuntimeError):
        x.as_strided((-1,), (1,))
    with pytest.raises(RuntimeError):
        x.as_strided((2,), (1,), -1)
    with pytest.raises(RuntimeError):
        x.as_strided((2, 2), (1,))


def test_sizes_whose_product_overflows_are_refused():
    x = torch.arange(6.0)
    huge = 1 << 62
    for size, stride in (((huge, 4), (1, 1)), ((2,), (huge,)), ((huge,), (4,)), ((2, 2), (huge, huge))):
        with pytest.raises(RuntimeError):
            x.as_strided(size, stride)
    with pytest.raises(RuntimeError):
        torch.empty(1 << 40, 1 << 40)


@pytest.mark.parametrize("index", [[6], [-7], [0, 99], [1 << 40]])
def test_indices_beyond_the_tensor_are_refused(index):
    x, i = torch.arange(6.0), torch.tensor(index)
    for call in (
        lambda: x[i],
        lambda: x.index_select(0, i),
        lambda: torch.take(x, i),
        lambda: x.gather(0, i),
        lambda: x.clone().index_fill_(0, i, 1.0),
        lambda: x.clone().scatter_(0, i, 1.0),
        lambda: x.clone().index_add_(0, i, torch.ones(len(index))),
        lambda: torch.nn.functional.embedding(i, x[:, None]),
    ):
        with pytest.raises((IndexError, RuntimeError)):
            call()
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_writes_through_overlapping_memory_are_refused():
    x = torch.zeros(3).expand(2, 3)
    with pytest.raises(
        RuntimeError, match="more than one element of the written-to tensor refers to a single memory"
    ):
        x.add_(1)
    y = torch.arange(6.0)
    with pytest.raises(
        RuntimeError, match="some elements of the input tensor and the written-to tensor refer to a single"
    ):
        y[1:].add_(y[:5])
    assert y.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]

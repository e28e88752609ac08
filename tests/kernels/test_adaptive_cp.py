"""The order of tokens for adaptive context parallelism, against loops over the mask."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msadapter as torch
from kernels_ascend import adaptive_cp, mindspeed
from tests.kernels import reference


def coarse(mask, size):
    """The coarse mask, computed block by block."""
    n, m = (x // size for x in mask.shape)
    return np.array(
        [[mask[i * n : (i + 1) * n, j * m : (j + 1) * m].all() for j in range(size)] for i in range(size)]
    )


def cost(grid):
    """The number of pairs of ranks that compute, and the imbalance between ranks."""
    works = ~grid
    tasks = [works[i].sum() + works[:, i].sum() - works[i, i] for i in range(len(grid))]
    return works.mean(), np.std(tasks)


@settings(max_examples=reference.examples(40), deadline=None)
@given(st.data(), st.integers(1, 4), st.integers(1, 4), st.sampled_from([0.5, 0.9, 1.0]))
def test_blocks_of_a_mask_drawn(data, size, each, share):
    ops = mindspeed.load("adaptive_cp")
    r = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    n = size * each
    mask = r.random((n, n)) < share
    given = torch.tensor(mask)
    given = given.t().contiguous().t() if data.draw(st.booleans()) else given
    grid = torch.zeros(size, size, dtype=torch.bool)
    ops.coarsen_mask(given, size, grid)
    assert (grid.numpy() == coarse(mask, size)).all()
    i, j = r.integers(0, size, 2).tolist()
    out = torch.zeros(each, each, dtype=torch.bool)
    ops.get_mask_list_without_remap(given, out, [i, j], size)
    assert (out.numpy() == mask[i * each : (i + 1) * each, j * each : (j + 1) * each]).all()
    rows, columns = (r.permutation(n)[:each].tolist() for _ in range(2))
    ops.get_mask_list_with_remap(given, out, rows, columns)
    assert (out.numpy() == mask[rows][:, columns]).all()


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("size, each", [(2, 1), (3, 2), (5, 1), (4, 3)])
def test_the_score_is_the_share_of_pairs_and_the_imbalance(size, each, share):
    """A rank's tasks are the pairs with it on either side, of which the pair with itself is one."""
    r = np.random.default_rng(size)
    for _ in range(5):
        mask = np.repeat(np.repeat(r.random((size, size)) < share, each, 0), each, 1)
        grid = torch.ones(size, size, dtype=torch.bool)
        found = adaptive_cp._score(torch.tensor(mask), size, grid)
        assert found == pytest.approx(cost(coarse(mask, size))) and (grid.numpy() == coarse(mask, size)).all()


@settings(max_examples=reference.examples(20), deadline=None)
@given(st.data(), st.integers(2, 4), st.integers(2, 4))
def test_the_order_that_is_found_drawn(data, size, each):
    """Tokens of documents are shuffled. The result contains every token, its coarse mask is correct, and it never costs more."""
    r = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    n = size * each
    owner = r.permutation(np.arange(n) // each)
    mask = owner[:, None] != owner
    features = np.eye(size)[owner] + r.standard_normal((n, size)) * 0.01
    trial, best = (torch.ones(n, n, dtype=torch.bool) for _ in range(2))
    grids, clusters = [torch.ones(size, size, dtype=torch.bool) for _ in range(2)], [-1]
    order = mindspeed.load("adaptive_cp").search_kmeans(
        torch.tensor(mask), features.tolist(), trial, grids[0], grids[1], best, clusters, size, 100
    )
    assert sorted(order) == list(range(n))
    grid = coarse(mask[order][:, order], size)
    assert (grids[1].numpy() == grid).all()
    before = cost(coarse(mask, size))
    assert cost(grid) <= before
    if clusters[0] == -1:
        assert order == list(range(n))
    else:
        assert (best.numpy() == mask[order][:, order]).all() and clusters[0] in range(2, 9)


def test_documents_are_put_together():
    """The tokens of two documents alternate. In this order every block computes, and in the new one only two do."""
    owner = np.arange(16) % 2
    mask = owner[:, None] != owner
    trial, best = (torch.ones(16, 16, dtype=torch.bool) for _ in range(2))
    grids, clusters = [torch.ones(2, 2, dtype=torch.bool) for _ in range(2)], [-1]
    order = mindspeed.load("adaptive_cp").search_kmeans(
        torch.tensor(mask), np.eye(2)[owner].tolist(), trial, *grids, best, clusters, 2, 100
    )
    assert clusters == [2] and cost(grids[1].numpy())[0] == 0.5
    assert sorted(order[:8]) in (list(range(0, 16, 2)), list(range(1, 16, 2)))


def test_refusals():
    ops, grid = mindspeed.load("adaptive_cp"), torch.zeros(2, 2, dtype=torch.bool)
    with pytest.raises(RuntimeError, match="positive integer"):
        ops.coarsen_mask(grid, 0, grid)
    with pytest.raises(RuntimeError, match="divisible by split num"):
        ops.coarsen_mask(torch.zeros(3, 4, dtype=torch.bool), 2, grid)
    with pytest.raises(RuntimeError, match="index length"):
        ops.get_mask_list_with_remap(torch.zeros(4, 4, dtype=torch.bool), grid, [0, 1, 2], [0])

"""Operators of MindSpeed's adaptive context parallelism, which reorders tokens to save communication.

A mask is true where a key is hidden. It is divided into size x size blocks, one for each pair of ranks. If a block is true
everywhere, its pair of ranks has nothing to compute. A good order of the tokens makes many blocks true everywhere.
"""

from __future__ import annotations

import msadapter
from msadapter.ops import t

CLUSTERS = range(2, 9)  # the numbers of clusters that are tried
_SEED = 0


def coarsen_mask(input, splitNum: int, output) -> None:
    """Writes to output[i, j] whether block (i, j) of splitNum x splitNum blocks is true everywhere.

    Raises:
        RuntimeError: splitNum is not positive or does not divide both sizes.
    """
    if splitNum < 1:
        raise RuntimeError("Split number must be a positive integer.")
    rows, columns = input.shape
    if rows % splitNum or columns % splitNum:
        raise RuntimeError("Both dims of the input 2-dim matrix must be divisible by split num.")
    blocks = input.reshape(splitNum, rows // splitNum, splitNum, columns // splitNum)
    output.copy_(blocks.all(3).all(1))


def get_mask_list_with_remap(attnMask, output, rowIdxSeq, colIdxSeq) -> None:
    """Writes the mask of the given rows and columns to output."""
    if len(rowIdxSeq) > output.shape[0] or len(colIdxSeq) > output.shape[1]:
        raise RuntimeError("Row or colum index length large than size of attention mask")
    rows, columns = (msadapter.tensor(list(x), dtype=msadapter.int64) for x in (rowIdxSeq, colIdxSeq))
    output[: len(rows), : len(columns)] = attnMask.index_select(0, rows).index_select(1, columns)


def get_mask_list_without_remap(attnMask, output, blockIdx, cpSize: int) -> None:
    """Writes block blockIdx of cpSize x cpSize blocks to output."""
    if cpSize < 1:
        raise RuntimeError("CP size must be a positive integer.")
    size = attnMask.shape[0] // cpSize
    (row, column) = blockIdx
    output.copy_(attnMask[row * size : (row + 1) * size, column * size : (column + 1) * size])


def _score(mask, size: int, grid) -> tuple[float, float]:
    """Returns (share of pairs of ranks that compute, imbalance between ranks). Writes the coarse mask to `grid`."""
    coarsen_mask(mask, size, grid)
    works = ~grid
    tasks = works.sum(0) + works.sum(1) - works.diagonal().long()
    return works.double().mean().item(), tasks.double().std(correction=0).item()


def _clusters(points, count: int, steps: int):
    """The cluster of each point by k-means, starting from randomly drawn points."""
    source = msadapter.Generator().manual_seed(_SEED)
    centres = points[msadapter.randperm(len(points), generator=source)[:count]]
    for _ in range(steps):
        labels = t.cdist(points, centres).argmin(1)
        mine = t.one_hot(labels, count).to(points.dtype)
        sizes = mine.sum(0).unsqueeze(1)
        strays = points[msadapter.randint(0, len(points), (count,), generator=source)]
        found = t.where(sizes > 0, mine.t() @ points / sizes.clamp(min=1), strays)
        if msadapter.allclose(centres, found):
            break
        centres = found
    return labels


def search_kmeans(
    attnMask,
    reduceMask,
    tmpAttnMask,
    tmpGridMask,
    optGridMask,
    optAttnMask,
    optNumCluster: list,
    cpSize: int,
    numIters: int,
) -> list[int]:
    """Finds an order of the tokens in which few pairs of ranks have to compute. Tokens of a cluster become neighbours.

    Args:
        attnMask: (S, S) bool. reduceMask: features of each token. tmpAttnMask, tmpGridMask: scratch memory.
        optGridMask: receives the coarse mask of the order found. optAttnMask, optNumCluster: receive the mask in this order
            and the number of clusters, if the order is better than the original one.

    Returns:
        The indices of the tokens in the new order.
    """
    points = msadapter.tensor(reduceMask, dtype=msadapter.float32)
    order = msadapter.arange(len(attnMask))
    best = _score(attnMask, cpSize, optGridMask)
    for count in (n for n in CLUSTERS if n <= len(points)):
        tried = _clusters(points, count, numIters).argsort(stable=True)
        tmpAttnMask.copy_(attnMask.index_select(0, tried).index_select(1, tried))
        score = _score(tmpAttnMask, cpSize, tmpGridMask)
        if score < best:
            best, order, optNumCluster[0] = score, tried, count
            optAttnMask.copy_(tmpAttnMask)
            optGridMask.copy_(tmpGridMask)
    return order.tolist()

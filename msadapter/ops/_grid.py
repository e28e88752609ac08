"""Grid sampling, written with operators of the table. Gradients of gradients use it."""

from __future__ import annotations

import itertools
import warnings

from ._declare import t


def warn_of_corners() -> None:
    """Warn the caller of an operator's body that its default of ``align_corners`` is not that of old programs."""
    warnings.warn(
        "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
        "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details.",
        stacklevel=3,
    )


def _mirrored(x, low, high):
    """Reflect x into [low / 2, high / 2]."""
    if low == high:
        return t.masked_fill(x, x == x, 0)  # zero, with a gradient of zero
    begin, span = low / 2, (high - low) / 2
    x = (x - begin).abs()
    flips = (x / span).detach().floor()
    inside = x - flips * span
    return t.where(flips % 2 == 0, inside, span - inside) + begin


def _bounded(x, size, padding, corners):
    if padding == 2:
        x = _mirrored(x, 0, 2 * (size - 1)) if corners else _mirrored(x, -1, 2 * size - 1)
    if padding == 0:
        return x
    inside = (x > 0) & (x < size - 1)  # positions at the border have a zero gradient
    return t.where(inside, x, x.detach().clamp(0, size - 1))


def _cubic(distance, near: bool):
    """The cubic convolution kernel with the parameter a = -0.75, for distances up to 1 (`near`) or from 1 to 2."""
    d, a = distance.abs(), -0.75
    return ((a + 2) * d - (a + 3)) * d * d + 1 if near else ((a * d - 5 * a) * d + 8 * a) * d - 4 * a


def _axis_taps(at, size, mode, padding, corners):
    """Return (index, weight) pairs for one dimension. The weight of an index outside the input is zero."""
    x = (at + 1) / 2 * (size - 1) if corners else ((at + 1) * size - 1) / 2
    if mode != 2:
        x = _bounded(x, size, padding, corners)
    if mode == 1:
        taps = [(x.detach().round(), t.ones_like(x))]
    else:
        low = x.detach().floor()
        offsets = (-1, 0, 1, 2) if mode == 2 else (0, 1)
        taps = [
            (
                _bounded(low + k, size, padding, corners) if mode == 2 else low + k,
                _cubic(x - low - k, k in (0, 1)) if mode == 2 else (x - low if k else low + 1 - x),
            )
            for k in offsets
        ]
    kept = [((i >= 0) & (i <= size - 1), i, w) for i, w in taps]
    return [(t.where(k, i, 0).detach().long(), w * k) for k, i, w in kept]


def grid_sampler_reference(x, grid, mode, padding, corners):
    """Sample x (N, C, spatial...) at the positions grid (N, ..., number of spatial dims).

    ``mode`` and ``padding`` are the numbers that `grid_sampler` takes.
    """
    spatial, n, channels = list(x.shape[2:]), x.shape[0], x.shape[1]
    axes = [
        _axis_taps(grid[..., len(spatial) - 1 - d], size, mode, padding, corners)
        for d, size in enumerate(spatial)
    ]
    flat, out = x.reshape(n, channels, -1), 0
    for taps in itertools.product(*axes):
        index, weight = 0, 1
        for (i, w), size in zip(taps, spatial, strict=True):
            index, weight = index * size + i, weight * w
        picked = t.gather(flat, 2, index.reshape(n, 1, -1).expand(n, channels, -1))
        out = out + picked.reshape(n, channels, *index.shape[1:]) * weight.unsqueeze(1)
    return out

"""Resizing of images with an antialiasing filter: each axis is multiplied by the matrix of its weights."""

from __future__ import annotations

import numpy as np

from .._values.layout import FORMATS
from ._declare import composite, op, t
from .view import make_tensor


def _triangle(x):
    return np.maximum(1 - np.abs(x), 0)


def _cubic(x, a=-0.5):
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return np.where(x < 1, near, np.where(x < 2, far, 0))


_PARTS = 4  # into which a batch is divided
_FILTERS = {"bilinear": (_triangle, 1.0), "bicubic": (_cubic, 2.0)}  # with the radius that each covers


def _weights(n: int, size: int, mode: str, align_corners: bool, factor: float | None) -> np.ndarray:
    """Return the matrix (size, n) of the weights with which the n elements of an axis give ``size`` elements."""
    kernel, radius = _FILTERS[mode]
    if align_corners:
        scale = (n - 1) / (size - 1) if size > 1 else 0.0
    else:
        scale = 1 / factor if factor else n / size
    stretch = max(scale, 1.0)  # the filter covers several elements where the image becomes smaller
    centre = scale * (np.arange(size)[:, None] + 0.5)
    first = np.maximum((centre - radius * stretch + 0.5).astype(np.int64), 0)
    last = np.minimum((centre + radius * stretch + 0.5).astype(np.int64), n)
    at = np.arange(n)[None]
    weights = np.where((at >= first) & (at < last), kernel((at - centre + 0.5) / stretch), 0)
    total = weights.sum(1, keepdims=True)
    return weights / np.where(total == 0, 1, total)


def _multiplied_bytes(x, weights: np.ndarray, dim: int):
    """Multiply an axis of bytes by weights in fixed point numbers of 16 bits, as PyTorch does."""
    precision = 0
    while precision < 22 and int(0.5 + weights.max() * (1 << (precision + 1))) < 1 << 15:
        precision += 1
    scaled = weights * (1 << precision)
    whole = np.trunc(scaled + np.copysign(0.5, scaled)).astype(np.int64)
    product = _along(x.long(), make_tensor(whole), dim)
    return (product + (1 << precision >> 1) >> precision).clamp(0, 255).to(x.dtype)


def _along(x, matrix, dim: int):
    return t.matmul(matrix, x) if dim == 2 else t.matmul(x, matrix.t())


def _resampled_grad(g, steps):
    return t._resampled(g, tuple((weights.T, dim) for weights, dim in reversed(steps)))


@op("_resampled(Tensor input, any steps) -> Tensor", forms="f", grad={"input": _resampled_grad})
def _resampled(input, steps):
    """Multiply dims of (N, C, H, W) by matrices: for each (weights, dim) of ``steps``, by weights of (size, n)."""
    matrices = [(make_tensor(weights, dtype=input.dtype, device=input.device), dim) for weights, dim in steps]

    def product(x):
        for matrix, dim in matrices:
            x = _along(x, matrix, dim)
        return x

    by = 0 if input.shape[0] > 1 else 1
    count = input.shape[by]
    if len(steps) < 2 or count < 2:
        return product(input)
    # Between the steps stands a tensor that may be as large as the input. Parts keep it small.
    shape = list(input.shape)
    for weights, dim in steps:
        shape[dim] = weights.shape[0]
    result = t.empty(shape, dtype=input.dtype, device=input.device)
    length = -(-count // _PARTS)
    for first in range(0, count, length):
        n = min(length, count - first)
        t.narrow(result, by, first, n).copy_(product(t.narrow(input, by, first, n)))
    return result


@composite(
    "_upsample_antialias(Tensor input, str mode, int[] output_size, bool align_corners, any scales) -> Tensor",
    forms="f",
)
def upsample_antialias(input, mode, output_size, align_corners, scales):
    """Resize (N, C, H, W) to ``output_size`` by a filter that leaves out what the new size cannot show."""
    bytes_only = input.dtype.storage_name == "ByteStorage"
    if not bytes_only and input.dtype.name not in ("float32", "float64"):
        name = input.dtype.scalar_name
        raise NotImplementedError(f"\"compute_index_ranges_weights\" not implemented for '{name}'")
    if min(*input.shape[1:], *output_size) <= 0:
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input (H: {input.shape[2]}, W: {input.shape[3]}) "
            f"output (H: {output_size[0]}, W: {output_size[1]})"
        )
    # PyTorch leaves an axis of the right size alone, whatever the scale.
    steps = tuple(
        (_weights(n, size, mode, align_corners, scales[dim - 2]), dim)
        for dim in (3, 2)
        if (n := input.shape[dim]) != (size := output_size[dim - 2])
    )
    out = input
    if bytes_only:
        for weights, dim in steps:
            out = _multiplied_bytes(out, weights, dim)
    elif steps:
        out = t._resampled(input, steps)
    kept = input.is_contiguous(memory_format=FORMATS["channels_last"]) and not input.is_contiguous()
    result = out.contiguous(memory_format=FORMATS["channels_last" if kept else "contiguous_format"])
    return t.clone(input) if result is input else result

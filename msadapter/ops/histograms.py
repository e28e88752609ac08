"""Histograms, and counts of integers."""

from __future__ import annotations

from math import isfinite

from ._declare import composite, op, raw, t
from ._geometry import numel
from .view import is_tensor

op(
    "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
    ms="HistcExt",
    forms="fmo",
    whole=True,
)


@op("bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor", forms="fm", whole=True)
def bincount(self, weights, minlength):
    """Count how often each non-negative integer appears, or sum its weights."""
    return raw.BincountExt(self, weights, minlength)


op("_histogram_edges(Tensor self, Tensor edges, Tensor? weight) -> Tensor", ms="HistogramEdges", forms="f")


def _grid_of_operators(points, edges, weight):
    """The counts in the grid, of operators that an NPU has."""
    sizes = [e.shape[0] - 1 for e in edges]
    flat, inside = None, None
    for d, e in enumerate(edges):
        x = t._contiguous_copy(t.select(points, 1, d))
        last = t.select(e, 0, sizes[d])
        ok = t.logical_and(x >= t.select(e, 0, 0), x <= last)
        at = t.clamp(t.searchsorted(e, x, right=True) - 1, min=0, max=sizes[d] - 1)
        flat = at if flat is None else flat * sizes[d] + at
        inside = ok if inside is None else t.logical_and(inside, ok)
    w = t.ones([points.shape[0]], dtype=points.dtype) if weight is None else weight
    counts = t.index_add(t.zeros([numel(sizes)], dtype=points.dtype), 0, flat, w * inside.to(w.dtype))
    return t.reshape(counts, sizes)


op(
    "_histogram_grid(Tensor points, Tensor[] edges, Tensor? weight) -> Tensor",
    ms="HistogramGrid",
    npu=_grid_of_operators,
    forms="f",
)


def _range_of(values, bounds, name, margin):
    low, high = (
        bounds
        if bounds is not None
        else (float(values.min()), float(values.max()))
        if values.numel()
        else (0.0, 1.0)
    )
    if low == high:
        low, high = low - margin, high + margin
    if not (isfinite(low) and isfinite(high)):
        raise RuntimeError(f"{name}: the range [{low:g}, {high:g}] is not finite")
    if not low < high:
        raise RuntimeError(f"{name}: max must be larger than min")
    return low, high


def _check_bins(points_shape, dtype, bins, weight):
    """`bins`: for each dim the number of bins or the tensor of their edges. Counts are written at what they say."""
    if not dtype.is_floating_point or dtype.itemsize < 4:
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{dtype.scalar_name}'")
    if points_shape[-1] != len(bins):
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input."
        )
    for d, b in enumerate(bins):
        if is_tensor(b):
            where = f"the bins tensor for dimension {d}"
            if b.dtype is not dtype:
                raise RuntimeError(
                    "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
                    f"{dtype} and bins for dimension {d} with dtype {b.dtype}"
                )
            if b.dim() != 1:
                raise RuntimeError(
                    f"torch.histogramdd: bins tensor should have one dimension, but got {b.dim()} dimensions in {where}"
                )
            if b.shape[0] == 0:
                raise RuntimeError(
                    f"torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in {where}"
                )
        count = b.shape[0] - 1 if is_tensor(b) else b
        if count < 1:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {count} for dimension {d}")
    if weight is None:
        return
    if weight.dtype is not dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same dtype, but "
            f"got input({dtype}), and weight({weight.dtype})"
        )
    if list(weight.shape) != list(points_shape[:-1]):
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding its "
            f"innermost dimension, but got input with shape {list(points_shape)} and weight with shape {list(weight.shape)}"
        )


@composite(
    "histogram(Tensor self, any bins=100, *, float[]? range=None, Tensor? weight=None, bool "
    "density=False) -> (Tensor hist, Tensor bin_edges)",
    forms="fmo",
    copied_to_out=True,
)
def histogram(self, bins, *, range, weight, density):
    """Return counts (or densities) and the edges of bins. Bins have equal width, or the given edges."""
    flat = t.reshape(self, [-1])
    _check_bins([flat.shape[0], 1], self.dtype, [bins], weight if weight is None else t.reshape(weight, [-1]))
    edges = (
        bins
        if is_tensor(bins)
        else t.linspace(*_range_of(flat, range, "torch.histogram()", 0.5), bins + 1, dtype=self.dtype)
    )
    hist = t._histogram_edges(flat, edges, None if weight is None else t.reshape(weight, [-1]))
    if density:
        hist = hist / (t.sum(hist) * t.diff(edges))
    return hist, edges


@composite(
    "histogramdd(Tensor self, any bins, *, float[]? range=None, Tensor? weight=None, bool density=False) -> "
    "(Tensor hist, any bin_edges)",
    forms="f",
)
def histogramdd(self, bins, *, range, weight, density):
    """Return counts (or densities) in a grid of bins. The last dim of `self` holds the coordinates."""
    if self.dim() < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    dims = self.shape[-1]
    bins = [bins] * dims if isinstance(bins, int) else list(bins)
    _check_bins(self.shape, self.dtype, bins, weight)
    points = t.reshape(self, [-1, dims])
    edges = []
    for d, b in enumerate(bins):
        if is_tensor(b):
            edges.append(b)
            continue
        bounds = None if range is None else (range[2 * d], range[2 * d + 1])
        edges.append(
            t.linspace(
                *_range_of(t.select(points, 1, d), bounds, "torch.histogramdd()", 0.5),
                b + 1,
                dtype=self.dtype,
            )
        )
    sizes = [e.shape[0] - 1 for e in edges]
    hist = t._histogram_grid(points, edges, None if weight is None else t.reshape(weight, [-1]))
    if density:
        hist = hist / t.sum(hist)
        for d, e in enumerate(edges):
            shape = [1] * dims
            shape[d] = sizes[d]
            hist = hist / t.reshape(t.diff(e), shape)
    return hist, tuple(edges)

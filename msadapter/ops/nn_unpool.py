"""Pooling composed of operators: p-norm, unpooling, fractional pooling, and the functions that return
indices.
"""

from __future__ import annotations

import itertools
import math

from .._values import determinism
from .._values.dtype import ALL
from .._values.layout import FORMATS
from ._declare import composite, op, t
from ._functional import functional
from ._sizes import _pair, _single, _triple
from .view import zeros_seen


@composite(
    "nn.functional.adaptive_max_pool1d_with_indices(Tensor input, any output_size, "
    "any return_indices=False) -> (Tensor, Tensor)",
    forms="f",
)
def adaptive_max_pool1d_with_indices(input, output_size, return_indices):
    """Return adaptive_max_pool1d and the indices of the maxima."""
    return functional.adaptive_max_pool1d(input, output_size, return_indices=True)


@composite(
    "nn.functional.adaptive_max_pool2d_with_indices(Tensor input, any output_size, "
    "any return_indices=False) -> (Tensor, Tensor)",
    forms="f",
)
def adaptive_max_pool2d_with_indices(input, output_size, return_indices):
    """Return adaptive_max_pool2d and the indices of the maxima."""
    return functional.adaptive_max_pool2d(input, output_size, return_indices=True)


@composite(
    "nn.functional.adaptive_max_pool3d_with_indices(Tensor input, any output_size, "
    "any return_indices=False) -> (Tensor, Tensor)",
    forms="f",
)
def adaptive_max_pool3d_with_indices(input, output_size, return_indices):
    """Return adaptive_max_pool3d and the indices of the maxima."""
    return functional.adaptive_max_pool3d(input, output_size, return_indices=True)


@composite(
    "nn.functional.max_pool1d_with_indices(Tensor input, any kernel_size, any stride=None, "
    "any padding=0, any dilation=1, bool ceil_mode=False, any return_indices=False) -> (Tensor, Tensor)",
    forms="f",
    short=False,
)
def max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    """Return max_pool1d and the indices of the maxima."""
    return functional.max_pool1d(
        input, kernel_size, stride, padding, dilation, ceil_mode=ceil_mode, return_indices=True
    )


@composite(
    "nn.functional.max_pool2d_with_indices(Tensor input, any kernel_size, any stride=None, "
    "any padding=0, any dilation=1, bool ceil_mode=False, any return_indices=False) -> (Tensor, Tensor)",
    forms="f",
    short=False,
)
def max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    """Return max_pool2d and the indices of the maxima."""
    return functional.max_pool2d(
        input, kernel_size, stride, padding, dilation, ceil_mode=ceil_mode, return_indices=True
    )


@composite(
    "nn.functional.max_pool3d_with_indices(Tensor input, any kernel_size, any stride=None, "
    "any padding=0, any dilation=1, bool ceil_mode=False, any return_indices=False) -> (Tensor, Tensor)",
    forms="f",
    short=False,
)
def max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    """Return max_pool3d and the indices of the maxima."""
    return functional.max_pool3d(
        input, kernel_size, stride, padding, dilation, ceil_mode=ceil_mode, return_indices=True
    )


def _lp_pool(pool, expand, input, norm_type, kernel_size, stride, ceil_mode):
    """Return (sum of x ** p over each window) ** (1 / p), computed from the mean."""
    kernel = expand(kernel_size)
    mean = pool(input.pow(norm_type), kernel, kernel if stride is None else expand(stride), 0, ceil_mode)
    return (t.sign(mean) * functional.relu(mean.abs())).mul(math.prod(kernel)).pow(1.0 / norm_type)


@composite(
    "nn.functional.lp_pool1d(Tensor input, any norm_type, any kernel_size, any stride=None, "
    "bool ceil_mode=False) -> Tensor",
    forms="f",
)
def lp_pool1d(input, norm_type, kernel_size, stride, ceil_mode):
    """p-norm over windows of (N, C, L)."""
    return _lp_pool(functional.avg_pool1d, _single, input, norm_type, kernel_size, stride, ceil_mode)


@composite(
    "nn.functional.lp_pool2d(Tensor input, float norm_type, any kernel_size, any stride=None, "
    "bool ceil_mode=False) -> Tensor",
    forms="f",
)
def lp_pool2d(input, norm_type, kernel_size, stride, ceil_mode):
    """p-norm over windows of (N, C, H, W)."""
    return _lp_pool(functional.avg_pool2d, _pair, input, norm_type, kernel_size, stride, ceil_mode)


@composite(
    "nn.functional.lp_pool3d(Tensor input, float norm_type, any kernel_size, any stride=None, "
    "bool ceil_mode=False) -> Tensor",
    forms="f",
)
def lp_pool3d(input, norm_type, kernel_size, stride, ceil_mode):
    """p-norm over windows of (N, C, D, H, W)."""
    return _lp_pool(functional.avg_pool3d, _triple, input, norm_type, kernel_size, stride, ceil_mode)


def _unpool_output_size(input, kernel_size, stride, padding, output_size):
    """Return the spatial sizes after unpooling.

    ``output_size`` selects one of the sizes from which pooling gives the input's size.
    """
    n = len(kernel_size)
    default = [(input.size(-n + d) - 1) * stride[d] + kernel_size[d] - 2 * padding[d] for d in range(n)]
    if output_size is None:
        for d, size in enumerate(default):
            if size < 0:
                raise ValueError(
                    "max_unpooling: output_size must contain non-negative spatial dimensions, but got "
                    f"output_size[{d}]={size}"
                )
        return default
    if len(output_size) == n + 2:
        output_size = output_size[2:]
    if len(output_size) != n:
        raise ValueError(
            f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length "
            f"of '{len(output_size)}'"
        )
    for d in range(n):
        low, high = default[d] - stride[d], default[d] + stride[d]
        if not low < output_size[d] < high:
            raise ValueError(
                f'invalid output_size "{output_size}" (dim {d} must be between {low} and {high})'
            )
    return list(output_size)


def _check_places(indices, places, sizes) -> None:
    """RuntimeError if an index is not one of the ``places`` of an image with these sizes. It names the last such index."""
    if not indices.numel():
        return
    least, largest = t.aminmax(indices)
    if int(least) < 0 or int(largest) >= places:
        wrong = indices[(indices < 0) | (indices >= places)]
        volume = "x".join(str(s) for s in sizes)
        raise RuntimeError(
            f"Found an invalid max index: {int(wrong[-1])} (output volumes are of size {volume})"
        )


def _max_unpool(expand, input, indices, kernel_size, stride, padding, output_size):
    kernel = expand(kernel_size)
    stride = kernel if stride is None else expand(stride)
    padding = expand(padding)
    n = len(expand(1))
    if len(kernel) != n:
        names = {
            1: "one element (width)",
            2: "two elements (height, width)",
            3: "three elements (depth, height, width)",
        }
        raise RuntimeError(
            f"There should be exactly {names[n]} in output_size, but got {len(kernel)} elements."
        )
    size = _unpool_output_size(input, kernel, stride, padding, output_size)
    if n == 3 and any(s <= 0 for s in stride):
        raise RuntimeError(f"strides should be greater than zero, but got stride: {list(stride)}")
    determinism.alert(f"max_unpooling{max(n, 2)}d_forward_out")
    if input.shape != indices.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(input.shape)}) "
            f"but got indices tensor with shape: {list(indices.shape)}"
        )
    lead = list(input.shape[:-n])
    places = math.prod(size)
    if not places:  # PyTorch does not look at the indices then
        return t.zeros([*lead, *size], dtype=input.dtype, device=input.device)
    _check_places(indices, places, size if n > 1 else (*size, 1))
    taken = [*lead, math.prod(input.shape[-n:])]
    flat = zeros_seen(input, [*lead, places])
    out = flat.scatter(-1, indices.reshape(taken), input.reshape(taken)).view([*lead, *size])
    if n == 2 and not input.is_contiguous() and input.is_contiguous(memory_format=FORMATS["channels_last"]):
        return out.contiguous(memory_format=FORMATS["channels_last"])
    return out


@composite(
    "nn.functional.max_unpool1d(Tensor input, Tensor indices, any kernel_size, any stride=None, "
    "any padding=0, any output_size=None) -> Tensor",
    forms="f",
    autocast={"cpu": "float32"},
)
def max_unpool1d(input, indices, kernel_size, stride, padding, output_size):
    """Write the maxima of (N, C, L) back to their indices, and zeros elsewhere."""
    return _max_unpool(_single, input, indices, kernel_size, stride, padding, output_size)


@composite(
    "nn.functional.max_unpool2d(Tensor input, Tensor indices, any kernel_size, any stride=None, "
    "any padding=0, any output_size=None) -> Tensor",
    forms="f",
    autocast={"cpu": "float32"},
)
def max_unpool2d(input, indices, kernel_size, stride, padding, output_size):
    """Write the maxima of (N, C, H, W) back to their indices, and zeros elsewhere."""
    return _max_unpool(_pair, input, indices, kernel_size, stride, padding, output_size)


@composite(
    "nn.functional.max_unpool3d(Tensor input, Tensor indices, any kernel_size, any stride=None, "
    "any padding=0, any output_size=None) -> Tensor",
    forms="f",
    autocast={"cpu": "float32"},
)
def max_unpool3d(input, indices, kernel_size, stride, padding, output_size):
    """Write the maxima of (N, C, D, H, W) back to their indices, and zeros elsewhere."""
    return _max_unpool(_triple, input, indices, kernel_size, stride, padding, output_size)


def _starts(sample, size, out, kernel):
    """Return the first positions (N, C, out) of the random windows in a dimension.

    The last window ends at the border.
    """
    if out == 1:
        return t.full([*sample.shape, 1], size - kernel, dtype=ALL["int64"], device=sample.device)
    # the steps have the dtype of the samples, as in PyTorch
    alpha = t.full([], size - kernel, dtype=sample.dtype, device=sample.device) / (out - 1)
    step = t.arange(out, device=sample.device, dtype=sample.dtype)
    u = sample.unsqueeze(-1)
    first = ((step + u) * alpha).to(ALL["int64"]) - (u * alpha).to(ALL["int64"])
    is_last = t.arange(out, device=sample.device) == out - 1
    return t.where(is_last, t.full_like(first, size - kernel), first)


def _check_samples(samples, batch, channels, n) -> None:
    if samples.size(0) < batch:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if samples.size(1) != channels:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if samples.size(2) != n:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {n}; got {samples.size(2)}.")


def _largest_places(flat, first, sizes, kernel):
    """Return where the largest element of each window is in the flattened images, or its last NaN.

    The windows begin at the places `first`. They are read one offset at a time, so that no tensor has the size of all windows.
    """
    places, largest = first, flat.gather(2, first)
    for offsets in list(itertools.product(*map(range, kernel)))[1:]:
        distance = 0
        for offset, size in zip(offsets, sizes, strict=True):
            distance = distance * size + offset
        candidates = flat.gather(2, first + distance)
        better = (candidates > largest) | candidates.isnan()
        largest = t.where(better, candidates, largest)
        places = t.where(better, first + distance, places)
    return places


def _at_starts_of_operators(input, starts, kernel):
    batch, channels, *sizes = input.shape
    first = None
    for d, start in enumerate(starts):
        start = start.view([batch, channels] + [start.shape[-1] if d == e else 1 for e in range(len(sizes))])
        first = start if first is None else first * sizes[d] + start
    shape, flat = list(first.shape), input.reshape(batch, channels, math.prod(sizes))
    chosen = _largest_places(flat, first.reshape(batch, channels, -1), sizes, kernel)
    return flat.gather(2, chosen).reshape(shape), chosen.reshape(shape)


def _at_starts_grad(gs, input, result1):
    if gs[0] is None:
        return (None,)
    lead = list(input.shape[:2])
    flat = zeros_seen(gs[0], [*lead, math.prod(input.shape[2:])])
    rows = (result1.reshape([*lead, -1]), gs[0].reshape([*lead, -1]))
    return (t.scatter_add(flat, 2, *rows).reshape(input.shape),)


op(
    "_max_pool_at_starts(Tensor input, Tensor[] starts, int[] kernel) -> (Tensor, Tensor)",
    ms="MaxPoolAtStarts",
    npu=_at_starts_of_operators,
    forms="f",
    grad={("input",): _at_starts_grad},
    whole=True,
)


def _fractional(expand, name, input, kernel_size, output_size, output_ratio, samples):
    """Return the maxima over random windows, and their indices in the flattened image."""
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    kernel = expand(kernel_size)
    n = len(expand(0))
    if len(kernel) != n:
        raise RuntimeError(f"{name}: kernel_size must either be a single Int or tuple of Ints")
    sizes = list(input.shape[-n:])
    called = f"{name}()" if n == 2 else f"{name}_out()"  # as PyTorch's messages name it
    empty = [d for d in range(input.dim() - n - 1, input.dim()) if not input.shape[d]]
    if empty:
        raise RuntimeError(
            f"{called}: Expected input to have non-zero size for non-batch dimensions, but got"
            f"{list(input.shape)} with dimension {empty[0]} being empty."
        )
    if output_size is None:
        if isinstance(output_ratio, (tuple, list)) and len(output_ratio) > n:
            raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
        ratio = expand(output_ratio)
        out = [int(s * r) for s, r in zip(sizes, ratio, strict=True)]
    else:
        out = list(expand(output_size))
        if len(out) != n:
            raise RuntimeError(f"{name}: output_size must either be a single Int or tuple of Ints")
    axes = ("time", "height", "width")[-n:]
    for size, o, k, axis in zip(sizes, out, kernel, axes, strict=True):
        if o + k - 1 > size - (n == 3):  # in three dimensions PyTorch demands one more element
            raise RuntimeError(f"{called}: pool {axis} {k} too large relative to input {axis} {size}")
    x = input if input.dim() == n + 2 else input.unsqueeze(0)
    batch, channels = x.shape[:2]
    if samples is not None:
        _check_samples(samples, batch, channels, n)
    else:
        samples = t.rand(batch, channels, n, dtype=input.dtype, device=input.device)
    starts = []
    for d in range(n):
        # In two dimensions the first sample is for the width and the second for the height.
        column = n - 1 - d if n == 2 else d
        start = _starts(samples[:batch, :, column], sizes[d], out[d], kernel[d])
        starts.append(start.expand(batch, channels, out[d]))
    values, chosen = t._max_pool_at_starts(x, starts, list(kernel))
    shape = [*input.shape[:-n], *out]
    return values.reshape(shape), chosen.reshape(shape)


@composite(
    "nn.functional.fractional_max_pool2d_with_indices(Tensor input, any kernel_size, "
    "any output_size=None, any output_ratio=None, any return_indices=False, "
    "Tensor? _random_samples=None) -> (Tensor, Tensor)",
    forms="f",
    autocast={"cpu": "float32"},
    random="other",
)
def fractional_max_pool2d_with_indices(
    input, kernel_size, output_size, output_ratio, return_indices, _random_samples
):
    """Return fractional_max_pool2d and the indices of the maxima."""
    return _fractional(
        _pair, "fractional_max_pool2d", input, kernel_size, output_size, output_ratio, _random_samples
    )


@composite(
    "nn.functional.fractional_max_pool3d_with_indices(Tensor input, any kernel_size, "
    "any output_size=None, any output_ratio=None, any return_indices=False, "
    "Tensor? _random_samples=None) -> (Tensor, Tensor)",
    forms="f",
    autocast={"cpu": "float32"},
    random="other",
)
def fractional_max_pool3d_with_indices(
    input, kernel_size, output_size, output_ratio, return_indices, _random_samples
):
    """Return fractional_max_pool3d and the indices of the maxima."""
    return _fractional(
        _triple, "fractional_max_pool3d", input, kernel_size, output_size, output_ratio, _random_samples
    )


@composite(
    "nn.functional.fractional_max_pool2d(Tensor input, any kernel_size, any output_size=None, "
    "any output_ratio=None, any return_indices=False, Tensor? _random_samples=None) -> any",
    forms="f",
    autocast={"cpu": "float32"},
    random="other",
)
def fractional_max_pool2d(input, kernel_size, output_size, output_ratio, return_indices, _random_samples):
    """Maximum over windows with random borders, for (N, C, H, W)."""
    both = fractional_max_pool2d_with_indices(
        input, kernel_size, output_size, output_ratio, True, _random_samples
    )
    return both if return_indices else both[0]


@composite(
    "nn.functional.fractional_max_pool3d(Tensor input, any kernel_size, any output_size=None, "
    "any output_ratio=None, any return_indices=False, Tensor? _random_samples=None) -> any",
    forms="f",
    autocast={"cpu": "float32"},
    random="other",
)
def fractional_max_pool3d(input, kernel_size, output_size, output_ratio, return_indices, _random_samples):
    """Maximum over windows with random borders, for (N, C, D, H, W)."""
    both = fractional_max_pool3d_with_indices(
        input, kernel_size, output_size, output_ratio, True, _random_samples
    )
    return both if return_indices else both[0]

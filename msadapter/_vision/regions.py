"""Regions of interest: the part of a feature map in each box, averaged or maximised over a grid of bins.

A region is a row (image, x1, y1, x2, y2) of ``rois``. Gradients go to the feature map alone, as in torchvision.
"""

from __future__ import annotations

from .._values.dtype import float16, int32, int64
from ..ops._declare import t
from ..ops._functional import without_grad
from ._checks import gradient, need_multiple, need_regions

_AT_ONCE = 1 << 23  # elements that are gathered at a time


def _groups(counts: list, each: int):
    """Yield (count, rows): the rows that have the same count, in pieces that gather at most _AT_ONCE elements.

    ``each`` is the number of elements that a row gathers for a count of 1.
    """
    by_count: dict = {}
    for row, count in enumerate(counts):
        by_count.setdefault(count, []).append(row)
    for count, rows in by_count.items():
        area = count[0] * count[1]
        step = max(1, _AT_ONCE // max(1, area * each))
        for start in range(0, len(rows), step):
            yield count, rows[start : start + step]


def _together(parts: list, order: list, empty):
    """Return the rows of all parts in the order of the regions."""
    if not parts:
        return empty
    place = sorted(range(len(order)), key=order.__getitem__)
    joined = parts[0] if len(parts) == 1 else t.cat(parts, 0)
    if order != list(range(len(order))):
        joined = joined.index_select(0, t.tensor(place, device=joined.device, dtype=int64))
    return joined.contiguous().reshape(-1).reshape(joined.shape)  # strides of dimensions of size 1 too


def _rows_of_pixels(input, bins: tuple | None):
    """Return the feature map as a table with a row of channels for each pixel.

    Position-sensitive operators give ``bins`` = (pooled height, pooled width). Their channels belong to a bin, so the table
    has a row for each image, bin and pixel.
    """
    n, channels, height, width = input.shape
    if bins is None:
        return input.permute(0, 2, 3, 1).reshape(n * height * width, channels)
    split = input.reshape(n, channels // (bins[0] * bins[1]), *bins, height * width)
    return split.permute(0, 2, 3, 4, 1).reshape(-1, split.size(1))


def _first_row(images, pooled: tuple, pixels: int, by_bin: bool):
    """Return where the pixels of each region's image (and bin) begin in the table, as (K, PH, PW)."""
    if not by_bin:
        return (images * pixels)[:, None, None].expand(-1, *pooled)
    bins = t.arange(pooled[0] * pooled[1], device=images.device).reshape(1, *pooled)
    return (images[:, None, None] * (pooled[0] * pooled[1]) + bins) * pixels


# ---- averages over sampled points
def _neighbours(position, size: int):
    """Return the two pixels around each position on an axis, and their weights. Both weights are 0 outside the axis."""
    inside = (position >= -1) & (position <= size)
    position = t.where(inside, position, t.zeros_like(position)).clamp(min=0)
    low = position.long().clamp(max=size - 1)
    high = (low + 1).clamp(max=size - 1)
    share = t.where(high > low, position - low.to(position.dtype), t.zeros_like(position))
    zero = t.zeros_like(share)
    weights = t.where(inside, 1 - share, zero), t.where(inside, share, zero)
    return t.stack([low, high], -1), t.stack(weights, -1)


def _sampled(
    input, rois, spatial_scale, pooled: tuple, sampling_ratio, offset: float, at_least, by_bin: bool
):
    """Average bilinear samples of each bin: (K, C, PH, PW), or (K, C / (PH PW), PH, PW) with channels by bin."""
    height, width = input.shape[2:]
    channels = input.size(1) // (pooled[0] * pooled[1] if by_bin else 1)
    with without_grad():
        images = rois[:, 0].long()
        start = rois[:, [2, 1]] * spatial_scale - offset
        size = rois[:, [4, 3]] * spatial_scale - offset - start
        if at_least is not None:
            size = size.clamp(min=at_least)
        bin_size = size / t.tensor(pooled, dtype=size.dtype, device=size.device)
        if sampling_ratio > 0:
            grids = [(sampling_ratio, sampling_ratio)] * rois.size(0)
        else:
            grids = [tuple(max(0, int(x)) for x in row) for row in bin_size.ceil().tolist()]
    table = _rows_of_pixels(input, pooled if by_bin else None)
    parts: list = []
    order: list = []
    for grid, rows in _groups(grids, 4 * pooled[0] * pooled[1] * channels):
        order += rows
        if 0 in grid:
            # A region of no size has no samples. Where torchvision divides by their number, it gives NaN.
            value = 0.0 if at_least is not None or not by_bin else float("nan")
            parts.append(input.new_full((len(rows), channels, *pooled), value))
            continue
        with without_grad():
            chosen = t.tensor(rows, device=rois.device, dtype=int64)
            axes = [
                _neighbours(
                    _points(start[:, axis][chosen], bin_size[:, axis][chosen], pooled[axis], grid[axis]),
                    limit,
                )
                for axis, limit in ((0, height), (1, width))
            ]
            (y, wy), (x, wx) = axes  # (k, P, grid, 2) each
            pixel = y[:, :, None, :, None, :, None] * width + x[:, None, :, None, :, None, :]
            weight = wy[:, :, None, :, None, :, None] * wx[:, None, :, None, :, None, :]
            base = _first_row(images[chosen], pooled, height * width, by_bin)
            pixel = (pixel + base[:, :, :, None, None, None, None]).reshape(-1)
            weight = weight.reshape(len(rows) * pooled[0] * pooled[1], 1, -1)
        values = table.index_select(0, pixel).reshape(weight.size(0), -1, channels)
        mean = t.bmm(weight, values).squeeze(1) / (grid[0] * grid[1])
        parts.append(mean.reshape(len(rows), *pooled, channels).permute(0, 3, 1, 2))
    return _together(parts, order, input.new_zeros((0, channels, *pooled)))


def _points(start, bin_size, bins: int, count: int):
    """Return the positions (k, bins, count) of ``count`` points at equal distances in each bin of an axis."""
    begin = start[:, None] + t.arange(bins, device=start.device).to(start.dtype) * bin_size[:, None]
    step = (t.arange(count, device=start.device).to(start.dtype) + 0.5) * bin_size[:, None] / count
    return begin[:, :, None] + step[:, None, :]


def _align(input, rois, spatial_scale, pooled, sampling_ratio, aligned):
    offset, at_least = (0.5, None) if aligned else (0.0, 1.0)
    return _sampled(input, rois, spatial_scale, pooled, sampling_ratio, offset, at_least, by_bin=False)


def _ps_align(input, rois, spatial_scale, pooled, sampling_ratio):
    return _sampled(input, rois, spatial_scale, pooled, sampling_ratio, 0.5, None, by_bin=True)


def roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned):
    """Return the mean of bilinear samples in each bin of each region: (K, C, pooled_height, pooled_width).

    A bin has ``sampling_ratio`` x ``sampling_ratio`` samples, or if that is not positive, as many as its size in pixels
    rounded up. ``aligned`` moves the regions by half a pixel. Otherwise a region is at least one pixel wide and high.
    """
    need_regions(input, rois, "roi_align_forward_kernel")
    return _align(input, rois, spatial_scale, (pooled_height, pooled_width), sampling_ratio, aligned)


def roi_align_backward(grad, rois, spatial_scale, pooled_height, pooled_width, batch_size, channels, height, width,
        sampling_ratio, aligned):  # fmt: skip
    """Return the gradient of roi_align for its feature map."""
    input = grad.new_zeros((batch_size, channels, height, width))
    bins = pooled_height, pooled_width
    (found,) = gradient(
        lambda x: _align(x, rois, spatial_scale, bins, sampling_ratio, aligned), (input,), grad
    )
    return found


def qroi_align(*args, **kwargs):
    """Not supported: there are no quantised tensors."""
    raise NotImplementedError(
        "torchvision::qroi_align needs quantised tensors, which are not supported (docs/coverage.md)"
    )


def _channel_mapping(count: int, channels_out: int, pooled: tuple, device):
    """Return the input channel of each output element of a position-sensitive operator, as int32."""
    one = t.arange(channels_out * pooled[0] * pooled[1], dtype=int32, device=device)
    return one.reshape(1, channels_out, *pooled).repeat(count, 1, 1, 1)


def ps_roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio):
    """Return roi_align with channels of their own for each bin, and the input channel of each output element.

    The results have the shape (K, C / (pooled_height pooled_width), pooled_height, pooled_width).
    """
    need_regions(input, rois, "ps_roi_align_forward_kernel")
    pooled = pooled_height, pooled_width
    channels_out = need_multiple(input.size(1), pooled_height * pooled_width)
    output = _ps_align(input, rois, spatial_scale, pooled, sampling_ratio)
    return output, _channel_mapping(rois.size(0), channels_out, pooled, input.device)


def ps_roi_align_backward(grad, rois, channel_mapping, spatial_scale, pooled_height, pooled_width, sampling_ratio,
        batch_size, channels, height, width):  # fmt: skip
    """Return the gradient of ps_roi_align for its feature map."""
    input = grad.new_zeros((batch_size, channels, height, width))
    bins = pooled_height, pooled_width
    return gradient(lambda x: _ps_align(x, rois, spatial_scale, bins, sampling_ratio), (input,), grad)[0]


# ---- bins of whole pixels
def _rounded(position):
    """Round as C does: halves go away from zero."""
    position = position.double()
    return (position + t.copysign(t.full_like(position, 0.5), position)).trunc().long()


def _whole_bins(rois, spatial_scale, pooled: tuple, extra: int, limits: tuple):
    """Return the first and the last-but-one pixel of every bin: two lists (rows, columns) of (K, P).

    ``extra`` is 1 if the region's last pixel belongs to it. ``limits`` are the largest pixels allowed.
    """
    firsts, ends = [], []
    for axis, (low, high) in enumerate(((2, 4), (1, 3))):
        start = _rounded(rois[:, low] * spatial_scale)
        size = (_rounded(rois[:, high] * spatial_scale) - start + extra).clamp(min=1).to(rois.dtype)
        step = (size / pooled[axis])[:, None]
        bins = t.arange(pooled[axis] + 1, device=rois.device).to(rois.dtype)
        firsts.append(((bins[:-1] * step).floor().long() + start[:, None]).clamp(0, limits[axis]))
        ends.append(((bins[1:] * step).ceil().long() + start[:, None]).clamp(0, limits[axis]))
    return firsts, ends


def _pixels_of_bins(firsts, ends, width: int, each: int):
    """Yield (rows, pixel, valid) for pieces of the regions.

    ``pixel`` (k, PH, PW, h, w) has the positions of the bins' pixels in their image. ``valid`` tells which of them belong to
    the bin, since a piece has bins of several sizes; the others are 0.
    """
    sizes = [(end - first).clamp(min=0).amax(1).tolist() for first, end in zip(firsts, ends, strict=True)]
    for (h, w), rows in _groups(list(zip(*sizes, strict=True)), each):
        chosen = t.tensor(rows, device=firsts[0].device, dtype=int64)
        places, inside = [], []
        for count, first, end in zip((h, w), firsts, ends, strict=True):
            place = first[chosen][:, :, None] + t.arange(max(1, count), device=first.device)
            inside.append(place < end[chosen][:, :, None])
            places.append(place)
        pixel = places[0][:, :, None, :, None] * width + places[1][:, None, :, None, :]
        valid = inside[0][:, :, None, :, None] & inside[1][:, None, :, None, :]
        yield rows, t.where(valid, pixel, t.zeros_like(pixel)), valid


def _least(dtype) -> float:
    """Return the value that roi_pool starts from: that of float32 in double precision too, and -inf in half precision."""
    return float("-inf") if dtype is float16 else -3.4028234663852886e38


def _largest(input, rois, spatial_scale, pooled: tuple):
    """Return the position of the largest element of each bin in its image, as int32, or -1; and which bins are empty."""
    channels, height, width = input.shape[1:]
    images = rois[:, 0].long()
    table = _rows_of_pixels(input, None)
    firsts, ends = _whole_bins(rois, spatial_scale, pooled, 1, (height, width))
    parts: list = []
    empty: list = []
    order: list = []
    for rows, pixel, valid in _pixels_of_bins(firsts, ends, width, pooled[0] * pooled[1] * channels):
        order += rows
        base = _first_row(images[t.tensor(rows, device=images.device)], pooled, height * width, by_bin=False)
        shape = (len(rows), *pooled, -1, channels)
        values = table.index_select(0, (pixel + base[:, :, :, None, None]).reshape(-1)).reshape(shape)
        counts = valid.reshape(*shape[:-1], 1) & (values > _least(values.dtype))
        values = t.where(counts, values, t.full_like(values, float("-inf")))
        best = values.argmax(3, keepdim=True)
        found = pixel.reshape(*shape[:-1], 1).expand(values.shape).gather(3, best).squeeze(3)
        found = t.where(counts.any(3), found, t.full_like(found, -1))
        parts.append(found.permute(0, 3, 1, 2))
        empty.append(valid.flatten(3).any(3).logical_not())
    none = rois.new_zeros((0, channels, *pooled), dtype=int64)
    return (
        _together(parts, order, none).to(int32),
        _together(empty, order, none[:, 0].bool())[:, None],
    )


def _taken(input, rois, argmax):
    """Return the elements of the regions' images at the positions ``argmax``, with zeros where it is -1."""
    chosen = input.flatten(2).index_select(0, rois[:, 0].long())
    values = chosen.gather(2, argmax.long().clamp(min=0).flatten(2)).reshape(argmax.shape)
    return t.where(argmax >= 0, values, t.zeros_like(values))


def roi_pool(input, rois, spatial_scale, pooled_height, pooled_width):
    """Return the largest element in each bin of each region, and its position in its image, or -1.

    Both have the shape (K, C, pooled_height, pooled_width). An empty bin gives 0.
    """
    need_regions(input, rois, "roi_pool_forward_kernel")
    with without_grad():
        argmax, empty = _largest(input, rois, spatial_scale, (pooled_height, pooled_width))
    output = _taken(input, rois, argmax)
    nothing = (argmax < 0) & empty.logical_not()  # only NaN and -inf in it
    return t.where(nothing, t.full_like(output, _least(output.dtype)), output), argmax


def roi_pool_backward(grad, rois, argmax, spatial_scale, pooled_height, pooled_width, batch_size, channels, height,
        width):  # fmt: skip
    """Return the gradient of roi_pool for its feature map."""
    input = grad.new_zeros((batch_size, channels, height, width))
    return gradient(lambda x: _taken(x, rois, argmax), (input,), grad)[0]


def _bin_means(input, rois, spatial_scale, pooled: tuple, margin: int):
    """Average each bin over its own channels. Bins end ``margin`` pixels before the end of the feature map."""
    height, width = input.shape[2:]
    channels_out = input.size(1) // (pooled[0] * pooled[1])
    with without_grad():
        images = rois[:, 0].long()
        firsts, ends = _whole_bins(rois, spatial_scale, pooled, 0, (height - margin, width - margin))
    table = _rows_of_pixels(input, pooled)
    parts: list = []
    order: list = []
    for rows, pixel, valid in _pixels_of_bins(firsts, ends, width, pooled[0] * pooled[1] * channels_out):
        order += rows
        with without_grad():
            base = _first_row(
                images[t.tensor(rows, device=images.device)], pooled, height * width, by_bin=True
            )
            pixel = (pixel + base[:, :, :, None, None]).reshape(-1)
            weight = valid.reshape(len(rows) * pooled[0] * pooled[1], 1, -1).to(input.dtype)
            area = weight.sum(2).clamp(min=1)
        values = table.index_select(0, pixel).reshape(weight.size(0), -1, channels_out)
        values = t.where(weight.transpose(1, 2) > 0, values, t.zeros_like(values))
        mean = t.bmm(weight, values).squeeze(1) / area
        parts.append(mean.reshape(len(rows), *pooled, channels_out).permute(0, 3, 1, 2))
    return _together(parts, order, input.new_zeros((0, channels_out, *pooled)))


def ps_roi_pool(input, rois, spatial_scale, pooled_height, pooled_width):
    """Return the mean of each bin of each region over channels of the bin's own, and the channel of each element.

    Both have the shape (K, C / (pooled_height pooled_width), pooled_height, pooled_width).
    """
    need_regions(input, rois, "ps_roi_pool_forward_kernel")
    pooled = pooled_height, pooled_width
    channels_out = need_multiple(input.size(1), pooled_height * pooled_width)
    output = _bin_means(input, rois, spatial_scale, pooled, 1)
    return output, _channel_mapping(rois.size(0), channels_out, pooled, input.device)


def ps_roi_pool_backward(grad, rois, channel_mapping, spatial_scale, pooled_height, pooled_width, batch_size,
        channels, height, width):  # fmt: skip
    """Return the gradient of ps_roi_pool for its feature map.

    As in torchvision, the last row and column of pixels, which do not count in the result, have a gradient.
    """
    input = grad.new_zeros((batch_size, channels, height, width))
    bins = pooled_height, pooled_width
    return gradient(lambda x: _bin_means(x, rois, spatial_scale, bins, 0), (input,), grad)[0]

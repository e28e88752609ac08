"""Deformable convolution: a convolution whose kernel points are moved by offsets, one for each place and point."""

from __future__ import annotations

from .._values.dtype import float16, float32, float64
from ..ops._declare import t
from ._checks import gradient, need, need_dtype


def _output_size(size: int, kernel: int, stride: int, pad: int, dilation: int) -> int:
    return (size + 2 * pad - (dilation * (kernel - 1) + 1)) // stride + 1


def _check(input, weight, offset, mask, bias, stride, pad, dilation, groups, offset_groups, use_mask) -> None:
    need(input.dim() == 4 and weight.dim() == 4, "input and weight must have 4 dimensions")
    need(offset.dim() == 4, "offset must have 4 dimensions")
    need_dtype("deformable_im2col", input.dtype, (float16, float32, float64))
    need(min(stride) > 0, f"stride_h: {stride[0]} stride_w: {stride[1]}")
    need(min(pad) >= 0, f"pad_h: {pad[0]} pad_w: {pad[1]}")
    need(min(dilation) > 0, f"dil_h: {dilation[0]} dil_w: {dilation[1]}")
    need(groups > 0 and offset_groups > 0, "groups and offset_groups must be positive")
    n, channels, height, width = input.shape
    points = weight.size(2) * weight.size(3)
    need(
        weight.size(1) * groups == channels and weight.size(0) % groups == 0,
        f"weight of shape {tuple(weight.shape)} and {groups} groups do not fit an input of {channels} channels",
    )
    need(channels % offset_groups == 0, "the input channels must be a multiple of offset_groups")
    need(
        offset.size(1) == offset_groups * 2 * points,
        f"offset.shape[1] is not valid: got: {offset.size(1)} expected: {offset_groups * 2 * points}",
    )
    need(offset.size(0) == n, "invalid batch size of offset")
    places = tuple(
        _output_size(size, weight.size(2 + axis), stride[axis], pad[axis], dilation[axis])
        for axis, size in enumerate((height, width))
    )
    need(min(places) > 0, f"Calculated output size too small - out_h: {places[0]} out_w: {places[1]}")
    need(
        tuple(offset.shape[2:]) == places,
        f"offset output dims: ({offset.size(2)}, {offset.size(3)}) - computed output dims: {places}",
    )
    if use_mask:
        need(
            tuple(mask.shape) == (n, offset_groups * points, *places),
            f"mask has the shape {tuple(mask.shape)}, expected {(n, offset_groups * points, *places)}",
        )
    need(
        tuple(bias.shape) == (weight.size(0),),
        f"bias has the shape {tuple(bias.shape)}, expected ({weight.size(0)},)",
    )


def _axis(offset, size: int, kernel: int, stride: int, pad: int, dilation: int, axis: int):
    """Return the positions on one axis that the kernel points read; offset is (n, groups, kh, kw, oh, ow)."""
    places = t.arange(offset.size(4 + axis), device=offset.device).to(offset.dtype) * stride - pad
    points = t.arange(kernel, device=offset.device).to(offset.dtype) * dilation
    shape = [1, 1, 1, 1, 1, 1]
    shape[4 + axis] = -1
    other = [1, 1, 1, 1, 1, 1]
    other[2 + axis] = -1
    return places.reshape(shape) + points.reshape(other) + offset


def _corner(position, size: int, upper: int):
    """Return the pixel below (or above) each position, its weight, which has a gradient, and whether it is a pixel."""
    low = position.detach().floor()
    share = position - low
    weight = share if upper else 1 - share
    pixel = low + upper
    valid = (pixel >= 0) & (pixel < size)
    return t.where(valid, pixel, t.zeros_like(pixel)).long(), t.where(valid, weight, t.zeros_like(weight))


def _columns(input, y, x, offset_groups: int):
    """Return the bilinear samples at (y, x), both (n, offset groups, points, places): (n, C, points, places)."""
    n, channels, height, width = input.shape
    each = channels // offset_groups
    table = input.reshape(n, offset_groups, each, height * width).permute(0, 1, 3, 2).reshape(-1, each)
    base = t.arange(n * offset_groups, device=input.device).reshape(n, offset_groups, 1, 1) * (height * width)
    total = None
    for upper_y in (0, 1):
        row, weight_y = _corner(y, height, upper_y)
        for upper_x in (0, 1):
            column, weight_x = _corner(x, width, upper_x)
            values = table.index_select(0, (base + row * width + column).reshape(-1)).reshape(*y.shape, each)
            part = values * (weight_y * weight_x)[..., None]
            total = part if total is None else total + part
    return total.permute(0, 1, 4, 2, 3).reshape(n, channels, *y.shape[2:])


def _convolve(input, weight, offset, mask, bias, stride, pad, dilation, groups, offset_groups, use_mask):
    n = input.size(0)
    out_channels, in_channels, kh, kw = weight.shape
    oh, ow = offset.shape[2:]
    moves = offset.reshape(n, offset_groups, kh, kw, 2, oh, ow)
    y = _axis(moves.select(4, 0), input.size(2), kh, stride[0], pad[0], dilation[0], 0)
    x = _axis(moves.select(4, 1), input.size(3), kw, stride[1], pad[1], dilation[1], 1)
    flat = (n, offset_groups, kh * kw, oh * ow)
    columns = _columns(input, y.reshape(flat), x.reshape(flat), offset_groups)
    if use_mask:
        per_group = columns.reshape(n, offset_groups, -1, kh * kw, oh * ow)
        columns = (per_group * mask.reshape(n, offset_groups, 1, kh * kw, oh * ow)).reshape(columns.shape)
    columns = columns.reshape(n, groups, in_channels * kh * kw, oh * ow)
    kernel = weight.reshape(1, groups, out_channels // groups, in_channels * kh * kw)
    product = t.matmul(kernel, columns).reshape(n, out_channels, oh, ow)
    return product + bias.reshape(1, -1, 1, 1)


def _pairs(stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w):
    return (stride_h, stride_w), (pad_h, pad_w), (dilation_h, dilation_w)


def deform_conv2d(input, weight, offset, mask, bias, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups,
        offset_groups, use_mask):  # fmt: skip
    """Return the deformable convolution (N, O, OH, OW) of ``input`` (N, C, H, W) with ``weight`` (O, C / groups, KH, KW).

    ``offset`` (N, 2 offset_groups KH KW, OH, OW) has the moves of the kernel points, y before x, in pixels. ``mask``
    (N, offset_groups KH KW, OH, OW) scales what the points read, if ``use_mask``. Outside the input there are zeros.
    Source: https://arxiv.org/abs/1703.06211 and https://arxiv.org/abs/1811.11168.
    """
    pairs = _pairs(stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w)
    _check(input, weight, offset, mask, bias, *pairs, groups, offset_groups, use_mask)
    return _convolve(input, weight, offset, mask, bias, *pairs, groups, offset_groups, use_mask)


def deform_conv2d_backward(grad, input, weight, offset, mask, bias, stride_h, stride_w, pad_h, pad_w, dilation_h,
        dilation_w, groups, offset_groups, use_mask):  # fmt: skip
    """Return the gradients for input, weight, offset, mask and bias. Without ``use_mask``, that of the mask is zeros."""
    pairs = _pairs(stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w)

    def convolve(input, weight, offset, bias, *masks):
        return _convolve(
            input, weight, offset, masks[0] if masks else mask, bias, *pairs, groups, offset_groups, use_mask
        )

    masks = (mask,) if use_mask else ()
    found = gradient(convolve, (input, weight, offset, bias, *masks), grad)
    mask_grad = found[4] if use_mask else t.zeros_like(mask)
    return found[0], found[1], found[2], mask_grad, found[3]

"""Convolutions, unfold and fold, and functions that move values between channels and space."""

from __future__ import annotations

import math

from .._values.layout import FORMATS, suggested_format
from ._declare import composite, op, raw, t
from .nn_norm import outputs

# ---- the bilinear core: result, gradient of the input, gradient of the weight; each is made of the other two
_GEOMETRY = "int[] stride, int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups"


def _input_part(g, input, weight, stride, padding, dilation, transposed, output_padding, groups):
    return t._conv_input_grad(g, weight, input, stride, padding, dilation, transposed, output_padding, groups)


def _weight_part(g, input, weight, stride, padding, dilation, transposed, output_padding, groups):
    return t._conv_weight_grad(
        g, input, weight, stride, padding, dilation, transposed, output_padding, groups
    )


def _bias_part(g):
    return g.sum([0, *range(2, g.dim())])


op(
    f"_convolution_nd(Tensor input, Tensor weight, Tensor? bias, {_GEOMETRY}) -> Tensor",
    ms="Convolution",
    forms="f",
    autocast="lower",
    grad={
        "input": lambda g, input, weight, stride, padding, dilation, transposed, output_padding, groups: (
            _input_part(
                g, input, _conj(weight), stride, padding, dilation, transposed, output_padding, groups
            )
        ),
        "weight": lambda g, input, weight, stride, padding, dilation, transposed, output_padding, groups: (
            _weight_part(
                g, _conj(input), weight, stride, padding, dilation, transposed, output_padding, groups
            )
        ),
        "bias": _bias_part,
    },
    node="ConvolutionBackward0",
)


def _conj(x):
    return t.conj_physical(x) if x.is_complex() else x


def _one_gradient(which, grad, input, weight, stride, padding, dilation, transposed, output_padding, groups):
    """Return the gradient of the input (which = 0) or of the weight (which = 1)."""
    geometry = (list(stride), list(padding), list(dilation), transposed, list(output_padding), groups)
    mask = [int(k == which) for k in range(3)]
    return outputs(raw.ConvolutionGrad(grad, input, weight, None, *geometry, mask), 3)[which]


@op(
    f"_conv_input_grad(Tensor grad, Tensor weight, Tensor input, {_GEOMETRY}) -> Tensor",
    forms="f",
    grad={
        "grad": lambda g, weight, stride, padding, dilation, transposed, output_padding, groups: (
            t._convolution_nd(
                g, _conj(weight), None, stride, padding, dilation, transposed, output_padding, groups
            )
        ),
        "weight": lambda g, grad, weight, stride, padding, dilation, transposed, output_padding, groups: (
            t._conv_weight_grad(
                _conj(grad), g, weight, stride, padding, dilation, transposed, output_padding, groups
            )
        ),
    },
)
def _conv_input_grad(grad, weight, input, stride, padding, dilation, transposed, output_padding, groups):
    # Only the shape of `input` is used.
    return _one_gradient(
        0, grad, input, weight, stride, padding, dilation, transposed, output_padding, groups
    )


@op(
    f"_conv_weight_grad(Tensor grad, Tensor input, Tensor weight, {_GEOMETRY}) -> Tensor",
    forms="f",
    grad={
        "grad": lambda g, input, stride, padding, dilation, transposed, output_padding, groups: (
            t._convolution_nd(
                _conj(input), g, None, stride, padding, dilation, transposed, output_padding, groups
            )
        ),
        "input": lambda g, grad, input, stride, padding, dilation, transposed, output_padding, groups: (
            t._conv_input_grad(
                _conj(grad), g, input, stride, padding, dilation, transposed, output_padding, groups
            )
        ),
    },
)
def _conv_weight_grad(grad, input, weight, stride, padding, dilation, transposed, output_padding, groups):
    # Only the shape of `weight` is used.
    return _one_gradient(
        1, grad, input, weight, stride, padding, dilation, transposed, output_padding, groups
    )


# ---- the torch faces
def _spread(value, n, name="the argument"):
    """Return ``n`` numbers, one for each dim.

    Any other number of values than 1 or ``n`` raises RuntimeError.
    """
    values = [value] if isinstance(value, int) else list(value)
    if len(values) not in (1, n):
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {n} values to match the dimensions, but got {values}"
        )
    return values * n if len(values) == 1 else values


def _sliding(kernel_size, dilation, padding, stride):
    """Return the four checked pairs of numbers that im2col and col2im take."""
    pairs = [
        _spread(v, 2, name)
        for v, name in (
            (kernel_size, "kernel_size"),
            (dilation, "dilation"),
            (padding, "padding"),
            (stride, "stride"),
        )
    ]
    for (h, w), name, text in zip(
        pairs, ("kernel size", "dilation", "", "stride"), ("kernel", "dilation", "", "stride"), strict=True
    ):
        if name and min(h, w) <= 0:
            raise RuntimeError(
                f"{name} should be greater than zero, but got {text}_height: {h} {text}_width: {w}"
            )
    if min(pairs[2]) < 0:
        raise RuntimeError(
            f"padding should be non-negative, but got pad_height: {pairs[2][0]} pad_width: {pairs[2][1]}"
        )
    return pairs


def _check_rank(name, input, n):
    if input.dim() not in (n + 1, n + 2):
        raise RuntimeError(
            f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but got input of size: {list(input.shape)}"
        )


def _same_padding(input, weight, dilation, n):
    """Return the symmetric part of the padding 'same', and the rest, which goes to the end of each dim."""
    total = [dilation[i] * (weight.shape[i + 2] - 1) for i in range(n)]
    return [x // 2 for x in total], [x % 2 for x in total]


def _laid_out(y, x, weight):
    """Return y in channels_last format if an operand has this format."""
    if y.dim() < 4:
        return y
    last = FORMATS["channels_last" if y.dim() == 4 else "channels_last_3d"]
    if any(suggested_format(v.shape, v.stride()) is last for v in (x, weight)):
        return y.contiguous(memory_format=last)
    return y


def _without_channels(x, weight, bias, stride, padding, dilation):
    """Return the convolution of an input without channels. As in PyTorch, its result has no channels either.

    It still depends on the operands, so that their gradients are zeros.
    """
    n = weight.dim() - 2
    sizes = [
        (x.size(i + 2) + 2 * padding[i] - dilation[i] * (weight.size(i + 2) - 1) - 1) // stride[i] + 1
        for i in range(n)
    ]
    out = x.new_zeros([x.size(0), 0, *sizes]) + x.sum() + weight.sum()
    return out if bias is None else out + bias.sum()


def _convolve(x, weight, bias, *geometry):
    """Return the convolution. Complex operands are computed with three real convolutions, as in PyTorch."""
    stride, padding, dilation, transposed, *_ = geometry
    if not transposed and x.size(1) == 0 and weight.size(1) == 0:
        return _without_channels(x, weight, bias, stride, padding, dilation)
    if not x.is_complex() or not weight.is_complex():
        return t._convolution_nd(x, weight, bias, *geometry)
    parts = [None if v is None else (t.real(v), t.imag(v)) for v in (x, weight, bias)]
    (xr, xi), (wr, wi), b = parts
    low = t._convolution_nd(xr, wr, b and b[0], *geometry)
    high = t._convolution_nd(xi, wi, None, *geometry)
    both = t._convolution_nd(xr + xi, wr + wi, b and b[0] + b[1], *geometry)
    return t.complex(low - high, both - low - high)


def _conv(name, n, input, weight, bias, stride, padding, dilation, groups):
    _check_rank(name, input, n)
    x = input if input.dim() == n + 2 else input.unsqueeze(0)
    stride, dilation = _spread(stride, n, "stride"), _spread(dilation, n, "dilation")
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise RuntimeError(f"Invalid padding string: '{padding}'")
        if padding == "same":
            if any(s != 1 for s in stride):
                raise RuntimeError("padding='same' is not supported for strided convolutions")
            padding, rest = _same_padding(x, weight, dilation, n)
            if any(rest):
                x = t.constant_pad_nd(x, [v for r in reversed(rest) for v in (0, r)])
        else:
            padding = [0] * n
    y = _convolve(x, weight, bias, stride, _spread(padding, n, "padding"), dilation, False, [0] * n, groups)
    y = _laid_out(y, x, weight)
    return y if input.dim() == n + 2 else y.squeeze(0)


def _conv_transpose(name, n, input, weight, bias, stride, padding, output_padding, groups, dilation):
    _check_rank(name, input, n)
    x = input if input.dim() == n + 2 else input.unsqueeze(0)
    stride, dilation, extra = (
        _spread(stride, n, "stride"),
        _spread(dilation, n, "dilation"),
        _spread(output_padding, n, "output_padding"),
    )
    for e, s, d in zip(extra, stride, dilation, strict=True):
        if e >= s and e >= d:
            raise RuntimeError("output padding must be smaller than either stride or dilation")
    y = _convolve(x, weight, bias, stride, _spread(padding, n, "padding"), dilation, True, extra, groups)
    y = _laid_out(y, x, weight)
    return y if input.dim() == n + 2 else y.squeeze(0)


def _declare(n):
    @composite(
        f"nn.functional.conv{n}d(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, any padding=0, int[] dilation=1, "
        "int groups=1) -> Tensor",
        forms="f",
        aliases=(f"conv{n}d",),
        autocast="lower",
        sample_rank=n + 1,
    )
    def conv(input, weight, bias, stride, padding, dilation, groups):
        return _conv(f"conv{n}d", n, input, weight, bias, stride, padding, dilation, groups)

    @composite(
        f"nn.functional.conv_transpose{n}d(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, int[] padding=0, "
        "int[] output_padding=0, int groups=1, int[] dilation=1) -> Tensor",
        forms="f",
        aliases=(f"conv_transpose{n}d",),
        autocast="lower",
        sample_rank=n + 1,
    )
    def conv_transpose(input, weight, bias, stride, padding, output_padding, groups, dilation):
        return _conv_transpose(
            f"conv_transpose{n}d", n, input, weight, bias, stride, padding, output_padding, groups, dilation
        )


for _n in (1, 2, 3):
    _declare(_n)


@composite(
    "convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool transposed, "
    "int[] output_padding, int groups) -> Tensor",
    forms="f",
    autocast="lower",
)
def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """The general convolution, from which conv1d to conv_transpose3d are made."""
    n = weight.dim() - 2
    return t._convolution_nd(
        input,
        weight,
        bias,
        _spread(stride, n),
        _spread(padding, n, "padding"),
        _spread(dilation, n),
        transposed,
        _spread(output_padding, n, "output_padding"),
        groups,
    )


@composite(
    "aten.slow_conv3d(Tensor self, Tensor weight, int[] kernel_size, Tensor? bias=None, int[] stride=1, int[] padding=0) -> "
    "Tensor",
    forms="f",
)
def slow_conv3d(self, weight, kernel_size, bias, stride, padding):
    """The convolution of volumes under ATen's name for a way to compute it. The sizes of the kernel are the weight's."""
    return t.conv3d(self, weight, bias, stride, padding)


# ---- sliding blocks
op(
    "_im2col(Tensor input, int[] kernel_size, int[] dilation, int[] padding, int[] stride) -> Tensor",
    ms="Im2ColExt",
    forms="f",
    grad={
        "input": lambda g, input, kernel_size, dilation, padding, stride: t._col2im(
            g, list(input.shape[2:]), kernel_size, dilation, padding, stride
        )
    },
)
op(
    "_col2im(Tensor input, int[] output_size, int[] kernel_size, int[] dilation, int[] padding, int[] stride) -> Tensor",
    ms="Col2ImExt",
    forms="f",
    grad={
        "input": lambda g, kernel_size, dilation, padding, stride: t._im2col(
            g, kernel_size, dilation, padding, stride
        )
    },
)


@composite(
    "nn.functional.unfold(Tensor input, int[] kernel_size, int[] dilation=1, int[] padding=0, int[] stride=1) -> Tensor",
    forms="f",
    aliases=("aten.im2col",),
    short=False,
)
def unfold(input, kernel_size, dilation, padding, stride):
    """Return sliding blocks of (N, C, H, W) as columns (N, C * elements of a block, positions)."""
    if input.dim() not in (3, 4) or 0 in input.shape[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but "
            f"got: {list(input.shape)}"
        )
    x = input if input.dim() == 4 else input.unsqueeze(0)
    y = t._im2col(x, *_sliding(kernel_size, dilation, padding, stride))
    return y if input.dim() == 4 else y.squeeze(0)


def _check_blocks(output_size, kernel_size, dilation, padding, stride) -> None:
    """RuntimeError if a dim of the image has no place for a block."""
    given = [tuple(_spread(v, 2, "size")) for v in (output_size, kernel_size, dilation, padding, stride)]
    counts = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1 if s else 1 for n, k, d, p, s in zip(*given, strict=True)
    ]
    if min(counts) < 1:
        size, kernel, gaps, border, step = given
        raise RuntimeError(
            f"Given output_size={size}, kernel_size={kernel}, dilation={gaps}, padding={border}, stride={step}, calculated "
            f"shape of the array of sliding blocks as {tuple(counts)}, which is too small (non-positive)"
        )


@composite(
    "nn.functional.fold(Tensor input, int[] output_size, int[] kernel_size, int[] dilation=1, int[] padding=0, int[] stride=1)"
    " -> Tensor",
    forms="f",
    aliases=("aten.col2im",),
)
def fold(input, output_size, kernel_size, dilation, padding, stride):
    """Add up columns (N, C * elements of a block, positions) to an image (N, C, H, W)."""
    if input.dim() not in (2, 3):
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, "
            f"but got: {list(input.shape)}"
        )
    x = input if input.dim() == 3 else input.unsqueeze(0)
    _check_blocks(output_size, kernel_size, dilation, padding, stride)
    y = t._col2im(
        x, _spread(output_size, 2, "output_size"), *_sliding(kernel_size, dilation, padding, stride)
    )
    return y if input.dim() == 3 else y.squeeze(0)


# ---- channels and space
@composite(
    "nn.functional.pixel_shuffle(Tensor input, int upscale_factor) -> Tensor",
    forms="f",
    aliases=("pixel_shuffle",),
)
def pixel_shuffle(input, upscale_factor):
    """Reorder (..., C * r * r, H, W) to (..., C, H * r, W * r)."""
    r = upscale_factor
    if input.dim() < 3:
        raise RuntimeError(
            f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {input.dim()} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    *lead, c, h, w = input.shape
    if c % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
            f"input.size(-3)={c} is not divisible by {r * r}"
        )
    n = math.prod(lead)
    out = (
        input.reshape(n, c // (r * r), r, r, h, w)
        .permute(0, 1, 4, 2, 5, 3)
        .reshape(*lead, c // (r * r), h * r, w * r)
    )
    return _in_format_of(input, out)


def _in_format_of(input, out):
    """Return ``out`` with its channels last in memory if those of ``input`` are."""
    last = FORMATS["channels_last"]
    return out.to(memory_format=last) if suggested_format(input.shape, input.stride()) is last else out


@composite(
    "nn.functional.pixel_unshuffle(Tensor input, int downscale_factor) -> Tensor",
    forms="f",
    aliases=("pixel_unshuffle",),
)
def pixel_unshuffle(input, downscale_factor):
    """Reorder (..., C, H * r, W * r) to (..., C * r * r, H, W)."""
    r = downscale_factor
    if input.dim() < 3:
        raise RuntimeError(
            f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with {input.dim()} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *lead, c, h, w = input.shape
    for name, n in (("height", h), ("width", w)):
        if n % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but "
                f"input.size({-2 if name == 'height' else -1})"
                f"={n} is not divisible by {r}"
            )
    n = math.prod(lead)
    out = (
        input.reshape(n, c, h // r, r, w // r, r)
        .permute(0, 1, 3, 5, 2, 4)
        .reshape(*lead, c * r * r, h // r, w // r)
    )
    return _in_format_of(input, out)


@composite(
    "nn.functional.channel_shuffle(Tensor input, int groups) -> Tensor",
    forms="f",
    aliases=("channel_shuffle",),
)
def channel_shuffle(input, groups):
    """Interleave the channels of `groups` groups."""
    if input.dim() < 3:
        raise RuntimeError(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}"
        )
    if groups <= 0:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    b, c, *rest = input.shape
    if c % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups."
        )
    return input.reshape(b, groups, c // groups, *rest).transpose(1, 2).reshape(b, c, *rest)

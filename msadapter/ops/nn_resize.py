"""Images: resizing, sampling grids and shuffles; and convolution of sequences with time as first dimension."""

from __future__ import annotations

import math
import numbers
import warnings

from .._values.base import Base
from ._declare import composite, op, t
from ._functional import functional
from ._grid import warn_of_corners
from .nn_conv import _conj


@composite(
    "nn.functional.native_channel_shuffle(Tensor input, int groups) -> Tensor",
    forms="f",
    aliases=("native_channel_shuffle",),
)
def native_channel_shuffle(input, groups):
    """Same as `channel_shuffle`."""
    return functional.channel_shuffle(input, groups)


@composite(
    "nn.functional.conv_tbc(Tensor input, Tensor weight, Tensor bias, int pad=0) -> Tensor",
    forms="f",
    aliases=("conv_tbc",),
    autocast="lower",
)
def conv_tbc(input, weight, bias, pad):
    """Convolution of (T, N, C_in) along T with weight (K, C_in, C_out)."""
    length = input.shape[0] + 2 * pad - weight.shape[0] + 1
    return t._conv_tbc(input, weight, bias, pad, length)


def _tbc_of_operators(input, weight, bias, shift, length):
    out = functional.conv1d(
        t.constant_pad_nd(
            input.permute(1, 2, 0), [shift, length + weight.shape[0] - 1 - shift - input.shape[0]]
        ),
        weight.permute(2, 1, 0),
        bias,
    )
    return out.permute(2, 0, 1).contiguous()


def _tbc_weight_grad_of_operators(grad, input, taps, shift):
    extra = grad.shape[0] + taps - 1 - shift - input.shape[0]
    steps = t.constant_pad_nd(input.permute(2, 1, 0), [shift, extra]).permute(2, 1, 0)
    n = grad.shape[0]
    flat = grad.reshape(-1, grad.shape[2])
    return t.stack([t.matmul(steps[k : k + n].reshape(-1, input.shape[2]).t(), flat) for k in range(taps)])


def _tbc_input_grad(g, input, weight, shift):
    turned = t.transpose(t.flip(weight, [0]), 1, 2)
    return t._conv_tbc(g, turned, None, weight.shape[0] - 1 - shift, input.shape[0])


op(
    "_conv_tbc(Tensor input, Tensor weight, Tensor? bias, int shift, int length) -> Tensor",
    ms="ConvOverTime",
    npu=_tbc_of_operators,
    forms="f",
    grad={
        "input": lambda g, input, weight, shift: _tbc_input_grad(g, input, _conj(weight), shift),
        "weight": lambda g, input, weight, shift: t._conv_tbc_weight_grad(
            g, _conj(input), weight.shape[0], shift
        ),
        "bias": lambda g: g.sum([0, 1]),
    },
    node="ConvTbcBackward0",
)
op(
    "_conv_tbc_weight_grad(Tensor grad, Tensor input, int taps, int shift) -> Tensor",
    ms="ConvOverTimeWeightGrad",
    npu=_tbc_weight_grad_of_operators,
    forms="f",
    grad={
        "grad": lambda g, grad, input, shift: t._conv_tbc(_conj(input), g, None, shift, grad.shape[0]),
        "input": lambda g, grad, input, shift: _tbc_input_grad(_conj(grad), input, g, shift),
    },
)


def _steps(n, align_corners, like):
    """Return n sampling positions in [-1, 1], which begin at the borders or at the centres of n cells."""
    if n <= 1:
        return t.zeros(n, dtype=like.dtype, device=like.device)
    line = t.linspace(-1, 1, n, dtype=like.dtype, device=like.device)
    return line if align_corners else line * ((n - 1) / n)


@composite(
    "nn.functional.affine_grid(Tensor theta, any size, any align_corners=None) -> Tensor",
    forms="f",
    autocast={"accelerator": "as given"},
)
def affine_grid(theta, size, align_corners):
    """Return the sampling grid (N, [D,] H, W, 2 or 3) of the affine maps theta, (N, 2, 3) or (N, 3, 4)."""
    if align_corners is None:
        warn_of_corners()
        align_corners = False
    elif align_corners and 1 in size[2:]:
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This is not an "
            "intended use case of affine_grid. See the documentation of affine_grid for details.",
            stacklevel=2,
        )
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    spatial = len(size) - 2
    if spatial not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            f"respectively. Got size {list(size)}."
        )
    rows = (spatial, spatial + 1)
    expected = f"Expected a batch of {spatial}D affine matrices of shape Nx{rows[0]}x{rows[1]} for size "
    if theta.dim() != 3 or tuple(theta.shape[-2:]) != rows:
        raise ValueError(f"{expected}{size}. Got {theta.shape}.")
    if theta.size(0) != size[0]:  # PyTorch finds this later, with another class of error
        raise RuntimeError(f"{expected}{list(size)}. Got {list(theta.shape)}.")
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {list(size)}")
    n, shape = size[0], list(size[2:])
    columns = []
    for axis in reversed(range(spatial)):
        view = [1] * spatial
        view[axis] = shape[axis]
        columns.append(_steps(shape[axis], align_corners, theta).view(view).expand(shape))
    columns.append(t.ones(shape, dtype=theta.dtype, device=theta.device))
    base = t.stack(columns, -1).reshape(1, math.prod(shape), spatial + 1).expand(n, -1, -1)
    return base.bmm(theta.transpose(1, 2)).view([n, *shape, spatial])


_KERNELS = {
    ("nearest", 3): "upsample_nearest1d",
    ("nearest", 4): "upsample_nearest2d",
    ("nearest", 5): "upsample_nearest3d",
    ("nearest-exact", 3): "_upsample_nearest_exact1d",
    ("nearest-exact", 4): "_upsample_nearest_exact2d",
    ("nearest-exact", 5): "_upsample_nearest_exact3d",
    ("linear", 3): "upsample_linear1d",
    ("bilinear", 4): "upsample_bilinear2d",
    ("trilinear", 5): "upsample_trilinear3d",
    ("bicubic", 4): "upsample_bicubic2d",
}
_LINEAR = ("linear", "bilinear", "bicubic", "trilinear")


def _is_integer(n) -> bool:
    return isinstance(n, numbers.Integral) or (isinstance(n, Base) and not n.is_floating_point())


def _target_size(input, size, scale_factor, recompute):
    """Return (output sizes or None, scale factors or None) for the arguments of ``interpolate``."""
    spatial = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        if not isinstance(size, (list, tuple)):
            return [size] * spatial, None
        if not all(map(_is_integer, size)):
            raise TypeError(
                "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size with "
                f"types {[type(n) for n in size]}"
            )
        if len(size) != spatial:
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got input with "
                f"spatial dimensions of {list(input.shape[2:])} and output size of {size}. Please provide "
                "input tensor in (N, C, d1, d2, ...,dK) format and output size in (o1, o2, ...,oK) "
                "format."
            )
        return list(size), None
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if isinstance(scale_factor, (list, tuple)):
        if len(scale_factor) != spatial:
            raise ValueError(
                "Input and scale_factor must have the same number of spatial dimensions, but got input "
                f"with spatial dimensions of {list(input.shape[2:])} and scale_factor of shape "
                f"{scale_factor}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
                "scale_factor in (s1, s2, ...,sK) format."
            )
        scales = list(scale_factor)
    else:
        scales = [scale_factor] * spatial
    sizes = [int(math.floor(float(n) * s)) for n, s in zip(input.shape[2:], scales, strict=True)]
    if any(not -(2**63) <= n < 2**63 for n in sizes):
        raise RuntimeError("value cannot be converted to type int64_t without overflow")
    return sizes, None if recompute else scales


@composite(
    "nn.functional.interpolate(Tensor input, any size=None, any scale_factor=None, "
    "str mode='nearest', any align_corners=None, any recompute_scale_factor=None, "
    "any antialias=False) -> Tensor",
    forms="f",
)
def interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias):
    """Resize the spatial dimensions of (N, C, ...) to ``size`` or by ``scale_factor``.

    Modes: nearest, nearest-exact, linear (3D), bilinear and bicubic (4D), trilinear (5D), area.
    """
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | bilinear | "
                "bicubic | trilinear"
            )
    elif align_corners is None:
        align_corners = False
    if antialias and not (mode in ("bilinear", "bicubic") and input.dim() == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor "
            "as input"
        )
    sizes, scales = _target_size(input, size, scale_factor, recompute_scale_factor)
    if mode == "area" and input.dim() in (3, 4, 5):
        return getattr(functional, f"adaptive_avg_pool{input.dim() - 2}d")(input, sizes)
    kernel = _KERNELS.get((mode, input.dim()))
    if kernel is None:
        if mode in _LINEAR and input.dim() in (3, 4, 5):
            raise NotImplementedError(
                f"Got {input.dim()}D input, but {mode} mode needs "
                f"{ {'linear': 3, 'trilinear': 5}.get(mode, 4) }D input"
            )
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported (got "
            f"{input.dim()}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | "
            f"area | nearest-exact (got {mode})"
        )
    scales = scales if scales is not None else [None] * len(sizes)
    if antialias:
        return t._upsample_antialias(input, mode, sizes, align_corners, scales)
    corners = (align_corners,) if mode in _LINEAR else ()
    return getattr(t, kernel)(input, sizes, *corners, *scales)


@composite(
    "nn.functional.upsample(Tensor input, any size=None, any scale_factor=None, str mode='nearest', "
    "any align_corners=None) -> Tensor",
    forms="f",
)
def upsample(input, size, scale_factor, mode, align_corners):
    """Deprecated name of :func:`interpolate`."""
    warnings.warn(
        "`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode, align_corners)


@composite(
    "nn.functional.upsample_nearest(Tensor input, any size=None, any scale_factor=None) -> Tensor", forms="f"
)
def upsample_nearest(input, size, scale_factor):
    """Deprecated name of :func:`interpolate` with mode nearest."""
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode="nearest")


@composite(
    "nn.functional.upsample_bilinear(Tensor input, any size=None, any scale_factor=None) -> Tensor", forms="f"
)
def upsample_bilinear(input, size, scale_factor):
    """Deprecated name of :func:`interpolate` with mode bilinear and aligned corners."""
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)

"""Values rounded as a quantisation would round them, for training: the gradient passes where nothing is cut off."""

from __future__ import annotations

from .._values.base import Base
from .._values.dtype import ALL
from ._declare import composite, t


def _rounded(x, scale, zero_point, low: int, high: int):
    """Return the quantised values as numbers, and where x lies in the range.

    As in PyTorch's kernel, x is multiplied by the reciprocal of the scale, and rounded before the zero point is added.
    """
    wide = x.detach().to(ALL["float32"]) if x.dtype is not ALL["float64"] else x.detach()
    steps = t.round(wide * (1.0 / scale)) + zero_point
    inside = (steps >= low) & (steps <= high)
    return ((t.clamp(steps, low, high) - zero_point) * scale).to(x.dtype), inside


def _straight_through(x, values, inside):
    """Return ``values`` with the gradient of ``x`` where it is inside of the range, and none elsewhere."""
    nothing = t.zeros_like(x.detach())
    return values + t.where(inside, x - x.detach(), nothing)


def _check_range(name: str, zero_points, low: int, high: int) -> None:
    if low > high:
        raise RuntimeError("`quant_min` should be less than or \n        equal to `quant_max`.")
    if zero_points and not all(low <= z <= high for z in zero_points):
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")


@composite(
    "fake_quantize_per_tensor_affine(Tensor input, any scale, any zero_point, int quant_min, int quant_max) -> Tensor",
    forms="f",
)
def fake_quantize_per_tensor_affine(input, scale, zero_point, quant_min, quant_max):
    """Return ``input`` rounded to the multiples of ``scale`` that integers from ``quant_min`` to ``quant_max`` stand for.

    Args:
        scale, zero_point: numbers, or tensors of one element.
    """
    scale = scale.detach() if isinstance(scale, Base) else float(scale)
    zero = zero_point.item() if isinstance(zero_point, Base) else zero_point
    _check_range("fake_quantize_per_tensor_affine", [zero], quant_min, quant_max)
    return _straight_through(input, *_rounded(input, scale, zero, quant_min, quant_max))


@composite(
    "fake_quantize_per_channel_affine(Tensor input, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) "
    "-> Tensor",
    forms="f",
)
def fake_quantize_per_channel_affine(input, scale, zero_point, axis, quant_min, quant_max):
    """Like `fake_quantize_per_tensor_affine`, with a scale and a zero point (input.shape[axis]) for each slice of dim ``axis``."""
    if not 0 <= axis < input.ndim:
        raise RuntimeError("`axis` must be between 0 and number of dimensions of input")
    for name, value in (("scale", scale), ("zero point", zero_point)):
        if value.ndim != 1:
            raise RuntimeError(f"{name} should be a 1-D tensor")
        if value.numel() != input.shape[axis]:
            raise RuntimeError("dimensions of scale and zero-point are not consistent with input tensor")
    zeros = zero_point.tolist() if not zero_point.is_floating_point() else []
    _check_range("fake_quantize_per_channel_affine", zeros, quant_min, quant_max)
    shape = [-1 if d == axis else 1 for d in range(input.ndim)]
    scale, zero = scale.detach().reshape(shape), zero_point.reshape(shape)
    return _straight_through(input, *_rounded(input, scale, zero, quant_min, quant_max))

"""Values rounded as a quantisation would round them, for training: the gradient passes where nothing is cut off."""

from __future__ import annotations

from .._values.base import Base
from .._values.dtype import ALL
from ._declare import composite, op, t
from ._functional import functional


def _steps(x, scale, zero_point):
    """Return the quantised values before they are cut off, as numbers of a new tensor.

    As in PyTorch's kernel, x is multiplied by the reciprocal of the scale, and rounded before the zero point is added.
    """
    wide = x if x.dtype is ALL["float64"] else x.to(ALL["float32"])
    return t.round_(wide * (1.0 / scale)).add_(zero_point)


def _where_inside(g, self, scale, zero_point, low, high):
    steps = _steps(self, scale, zero_point)
    return t.where((steps >= low) & (steps <= high), g, 0)


@op(
    "_fake_quantize(Tensor self, any scale, any zero_point, int low, int high) -> Tensor",
    forms="f",
    grad={"self": _where_inside},
)
def _fake_quantize(self, scale, zero_point, low, high):
    steps = _steps(self, scale, zero_point)
    return functional.hardtanh_(steps, low, high).sub_(zero_point).mul_(scale).to(self.dtype)


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
    return t._fake_quantize(input, scale, zero, quant_min, quant_max)


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
    return t._fake_quantize(input, scale, zero, quant_min, quant_max)

"""Random tensors for tests."""

from __future__ import annotations

import math
import warnings

from .. import ops
from .._serialization.names import dtype_name
from .._values.dtype import float32
from .._values.limits import finfo, iinfo

__all__ = ["make_tensor"]


def make_tensor(
    *shape,
    dtype,
    device,
    low=None,
    high=None,
    requires_grad=False,
    noncontiguous=False,
    exclude_zero=False,
    memory_format=None,
):
    """Return a tensor of random values in [low, high), as far as the dtype has them. The defaults depend on the dtype.

    Raises:
        ValueError: the dtype has no such values, or the arguments exclude each other.
    """
    if len(shape) == 1 and not isinstance(shape[0], int):
        shape = tuple(shape[0])
    small = dtype_name(dtype).startswith("float8")  # these have no gradients
    floating = (dtype.is_floating_point or dtype.is_complex) and not small
    if requires_grad and not floating and not small:
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype={dtype!r}"
        )
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but "
            "got "
            f"noncontiguous={noncontiguous!r} and memory_format={memory_format!r}"
        )
    result = _values(shape, dtype, device, low, high)
    if noncontiguous and result.numel() > 1:
        result = ops.repeat_interleave(result, 2, dim=-1)[..., ::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = finfo(dtype).tiny if floating else 1
    return result.requires_grad_(requires_grad) if floating else result


def _values(shape, dtype, device, low, high):
    """Return a new tensor of random values between the bounds, which are checked first."""
    if not (dtype.is_floating_point or dtype.is_complex):
        low, high = _bounds(dtype, low, high, *_whole_range(dtype))
        return ops.randint(math.ceil(low), math.ceil(high), shape, dtype=dtype, device=device)
    limits = finfo(dtype)
    low, high = _bounds(dtype, low, high, limits.min, limits.max, -9, 9)
    if dtype_name(dtype).startswith("float8"):
        return _uniform(ops.empty(shape, dtype=float32, device=device), low, high).to(dtype)
    result = ops.empty(shape, dtype=dtype, device=device)
    _uniform(ops.view_as_real(result) if dtype.is_complex else result, low, high)
    return result


def _whole_range(dtype) -> tuple:
    """Return (smallest value, end of the values, default for low, default for high) of a dtype of whole numbers."""
    if dtype.is_bool:
        return 0, 2, 0, 2
    limits = iinfo(dtype)
    # randint takes bounds of 64 bits, so it cannot draw the largest number of int64
    return limits.min, limits.max + (limits.max < 2**63 - 1), -9, 10


def _bounds(dtype, low, high, first, end, default_low, default_high):
    """Return the bounds within the values of the dtype.

    Raises:
        ValueError: a bound is NaN, or there are no values between them.
    """
    low, high = default_low if low is None else low, default_high if high is None else high
    if any(isinstance(bound, float) and math.isnan(bound) for bound in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and (dtype.is_complex or (dtype.is_floating_point and dtype.itemsize > 1)):
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated since 2.1 and will "
            "be removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning,
            stacklevel=4,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < first or low >= end:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports [{first}, {end})"
        )
    return min(max(low, first), end), min(max(high, first), end)


def _uniform(tensor, low, high):
    """Fill a tensor with numbers in [low, high). uniform_ refuses a range that is wider than the largest number."""
    if high - low >= finfo(tensor.dtype).max:
        return tensor.uniform_(low / 2, high / 2).mul_(2)
    return tensor.uniform_(low, high)

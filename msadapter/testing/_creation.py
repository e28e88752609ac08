"""Random tensors for tests."""

import math

from .. import ops
from .._serialization.names import dtype_name
from .._values.base import as_leaf
from .._values.dtype import float32, float64, int64
from .._values.limits import finfo, iinfo

__all__ = ["make_tensor"]

_FLOAT_DEFAULT, _INTEGER_DEFAULT = (-9.0, 9.0), (-9, 10)


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
    """Return a tensor of random values in [low, high). The defaults depend on the dtype."""
    if len(shape) == 1 and not isinstance(shape[0], int):
        shape = tuple(shape[0])
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype={dtype!r}"
        )
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but "
            "got "
            f"noncontiguous={noncontiguous!r} and memory_format={memory_format!r}"
        )
    if low is not None and high is not None and (math.isnan(low) or math.isnan(high) or low > high):
        raise ValueError(f"`low` must be less than `high`, but got low={low!r} > high={high!r}")
    spread = noncontiguous and math.prod(shape) > 1
    full = (*shape[:-1], 2 * shape[-1]) if spread else shape
    result = _values(full, dtype, low, high).to(device)
    if exclude_zero:
        smallest = finfo(dtype).tiny if dtype.is_floating_point or dtype.is_complex else 1
        result = ops.where(result == 0, ops.full_like(result, smallest), result)
    if spread:
        result = result[..., ::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    return as_leaf(result, requires_grad)


def _values(shape, dtype, low, high):
    name = dtype_name(dtype)
    if name == "bool":
        return ops.randint(0, 2, shape, dtype=dtype)
    if dtype.is_complex:
        part = float64 if name == "complex128" else float32
        return ops.complex(_values(shape, part, low, high), _values(shape, part, low, high)).to(dtype)
    if dtype.is_floating_point:
        low, high = (_FLOAT_DEFAULT[0] if low is None else low), (_FLOAT_DEFAULT[1] if high is None else high)
        return ops.empty(shape, dtype=float32).uniform_(low, high).to(dtype)
    limits = iinfo(dtype)
    first = max(limits.min, _INTEGER_DEFAULT[0] if low is None else math.ceil(low))
    last = min(limits.max, _INTEGER_DEFAULT[1] if high is None else math.ceil(high))
    if name == "uint8" and low is None:
        first = 0
    return ops.randint(first, max(last, first + 1), shape, dtype=int64).to(dtype)

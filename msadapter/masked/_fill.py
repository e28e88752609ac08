"""The neutral element of each operation, which replaces masked-out elements."""

import math

from .. import ops
from .._values.dtype import bool as bool_
from .._values.dtype import float32
from .._values.layout import LAYOUTS
from ..tensor import Tensor

# The functions of torch.masked, which are not operators of the table.
_HIGH = ("amin", "argmin", "softmin")
_LOW = ("amax", "argmax", "logsumexp", "logaddexp", "softmax")


def _bounds(dtype) -> tuple[int, int]:
    bits = dtype.itemsize * 8
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype.is_signed else (0, (1 << bits) - 1)


def identity(name: str, dtype, ord: float = 2.0):
    """Return the number that does not change the result of operation ``name`` for elements of ``dtype``."""
    if name in ("prod", "cumprod"):
        return 1
    if name == "median":
        return math.nan
    if name == "norm":
        return math.inf if ord == -math.inf else 0
    if name in _HIGH or name in _LOW:
        if dtype is bool_:
            raise NotImplementedError(f"identity of {name} on torch.bool input")
        if dtype.is_floating_point:
            return math.inf if name in _HIGH else -math.inf
        if dtype.is_complex and name == "logsumexp":
            return -math.inf
        if dtype.is_complex:
            raise TypeError(f"identity of {name} is not defined for {dtype}")
        low, high = _bounds(dtype)
        return high if name in _HIGH else low
    return 0


def broadcast_mask(x: Tensor, mask: Tensor) -> Tensor:
    """Return the mask as booleans in the shape of ``x``. IndexError if the mask has more dimensions.

    In a sparse mask, the elements that are not specified are false.
    """
    if mask.layout is not LAYOUTS["strided"]:
        mask = mask.to_dense()
    if mask.ndim > x.ndim:
        raise IndexError(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)"
        )
    if mask.shape != x.shape:
        mask = ops.broadcast_to(mask, x.shape)
    return mask if mask.dtype is bool_ else mask != 0


def filled(name: str, x: Tensor, mask, ord: float = 2.0) -> Tensor:
    """Return ``x`` with the neutral element of ``name`` where the mask is false, or ``x`` if there is no
    mask.
    """
    if mask is None:
        return x
    dtype = x.dtype if name != "median" or x.dtype.is_floating_point else float32
    neutral = ops.full((), identity(name, x.dtype, ord), dtype=dtype, device=x.device)
    return ops.where(broadcast_mask(x, mask), x, neutral)


def all_dims(dim, ndim: int) -> list[int]:
    """Return the dims to reduce in ascending order. None and an empty tuple mean all dims."""
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return list(range(ndim))
    dims = []
    for d in (dim,) if isinstance(dim, int) else dim:
        bound = max(ndim, 1)
        if not -bound <= d < bound:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], but got {d})"
            )
        if d % bound in dims:
            raise RuntimeError(f"dim={d % bound} appears multiple times in the list of dims")
        dims.append(d % bound)
    return sorted(dims) if ndim else []

"""Masked reductions. If all elements of a slice are masked out, the result is the neutral element."""

from .. import ops
from .._values.dtype import bool as bool_
from .._values.dtype import float32, int8, int16, int32, int64, uint8
from ._fill import all_dims, broadcast_mask, filled
from ._layouts import reduces_sparse

_NARROW = (bool_, uint8, int8, int16, int32)


def _accumulated(x, dtype):
    """Return the dtype of sums and products. Small integers are summed in int64."""
    return dtype or (int64 if x.dtype in _NARROW else x.dtype)


@reduces_sparse("sparse_coo", "sparse_csr")
def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Sum of the elements where ``mask`` is true over ``dim`` (an int, a tuple, None for all)."""
    dtype = _accumulated(input, dtype)
    x = filled("sum", input, mask)
    return ops.sum(x, all_dims(dim, x.ndim), bool(keepdim), dtype=dtype)


@reduces_sparse("sparse_coo", "sparse_csr", needs_mask=True)
def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Product of the elements where ``mask`` is true over ``dim`` (an int, a tuple, None for all)."""
    dtype = _accumulated(input, dtype)
    x = filled("prod", input, mask)
    for d in reversed(all_dims(dim, x.ndim)):
        x = ops.prod(x, d, bool(keepdim))
    return x.to(dtype)


def _extreme(name: str, input, dim, keepdim, dtype, mask):
    x = filled(name, input, mask)
    return getattr(ops, name)(x, all_dims(dim, x.ndim), bool(keepdim)).to(dtype or input.dtype)


@reduces_sparse("sparse_coo", "sparse_csr", needs_mask=True)
def amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Largest element where ``mask`` is true over ``dim`` (an int, a tuple, None for all)."""
    return _extreme("amax", input, dim, keepdim, dtype, mask)


@reduces_sparse("sparse_coo", "sparse_csr", needs_mask=True)
def amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Smallest element where ``mask`` is true over ``dim`` (an int, a tuple, None for all)."""
    return _extreme("amin", input, dim, keepdim, dtype, mask)


def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Position of the largest element where ``mask`` is true.

    As in PyTorch, it has the dtype of the input.
    """
    return ops.argmax(filled("argmax", input, mask), dim, bool(keepdim)).to(dtype or input.dtype)


def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Position of the smallest element where ``mask`` is true.

    As in PyTorch, it has the dtype of the input.
    """
    return ops.argmin(filled("argmin", input, mask), dim, bool(keepdim)).to(dtype or input.dtype)


def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Logarithm of the sum of exponentials of the elements where ``mask`` is true."""
    x = filled("logsumexp", input, mask)
    return ops.logsumexp(x, all_dims(dim, x.ndim), bool(keepdim)).to(dtype or input.dtype)


def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Vector norm of order ``ord`` of the elements where ``mask`` is true."""
    x = filled("norm", input, mask, ord)
    dims = all_dims(dim, x.ndim)
    return ops.linalg_vector_norm(x, ord, dims or None, bool(keepdim), dtype=dtype or input.dtype)


def _count(input, dims, keepdim, mask):
    held = ops.ones(input.shape, dtype=int64, device=input.device) if mask is None else mask
    return sum(held, tuple(dims), keepdim=keepdim, dtype=int64)


@reduces_sparse("sparse_csr", needs_mask=True)
def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Mean of the elements where ``mask`` is true, or nan if there are none. Integers need a ``dtype``."""
    wanted = dtype or input.dtype
    if not (wanted.is_floating_point or wanted.is_complex):
        raise ValueError(
            "mean(): Could not infer output dtype. Input dtype must be either a floating point or complex "
            f"dtype. Got: {wanted}"
        )
    dims, keepdim = all_dims(dim, input.ndim), bool(keepdim)
    if mask is None:
        return ops.mean(input, dims, keepdim, dtype=wanted)
    total = sum(input, tuple(dims), keepdim=keepdim, dtype=wanted, mask=mask)
    return total / _count(input, dims, keepdim, broadcast_mask(input, mask))


def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """Lower median along ``dim`` of the elements where ``mask`` is true, or nan if there are none."""
    dtype, dim = dtype or input.dtype, (all_dims(dim, input.ndim) or [0])[0]
    x = filled("median", input, mask)
    if x.dtype.is_floating_point:
        found = ops.nanmedian(x, dim, keepdim).values
    else:
        found = ops.median(x, dim, keepdim).values
    if not input.dtype.is_floating_point and mask is not None and bool(ops.isnan(found).any()):
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return found.to(dtype)


def _freedom(unbiased, correction):
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is not None:
        return correction
    return 0 if unbiased is False else 1


def var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """Variance of the elements where ``mask`` is true: squared deviations divided by count - ``correction``."""
    correction = _freedom(unbiased, correction)
    dtype = dtype or input.dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        dtype = float32
    wide = float32 if dtype.itemsize < 4 else dtype
    dims, keepdim = all_dims(dim, input.ndim), bool(keepdim)
    held = None if mask is None else broadcast_mask(input, mask)
    count = _count(input, dims, True, held)
    centre = sum(input, tuple(dims), keepdim=True, dtype=wide, mask=mask) / count
    distance = input - centre
    squares = distance * (distance.conj() if distance.is_complex() else distance)
    total = sum(squares, tuple(dims), keepdim=keepdim, dtype=wide, mask=mask)
    if not keepdim:
        count = ops.reshape(count, total.shape)
    freedom = count - correction if correction else count
    return (total / ops.clamp(freedom, min=0)).to(dtype)


def std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """Square root of the variance of the elements where ``mask`` is true."""
    dtype = dtype or input.dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        dtype = float32
    wide = float32 if dtype.itemsize < 4 else dtype
    found = var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=wide, mask=mask)
    return ops.sqrt(found).to(dtype)

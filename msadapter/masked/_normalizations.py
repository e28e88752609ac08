"""Masked operations that keep the shape: softmax, cumulative sums, normalization, logaddexp."""

from .. import ops
from ._fill import filled
from ._reductions import norm


def _checked(dim, ndim: int) -> int:
    bound = max(ndim, 1)
    if not -bound <= dim < bound:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], but got {dim})"
        )
    return dim % bound


def softmax(input, dim, *, dtype=None, mask=None):
    """Softmax over the elements where ``mask`` is true.

    Masked-out elements give 0. If no element is left along ``dim``, the result is nan.
    """
    x = filled("amax", input, mask)
    return ops.softmax(x, _checked(dim, x.ndim), dtype=dtype or input.dtype)


def log_softmax(input, dim, *, dtype=None, mask=None):
    """Logarithm of the masked softmax."""
    x = filled("amax", input, mask)
    return ops.log_softmax(x, _checked(dim, x.ndim), dtype=dtype or input.dtype)


def softmin(input, dim, *, dtype=None, mask=None):
    """Softmax of the negated elements where ``mask`` is true."""
    x = filled("amin", input, mask)
    return ops.softmax(-x, _checked(dim, x.ndim), dtype=dtype or input.dtype)


def cumsum(input, dim, *, dtype=None, mask=None):
    """Cumulative sum of the elements where ``mask`` is true."""
    x = filled("cumsum", input, mask)
    return ops.cumsum(x, _checked(dim, x.ndim), dtype=dtype or input.dtype)


def cumprod(input, dim, *, dtype=None, mask=None):
    """Cumulative product of the elements where ``mask`` is true."""
    x = filled("cumprod", input, mask)
    return ops.cumprod(x, _checked(dim, x.ndim), dtype=dtype or input.dtype)


def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    """Divide by the norm of order ``ord`` along ``dim``, or by ``eps`` if that is larger."""
    dtype = dtype or input.dtype
    size = norm(input, ord, _checked(dim, input.ndim), keepdim=True, dtype=dtype, mask=mask)
    # The norm of complex numbers is real. PyTorch divides by it in the dtype of the result.
    floor = ops.full_like(size, eps)
    return filled("normalize", input, mask) / ops.maximum(size, floor)


def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """log(exp(input) + exp(other)). Each of them counts only where its mask is true."""
    x, y = filled("logaddexp", input, input_mask), filled("logaddexp", other, other_mask)
    return ops.logaddexp(x, y).to(dtype or input.dtype)

"""Cumulative sums, products and extrema; differences; integrals by the trapezoidal rule."""

from __future__ import annotations

from .._values.limits import finfo
from . import _on_npu
from ._declare import composite, op, raw, t
from ._geometry import wrap_dim
from .nn_norm import recording
from .pointwise import conj
from .reduction import scattered


def _from_the_end(f, x, dim):
    """Apply a cumulative function from the end to the start of a dim."""
    return t.flip(f(t.flip(x, [dim]), dim), [dim]) if x.ndim else f(x, dim)


@op(
    "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    out_dtype="decides",
    forms="fmio",
    autocast={"accelerator": "float32"},
    grad={"self": lambda g, dim: _from_the_end(t.cumsum, g, dim)},
    linear=("self",),
    along="dim",
    native="body",
    separate_operands=True,
)
def cumsum(self, dim, *, dtype):
    """Cumulative sum along a dim."""
    return raw.CumsumExt(self, dim, dtype)


def _cumprod_back_zeros(g, x, result, dim):
    """Return the gradient of cumprod if there are zeros.

    Before the first zero of a line the usual formula holds. At the zero, the gradient is the product so far
    times the sum of the following products. After it, the gradient is 0.
    """
    x, result = conj(x), conj(result)
    zero = x == 0
    seen = t.cumsum(zero, dim)
    before, at = seen == 0, zero & (seen == 1)
    slope = _from_the_end(t.cumsum, t.masked_fill(g * result, ~before, 0), dim) / t.masked_fill(x, zero, 1)
    stretch = ~(seen == 1)
    after = t.cumprod(t.masked_fill(t.masked_fill(x, before | at, 1), seen > 1, 0), dim)
    follows = t.sum(t.masked_fill(g, stretch, 0) * after, [dim], True)
    first = t.ones_like(t._slice(x, dim, 0, 1, 1))
    so_far = t.cat([first, t._slice(result, dim, 0, x.shape[dim] - 1, 1)], dim)
    return t.where(before, slope, t.where(at, so_far * follows, t.zeros_like(slope)))


def _cumprod_back(g, self, result, dim):
    if self.ndim == 0 or self.numel() == 0:
        return g
    if not bool((self == 0).any()):
        return _from_the_end(t.cumsum, g * conj(result), dim) / conj(self)
    if not recording():
        return _cumprod_back_zeros(g, self, result, wrap_dim(dim, self.ndim))
    # If there are zeros: d/dx_k = (product before k) * sum over i >= k of g_i * (product of k+1..i)
    dim, parts = wrap_dim(dim, self.ndim), []
    n = self.shape[dim]
    one = t.ones_like(t._slice(self, dim, 0, 1, 1))
    before = t.cat([one, t._slice(result, dim, 0, n - 1, 1)], dim)
    for k in range(n):
        after = t.cumprod(t.cat([one, t._slice(self, dim, k + 1, n, 1)], dim), dim)
        inner = t.sum(t._slice(g, dim, k, n, 1) * conj(after), [dim], True)
        parts.append(conj(t._slice(before, dim, k, k + 1, 1)) * inner)
    return t.cat(parts, dim)


@op(
    "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    out_dtype="decides",
    forms="fmio",
    autocast={"accelerator": "float32"},
    grad={"self": lambda g, self, result, dim: _cumprod_back(g, self.to(result.dtype), result, dim)},
    npu=_on_npu.cumprod,
    along="dim",
    separate_operands=True,
)
def cumprod(self, dim, *, dtype):
    """Cumulative product along a dim."""
    return raw.Cumprod(self, dim, dtype)


def _extreme(name, ms):
    op(
        f"{name}(Tensor self, int dim) -> (Tensor values, Tensor indices)",
        ms=ms,
        out_dtype="same scalar type",
        forms="fmo",
        grad={"self": lambda gs, self, indices, dim: scattered(gs[0], self.shape, dim, indices, True)},
        along="dim",
    )


_extreme("cummax", "Cummax")
_extreme("cummin", "CumminExt")


def _logcumsumexp_back(g, self, result, dim):
    if self.ndim == 0 or self.numel() == 0:
        return g
    if self.is_complex():
        return t.conj(t.exp(_from_the_end(t.logcumsumexp, t.log(t.conj(g)) - result, dim) + self))
    # finite instead of -inf, so that second derivatives are finite too
    size, low = t.log(t.abs(g)), finfo(g.dtype).min

    def part(kept):
        return t.exp(_from_the_end(t.logcumsumexp, t.where(kept, size, low) - result, dim) + self)

    return part(g > 0) - part(g < 0)


op(
    "logcumsumexp(Tensor self, int dim) -> Tensor",
    ms="LogCumsumExp",
    out_dtype="same scalar type",
    npu=_on_npu.logcumsumexp,
    forms="fmo",
    grad={"self": _logcumsumexp_back},
    along="dim",
    separate_operands=True,
)


def _check_joined(x, part, dim) -> None:
    """RuntimeError unless ``diff`` can put ``part``, which may be None, in front of ``x`` or behind it."""
    if part is None:
        return
    if part.ndim != x.ndim:
        raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    for d, (have, given) in enumerate(zip(x.shape, part.shape, strict=True)):
        if d != dim and have != given:
            raise RuntimeError(
                "diff expects the shape of tensor to prepend or append to match that of input except along the differencing "
                f"dimension; input.size({d}) = {have}, but got tensor.size({d}) = {given}"
            )


@composite(
    "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
    forms="fmo",
    along="dim",
    copied_to_out=True,
)
def diff(self, n, dim, prepend, append):
    """n-th differences along a dim."""
    if self.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    if n == 0:
        return t.clone(self)
    dim = wrap_dim(dim, self.ndim)
    for part in (prepend, append):
        _check_joined(self, part, dim)
    parts = [x for x in (prepend, self, append) if x is not None]
    x = t.cat(parts, dim) if len(parts) > 1 else self
    n = min(n, x.shape[dim])
    for _ in range(n):
        size = x.shape[dim]
        a, b = t._slice(x, dim, 1, size, 1), t._slice(x, dim, 0, max(size - 1, 0), 1)
        x = t.logical_xor(a, b) if x.dtype.is_bool else a - b
    return x


def _widths(y, x, dim):
    """Return the distances between neighbouring points, in a shape that multiplies slices of y."""
    if x.ndim == 1:
        shape = [1] * y.ndim
        shape[dim] = x.shape[0]
        x = t.reshape(x, shape)
    elif x.ndim < y.ndim:
        x = t.reshape(x, [1] * (y.ndim - x.ndim) + list(x.shape))
    n = x.shape[dim]
    return t._slice(x, dim, 1, n, 1) - t._slice(x, dim, 0, n - 1, 1)


def _check_integrand(name, y, x, dx):
    if any(v is not None and v.dtype.storage_name == "BoolStorage" for v in (x, y)):
        raise RuntimeError(f"{name}: received a bool input for `x` or `y`, but bool is not supported")
    if x is None and isinstance(dx, (bool, complex)):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")


def _trapezoids(name, y, x, dx, dim):
    dim = wrap_dim(dim, y.ndim)
    _check_integrand(name, y, x, dx)
    n = y.shape[dim]
    both = t._slice(y, dim, 1, n, 1) + t._slice(y, dim, 0, max(n - 1, 0), 1)
    if x is None:
        return dim, both, dx / 2.0
    if x.ndim == 1 and x.shape[0] != n:
        raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
    return dim, both * _widths(y, x, dim), 0.5


@composite(
    "trapezoid(Tensor y, Tensor? x=None, *, Scalar dx=1, int dim=-1) -> Tensor", forms="f", aliases=("trapz",)
)
def trapezoid(y, x, *, dx, dim):
    """Integral along a dim by the trapezoidal rule."""
    if y.shape[wrap_dim(dim, y.ndim)] == 0:
        shape = list(y.shape)
        shape.pop(wrap_dim(dim, y.ndim))
        return t.zeros(shape, dtype=y.dtype)
    if x is None:  # points at equal distances: the sum without half of both ends
        _check_integrand("trapezoid", y, x, dx)
        dim = wrap_dim(dim, y.ndim)
        return (t.sum(y, [dim]) - (t.select(y, dim, 0) + t.select(y, dim, -1)) * 0.5) * dx
    dim, parts, half = _trapezoids("trapezoid", y, x, dx, dim)
    return t.sum(parts, [dim]) * half


@composite("cumulative_trapezoid(Tensor y, Tensor? x=None, *, Scalar dx=1, int dim=-1) -> Tensor", forms="f")
def cumulative_trapezoid(y, x, *, dx, dim):
    """Cumulative integral along a dim by the trapezoidal rule."""
    dim, parts, half = _trapezoids("cumulative_trapezoid", y, x, dx, dim)
    return t.cumsum(parts * half, dim)

"""Numerical differentiation: torch.gradient."""

from __future__ import annotations

from ._declare import composite, t
from ._geometry import wrap_dim, wrap_dims
from .view import is_tensor

_LENGTHS = "torch.gradient expected spacing to be unspecified, a scalar"


def _spacings(self, spacing, dim, dims) -> list:
    """Return one number or one coordinate tensor for each of ``dims``."""
    if spacing is None:
        return [1] * len(dims)
    if is_tensor(spacing) and spacing.ndim == 0:
        spacing = spacing.item()
    if not isinstance(spacing, (list, tuple)):
        if is_tensor(spacing):
            raise TypeError(
                "gradient(): argument 'spacing' must be a number, a list of numbers or of tensors"
            )
        return [spacing] * len(dims)
    if len(spacing) != len(dims):
        if dim is None:
            raise RuntimeError(
                f"{_LENGTHS}, or a list of length equal to 'self.dim() = {self.ndim}', since dim argument was "
                f"not given, but got a list of length {len(spacing)}"
            )
        raise RuntimeError(
            f"{_LENGTHS} or it's spacing and dim arguments to have the same length, but got a spacing argument "
            f"of length {len(spacing)} and a dim argument of length {len(dims)}."
        )
    return list(spacing)


def _along(f, dim):
    n = f.shape[dim]

    def part(start, stop):
        return t._slice(f, dim, start if start >= 0 else n + start, stop if stop > 0 else n + stop, 1)

    return part


def _even(f, dim, h, edge_order):
    """Return central differences on an even grid of width ``h``."""
    part = _along(f, dim)
    inner = (part(2, 0) - part(0, -2)) / (2 * h)
    if edge_order == 1:
        first, last = (part(1, 2) - part(0, 1)) / h, (part(-1, 0) - part(-2, -1)) / h
    else:
        first = (part(1, 2) * 4 - part(0, 1) * 3 - part(2, 3)) / (2 * h)
        last = (part(-1, 0) * 3 - part(-2, -1) * 4 + part(-3, -2)) / (2 * h)
    return t.cat([first, inner, last], dim)


def _uneven(f, dim, x, edge_order):
    """Return differences of second order at points with the coordinates ``x``.

    Each uses three neighbours, weighted as the derivative of the parabola through them.
    """
    part, shape = _along(f, dim), [1] * f.ndim
    shape[dim] = -1
    width = t.reshape(t.diff(x), shape)
    gap = _along(width, dim)

    def weighted(weights, neighbours):
        a, b, c = (w * y for w, y in zip(weights, neighbours, strict=True))
        return a + b + c

    left, right = gap(0, -1), gap(1, 0)
    both = left + right
    weights = (-right / (left * both), (right - left) / (left * right), left / (right * both))
    inner = weighted(weights, (part(0, -2), part(1, -1), part(2, 0)))
    if edge_order == 1:
        first, last = (part(1, 2) - part(0, 1)) / gap(0, 1), (part(-1, 0) - part(-2, -1)) / gap(-1, 0)
        return t.cat([first, inner, last], dim)
    near, far = gap(0, 1), gap(1, 2)
    both = near + far
    weights = (-(2 * near + far) / (near * both), both / (near * far), -near / (far * both))
    first = weighted(weights, (part(0, 1), part(1, 2), part(2, 3)))
    far, near = gap(-2, -1), gap(-1, 0)
    both = near + far
    weights = (near / (far * both), -both / (near * far), (far + 2 * near) / (near * both))
    last = weighted(weights, (part(-3, -2), part(-2, -1), part(-1, 0)))
    return t.cat([first, inner, last], dim)


@composite("gradient(Tensor self, *, any spacing=None, any dim=None, int edge_order=1) -> any", forms="f")
def gradient(self, *, spacing, dim, edge_order):
    """Estimate partial derivatives along ``dim`` (all by default) of a function whose samples are ``self``.

    ``spacing`` is the distance between samples (one number, or one for each dimension) or a list of their
    coordinates. Inner points use differences of second order, border points of order ``edge_order``. Returns
    a tuple of tensors with the shape of ``self``.
    """
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if self.dtype.storage_name == "ByteStorage":
        raise RuntimeError("torch.gradient does not support uint8 input.")
    if dim is None:
        dims = list(range(self.ndim))
    elif isinstance(dim, (list, tuple)):
        dims = wrap_dims(dim, self.ndim)
    else:
        dims = [wrap_dim(dim, self.ndim)]
    steps = _spacings(self, spacing, dim, dims)
    if any(self.shape[d] < edge_order + 1 for d in dims):
        raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    made = []
    for d, step in zip(dims, steps, strict=True):
        coordinates = is_tensor(step) and step.ndim
        make = _uneven if coordinates else _even
        made.append(make(self, d, step if coordinates or not is_tensor(step) else step.item(), edge_order))
    return tuple(made)

"""Variance, standard deviation, covariance and correlation."""

from __future__ import annotations

import math
import warnings

from ._declare import composite, op, raw, t
from .reduction import count_of, restored, spread


# ---- moments
def _freedom(shape, dim, correction):
    return max(count_of(shape, dim) - correction, 0)


def _corrected(moment, self, dim, correction, keepdim, power):
    """Return a moment, also with a correction that is not a whole number, which MindSpore's operators do not take.

    16-bit inputs are computed in float32 then, so that the result is rounded once. power: of the variance, 1 or 0.5.
    """
    if correction == int(correction):
        return moment(self, dim, int(correction), keepdim)
    n = count_of(self.shape, dim)
    factor = (n / (n - correction)) ** power if n > correction else math.inf
    wide = self.float() if self.itemsize == 2 else self
    return (moment(wide, dim, 0, keepdim) * factor).to(self.dtype)


def _var_back(g, self, dim, correction, keepdim):
    n = _freedom(self.shape, dim, correction)
    centred = self - t.mean(self, dim, True)
    g = restored(g, self.shape, dim, keepdim)
    return (2.0 / n if n else math.nan) * g * centred


def _std_back(g, self, result, dim, correction, keepdim):
    g = g / (result * 2)
    return _var_back(t.masked_fill(g, result == 0, 0), self, dim, correction, keepdim)


@op(
    "_var(Tensor self, int[]? dim, Scalar correction, bool keepdim) -> Tensor",
    forms="f",
    grad={"self": _var_back},
    reduction="other",
)
def _var(self, dim, correction, keepdim):
    return _corrected(raw.Var, self, dim, correction, keepdim, 1)


@op(
    "_std(Tensor self, int[]? dim, Scalar correction, bool keepdim) -> Tensor",
    forms="f",
    grad={"self": _std_back},
    reduction="other",
)
def _std(self, dim, correction, keepdim):
    return _corrected(raw.Std, self, dim, correction, keepdim, 0.5)


def _mean_back(g, self, dim, keepdim):
    return spread(g, self.shape, dim, keepdim) / count_of(self.shape, dim)


def _both(first, second):
    """Return the sum of two gradients, of which one may be None."""
    return second if first is None else first if second is None else first + second


def _var_mean_back(gs, self, dim, correction, keepdim):
    var = None if gs[0] is None else _var_back(gs[0], self, dim, correction, keepdim)
    return _both(var, None if gs[1] is None else _mean_back(gs[1], self, dim, keepdim))


def _std_mean_back(gs, self, result0, dim, correction, keepdim):
    std = None if gs[0] is None else _std_back(gs[0], self, result0, dim, correction, keepdim)
    return _both(std, None if gs[1] is None else _mean_back(gs[1], self, dim, keepdim))


@op(
    "_var_mean(Tensor self, int[]? dim, Scalar correction, bool keepdim) -> (Tensor, Tensor)",
    forms="f",
    grad={"self": _var_mean_back},
    reduction="other",
)
def _var_mean(self, dim, correction, keepdim):
    return _corrected(raw.Var, self, dim, correction, keepdim, 1), raw.MeanExt(self, dim, keepdim, None)


@op(
    "_std_mean(Tensor self, int[]? dim, Scalar correction, bool keepdim) -> (Tensor, Tensor)",
    forms="f",
    grad={"self": _std_mean_back},
    reduction="other",
)
def _std_mean(self, dim, correction, keepdim):
    return _corrected(raw.Std, self, dim, correction, keepdim, 0.5), raw.MeanExt(self, dim, keepdim, None)


def _moment_arguments(dim, unbiased, keepdim, correction):
    """Return (dim, keepdim, correction) of the three forms of PyTorch.

    These are (unbiased), (dim, unbiased, keepdim) and (dim, *, correction, keepdim).
    """
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    if dim is not None and not isinstance(dim, (list, tuple)):
        dim = [dim]
    return (list(dim) if dim else None), correction, keepdim


def _warn_degrees_of_freedom(name, x, dim, correction) -> None:
    """Warn if no result is defined, because as many elements are reduced as the correction takes away, or fewer."""
    if _freedom(x.shape, dim, correction) > 0:
        return
    for _ in range(2 if x.is_complex() else 1):  # of a complex tensor the two parts are reduced
        warnings.warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
            "(input numel divided by output numel).",
            stacklevel=4,
        )


def _moment(name, x, dim, unbiased, keepdim, correction, function=None):
    dim, correction, keepdim = _moment_arguments(dim, unbiased, keepdim, correction)
    if not (x.dtype.is_floating_point or x.is_complex()):
        raise RuntimeError("std and var only support floating point and complex dtypes")
    _warn_degrees_of_freedom(function or name, x, dim, correction)
    if x.is_complex():
        total = t._var(t.real(x), dim, correction, keepdim) + t._var(t.imag(x), dim, correction, keepdim)
        return t.sqrt(total) if name == "std" else total
    return (t._std if name == "std" else t._var)(x, dim, correction, keepdim)


def _moment_with_mean(name, x, dim, unbiased, keepdim, correction):
    where, degrees, _ = _moment_arguments(dim, unbiased, keepdim, correction)
    if x.dtype.is_floating_point:
        _warn_degrees_of_freedom(f"{name}_mean", x, where, degrees)
        return (t._std_mean if name == "std" else t._var_mean)(x, where, degrees, keepdim)
    return _moment(name, x, dim, unbiased, keepdim, correction, f"{name}_mean"), t.mean(x, where, keepdim)


_MOMENT = "(Tensor self, any dim=None, any unbiased=None, bool keepdim=False, *, Scalar? correction=None) -> "


@composite("var" + _MOMENT + "Tensor", forms="fmo", out_dtype="cast")
def var(self, dim, unbiased, keepdim, *, correction):
    """Variance over dims, which is the sum of squared deviations divided by n - correction."""
    return _moment("var", self, dim, unbiased, keepdim, correction)


@composite("std" + _MOMENT + "Tensor", forms="fmo", out_dtype="cast")
def std(self, dim, unbiased, keepdim, *, correction):
    """Square root of the variance."""
    return _moment("std", self, dim, unbiased, keepdim, correction)


@composite("var_mean" + _MOMENT + "(Tensor, Tensor)", forms="f")
def var_mean(self, dim, unbiased, keepdim, *, correction):
    """(variance, mean)."""
    return _moment_with_mean("var", self, dim, unbiased, keepdim, correction)


@composite("std_mean" + _MOMENT + "(Tensor, Tensor)", forms="f")
def std_mean(self, dim, unbiased, keepdim, *, correction):
    """(standard deviation, mean)."""
    return _moment_with_mean("std", self, dim, unbiased, keepdim, correction)


@composite(
    "cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor",
    forms="fm",
)
def cov(self, *, correction, fweights, aweights):
    """Covariance matrix of the rows, which are variables."""
    if self.ndim > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {self.ndim} dimensions"
        )
    if self.dtype.is_bool:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = t.reshape(self, [1, -1]) if self.ndim < 2 else self
    n, w = x.shape[1], None
    for name, extra in (("fweights", fweights), ("aweights", aweights)):
        if extra is None:
            continue
        if extra.ndim > 1:
            raise RuntimeError(
                f"cov(): expected {name} to have one or fewer dimensions but got {name} with {extra.ndim} dimensions"
            )
        if extra.numel() != n:
            raise RuntimeError(
                f"cov(): expected {name} to have the same numel as there are observations in the input but got "
                f"{extra.numel()} != {n}"
            )
        floating = name == "aweights"
        if extra.dtype.is_floating_point != floating or extra.dtype.is_bool or extra.dtype.is_complex:
            kind = "floating point" if floating else "integral"
            raise RuntimeError(
                f"cov(): expected {name} to have {kind} dtype but got {name} with {extra.dtype.scalar_name} dtype"
            )
        if n and t.amin(extra) < 0:
            raise RuntimeError(f"cov(): {name} cannot be negative")
        w = extra if w is None else w * extra
    total = n if w is None else t.sum(w)
    if w is not None and total == 0:
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    mean = (t.sum(x * w, [1]) / total) if w is not None else t.sum(x, [1]) / n
    x = x - t.unsqueeze(mean, 1)
    if w is None:
        lost, norm = n <= correction, max(n - correction, 0)
    else:
        norm = (
            total - correction
            if aweights is None or correction == 0
            else total - correction * t.sum(w * aweights) / total
        )
        lost, norm = bool(norm <= 0), t.clamp(norm, min=0)
    if lost:
        warnings.warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.",
            stacklevel=2,
        )
    right = t.conj(t.transpose(x if w is None else x * w, 0, 1))
    return t.squeeze(t.div(t.matmul(x, right.to(x.dtype)), norm))


@composite("corrcoef(Tensor self) -> Tensor", forms="fm")
def corrcoef(self):
    """Correlation coefficients of the rows."""
    if self.ndim > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {self.ndim} dimensions"
        )
    c = t.cov(self)
    if c.ndim == 0:
        return c / c
    d = t.sqrt(t.real(t.diagonal(c)) if c.is_complex() else t.diagonal(c))
    c = c / t.unsqueeze(d, 1) / t.unsqueeze(d, 0)
    if c.is_complex():
        return t.complex(t.clamp(t.real(c), min=-1, max=1), t.clamp(t.imag(c), min=-1, max=1))
    return t.clamp(c, min=-1, max=1)

"""Reductions: sums, extrema, moments and norms."""

from __future__ import annotations

import math

from .._values.dtype import ALL
from ._declare import _C, composite, namespaces, op, raw, t
from ._geometry import numel, wrap_dim, wrap_dims
from .pointwise import conj
from .view import zeros_of

# ---- helpers of gradients


def restored(g, shape, dim, keepdim):
    """Return `g` with the reduced dims inserted again with size 1."""
    if keepdim or not shape:
        return g
    dims = (
        range(len(shape))
        if dim is None or dim == []
        else wrap_dims([dim] if isinstance(dim, int) else dim, len(shape))
    )
    for d in sorted(dims):
        g = t.unsqueeze(g, d)
    return g


def spread(g, shape, dim, keepdim):
    """Return `g` expanded over the reduced dims."""
    return t.expand(restored(g, shape, dim, keepdim), list(shape))


def count_of(shape, dim):
    if dim is None or dim == []:
        return numel(shape)
    return (
        numel(shape[d] for d in wrap_dims([dim] if isinstance(dim, int) else dim, len(shape))) if shape else 1
    )


# ---- sums and products
@op(
    "sum(Tensor self, int[]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    forms="fmo",
    autocast={"accelerator": "float32"},
    grad={"self": lambda g, self, dim, keepdim: spread(g, self.shape, dim, keepdim)},
    reduction="sum",
    native=("body", "gradient"),
)
def sum(self, dim, keepdim, *, dtype):
    """Sum over dims (by default all). Integers and booleans are summed in int64."""
    return raw.SumExt(self, dim, keepdim, dtype)


@op(
    "nansum(Tensor self, int[]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    forms="fmo",
    grad={
        "self": lambda g, self, dim, keepdim: (
            spread(g, self.shape, dim, keepdim) * t.logical_not(t.isnan(self)).to(g.dtype)
        )
    },
    reduction="other",
)
def nansum(self, dim, keepdim, *, dtype):
    """Sum over dims, with nan counted as zero."""
    if self.is_complex():
        raise RuntimeError("nansum does not support complex inputs")
    return raw.Nansum(self, dim, keepdim, dtype)


@op(
    "mean(Tensor self, int[]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    forms="fmo",
    grad={
        "self": lambda g, self, dim, keepdim: spread(g, self.shape, dim, keepdim) / count_of(self.shape, dim)
    },
    reduction="mean",
    native=("body", "gradient"),
)
def mean(self, dim, keepdim, *, dtype):
    """Mean over dims (by default all)."""
    return raw.MeanExt(self, dim, keepdim, dtype)


@composite(
    "nanmean(Tensor self, int[]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    forms="fmo",
    reduction="other",
)
def nanmean(self, dim, keepdim, *, dtype):
    """Mean over dims, with nan left out."""
    if not (self.dtype.is_floating_point or self.is_complex()):
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {self.dtype.storage_name[:-7]}"
        )
    some = t.logical_not(t.isnan(self.detach()))
    n = t.sum(some, dim, keepdim)
    x = t.where(some, self, zeros_of(self, [])) if self.is_complex() else None
    total = (
        t.sum(x, dim, keepdim, dtype=dtype) if x is not None else t.nansum(self, dim, keepdim, dtype=dtype)
    )
    return t.div(total, n)


def _prod_back(g, self, result, dim, keepdim):
    shape = list(self.shape)
    if dim is None:
        flat = t.reshape(self, [-1])
        return t.reshape(_prod_back_dim(t.reshape(g, [1]), flat, t.reshape(result, [1]), 0), shape)
    if not shape:
        return t.reshape(g, [])
    return _prod_back_dim(
        restored(g, shape, dim, keepdim),
        self,
        restored(result, shape, dim, keepdim),
        wrap_dim(dim, len(shape)),
    )


def _prod_back_dim(g, x, result, dim):
    """Return the gradient of prod, which is the product of the other elements.

    It is result / x, or computed from running products from both ends if there are zeros.
    """
    if not bool((x == 0).any()):
        return g * conj(result / x)
    n = x.shape[dim]
    one = t.ones_like(t._slice(x, dim, 0, 1, 1))
    before = t.cumprod(t.cat([one, t._slice(x, dim, 0, n - 1, 1)], dim), dim)
    after = t.flip(t.cumprod(t.cat([one, t.flip(t._slice(x, dim, 1, n, 1), [dim])], dim), dim), [dim])
    return g * conj(before * after)


@op(
    "prod(Tensor self, int? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    forms="fmo",
    autocast="float32",
    grad={
        "self": lambda g, self, result, dim, keepdim: _prod_back(
            g, self.to(result.dtype), result, dim, keepdim
        )
    },
    reduction="other",
)
def prod(self, dim, keepdim, *, dtype):
    """Product along a dim, or of all elements."""
    return raw.ProdExt(self, dim, keepdim, dtype)


@op(
    "count_nonzero(Tensor self, int[]? dim=None) -> Tensor",
    forms="fm",
    reduction="other",
)
def count_nonzero(self, dim):
    """Number of elements that are not zero."""
    return raw.CountNonZero(self, dim)


@op(
    "all(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    forms="fmo",
    reduction="other",
)
def all(self, dim, keepdim):
    """Return whether all elements are true."""
    return _truth(raw.ReduceAll, self, dim, keepdim)


@op(
    "any(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    forms="fmo",
    reduction="other",
)
def any(self, dim, keepdim):
    """Return whether any element is true."""
    return _truth(raw.ReduceAny, self, dim, keepdim)


def _truth(call, x, dim, keepdim):
    if dim == []:  # an empty list of dims reduces nothing in this function
        return x != 0
    if x.dtype.name.startswith("float8"):  # a nonzero float8 value must stay nonzero after the conversion
        x = t._to_dtype(x, ALL["float32"])
    return call(x, dim, keepdim)


# ---- extremes
def _share(g, self, result, dim, keepdim):
    """Return the gradient of an extremum, divided equally among the elements that are equal to it."""
    shape = self.shape
    held = t.eq(self, restored(result, shape, dim, keepdim))
    held = t.logical_or(held, t.logical_and(t.isnan(self), t.isnan(restored(result, shape, dim, keepdim))))
    held = held.to(g.dtype)
    return restored(g, shape, dim, keepdim) * held / t.sum(held, dim or None, True)


def _extreme(name, ms):
    @op(
        f"{name}(Tensor self, int[]? dim=(), bool keepdim=False) -> Tensor",
        forms="fmo",
        grad={"self": lambda g, self, result, dim, keepdim: _share(g, self, result, dim or [], keepdim)},
        reduction="max" if name == "amax" else "min",
    )
    def body(self, dim, keepdim):
        return getattr(raw, ms)(self, list(dim or ()), keepdim)

    body.__doc__ = f"{'Largest' if name == 'amax' else 'Smallest'} element over dims."


_extreme("amax", "ReduceMax")
_extreme("amin", "ReduceMin")


@composite(
    "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)", forms="fmo"
)
def aminmax(self, *, dim, keepdim):
    """Return the smallest and the largest element along a dim, or of all elements."""
    dims = [] if dim is None else [dim]
    if dim is None and self.numel() == 0:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        )
    low, high = t.amin(self, dims, keepdim), t.amax(self, dims, keepdim)
    if dim is None and keepdim and self.ndim:
        low, high = (t.reshape(x, [1] * self.ndim) for x in (low, high))
    return _named("aminmax", (low, high))


def _named(name, values):

    return namespaces["return_types"][name](values)


def scattered(g, shape, dim, indices, keepdim):
    """Return the gradient of values that were taken at `indices` along a dim."""
    if not shape:
        return g
    if not keepdim:
        g, indices = t.unsqueeze(g, dim), t.unsqueeze(indices, dim)
    return t.scatter_add(zeros_of(g, shape), dim, indices, g)


def _declare_extreme_dim(name, ms):
    @op(
        f"_{name}_dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        forms="f",
        grad={
            "self": lambda gs, self, indices, dim, keepdim: scattered(
                gs[0], self.shape, dim, indices, keepdim
            )
        },
        node=f"{name.title()}Backward0",
        reduction="other",
    )
    def along(self, dim, keepdim):
        return getattr(raw, ms + "Dim")(self, dim, keepdim)

    op(
        f"_{name}_all(Tensor self) -> Tensor",
        ms=ms,
        forms="f",
        grad={"self": lambda g, self, result: _share(g, self, result, None, False)},
        node=f"{name.title()}Backward1",
        reduction=name,
    )
    pair = "maximum" if name == "max" else "minimum"

    @composite(
        f"{name}(Tensor self, any dim=None, bool keepdim=False, *, any other=None) -> (Tensor values, Tensor indices)",
        forms="fmo",
        reduction="other",
    )
    def body(self, dim, keepdim, *, other):
        other = dim if hasattr(dim, "data_ptr") else other
        if other is not None:
            return getattr(t, pair)(self, other)
        if dim is None:
            return getattr(t, f"_{name}_all")(self)
        values, indices = getattr(t, f"_{name}_dim")(self, dim, keepdim)
        return _named(name, (values, indices))

    body.__doc__ = "Of all elements, along a dim with positions, or of two tensors element by element."


_declare_extreme_dim("max", "Max")
_declare_extreme_dim("min", "Min")


def _declare_arg(name, ms):
    @op(f"{name}(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", forms="fmo", reduction="other")
    def body(self, dim, keepdim):
        return getattr(raw, ms)(self, dim, keepdim)


_declare_arg("argmax", "ArgMaxExt")
_declare_arg("argmin", "ArgMinExt")


# ---- moments
def _freedom(shape, dim, correction):
    return max(count_of(shape, dim) - correction, 0)


def _with_fraction(moment, self, dim, correction, keepdim, power):
    """Return a moment with a correction that is not a whole number, which MindSpore's operators do not take.

    16-bit inputs are computed in float32, so that the result is rounded once.
    """
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
    if correction != int(correction):
        return _with_fraction(raw.Var, self, dim, correction, keepdim, 1)
    return raw.Var(self, dim, int(correction), keepdim)


@op(
    "_std(Tensor self, int[]? dim, Scalar correction, bool keepdim) -> Tensor",
    forms="f",
    grad={"self": _std_back},
    reduction="other",
)
def _std(self, dim, correction, keepdim):
    if correction != int(correction):
        return _with_fraction(raw.Std, self, dim, correction, keepdim, 0.5)
    return raw.Std(self, dim, int(correction), keepdim)


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


def _moment(name, x, dim, unbiased, keepdim, correction):
    dim, correction, keepdim = _moment_arguments(dim, unbiased, keepdim, correction)
    if not (x.dtype.is_floating_point or x.is_complex()):
        raise RuntimeError("std and var only support floating point and complex dtypes")
    if x.is_complex():
        total = t._var(t.real(x), dim, correction, keepdim) + t._var(t.imag(x), dim, correction, keepdim)
        return t.sqrt(total) if name == "std" else total
    return (t._std if name == "std" else t._var)(x, dim, correction, keepdim)


_MOMENT = "(Tensor self, any dim=None, any unbiased=None, bool keepdim=False, *, Scalar? correction=None) -> "


@composite("var" + _MOMENT + "Tensor", forms="fmo")
def var(self, dim, unbiased, keepdim, *, correction):
    """Variance over dims, which is the sum of squared deviations divided by n - correction."""
    return _moment("var", self, dim, unbiased, keepdim, correction)


@composite("std" + _MOMENT + "Tensor", forms="fmo")
def std(self, dim, unbiased, keepdim, *, correction):
    """Square root of the variance."""
    return _moment("std", self, dim, unbiased, keepdim, correction)


@composite("var_mean" + _MOMENT + "(Tensor, Tensor)", forms="f")
def var_mean(self, dim, unbiased, keepdim, *, correction):
    """(variance, mean)."""
    where = _moment_arguments(dim, unbiased, keepdim, correction)[0]
    return _moment("var", self, dim, unbiased, keepdim, correction), t.mean(self, where, keepdim)


@composite("std_mean" + _MOMENT + "(Tensor, Tensor)", forms="f")
def std_mean(self, dim, unbiased, keepdim, *, correction):
    """(standard deviation, mean)."""
    where = _moment_arguments(dim, unbiased, keepdim, correction)[0]
    return _moment("std", self, dim, unbiased, keepdim, correction), t.mean(self, where, keepdim)


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
        w = extra if w is None else w * extra
    total = n if w is None else t.sum(w)
    mean = (t.sum(x * w, [1]) / total) if w is not None else t.sum(x, [1]) / n
    x = x - t.unsqueeze(mean, 1)
    if w is None:
        norm = max(n - correction, 0)
    else:
        norm = (
            total - correction
            if aweights is None or correction == 0
            else total - correction * t.sum(w * aweights) / total
        )
        norm = t.clamp(norm, min=0)
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


# ---- norms
def _norm_back(g, self, result, ord, dim, keepdim):
    shape = self.shape
    g, n = restored(g, shape, dim, keepdim), restored(result, shape, dim, keepdim)
    if ord == 0:
        return None  # PyTorch has no gradient here, not even zeros
    direction = t.sgn(self)
    if ord == 1:
        return direction * g
    if ord == 2:
        return g * t.masked_fill(self / n, n == 0, 0)
    size = t.abs(self)
    if math.isinf(ord):
        held = t.logical_or(size == n, t.logical_and(t.isnan(size), t.isnan(n))).to(n.dtype)
        return direction * (held * (g / t.sum(held, dim or None, True)))
    if ord < 1:
        part = direction * t.masked_fill(t.pow(size, ord - 1), self == 0, 0)
        return part * g * t.pow(n, 1 - ord)
    if ord < 2:
        return direction * t.pow(size, ord - 1) * t.masked_fill(g / t.pow(n, ord - 1), n == 0, 0)
    return self * t.pow(size, ord - 2) * t.masked_fill(g / t.pow(n, ord - 1), n == 0, 0)


@op(
    "_vector_norm(Tensor self, float ord, int[]? dim, bool keepdim) -> Tensor",
    forms="f",
    grad={"self": _norm_back},
    reduction="other",
    node="LinalgVectorNormBackward0",
)
def _vector_norm(self, ord, dim, keepdim):
    if self.is_complex():
        self = raw.Abs(self)
    return raw.LinalgVectorNorm(self, float(ord), dim, keepdim, None)


def _as_dims(dim):
    return None if dim is None else [dim] if isinstance(dim, int) else list(dim)


@composite(
    "linalg.vector_norm(Tensor x, Scalar ord=2, any dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    forms="fo",
    reduction="other",
    autocast={"accelerator": "float32"},
)
def vector_norm(x, ord, dim, keepdim, *, dtype):
    """Vector norm over dims (by default all)."""
    if not (x.dtype.is_floating_point or x.is_complex()):
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {x.dtype.storage_name[:-7]}"
        )
    if dtype is not None:
        if dtype.is_complex and not x.is_complex() or x.is_complex() and not dtype.is_complex:
            raise RuntimeError(
                "linalg.vector_norm: dtype should be "
                f"{'complex' if x.is_complex() else 'floating point'} for {'complex' if x.is_complex() else 'real'} inputs, "
                f"but got {dtype}"
            )
        x = x.to(dtype)
    dim = _as_dims(dim)
    if (ord < 0 or ord == math.inf) and x.numel() == 0:
        _check_not_empty(x.shape, ord, dim)
    return t._vector_norm(x, float(ord), dim, keepdim)


def _check_not_empty(shape, ord, dim) -> None:
    """Raise RuntimeError if a norm that has no value for zero elements would reduce a dim of size 0."""
    begin = f"linalg.vector_norm cannot compute the {ord:g} norm on"
    if not dim:
        raise RuntimeError(f"{begin} an empty tensor because the operation does not have an identity")
    for d, at in zip(dim, wrap_dims(dim, len(shape)), strict=True):
        if shape[at] == 0:
            raise RuntimeError(
                f"{begin} the dimension {d}because this dimension is empty and the operation does not have an identity"
            )


@composite(
    "norm(Tensor self, any p='fro', any dim=None, bool keepdim=False, ScalarType? dtype=None) -> Tensor",
    forms="fmo",
    autocast={"accelerator": "float32"},
)
def norm(self, p, dim, keepdim, dtype):
    """Vector norm for a number p or "fro", and nuclear norm of matrices for p="nuc"."""
    if p == "nuc":
        dims = dim if dim is not None else tuple(range(self.ndim))
        return t.linalg_matrix_norm(self, "nuc", dims, keepdim, dtype=dtype)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"only valid string values are 'fro' and 'nuc', found {p}")
    if not (self.dtype.is_floating_point or self.is_complex()) and dtype is None:
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {self.dtype.storage_name[:-7]}"
        )
    return t.linalg_vector_norm(self, 2.0 if p in ("fro", None) else p, dim, keepdim, dtype=dtype)


@composite(
    "linalg.norm(Tensor A, any ord=None, any dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    forms="fo",
    autocast={"accelerator": "float32"},
    copied_to_out=True,
)
def linalg_norm(A, ord, dim, keepdim, *, dtype):
    """Vector norm, or matrix norm if `ord` is given for a matrix or for two dims."""
    dims = _as_dims(dim)
    if ord is not None and (dims is not None and len(dims) == 2 or dims is None and A.ndim == 2):
        return t.linalg_matrix_norm(A, ord, tuple(dims) if dims else (-2, -1), keepdim, dtype=dtype)
    if isinstance(ord, str):
        raise RuntimeError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    if ord is not None and dims is None and A.ndim > 2:
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D."
        )
    if ord is None and dims is None:
        out = t.linalg_vector_norm(t.reshape(A, [-1]), 2, None, False, dtype=dtype)
        return t.reshape(out, [1] * A.ndim) if keepdim else out
    return t.linalg_vector_norm(A, 2 if ord is None else ord, dims, keepdim, dtype=dtype)


def _logsumexp_back(g, self, result, dim, keepdim):
    shape = self.shape
    return restored(g, shape, dim, keepdim) * conj(t.exp(self - restored(result, shape, dim, keepdim)))


@op(
    "_logsumexp(Tensor self, int[] dim, bool keepdim) -> Tensor",
    forms="f",
    grad={"self": _logsumexp_back},
    reduction="other",
)
def _logsumexp(self, dim, keepdim):
    if not self.is_complex() and self.dtype.itemsize > 2:
        return raw.LogSumExp(self, dim, keepdim)
    top = t.amax(
        t.real(self) if self.is_complex() else self, dim, True
    )  # every step is rounded to 16 bits, as in PyTorch
    top = t.masked_fill(top, t.isinf(top), 0)
    total = t.log(t.sum(t.exp(self - top), dim, True)) + top
    return total if keepdim else t.reshape(total, t.sum(top, dim).shape)


@composite(
    "logsumexp(Tensor self, int[] dim, bool keepdim=False) -> Tensor",
    forms="fmo",
    aliases=("special.logsumexp",),
    reduction="other",
    autocast={"accelerator": "float32"},
)
def logsumexp(self, dim, keepdim):
    """Logarithm of the sum of exponentials, computed without overflow."""
    if not (self.dtype.is_floating_point or self.is_complex()):
        self = self.to(_C.default_dtype())
    return t._logsumexp(self, dim, keepdim)

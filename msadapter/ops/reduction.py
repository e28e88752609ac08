"""Reductions: sums, products, logical reductions and extrema."""

from __future__ import annotations

from .._values.dtype import STORED_WIDE
from ._declare import composite, op, raw, t
from ._geometry import numel, wrap_dim, wrap_dims
from .pointwise import conj
from .view import is_tensor, zeros_of, zeros_seen

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
    out_dtype="decides",
    nodes={"dim given": "SumBackward1"},
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
    out_dtype="decides",
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
        raise RuntimeError("nansum on CPU does not support complex inputs")
    if dtype is not None and dtype.is_complex:
        name = dtype.scalar_name
        raise NotImplementedError(f"\"nansum_cpu\" not implemented for '{name}'")
    if dtype is not None and self.is_floating_point() and not dtype.is_floating_point:
        return raw.SumExt(t.where(t.isnan(self), 0.0, self), dim, keepdim, dtype)  # no integer is nan
    return raw.Nansum(self, dim, keepdim, dtype)


@op(
    "mean(Tensor self, int[]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    out_dtype="cast",
    nodes={"dim given": "MeanBackward1"},
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
    out_dtype="cast",
    forms="fmo",
    reduction="other",
)
def nanmean(self, dim, keepdim, *, dtype):
    """Mean over dims, with nan left out."""
    if not (self.dtype.is_floating_point or self.is_complex()):
        raise RuntimeError(
            "nanmean(): integral types and 'Bool' are not supported for nanmean, even for empty tensors."
        )
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        name = dtype.scalar_name
        raise RuntimeError(
            "nanmean(): could not infer output dtype. Optional dtype must be either a floating point or complex dtype. "
            f"Got: {name}"
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
    out_dtype="decides",
    nodes={"dim given": "ProdBackward1"},
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
    out_dtype="truth of all",
    reduction="other",
)
def all(self, dim, keepdim):
    """Return whether all elements are true."""
    return _truth(raw.ReduceAll, self, dim, keepdim)


@op(
    "any(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    forms="fmo",
    out_dtype="truth of any",
    reduction="other",
)
def any(self, dim, keepdim):
    """Return whether any element is true."""
    return _truth(raw.ReduceAny, self, dim, keepdim)


def _truth(call, x, dim, keepdim):
    if dim == []:  # an empty list of dims reduces nothing in this function
        return x != 0
    if x.dtype in STORED_WIDE:  # what is not zero must stay so after the conversion
        x = t._to_dtype(x, STORED_WIDE[x.dtype])
    return call(x, dim, keepdim)


# ---- extremes
def _share(g, self, result, dim, keepdim):
    """Return the gradient of an extremum, divided equally among the elements that are equal to it."""
    shape = self.shape
    held = t.eq(self, restored(result, shape, dim, keepdim))
    held = t.logical_or(held, t.logical_and(t.isnan(self), t.isnan(restored(result, shape, dim, keepdim))))
    share = restored(g, shape, dim, keepdim) / t.sum(held, dim or None, True).to(g.dtype)
    return share * held


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
    return low, high


def scattered(g, shape, dim, indices, keepdim):
    """Return the gradient of values that were taken at `indices` along a dim."""
    if not shape:
        return g
    if not keepdim:
        g, indices = t.unsqueeze(g, dim), t.unsqueeze(indices, dim)
    return t.scatter_add(zeros_seen(g, shape), dim, indices, g)


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
        out_dtype="cast",
        forms="fmo",
        reduction="other",
    )
    def body(self, dim, keepdim, *, other):
        other = dim if is_tensor(dim) else other
        if other is not None:
            return getattr(t, pair)(self, other)
        if dim is None:
            return getattr(t, f"_{name}_all")(self)
        return getattr(t, f"_{name}_dim")(self, dim, keepdim)

    body.__doc__ = "Of all elements, along a dim with positions, or of two tensors element by element."


_declare_extreme_dim("max", "Max")
_declare_extreme_dim("min", "Min")


def _declare_arg(name, ms):
    @op(f"{name}(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", forms="fmo", reduction="other")
    def body(self, dim, keepdim):
        return getattr(raw, ms)(self, dim, keepdim)


_declare_arg("argmax", "ArgMaxExt")
_declare_arg("argmin", "ArgMinExt")

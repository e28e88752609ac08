"""Vector norms, linalg.norm and logsumexp."""

from __future__ import annotations

import math

from ._declare import _C, composite, op, raw, t
from ._geometry import wrap_dims
from .pointwise import conj
from .reduction import restored


# ---- norms
def _norm_back(g, self, result, ord, dim, keepdim):
    shape = self.shape
    g, n = restored(g, shape, dim, keepdim), restored(result, shape, dim, keepdim)
    if ord == 0:
        return None  # PyTorch has no gradient here, not even zeros
    if ord == 2:
        return g * t.masked_fill_(self / n, n == 0, 0)
    direction = t.sgn(self)
    if ord == 1:
        return direction * g
    size = t.abs(self)
    if math.isinf(ord):
        held = t.logical_or(size == n, t.logical_and(t.isnan(size), t.isnan(n))).to(n.dtype)
        return direction * (held * (g / t.sum(held, dim or None, True)))
    if ord < 1:
        part = direction * t.masked_fill(t.pow(size, ord - 1), self == 0, 0)
        return part * g * t.pow(n, 1 - ord)
    return direction * t.pow(size, ord - 1) * t.masked_fill(g / t.pow(n, ord - 1), n == 0, 0)


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
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {x.dtype.scalar_name}"
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
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {self.dtype.scalar_name}"
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
    out_dtype="cast",
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

"""Matrix functions, norms, products and distances."""

from __future__ import annotations

import math

from .._values.dtype import ALL
from ._declare import _C, composite, op, raw, t
from ._geometry import wrap_dim
from ._lapack import lapack
from ._linalg_tools import check_floating, check_matrix, check_square, identity, mH
from .pointwise import conj


# ---- functions of a matrix
def _matrix_exp_grad(g, self):
    """Return the off-diagonal block of exp([[A^H, g], [0, A^H]]), which is the gradient."""
    AH, n = mH(self), self.shape[-1]
    top = t.cat([AH, g], -1)
    bottom = t.cat([t.zeros_like(AH), AH], -1)
    return t.narrow(t.narrow(t.linalg_matrix_exp(t.cat([top, bottom], -2)), -2, 0, n), -1, n, n)


@op(
    "linalg.matrix_exp(Tensor self) -> Tensor",
    forms="fm",
    aliases=("matrix_exp",),
    grad={"self": _matrix_exp_grad},
    whole=True,
)
def matrix_exp(self):
    """Return the exponential of every matrix."""
    check_floating(self, "linalg.matrix_exp", low_precision=True)
    check_square(self, "linalg.matrix_exp")
    return lapack.LinalgMatrixExp(self)


@op("_identity_like(Tensor self) -> Tensor", forms="f", grad={"self": lambda g: t.zeros_like(g)})
def _identity_like(self):
    return t.clone(t.expand_as(identity(self.shape[-1], self), self))


@composite(
    "linalg.matrix_power(Tensor self, int n) -> Tensor",
    out_dtype="cast",
    forms="fmo",
    aliases=("matrix_power",),
    copied_to_out=True,
)
def matrix_power(self, n):
    """Return the n-th power by repeated squaring. A negative n uses the inverse."""
    check_square(self, "linalg.matrix_power", "A")
    if n == 0:
        return t._identity_like(self)
    base = t.linalg_inv(self) if n < 0 else self
    n = abs(n)
    if n == 1:
        return base if base is not self else t.clone(self)
    if n == 2:
        return base @ base
    if n == 3:
        return base @ base @ base
    result = None
    while n:
        if n & 1:
            result = base if result is None else result @ base
        n >>= 1
        if n:
            base = base @ base
    return result


# ---- norms of matrices
def _moved(A, dim, keepdim):
    """Return A with the two dims at the end, and a function that moves such a result back."""
    rows, cols = (d % A.ndim for d in dim)
    if rows == cols:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    others = [d for d in range(A.ndim) if d not in (rows, cols)]
    shape = [1 if d in (rows, cols) else A.shape[d] for d in range(A.ndim)]
    return t.permute(A, [*others, rows, cols]), (lambda r: t.reshape(r, shape)) if keepdim else (lambda r: r)


@composite(
    "linalg.matrix_norm(Tensor A, any ord='fro', any dim=(-2, -1), bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    forms="fo",
    autocast={"accelerator": "float32"},
    copied_to_out=True,
)
def matrix_norm(A, ord, dim, keepdim, *, dtype):
    """Return the norm of every matrix. ``ord`` is "fro", "nuc", 1, -1, 2, -2, inf or -inf."""
    check_matrix(A, "linalg.matrix_norm")
    if not (A.is_floating_point() or A.is_complex()) and dtype is None:
        raise RuntimeError(
            f"linalg.matrix_norm: Expected a floating point or complex tensor as input. Got "
            f"{A.dtype.scalar_name}"
        )
    dim = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    for d in dim:
        if not -A.ndim <= d < A.ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-A.ndim}, {A.ndim - 1}], but got {d})"
            )
    if dtype is not None:
        A = t._to_dtype(A, dtype)
    if ord == "fro":
        return t.linalg_vector_norm(A, 2.0, list(dim), keepdim)
    if isinstance(ord, str) and ord != "nuc":
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if ord == "nuc" or abs(ord) == 2:
        matrix, restore = _moved(A, dim, keepdim)
        S = t.linalg_svdvals(matrix)
        if ord == "nuc":
            return restore(t.sum(S, -1))
        return restore(t.amax(S, -1) if ord > 0 else t.amin(S, -1))
    if abs(ord) not in (1, math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    rows, cols = (d % A.ndim for d in dim)
    if rows == cols:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    summed, kept = (rows, cols) if abs(ord) == 1 else (cols, rows)
    sums = t.linalg_vector_norm(A, 1.0, [summed], True)
    result = t.amax(sums, kept, True) if ord > 0 else t.amin(sums, kept, True)
    return result if keepdim else t.squeeze(result, [rows, cols])


@composite(
    "nuclear_norm(Tensor self, any dim=(-2, -1), bool keepdim=False) -> Tensor",
    forms="fo",
    autocast={"accelerator": "float32"},
)
def nuclear_norm(self, dim, keepdim):
    if isinstance(dim, bool):
        dim, keepdim = (-2, -1), dim
    return t.linalg_matrix_norm(self, "nuc", dim, keepdim)


@composite(
    "frobenius_norm(Tensor self, any dim=(-2, -1), bool keepdim=False) -> Tensor",
    forms="fo",
    autocast={"accelerator": "float32"},
)
def frobenius_norm(self, dim, keepdim):
    return t.linalg_vector_norm(self, 2.0, dim, keepdim)


# ---- products
@composite(
    "linalg.vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor",
    forms="fo",
    autocast="lower",
)
def vecdot(x, y, *, dim):
    """Return dot products along a dim. The first factor is conjugated."""
    if x.dtype is not y.dtype:
        raise RuntimeError(
            f"linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
            f"{x.dtype.scalar_name} and y of type "
            f"{y.dtype.scalar_name} instead"
        )
    if x.ndim == y.ndim == 1:
        return t.vdot(x, y)
    return t._to_dtype(t.sum(conj(x) * y, dim), x.dtype)


@op(
    "linalg.cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
    out_dtype="same",
    promote="default",
    forms="fo",
    grad={
        "self": lambda g, other, dim: t.linalg_cross(conj(other), g, dim=dim),
        "other": lambda g, self, dim: t.linalg_cross(g, conj(self), dim=dim),
    },
    autocast={"accelerator": "widest"},
)
def linalg_cross(self, other, *, dim):
    """Return the vector product along a dim of size 3."""
    if self.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if self.shape[dim] != 3 or other.shape[dim] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {self.shape[dim]} and {other.shape[dim]}"
        )
    return raw.Cross(self, other, dim)


@composite(
    "cross(Tensor self, Tensor other, int? dim=None) -> Tensor",
    forms="fmo",
    autocast={"accelerator": "widest"},
)
def cross(self, other, dim):
    """Return the vector product along ``dim``, by default the first dim of size 3."""
    if dim is None:
        dim = next((d for d, n in enumerate(self.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError(f"no dimension of size 3 in input {self.shape}")
    return t.linalg_cross(self, other, dim=dim)


def _powers(x, n):
    """Return a matrix with the columns x^0 to x^(n - 1)."""
    if n == 0:
        return t.empty([*x.shape, 0], dtype=x.dtype)
    one = t.unsqueeze(t.ones_like(x), -1)
    if n == 1:
        return one
    repeated = t.expand(t.unsqueeze(x, -1), [*x.shape, n - 1])
    return t.cat([one, t.cumprod(repeated, -1, dtype=x.dtype)], -1)


@composite("linalg.vander(Tensor x, *, int? N=None) -> Tensor", forms="f")
def linalg_vander(x, *, N):
    """Return the Vandermonde matrix of each row, with increasing powers."""
    if x.dtype.is_bool:
        raise RuntimeError(
            "linalg.vander supports floating point, complex, and integer tensors, but got Bool"
        )
    x = t.reshape(x, [1]) if x.ndim == 0 else x
    N = x.shape[-1] if N is None else N
    if N <= 1:
        raise RuntimeError("N must be greater than 1.")
    if x.dtype.name in ("uint8", "int8", "int16", "int32"):
        x = t._to_dtype(x, ALL["int64"])
    return _powers(x, N)


@composite("vander(Tensor x, int? N=None, bool increasing=False) -> Tensor", forms="f")
def vander(x, N, increasing):
    """Return the Vandermonde matrix of a vector. Powers decrease unless ``increasing`` is set."""
    if x.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    if x.dtype.name in ("bool", "uint8", "int8", "int16", "int32"):
        x = t._to_dtype(x, ALL["int64"])
    result = _powers(x, x.shape[0] if N is None else N)
    return result if increasing else t.flip(result, [1])


@composite(
    "linalg.tensorinv(Tensor self, int ind=2) -> Tensor",
    out_dtype="cast",
    forms="fo",
    autocast={"cpu": "float32"},
    copied_to_out=True,
)
def tensorinv(self, ind):
    """Return the inverse with respect to tensordot over the first ``ind`` dims."""
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    shape = list(self.shape)
    rows, cols = math.prod(shape[:ind]), math.prod(shape[ind:])
    if rows != cols:
        raise RuntimeError(
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), "
            f"but got {cols} != {rows}"
        )
    return t.reshape(t.linalg_inv(t.reshape(self, [rows, cols])), shape[ind:] + shape[:ind])


@composite(
    "linalg.tensorsolve(Tensor self, Tensor other, any dims=None) -> Tensor",
    out_dtype="cast",
    forms="fo",
    autocast={"cpu": "float32"},
    copied_to_out=True,
)
def tensorsolve(self, other, dims):
    """Return X with tensordot(self, X, X.ndim) = other. ``dims`` of self are moved to the end first."""
    n = self.ndim
    if dims is not None:
        chosen = [wrap_dim(d, n) for d in dims]
        self = t.permute(self, [d for d in range(n) if d not in chosen] + chosen)
    shape = list(self.shape[other.ndim :])
    if math.prod(self.shape[: other.ndim]) != math.prod(shape):
        raise RuntimeError(
            f"Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            "prod(self.shape[:other.ndim]), but got "
            f"{math.prod(shape)} != {math.prod(self.shape[: other.ndim])}"
        )
    size = math.prod(shape)
    return t.reshape(t.linalg_solve(t.reshape(self, [other.numel(), size]), t.reshape(other, [-1])), shape)


# ---- distances
@composite(
    "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor",
    forms="fm",
    autocast={"accelerator": "float32"},
)
def dist(self, other, p):
    """Return the p-norm of the difference."""
    return t.linalg_vector_norm(self - other, float(p) if not hasattr(p, "item") else float(p.item()))


def _other_dims(x, dim):
    return [d for d in range(x.ndim) if d != dim % x.ndim]


def _renorm_grad(g, self, p, dim, maxnorm):
    """Return the gradient of renorm.

    For scaled slices, the part of g along the change of the norm is removed.
    """
    others, p = _other_dims(self, dim), float(p)
    wide = self.float() if self.element_size() == 2 else self
    norm = t.linalg_vector_norm(wide, p, others, True)
    product = conj(self) * g
    along = (product.real if product.is_complex() else product).to(norm.dtype).sum(others, keepdim=True)
    inverse = (norm + 1e-7).reciprocal()
    turned = maxnorm * inverse * (g - inverse * (along * _norm_slope(wide, p, norm)))
    return t.where(norm > maxnorm, turned.to(g.dtype), g)


def _norm_slope(x, p, norm):
    """Return the derivative of the p-norm over the dims in which ``norm`` has size 1."""
    if p == 2:
        return (x / norm).masked_fill(norm == 0, 0)
    if p == 1:
        return t.sgn(x)
    if p == math.inf:
        largest = x.abs() == norm
        return (
            t.sgn(x) * largest / largest.sum([d for d in range(x.ndim) if norm.shape[d] == 1], keepdim=True)
        )
    direction = t.sgn(x) * x.abs() ** (p - 1) if p < 2 else x * x.abs() ** (p - 2)
    return direction * (1 / norm ** (p - 1)).masked_fill(norm == 0, 0)


@op(
    "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
    forms="fmio",
    grad={"self": _renorm_grad},
    autocast={"accelerator": "float32"},
    whole=True,
    separate_operands=True,
)
def renorm(self, p, dim, maxnorm):
    """Scale slices along ``dim`` down to the p-norm ``maxnorm`` if theirs is larger."""
    if self.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {self.ndim} dimensions")
    if isinstance(p, complex):
        raise RuntimeError("renorm: p must be real-valued")
    if not p > 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if not maxnorm >= 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    dim = wrap_dim(dim, self.ndim)
    wide = self.float() if self.element_size() == 2 else self
    norms = t.linalg_vector_norm(wide, float(p), _other_dims(self, dim), True)
    factor = t.where(norms > maxnorm, maxnorm / (norms + 1e-7), t.ones_like(norms))
    return self * factor.to(self.dtype)


def _cdist_grad(g, x1, x2, p, result, needs):
    # The kernel of the host serves where no graph of the gradient is recorded. An NPU has none, but can run the operators below.
    if not _C.is_grad_enabled() and x1.element_size() > 2 and not x1.is_npu:
        return (
            raw.DistanceGrad(g, x1, x2, p, result) if needs[0] else None,
            raw.DistanceGrad(g.mT, x2, x1, p, result.mT) if needs[1] else None,
        )
    difference = t.unsqueeze(x1, -2) - t.unsqueeze(x2, -3)
    distance, g = t.unsqueeze(result, -1), t.unsqueeze(g, -1)
    zero = t.zeros_like(difference)
    if p == 0:
        slope = zero
    elif p == 1:
        slope = g * t.sgn(difference)
    elif math.isinf(p):
        slope = g * t.where(t.eq(t.abs(difference), distance), t.sgn(difference), zero)
    elif p == 2:
        slope = t.where(
            t.eq(distance, 0), zero, g * difference / t.masked_fill(distance, t.eq(distance, 0), 1)
        )
    else:
        off = t.eq(difference, 0)
        size = t.masked_fill(t.abs(difference), off, 1)
        slope = (
            g
            * t.sgn(difference)
            * t.pow(size, p - 1)
            / t.pow(t.masked_fill(distance, t.eq(distance, 0), 1), p - 1)
        )
        slope = t.where(off, zero, slope)
    return t.sum(slope, -2) if needs[0] else None, -t.sum(slope, -3) if needs[1] else None


@op(
    "_cdist(Tensor x1, Tensor x2, float p) -> Tensor", forms="f", grad={("x1", "x2"): _cdist_grad}, whole=True
)
def _cdist(x1, x2, p):
    return raw.Cdist(x1, x2, p)


_CDIST_MODES = (
    "use_mm_for_euclid_dist_if_necessary",
    "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)


@composite(
    "cdist(Tensor x1, Tensor x2, float p=2.0, str? compute_mode='use_mm_for_euclid_dist_if_necessary') -> Tensor",
    forms="f",
    autocast="float32",
)
def cdist(x1, x2, p, compute_mode):
    """Return the distances between the rows of x1 and the rows of x2. They are computed in one way in every compute_mode."""
    if compute_mode is not None and compute_mode not in _CDIST_MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    for x, name in ((x1, "X1"), (x2, "X2")):
        if x.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D")
        if not x.is_floating_point():
            raise RuntimeError(
                f"cdist only supports floating-point dtypes, {name} got: {x.dtype.scalar_name}"
            )
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}"
        )
    if not p >= 0:
        raise RuntimeError("cdist only supports non-negative p values")
    return t._cdist(x1, x2, float(p))


def _pairs(n):
    """Return the positions of the upper triangle in an n x n matrix, row by row."""
    rows, cols = t.unbind(t.triu_indices(n, n, 1), 0)
    return rows * n + cols


def _row_distances_grad(g, self, p, result):
    if not _C.is_grad_enabled():  # no graph of the gradient is recorded
        return raw.RowDistancesGrad(g, self, p, result)
    n = self.shape[0]
    square = t.reshape(t.index_copy(t.zeros([n * n], dtype=g.dtype), 0, _pairs(n), g), [n, n])
    first, second = _cdist_grad(square, self, self, p, t._cdist(self, self, p), (True, True))
    return first + second


@op(
    "_row_distances(Tensor self, float p) -> Tensor",
    forms="f",
    grad={"self": _row_distances_grad},
    node="PdistForwardBackward0",
    whole=True,
)
def _row_distances(self, p):
    return raw.RowDistances(self, p)


@composite(
    "pdist(Tensor self, float p=2.0) -> Tensor",
    forms="f",
    aliases=("nn.functional.pdist",),
    autocast={"accelerator": "float32"},
)
def pdist(self, p):
    """Return the distances between all pairs of rows: the upper triangle of cdist, row by row."""
    if self.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {self.ndim}D")
    if not self.is_floating_point():
        raise RuntimeError("pdist only supports floating-point dtypes")
    if not p >= 0:
        raise RuntimeError("pdist only supports non-negative p values")
    if self.element_size() > 2 and not self.is_npu:
        return t._row_distances(self, float(p))
    flat = t.reshape(t._cdist(self, self, float(p)), [-1])
    return t.index_select(flat, 0, _pairs(self.shape[0]))

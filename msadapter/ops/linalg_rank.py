"""What uses singular values: pseudo-inverse, rank, condition number, least squares and low-rank factors."""

from __future__ import annotations

import math

from .._values.dtype import ALL
from ._declare import composite, op, t
from ._lapack import lapack
from ._linalg_tools import (
    check_floating,
    check_matrix,
    check_square,
    eps,
    mH,
)


# ---- tolerances
def _as_tensor(value, like):
    return value if hasattr(value, "shape") else t.full([], value, dtype=like.dtype.to_real())


def _tolerances(A, atol, rtol):
    """Return atol and rtol as tensors.

    If both are None, rtol is max(rows, columns) * eps.
    """
    given = atol is not None
    if rtol is None:
        rtol = 0.0
        if not given or hasattr(atol, "shape"):
            rtol = max(A.shape[-2:]) * eps(A.dtype)
        if given and hasattr(atol, "shape"):  # elements with a positive atol use no default rtol
            rtol = t.where(atol > 0, t.zeros_like(atol), t.full_like(atol, rtol))
    return _as_tensor(atol if given else 0.0, A), _as_tensor(rtol, A)


def _threshold(A, largest, atol, rtol):
    atol, rtol = _tolerances(A, atol, rtol)
    return t.maximum(atol, rtol * largest) if largest.ndim else t.maximum(atol, t.mul(rtol, largest))


# ---- pseudo-inverse
def _pinv_grad(g, A, result):
    P, PH, gH = result, mH(result), mH(g)
    if A.shape[-2] <= A.shape[-1]:
        K = gH @ P
        KPH = K @ PH
        return KPH - mH(P @ K) - (A @ P) @ KPH + (PH @ P) @ (gH - K @ A)
    K = P @ gH
    PHK = PH @ K
    return PHK - mH(K @ P) + (gH - A @ K) @ P @ PH - (PHK @ P) @ A


def _hermitian_factors(A, atol, rtol):
    L, V = t._linalg_eigh(A, False, True)
    size = t.abs(L)
    keep = size > t.unsqueeze(_threshold(A, t.amax(size, -1), atol, rtol), -1)
    inverse = t.where(keep, t.reciprocal(L), t.zeros_like(L))
    return V * t.unsqueeze(inverse, -2), mH(V)


def _singular_factors(A, atol, rtol):
    U, S, Vh = t._linalg_svd(A, False, True)
    keep = t.unsqueeze(_threshold(A, t.amax(S, -1), atol, rtol), -1) < S
    inverse = t.where(keep, t.reciprocal(S), t.zeros_like(S))
    return mH(Vh) * t.unsqueeze(inverse, -2), mH(U)


@op(
    "_linalg_pinv(Tensor A, any atol, any rtol, bool hermitian, any dtype) -> Tensor",
    forms="f",
    grad={"A": _pinv_grad},
)
def _linalg_pinv(A, atol, rtol, hermitian, dtype):
    factors = _hermitian_factors if hermitian else _singular_factors
    left, right = (t._to_dtype(x, dtype) for x in factors(A, atol, rtol))
    return left @ right


def _product_type(A):
    """Return the dtype of the last product, which autocast of the CPU lowers."""
    if A.device.type != "cpu":
        return A.dtype
    nothing = t.empty(0, 0, dtype=A.dtype, device=A.device)
    return t.mm(nothing, nothing).dtype


@composite(
    "linalg.pinv(Tensor A, any rcond=None, bool hermitian=False, *, any atol=None, any rtol=None) -> Tensor",
    out_dtype="cast",
    forms="fo",
)
def pinv(A, rcond, hermitian, *, atol, rtol):
    """Return the Moore-Penrose inverse.

    Singular values up to max(atol, rtol * largest) count as zero. Autocast of the CPU lowers the precision of the last
    product only, as in PyTorch.
    """
    check_floating(A, "linalg.pinv")
    check_matrix(A, "linalg.pinv")
    if hermitian:
        check_square(A, "linalg.pinv")
    rtol = rcond if rtol is None else rtol
    dtype = _product_type(A)
    if A.numel() == 0:
        return t._to_dtype(t.reshape(A, list(A.shape[:-2]) + [A.shape[-1], A.shape[-2]]), dtype)
    return t._linalg_pinv(A, atol, rtol, hermitian, dtype)


@composite(
    "pinverse(Tensor self, float rcond=1e-15) -> Tensor",
    forms="fm",
    autocast={"cpu": "float32"},
)
def pinverse(self, rcond):
    return t.linalg_pinv(self, rcond)


# ---- rank, condition
@composite(
    "linalg.matrix_rank(Tensor A, any tol=None, bool hermitian=False, *, any atol=None, any rtol=None) -> Tensor",
    out_dtype="cast",
    forms="fo",
    autocast={"cpu": "float32"},
    copied_to_out=True,
)
def matrix_rank(A, tol, hermitian, *, atol, rtol):
    """Return the number of singular values above max(atol, rtol * largest)."""
    check_floating(A, "linalg.matrix_rank")
    check_matrix(A, "linalg.matrix_rank")
    if tol is not None:
        atol, rtol = tol, 0.0 if rtol is None else rtol
    A = A.detach()
    S = t.abs(t.linalg_eigvalsh(A)) if hermitian else t.linalg_svdvals(A)
    if S.shape[-1] == 0:
        return t._to_dtype(t.sum(S, -1), ALL["int64"])
    return t.sum(t.unsqueeze(_threshold(A, t.amax(S, -1), atol, rtol), -1) < S, -1)


@composite(
    "linalg.cond(Tensor A, any p=None) -> Tensor",
    out_dtype="cast",
    forms="fo",
    autocast={"cpu": "float32"},
    copied_to_out=True,
)
def cond(A, p):
    """Return the condition number.

    For p None, 2 and -2 it is a ratio of singular values, else norm(A, p) * norm(A^-1, p).
    """
    check_matrix(A, "linalg.cond")
    check_floating(A, "linalg.cond")
    if isinstance(p, str):
        check_square(A, f"linalg.cond(ord={p})")
    if A.numel() == 0:
        return t.zeros(list(A.shape[:-2]), dtype=A.dtype.to_real())
    if p is None or p in (2, -2):
        S = t.linalg_svdvals(A)
        first, last = t.select(S, -1, 0), t.select(S, -1, S.shape[-1] - 1)
        return last / first if p == -2 else first / last
    check_square(A, f"linalg.cond(ord={p})")
    inverse, info = t.linalg_inv_ex(A)
    result = t.linalg_matrix_norm(A, p) * t.linalg_matrix_norm(inverse, p)
    return t.masked_fill(result, t.ne(info, 0), math.inf)


# ---- least squares
def _lstsq_grad(gs, A, B):
    g = gs[0]
    if g is None:
        return None, None
    P = t.linalg_pinv(A)
    vector = g.ndim == A.ndim - 1
    if vector:
        g, B = t.unsqueeze(g, -1), t.unsqueeze(B, -1)
    gB = mH(P) @ g
    gA = _pinv_grad(g @ mH(B), A, P)
    return gA, t.squeeze(gB, -1) if vector else gB


@op(
    "_linalg_lstsq(Tensor A, Tensor B, float rcond, str driver) -> (Tensor solution, Tensor rank, Tensor singular_values)",
    forms="f",
    grad={("A", "B"): _lstsq_grad},
)
def _linalg_lstsq(A, B, rcond, driver):
    vector = B.ndim == A.ndim - 1
    x, rank, values = lapack.LinalgLstsq(A, t.unsqueeze(B, -1) if vector else B, rcond, driver)
    x = t.narrow(x, -2, 0, A.shape[-1])
    # A tensor of its own, which a program may change in place, with the strides of PyTorch's.
    x = t.empty_strided(x.shape, x.stride(), dtype=x.dtype).copy_(x)
    return (t.squeeze(x, -1) if vector else x), rank, values


@composite(
    "linalg.lstsq(Tensor A, Tensor b, float? rcond=None, *, str? driver=None) -> "
    "(Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
    out_dtype="cast",
    forms="fo",
    autocast={"cpu": "float32"},
)
def lstsq(A, b, rcond, *, driver):
    """Return X that minimises ||A X - b||, with residuals, rank and singular values.

    Residuals exist for matrices of full rank with more rows than columns.
    """
    check_floating(A, "torch.linalg.lstsq")
    if A.ndim < 2:
        raise RuntimeError("torch.linalg.lstsq: input must have at least 2 dimensions.")
    if b.ndim < 1:
        raise RuntimeError("torch.linalg.lstsq: other must have at least 1 dimension.")
    if A.dtype is not b.dtype:
        raise RuntimeError(
            f"torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's dtype "
            f"{A.dtype.scalar_name} and other's dtype {b.dtype.scalar_name}"
        )
    if not 0 <= A.ndim - b.ndim <= 1:
        raise RuntimeError(
            "torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1"
        )
    driver = "gelsy" if driver is None else driver
    if driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(
            "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
        )
    # One dim fewer is a batch of vectors only if it has the batch of A. Otherwise it is a matrix.
    vector = b.ndim == 1 or (b.ndim == A.ndim - 1 and b.shape == A.shape[:-1])
    m, n = A.shape[-2:]
    if b.shape[-1 if vector else -2] != m:
        raise RuntimeError(
            "torch.linalg.lstsq: input.size(-2) should match "
            + ("other.size(-1)" if vector else "other.size(-2)")
        )
    if (
        not vector and b.ndim < A.ndim
    ):  # PyTorch aligns the batch of A with all dims of this matrix but its last
        batch = (t.zeros(list(A.shape[:-2])) + t.zeros(list(b.shape[:-1]))).shape
        b = t.expand(b, [*batch, *b.shape[-2:]])
    X, rank, values = t._linalg_lstsq(A, b, eps(A.dtype) * max(m, n) if rcond is None else rcond, driver)
    full = driver == "gels" or (rank.numel() > 0 and bool(t.all(t.eq(rank, n)).item()))
    if m > n and driver != "gelsy" and full:
        difference = (A @ (t.unsqueeze(X, -1) if vector else X)) - (t.unsqueeze(b, -1) if vector else b)
        residuals = t.sum(t.square(t.abs(difference)), -2)
    else:
        residuals = t.empty([0], dtype=A.dtype.to_real())
    return X, residuals, rank, values.detach()


# ---- low rank
def _range_basis(A, q, niter, M):
    """Return orthonormal columns that approximately span the range of A (or A - M), by random projections."""
    R = t.randn([A.shape[-1], q], dtype=A.dtype, device=A.device)

    def apply(X):
        return A @ X if M is None else A @ X - M @ X

    def adjoint(X):
        return mH(A) @ X if M is None else mH(A) @ X - mH(M) @ X

    Q = t.linalg_qr(apply(R))[0]
    for _ in range(niter):
        Q = t.linalg_qr(adjoint(Q))[0]
        Q = t.linalg_qr(apply(Q))[0]
    return Q


@composite(
    "svd_lowrank(Tensor A, int? q=6, int? niter=2, Tensor? M=None) -> (Tensor, Tensor, Tensor)",
    forms="f",
    random="other",
)
def svd_lowrank(A, q, niter, M):
    """Return U, S and V of rank q, which approximate those of A (or A - M)."""
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    m, n = A.shape[-2:]
    shifted = A if M is None else A - t.expand_as(M, A)
    wide = m < n
    X = mH(shifted) if wide else shifted
    Q = _range_basis(X, q, niter, None)
    U, S, Vh = t.linalg_svd(mH(Q) @ X, False)
    U, V = Q @ U, mH(Vh)
    return (V, S, U) if wide else (U, S, V)


@composite(
    "pca_lowrank(Tensor A, int? q=None, bool center=True, int niter=2) -> (Tensor, Tensor, Tensor)",
    forms="f",
    random="other",
)
def pca_lowrank(A, q, center, niter):
    """Return principal components: svd_lowrank of A with centred columns."""
    check_floating(A, "pca_lowrank")
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return t.svd_lowrank(A - t.mean(A, [-2], True) if center else A, q, niter)

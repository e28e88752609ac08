"""QR factorization, singular values and eigenvalues."""

from __future__ import annotations

from ._declare import composite, op, t
from ._lapack import LinAlgError, lapack
from ._linalg_tools import (
    check_floating,
    check_matrix,
    check_square,
    mH,
    needs_graph,
    set_diagonal,
)
from .pointwise import conj


def _converging(function, *args):
    """Call ``function``. If it does not converge, raise LinAlgError."""
    try:
        return function(*args)
    except RuntimeError as e:
        if "failed to converge" in str(e):
            raise LinAlgError(str(e)) from None
        raise


# ---- QR
_QR_MODES = {"reduced": 0, "complete": 1, "r": 2}


def _hermitian_part(x):
    """Return x + x^H, but with the diagonal counted once."""
    return set_diagonal(
        x + mH(x),
        t._to_dtype(t.real(t.diagonal(x, 0, -2, -1)), x.dtype)
        if x.is_complex()
        else t.diagonal(x, 0, -2, -1),
    )


def _qr_grad(gs, Q, R, mode):
    gQ, gR = gs
    if gQ is None and gR is None:
        return None
    if mode == _QR_MODES["r"]:
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
            "linalg.qr(A, mode='reduced') if you are going to differentiate through linalg.qr."
        )
    m, n = Q.shape[-2], R.shape[-1]
    if mode == _QR_MODES["complete"] and m > n:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."
        )
    gQ = t.zeros_like(Q) if gQ is None else gQ
    gR = t.zeros_like(R) if gR is None else gR
    k = min(m, n)
    R1, gR1 = t.narrow(R, -1, 0, k), t.narrow(gR, -1, 0, k)
    rest = None
    if n > k:  # the columns after the first k are A2 = Q R2, so R2 is a product with Q
        R2, gR2 = t.narrow(R, -1, k, n - k), t.narrow(gR, -1, k, n - k)
        gQ, rest = gQ + Q @ R2 @ mH(gR2), Q @ gR2
    inner = gQ + Q @ _hermitian_part(t.triu(gR1 @ mH(R1) - mH(Q) @ gQ))
    gA = t.linalg_solve_triangular(mH(R1), inner, upper=False, left=False)
    return gA if rest is None else t.cat([gA, rest], -1)


@op("_linalg_qr(Tensor A, int mode) -> (Tensor Q, Tensor R)", forms="f", grad={"A": _qr_grad}, whole=True)
def _linalg_qr(A, mode):
    return lapack.LinalgQr(A, mode)


@composite(
    "linalg.qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)",
    forms="fo",
    autocast={"cpu": "float32"},
)
def linalg_qr(A, mode):
    """Return (Q, R) with A = Q R, orthonormal columns in Q and an upper triangular R."""
    check_floating(A, "linalg.qr")
    check_matrix(A, "linalg.qr")
    if mode not in _QR_MODES:
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    Q, R = t._linalg_qr(A, _QR_MODES[mode])
    return Q, R


@composite(
    "qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)",
    in_favor_of="torch.linalg.qr",
    forms="fmo",
    autocast={"cpu": "float32"},
)
def qr(self, some):
    return t.linalg_qr(self, "reduced" if some else "complete")


@op(
    "geqrf(Tensor self) -> (Tensor a, Tensor tau)",
    out_dtype="cast",
    forms="fmo",
    autocast={"cpu": "float32"},
)
def geqrf(self):
    """Return (a, tau): Householder vectors below the diagonal of a, R above, and the vectors' factors tau."""
    check_floating(self, "geqrf")
    return lapack.Geqrf(self)


@op("_householder_product(Tensor input, Tensor tau) -> Tensor", forms="f")
def _householder_product(input, tau):
    return lapack.HouseholderProduct(input, tau)


@composite(
    "linalg.householder_product(Tensor input, Tensor tau) -> Tensor",
    out_dtype="cast",
    forms="fmo",
    aliases=("orgqr",),
    autocast={"cpu": "float32"},
)
def householder_product(input, tau):
    """Return the first columns of the product of the reflectors I - tau v v^H."""
    check_floating(input, "torch.linalg.householder_product")
    check_matrix(input, "torch.linalg.householder_product", "input")
    if not needs_graph(input, tau):
        return t._householder_product(input, tau)
    m, n = input.shape[-2:]
    Q = t.expand(t.eye(m, n, dtype=input.dtype), list(input.shape))
    return _reflect(input, tau, Q, reversed(range(tau.shape[-1])))


def _reflector(input, i):
    """Return v_i: zeros, then 1 at position i, then the values of column i below the diagonal."""
    v = t.tril(t.narrow(input, -1, i, 1), -(i + 1))
    unit = t.eq(t.arange(input.shape[-2]), i)
    return t.where(t.unsqueeze(unit, -1), t.ones_like(v), v)


def _reflect(input, tau, X, order, adjoint: bool = False):
    """Apply the reflectors to X from the left, in this order."""
    for i in order:
        v = _reflector(input, i)
        factor = t.unsqueeze(t.narrow(tau, -1, i, 1), -1)
        X = X - (conj(factor) if adjoint else factor) * (v @ (mH(v) @ X))
    return X


@op(
    "_ormqr(Tensor self, Tensor tau, Tensor other, bool left, bool transpose) -> Tensor",
    forms="f",
    grad={"other": lambda g, self, tau, left, transpose: t._ormqr(self, tau, g, left, not transpose)},
    linear=("other",),
)
def _ormqr(self, tau, other, left, transpose):
    return lapack.Ormqr(self, tau, other, left, transpose)


@composite(
    "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
    forms="fmo",
    autocast={"cpu": "float32"},
)
def ormqr(self, input2, input3, left, transpose):
    """Multiply ``input3`` by the Q of geqrf, or by its adjoint."""
    check_matrix(self, "torch.ormqr", "input")
    if not needs_graph(self, input2):
        return t._ormqr(self, input2, input3, left, transpose)
    k = input2.shape[-1]
    if left:
        return _reflect(self, input2, input3, range(k) if transpose else reversed(range(k)), transpose)
    # X Q = (Q^H X^H)^H
    return mH(
        _reflect(self, input2, mH(input3), reversed(range(k)) if transpose else range(k), not transpose)
    )


# ---- singular values
def _skew(x):
    return x - mH(x)


def _svd_grad(gs, A, full_matrices, U, S, Vh):
    gU, gS, gVh = gs
    if gU is None and gS is None and gVh is None:
        return None
    if gU is None and gVh is None:
        k = S.shape[-1]
        return (t.narrow(U, -1, 0, k) * t.unsqueeze(t._to_dtype(gS, U.dtype), -2)) @ t.narrow(Vh, -2, 0, k)
    m, n = A.shape[-2:]
    k = min(m, n)
    if full_matrices and m != n:
        U, Vh = t.narrow(U, -1, 0, k), t.narrow(Vh, -2, 0, k)
        gU = None if gU is None else t.narrow(gU, -1, 0, k)
        gVh = None if gVh is None else t.narrow(gVh, -2, 0, k)
    squares = S * S
    E = set_diagonal(t.unsqueeze(squares, -2) - t.unsqueeze(squares, -1), 1)
    row, column = t.unsqueeze(S, -2), t.unsqueeze(S, -1)
    skew_U = None if gU is None else _skew(mH(U) @ gU)
    core = None
    if gU is not None:
        core = (skew_U / E) * row
    if gVh is not None:
        right = column * (_skew(Vh @ mH(gVh)) / E)
        core = right if core is None else core + right
    if gS is not None:
        core = core + t.diag_embed(t._to_dtype(gS, core.dtype))
    if A.is_complex() and gU is not None:
        core = core + t.diag_embed(t.diagonal(skew_U, 0, -2, -1) / (2 * S))
    left, outer = U @ core, None
    if m > k and gU is not None:
        scaled = gU / row
        left = left + scaled - U @ (mH(U) @ scaled)
    if n > k and gVh is not None:
        scaled = gVh / column
        outer = U @ (scaled - (scaled @ mH(Vh)) @ Vh)
    gA = left @ Vh
    return gA if outer is None else gA + outer


@op(
    "_linalg_svd(Tensor A, bool full_matrices, bool compute_uv) -> (Tensor U, Tensor S, Tensor Vh)",
    forms="f",
    grad={"A": _svd_grad},
    whole=True,
)
def _linalg_svd(A, full_matrices, compute_uv):
    return _converging(lapack.LinalgSvd, A, full_matrices, compute_uv)


def _check_svd_driver(driver) -> None:
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )


@composite(
    "linalg.svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
    forms="fo",
    autocast={"cpu": "float32"},
)
def linalg_svd(A, full_matrices, *, driver):
    """Return (U, S, Vh) with A = U diag(S) Vh and S in descending order."""
    check_floating(A, "linalg.svd")
    check_matrix(A, "linalg.svd")
    _check_svd_driver(driver)
    return t._linalg_svd(A, full_matrices, True)


@composite(
    "linalg.svdvals(Tensor A, *, str? driver=None) -> Tensor",
    forms="fo",
    autocast={"cpu": "float32"},
)
def svdvals(A, *, driver):
    """Return the singular values in descending order."""
    check_floating(A, "linalg.svd")
    check_matrix(A, "linalg.svd")
    _check_svd_driver(driver)
    return t._linalg_svd(A, False, needs_graph(A))[1]


@composite(
    "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
    forms="fmo",
    autocast={"cpu": "float32"},
)
def svd(self, some, compute_uv):
    """The older interface: return (U, S, V) with A = U diag(S) V^H.

    U and V are zeros if ``compute_uv`` is false.
    """
    check_matrix(self, "linalg.svd")
    m, n = self.shape[-2:]
    if compute_uv:
        U, S, Vh = t._linalg_svd(self, not some, True)
        return U, S, mH(Vh)
    batch = list(self.shape[:-2])
    S = t._linalg_svd(self, False, needs_graph(self))[1]
    return t.zeros(batch + [m, m], dtype=self.dtype), S, t.zeros(batch + [n, n], dtype=self.dtype)


# ---- eigenvalues
def _eigh_grad(gs, eigenvalues, eigenvectors):
    gL, gV = gs
    L, V = eigenvalues, eigenvectors
    if gL is None and gV is None:
        return None
    if gV is None:
        return (V * t.unsqueeze(t._to_dtype(gL, V.dtype), -2)) @ mH(V)
    inner = mH(V) @ gV
    E = set_diagonal(t.unsqueeze(L, -2) - t.unsqueeze(L, -1), 1)
    diagonal = t.zeros_like(t.diagonal(inner, 0, -2, -1)) if gL is None else t._to_dtype(gL, V.dtype)
    turned = inner / E
    return (
        V @ set_diagonal((turned + mH(turned)) / 2, diagonal) @ mH(V)
    )  # the gradient is symmetric, because A is


@op(
    "_linalg_eigh(Tensor A, bool upper, bool compute_v) -> (Tensor eigenvalues, Tensor eigenvectors)",
    forms="f",
    grad={"A": _eigh_grad},
    whole=True,
)
def _linalg_eigh(A, upper, compute_v):
    return _converging(lapack.LinalgEigh, A, upper, compute_v)


def _upper(UPLO: str) -> bool:
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper() == "U"


@composite(
    "linalg.eigh(Tensor A, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)",
    forms="fo",
    autocast={"cpu": "float32"},
)
def eigh(A, UPLO):
    """Return the eigenvalues (ascending) and eigenvectors of symmetric or Hermitian matrices.

    Only the triangle ``UPLO`` of A is read.
    """
    check_floating(A, "linalg.eigh")
    check_square(A, "linalg.eigh")
    return t._linalg_eigh(A, _upper(UPLO), True)


@composite(
    "linalg.eigvalsh(Tensor A, str UPLO='L') -> Tensor",
    forms="fo",
    autocast={"cpu": "float32"},
)
def eigvalsh(A, UPLO):
    check_floating(A, "linalg.eigh")
    check_square(A, "linalg.eigh")
    return t._linalg_eigh(A, _upper(UPLO), needs_graph(A))[0]


def _eig_grad(gs, eigenvalues, eigenvectors):
    gL, gV = gs
    L, V = eigenvalues, eigenvectors
    if gL is None and gV is None:
        return None
    if gV is None:
        return t.linalg_solve(mH(V), t.unsqueeze(gL, -1) * mH(V))
    inner = mH(V) @ gV
    # the eigenvectors have length one, so the gradient along them is removed
    pull = t._to_dtype(t.real(t.diagonal(inner, 0, -2, -1)), V.dtype)
    inner = inner - (mH(V) @ V) * t.unsqueeze(pull, -2)
    E = set_diagonal(t.unsqueeze(L, -2) - t.unsqueeze(L, -1), 1)
    diagonal = t.zeros_like(L) if gL is None else gL
    return t.linalg_solve(mH(V), set_diagonal(inner / conj(E), diagonal) @ mH(V))


@op(
    "_linalg_eig(Tensor A, bool compute_v) -> (Tensor eigenvalues, Tensor eigenvectors)",
    forms="f",
    grad={"A": _eig_grad},
)
def _linalg_eig(A, compute_v):
    return _converging(lapack.LinalgEig, A, compute_v)


@composite(
    "linalg.eig(Tensor A) -> (Tensor eigenvalues, Tensor eigenvectors)",
    forms="fo",
    autocast={"cpu": "float32"},
)
def eig(A):
    """Return the eigenvalues and eigenvectors of square matrices. Both are complex."""
    check_floating(A, "linalg.eig")
    check_square(A, "linalg.eig")
    return t._linalg_eig(A, True)


@composite("linalg.eigvals(Tensor A) -> Tensor", forms="fo", autocast={"cpu": "float32"}, copied_to_out=True)
def eigvals(A):
    check_floating(A, "linalg.eig")
    check_square(A, "linalg.eig")
    return t._linalg_eig(A, needs_graph(A))[0]

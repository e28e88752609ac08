"""Linear systems and their factorisations. See also linalg_spectral, linalg_rank and linalg_misc."""

from __future__ import annotations

from . import _on_npu
from ._declare import _C, composite, namespaces, op, raw, t
from ._lapack import LinAlgError, lapack
from ._linalg_tools import (
    check_floating,
    check_info,
    check_matrix,
    check_square,
    identity,
    mH,
    mT,
    needs_graph,
    set_diagonal,
)
from .pointwise import conj

namespaces["linalg"]["LinAlgError"] = LinAlgError


# ---- Cholesky
def _cholesky_grad(gs, L, upper):
    """Return L^-H pi(L^H g) L^-1, where pi(X) is half the Hermitian matrix with X's lower triangle."""
    g = gs[0]
    if g is None:
        return None
    if upper:
        g, L = mH(g), mH(L)
    phi = t.tril(mH(L) @ g)
    phi = (phi + mH(phi) - t.diag_embed(conj(t.diagonal(phi, 0, -2, -1)))) * 0.5
    inner = t.linalg_solve_triangular(mH(L), phi, upper=True)
    return t.linalg_solve_triangular(L, inner, upper=False, left=False)


@op(
    "_cholesky_ex(Tensor A, bool upper) -> (Tensor L, Tensor info)",
    node="LinalgCholeskyExBackward0",
    forms="f",
    grad={"A": _cholesky_grad},
    whole=True,
)
def _cholesky_ex(A, upper):
    return lapack.LinalgCholeskyEx(A, upper)


@composite(
    "linalg.cholesky_ex(Tensor A, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
    forms="fo",
    autocast={"cpu": "float32"},
)
def cholesky_ex(A, *, upper, check_errors):
    """Return (L, info) with A = L L^H, or (U, info) with A = U^H U.

    info is 0 for each matrix, or the order of the first leading minor that is not positive.
    """
    check_floating(A, "linalg.cholesky")
    check_square(A, "linalg.cholesky")
    L, info = t._cholesky_ex(A, upper)
    if check_errors:
        check_info(info, "linalg.cholesky_ex", "cholesky")
    return L, info


@composite(
    "linalg.cholesky(Tensor A, *, bool upper=False) -> Tensor",
    forms="fo",
    autocast={"cpu": "float32"},
)
def linalg_cholesky(A, *, upper):
    """Return L with A = L L^H. LinAlgError if A is not positive definite."""
    L, info = t.linalg_cholesky_ex(A, upper=upper)
    check_info(info, "linalg.cholesky", "cholesky")
    return L


@composite(
    "cholesky(Tensor self, bool upper=False) -> Tensor",
    out_dtype="cast",
    in_favor_of="torch.linalg.cholesky",
    forms="fmo",
    autocast={"cpu": "float32"},
)
def cholesky(self, upper):
    check_square(self, "cholesky")
    L, info = t.linalg_cholesky_ex(self, upper=upper)
    check_info(info, "cholesky", "cholesky")
    return L


def _cholesky_solve_grad(g, input2, upper, result, needs):
    L = input2
    gB = t.cholesky_solve(g, L, upper)
    gL = None
    if needs[1]:
        common = gB @ mH(result)
        common = common + mH(common)
        gL = -(L @ common) if upper else -(common @ L)
    return gB, gL


@op(
    "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
    out_dtype="cast",
    forms="fmo",
    grad={("self", "input2"): _cholesky_solve_grad},
    autocast={"cpu": "float32"},
)
def cholesky_solve(self, input2, upper):
    """Return X with A X = self, where A is given by its Cholesky factor input2."""
    return lapack.CholeskySolve(self, input2, upper)


@op("_cholesky_inverse(Tensor L, bool upper) -> Tensor", forms="f")
def _cholesky_inverse(L, upper):
    return lapack.CholeskyInverse(L, upper)


@composite(
    "cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
    out_dtype="cast",
    forms="fmo",
    autocast={"cpu": "float32"},
)
def cholesky_inverse(self, upper):
    """Return the inverse of the matrix whose Cholesky factor is self."""
    check_square(self, "cholesky_inverse")
    if needs_graph(self):
        return t.cholesky_solve(t.expand_as(identity(self.shape[-1], self), self), self, upper)
    return t._cholesky_inverse(self, upper)


# ---- inverse
def _inverse_grad(g, P):
    return -(mH(P) @ (g @ mH(P)))


@op(
    "_inv_ex(Tensor A) -> (Tensor inverse, Tensor info)",
    forms="f",
    grad={"A": lambda gs, inverse: None if gs[0] is None else _inverse_grad(gs[0], inverse)},
    whole=True,
    node="LinalgInvExBackward0",
)
def _inv_ex(A):
    return lapack.LinalgInvEx(A)


@composite(
    "linalg.inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
    forms="fo",
    autocast={"cpu": "float32"},
)
def inv_ex(A, *, check_errors):
    """Return (inverse, info). info is 0 for each matrix, or the position of a zero pivot."""
    check_floating(A, "linalg.inv")
    check_square(A, "linalg.inv")
    inverse, info = t._inv_ex(A)
    if check_errors:
        check_info(info, "linalg.inv_ex", "inv")
    return inverse, info


@composite(
    "linalg.inv(Tensor A) -> Tensor",
    forms="fmo",
    aliases=("inverse",),
    autocast={"cpu": "float32"},
)
def inv(A):
    """Return the inverse of every matrix. LinAlgError if a matrix is singular."""
    check_floating(A, "linalg.inv")
    check_square(A, "linalg.inv")
    inverse, info = t._inv_ex(A)
    check_info(info, "linalg.inv", "inv")
    return inverse


# ---- LU
def _lu_grad(gL, gU, P, L, U):
    """Return the gradient of A = P L U. P is None if no rows are swapped."""
    m, n = L.shape[-2], U.shape[-1]
    k = min(m, n)
    zero = t.zeros_like
    gL = zero(L) if gL is None else gL
    gU = zero(U) if gU is None else gU
    L1, U1, gL1, gU1 = (
        t.narrow(L, -2, 0, k),
        t.narrow(U, -1, 0, k),
        t.narrow(gL, -2, 0, k),
        t.narrow(gU, -1, 0, k),
    )
    lower, upper = mH(L1) @ gL1, gU1 @ mH(U1)
    if n > k:
        U2, gU2 = t.narrow(U, -1, k, n - k), t.narrow(gU, -1, k, n - k)
        lower = lower - gU2 @ mH(U2)
    if m > k:
        L2, gL2 = t.narrow(L, -2, k, m - k), t.narrow(gL, -2, k, m - k)
        upper = upper - mH(L2) @ gL2
    gA = t.tril(lower, -1) + t.triu(upper)
    del lower, upper  # few matrices are kept at a time
    gA = t.linalg_solve_triangular(mH(L1), gA, upper=True, unitriangular=True)
    gA = t.linalg_solve_triangular(mH(U1), gA, upper=False, left=False)
    if n > k:
        gA = t.cat([gA, t.linalg_solve_triangular(mH(L1), gU2, upper=True, unitriangular=True)], -1)
    if m > k:
        gA = t.cat([gA, t.linalg_solve_triangular(mH(U1), gL2, upper=False, left=False)], -2)
    return gA if P is None else P @ gA


def _split_lu(LU):
    m, n = LU.shape[-2:]
    k = min(m, n)
    L = set_diagonal(t.tril(t.narrow(LU, -1, 0, k), -1), 1)
    return L, t.triu(t.narrow(LU, -2, 0, k))


def _lu_factor_grad(gs, LU, pivots):
    g = gs[0]
    if g is None:
        return None
    m, n = LU.shape[-2:]
    k = min(m, n)
    L, U = _split_lu(LU)
    return _lu_grad(
        t.tril(t.narrow(g, -1, 0, k), -1),
        t.triu(t.narrow(g, -2, 0, k)),
        t._lu_permutation(LU, pivots),
        L,
        U,
    )


@op(
    "_lu_factor_ex(Tensor A) -> (Tensor LU, Tensor pivots, Tensor info)",
    node="LinalgLuFactorExBackward0",
    forms="f",
    grad={"A": _lu_factor_grad},
)
def _lu_factor_ex(A):
    return lapack.LinalgLuFactorEx(A, True)


def _check_pivot(pivot: bool, name: str) -> None:
    if not pivot:
        raise RuntimeError(f"{name}: LU without pivoting is not implemented on the CPU")


@composite(
    "linalg.lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)",
    forms="fo",
)
def lu_factor_ex(A, *, pivot, check_errors):
    """Return (LU, pivots, info): L and U in one matrix, the row swaps counted from 1, and 0 or a zero pivot."""
    check_floating(A, "torch.lu_factor")
    check_matrix(A, "torch.lu_factor")
    _check_pivot(pivot, "linalg.lu_factor")
    LU, pivots, info = t._lu_factor_ex(A)
    if check_errors:
        check_info(info, "torch.linalg.lu_factor_ex", "lu_factor")
    return LU, pivots, info


@composite("linalg.lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)", forms="fo")
def lu_factor(A, *, pivot):
    LU, pivots, info = t.linalg_lu_factor_ex(A, pivot=pivot)
    check_info(info, "torch.linalg.lu_factor", "lu_factor")
    return LU, pivots


@composite(
    "lu(Tensor self, bool pivot=True, bool get_infos=False) -> (Tensor, Tensor)",
    out_dtype="any",
    in_favor_of="torch.linalg.lu_factor / torch.linalg.lu_factor_ex",
    forms="fmo",
    copied_to_out=True,
)
def lu(self, pivot, get_infos):
    """The older torch.lu. Returns (LU, pivots), and info if ``get_infos`` is set."""
    LU, pivots, info = t.linalg_lu_factor_ex(self, pivot=pivot)
    if get_infos:
        return LU, pivots, info
    check_info(info, "torch.linalg.lu_factor_ex", "lu_factor")
    return LU, pivots


def _lu_parts_grad(gs, L, U, pivots):
    if gs[0] is None and gs[1] is None:
        return None
    return _lu_grad(gs[0], gs[1], t._lu_permutation(L, pivots), L, U)


@op(
    "_lu_parts(Tensor A) -> (Tensor L, Tensor U, Tensor pivots)",
    node="LinalgLuBackward0",
    forms="f",
    grad={"A": _lu_parts_grad},
)
def _lu_parts(A):
    LU, pivots, _ = lapack.LinalgLuFactorEx(A, True)
    _, L, U = raw.LuUnpack(LU, pivots, True, False)
    return L, U, pivots


@composite("linalg.lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)", forms="fo")
def linalg_lu(A, *, pivot):
    """Return (P, L, U) with A = P L U."""
    check_floating(A, "linalg.lu")
    _check_pivot(pivot, "linalg.lu")
    check_matrix(A, "torch.lu_factor")
    L, U, pivots = t._lu_parts(A)
    return t._lu_permutation(L, pivots), L, U


@op("_lu_permutation(Tensor LU, Tensor pivots) -> Tensor", forms="f")
def _lu_permutation(LU, pivots):
    """Return the row swaps as a permutation matrix P. Of LU, or of L, only the shape and the dtype count."""
    return raw.LuUnpack(LU, pivots, False, True)[0]


@composite(
    "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> "
    "(Tensor P, Tensor L, Tensor U)",
    forms="fo",
)
def lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots):
    """Return (P, L, U) of an LU factorisation. Parts that are not asked for are empty tensors."""
    if unpack_pivots and LU_pivots.dtype.name != "int32":
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\nNote: this function "
            "is intended to be used with the output produced by torch.linalg.lu_factor"
        )
    nothing = t.empty([0], dtype=LU_data.dtype)
    L, U = _split_lu(LU_data) if unpack_data else (nothing, t.clone(nothing))
    P = t._lu_permutation(LU_data, LU_pivots) if unpack_pivots else t.clone(nothing)
    return P, L, U


def _lu_solve_grad(g, LU, pivots, left, adjoint, result, needs):
    gB = t.linalg_lu_solve(LU, pivots, g, left=left, adjoint=not adjoint)
    if not needs[0]:
        return None, gB
    # the gradient of A (or A^H), passed on to L and U while P is constant
    gA = -(gB @ mH(result)) if left else -(mH(result) @ gB)
    if adjoint:
        gA = mH(gA)
    L, U = _split_lu(LU)
    gPA = mT(t._lu_permutation(LU, pivots)) @ gA
    gL, gU = gPA @ mH(U), mH(L) @ gPA
    return t.tril(gL, -1) + t.triu(gU), gB


@op(
    "linalg.lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
    forms="fo",
    grad={("LU", "B"): _lu_solve_grad},
    autocast={"cpu": "float32"},
)
def linalg_lu_solve(LU, pivots, B, *, left, adjoint):
    """Return X with A X = B (or X A = B), where A is given by the result of lu_factor."""
    return lapack.LinalgLuSolve(LU, pivots, B, left, adjoint)


@composite(
    "lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
    in_favor_of="torch.linalg.lu_solve",
    forms="fmo",
    autocast={"cpu": "float32"},
)
def lu_solve(self, LU_data, LU_pivots):
    return t.linalg_lu_solve(LU_data, LU_pivots, self)


# ---- solve
def _solve_grad(gs, A, left, result0, needs):
    g, X = gs[0], result0
    if g is None:
        return None, None
    vector = X.ndim == A.ndim - 1 or X.ndim == 1
    if vector:
        g, X = t.unsqueeze(g, -1), t.unsqueeze(X, -1)
    gB = t.linalg_solve(mH(A), g, left=left)
    gA = (-(gB @ mH(X)) if left else -(mH(X) @ gB)) if needs[0] else None
    return gA, t.squeeze(gB, -1) if vector else gB


@op(
    "_solve_ex(Tensor A, Tensor B, bool left) -> (Tensor, Tensor, Tensor, Tensor)",
    forms="f",
    grad={("A", "B"): _solve_grad},
    whole=True,
    node="LinalgSolveExBackward0",
)
def _solve_ex(A, B, left):
    """Return (X, LU, pivots, info)."""
    return lapack.LinalgSolveEx(A, B, left)


def _check_solve(A, B, name: str) -> None:
    check_floating(A, name)
    if A.dtype is not B.dtype:
        raise RuntimeError(
            f"{name}: Expected A and B to have the same dtype, but found A of type "
            f"{A.dtype.scalar_name} and B of type "
            f"{B.dtype.scalar_name} instead"
        )
    check_square(A, name)


@composite(
    "linalg.solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)",
    forms="fo",
)
def solve_ex(A, B, *, left, check_errors):
    _check_solve(A, B, "linalg.solve")
    X, _, _, info = t._solve_ex(A, B, left)
    if check_errors:
        check_info(info, "torch.linalg.solve_ex", "solve")
    return X, info


@composite(
    "linalg.solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
    forms="fo",
    autocast={"cpu": "float32"},
)
def linalg_solve(A, B, *, left):
    """Return X with A X = B (X A = B for left=False). B may be a vector or a batch of vectors."""
    _check_solve(A, B, "linalg.solve")
    X, _, _, info = t._solve_ex(A, B, left)
    check_info(info, "torch.linalg.solve", "solve")
    return X


def _solve_triangular_grad(g, A, upper, left, unitriangular, result, needs):
    gB = t.linalg_solve_triangular(mH(A), g, upper=not upper, left=left, unitriangular=unitriangular)
    if not needs[0]:
        return None, gB
    gA = -(gB @ mH(result)) if left else -(mH(result) @ gB)
    skip = int(unitriangular)
    return t.triu(gA, skip) if upper else t.tril(gA, -skip), gB


@op(
    "linalg.solve_triangular(Tensor A, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
    forms="fo",
    grad={("A", "B"): _solve_triangular_grad},
    npu=_on_npu.solve_triangular,
)
def solve_triangular(A, B, *, upper, left, unitriangular):
    """Return X with A X = B, where A is triangular. The other triangle of A is not read."""
    return lapack.LinalgSolveTriangular(A, B, upper, left, unitriangular)


def _triangular_solve_grad(gs, A, upper, transpose, unitriangular, solution, needs):
    g, gM = gs
    gB = gA = None
    if g is not None:
        back = t.triangular_solve(g, conj(A), upper, not transpose, unitriangular)[0]
        gB = back
        if needs[1]:
            gA = -(conj(solution) @ mT(back)) if transpose else -(back @ mH(solution))
            skip = int(unitriangular)
            gA = t.triu(gA, skip) if upper else t.tril(gA, -skip)
    if gM is not None:
        gA = gM if gA is None else gA + gM
    return gB, gA


@op(
    "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> "
    "(Tensor solution, Tensor cloned_coefficient)",
    in_favor_of="torch.linalg.solve_triangular",
    forms="fmo",
    grad={("self", "A"): _triangular_solve_grad},
    autocast={"cpu": "float32"},
)
def triangular_solve(self, A, upper, transpose, unitriangular):
    """The older interface. Returns X with A X = self (or A^T X = self), and A."""
    return lapack.TriangularSolve(self, A, upper, transpose, unitriangular)


# ---- LDL
@op(
    "linalg.ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, "
    "Tensor pivots, Tensor info)",
    forms="fo",
)
def ldl_factor_ex(self, *, hermitian, check_errors):
    """Return the Bunch-Kaufman factors of a symmetric or Hermitian matrix."""
    check_floating(self, "torch.linalg.ldl_factor_ex")
    check_square(self, "torch.linalg.ldl_factor_ex")
    LD, pivots, info = lapack.LinalgLdlFactorEx(self, hermitian)
    if check_errors:
        check_info(info, "torch.linalg.ldl_factor_ex", "ldl_factor")
    return LD, pivots, info


@op("linalg.ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)", forms="fo")
def ldl_factor(self, *, hermitian):
    LD, pivots, info = t.linalg_ldl_factor_ex(self, hermitian=hermitian)
    check_info(info, "torch.linalg.ldl_factor", "ldl_factor")
    return LD, pivots


@op("linalg.ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor", forms="fo")
def ldl_solve(LD, pivots, B, *, hermitian):
    return lapack.LinalgLdlSolve(LD, pivots, B, hermitian)


# ---- determinant
def _det_grad(gs, A, result0, result1, result2):
    g, det, LU, pivots = gs[0], result0, result1, result2
    if g is None:
        return None
    if _C.is_grad_enabled() and A.requires_grad:
        return t.unsqueeze(t.unsqueeze(g * conj(t.linalg_det(A)), -1), -1) * mH(t.linalg_inv(A))
    diagonal = t.diagonal(LU, 0, -2, -1)
    singular = t.eq(diagonal, 0)
    if bool(
        t.any(singular).item()
        # Zero pivots are replaced by small ones. This is close enough, because the determinant is a polynomial
        # and its gradient is therefore continuous.
    ):
        tiny = 2.0**-23 if A.dtype.to_real().itemsize == 4 else 2.0**-52
        tiny = float(t.amax(t.abs(A)).item()) * tiny or tiny
        repaired = t.masked_fill(diagonal, singular, tiny)
        LU = set_diagonal(LU, repaired)
        sign = t._slogdet_sign(pivots, A)
        det = t.prod(repaired, -1) * sign
    scaled = t.unsqueeze(t.unsqueeze(g * conj(det), -1), -1) * identity(A.shape[-1], A)
    return t.linalg_lu_solve(LU, pivots, scaled, adjoint=True)


@op("_slogdet_sign(Tensor pivots, Tensor like) -> Tensor", forms="f")
def _slogdet_sign(pivots, like):
    """Return the sign of the permutation that the pivots describe."""
    n = pivots.shape[-1]
    moved = t.sum(t.ne(pivots, t.arange(1, n + 1, dtype=pivots.dtype)), -1)
    return t._to_dtype(1 - 2 * t.remainder(moved, 2), like.dtype)


@op("_linalg_det(Tensor A) -> (Tensor, Tensor, Tensor)", forms="f", grad={"A": _det_grad}, whole=True)
def _linalg_det(A):
    return lapack.LinalgDet(A)


@composite("linalg.det(Tensor A) -> Tensor", forms="fmo", aliases=("det",))
def det(A):
    """Return the determinant of every matrix."""
    check_floating(A, "linalg.det")
    check_square(A, "linalg.det")
    return t._linalg_det(A)[0]


def _slogdet_grad(gs, A, result0, result2, result3):
    g_sign, g_log, sign = gs[0], gs[1], result0
    if g_sign is None and g_log is None:
        return None
    weight = 0 if g_log is None else t._to_dtype(g_log, A.dtype)
    if g_sign is not None and A.is_complex():
        weight = weight - 1j * t.imag(conj(g_sign) * sign)
    if not hasattr(weight, "shape"):
        return None  # the sign of a real determinant is constant
    weight = t.unsqueeze(t.unsqueeze(weight, -1), -1)
    if _C.is_grad_enabled():
        return weight * mH(t.linalg_inv(A))
    return t.linalg_lu_solve(result2, result3, weight * identity(A.shape[-1], A), adjoint=True)


@op(
    "_linalg_slogdet(Tensor A) -> (Tensor, Tensor, Tensor, Tensor)",
    forms="f",
    grad={"A": _slogdet_grad},
    whole=True,
)
def _linalg_slogdet(A):
    return lapack.LinalgSlogdet(A)


@composite("linalg.slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", forms="fo")
def linalg_slogdet(A):
    """Return the sign and the logarithm of the absolute value of the determinant."""
    check_floating(A, "linalg.slogdet")
    check_square(A, "linalg.slogdet")
    sign, log_abs, _, _ = t._linalg_slogdet(A)
    return sign, log_abs


@composite("slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", forms="fmo")
def slogdet(self):
    """Return the sign and the logarithm of the absolute value of the determinant, like `torch.linalg.slogdet`."""
    return t.linalg_slogdet(self)


@composite("logdet(Tensor self) -> Tensor", forms="fm")
def logdet(self):
    """Return the logarithm of the determinant, or nan if it is negative."""
    sign, log_abs = t.linalg_slogdet(self)
    if self.is_complex():
        return t.log(sign) + log_abs
    return t.where(t.eq(sign, -1), t.full_like(log_abs, float("nan")), log_abs)

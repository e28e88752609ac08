"""torch.lobpcg, computed with the exact decomposition."""

from __future__ import annotations

from .._errors import unsupported
from ._declare import composite, t


def _symmetric(matrix):
    """Return the dense symmetric part of a matrix. The decomposition reads one triangle only, and gradients belong to both."""
    dense = matrix.to_dense()
    return (dense + dense.mT) / 2


@composite(
    "lobpcg(Tensor A, int? k=None, Tensor? B=None, Tensor? X=None, int? n=None, Tensor? iK=None, int? niter=None, "
    "float? tol=None, bool? largest=None, str? method=None, any tracker=None, any ortho_iparams=None, "
    "any ortho_fparams=None, any ortho_bparams=None) -> (Tensor, Tensor)",
    forms="f",
)
def lobpcg(
    A, k, B, X, n, iK, niter, tol, largest, method, tracker, ortho_iparams, ortho_fparams, ortho_bparams
):
    """Return the k largest (or smallest) eigenvalues of a symmetric A (for B) and their vectors.

    They come from the exact decomposition. Of the iteration's own arguments (start X, preconditioner, steps,
    tolerance), only the number of columns of X is used.

    Raises:
        NotImplementedError: a `tracker` is given, because there are no steps that it could follow.
        ValueError: the matrix is smaller than three times the number of vectors, as in PyTorch.
    """
    if tracker is not None:
        raise unsupported(
            "torch.lobpcg", "tracker is not supported, because the result comes from the exact decomposition"
        )
    k = k if k is not None else X.shape[-1] if X is not None else 1
    m = A.shape[-1]
    n = k if n is None else n
    if m < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the number of requested "
            f"eigenpairs (={n})"
        )
    dense = _symmetric(A)
    root = None
    if B is not None:
        root = t.linalg_cholesky(_symmetric(B))
        half = t.linalg_solve_triangular(root, dense, upper=False)
        dense = t.linalg_solve_triangular(root, half.mT, upper=False)
    values, vectors = t.linalg_eigh(dense)
    values, vectors = (values.flip(-1), vectors.flip(-1)) if largest in (None, True) else (values, vectors)
    values, vectors = values[..., :k], vectors[..., :k]
    return values, vectors if root is None else t.linalg_solve_triangular(root.mT, vectors, upper=True)

"""Functions that the linear algebra declarations share: checks, adjoints and named results."""

from __future__ import annotations

from ._declare import _C, t
from ._lapack import LinAlgError
from .pointwise import conj


def mT(x):
    return t.transpose(x, -2, -1)


def mH(x):
    """Return the conjugate transpose of the last two dims."""
    return conj(t.transpose(x, -2, -1))


def needs_graph(*tensors) -> bool:
    """Return whether autograd records a gradient for any of the tensors."""
    return _C.is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors)


def type_text(tensor) -> str:
    """Return the name of the dtype as it appears in PyTorch's messages."""
    return tensor.dtype.scalar_name


def check_floating(tensor, name: str, low_precision: bool = False) -> None:
    if not (tensor.is_floating_point() or tensor.is_complex()):
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {type_text(tensor)}"
        )
    if not low_precision and tensor.dtype.itemsize == 2:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {type_text(tensor)}")


def check_matrix(tensor, name: str, argument: str = "A") -> None:
    if tensor.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor {argument} must have at least 2 dimensions.")


def check_square(tensor, name: str, argument: str = "A") -> None:
    check_matrix(tensor, name, argument)
    if tensor.shape[-1] != tensor.shape[-2]:
        raise RuntimeError(
            f"{name}: {argument} must be batches of square matrices, but they are {tensor.shape[-2]} by "
            f"{tensor.shape[-1]} matrices"
        )


_REASONS = {
    "inv": "The diagonal element {0} is zero, the inversion could not be completed because the input matrix is singular.",
    "cholesky": "The factorization could not be completed because the input is not positive-definite (the "
    "leading minor of order {0} is "
    "not positive-definite).",
    "solve": "The solver failed because the input matrix is singular.",
    "lu_factor": "U[{0},{0}] is zero and using it on lu_solve would result in a division by zero. If you "
    "still want to perform the "
    "factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)",
    "ldl_factor": "The diagonal element {0} of D is exactly zero. Using it for the solution of a linear "
    "system would result in a division "
    "by zero.",
}


def check_info(info, name: str, reason: str) -> None:
    """Raise an error for the first matrix whose ``info`` is not zero: RuntimeError for factors, else LinAlgError."""
    if info.numel() == 0:
        return
    if info.ndim == 0:
        code, where = info.item(), ""
    else:
        codes = t.reshape(info, [-1]).tolist()
        position = next((i for i, c in enumerate(codes) if c), None)
        if position is None:
            return
        code, where = codes[position], f"(Batch element {position}): "
    if code:
        kind = RuntimeError if reason in ("lu_factor", "ldl_factor") else LinAlgError
        raise kind(f"{name}: {where}{_REASONS[reason].format(code)}")


def identity(n: int, like):
    """Return the n x n identity matrix in the dtype of ``like``."""
    return t.eye(n, dtype=like.dtype, device=like.device)


def set_diagonal(x, value):
    """Return ``x`` with its diagonal replaced by ``value``, a number or a tensor of diagonals."""
    on = t.eye(x.shape[-2], x.shape[-1], dtype=t.eq(t.zeros([]), 0).dtype)
    if not hasattr(value, "shape"):
        return t.masked_fill(x, on, value)
    return t.where(on, t.diag_embed(value), x)


def eps(dtype) -> float:
    """Return the distance between 1 and the next larger number of the dtype."""
    return 2.0**-52 if dtype.to_real().itemsize == 8 else 2.0**-23

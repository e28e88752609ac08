"""What distributions share: arguments of one shape, probabilities and logits, sums over events."""

from __future__ import annotations

import functools
from numbers import Number

from .. import ops
from .._host.native import load
from ..nn import functional as F
from ..tensor import Tensor
from ..tensor._tensor import tensor
from ._limits import eps_of

_C = load()
euler_constant = 0.57721566490153286060
__all__ = ["broadcast_all", "clamp_probs", "euler_constant", "lazy_property", "logits_to_probs", "probs_to_logits",
           "tril_matrix_to_vec", "vec_to_tril_matrix"]  # fmt: skip


def broadcast_all(*values):
    """Numbers and tensors as tensors of their common shape; numbers take the dtype of the first tensor."""
    if not all(isinstance(v, (Tensor, Number)) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    like = next((v for v in values if isinstance(v, Tensor)), None)
    dtype, device = (_C.default_dtype(), None) if like is None else (like.dtype, like.device)
    made = [v if isinstance(v, Tensor) else tensor(v, dtype=dtype, device=device) for v in values]
    return ops.broadcast_tensors(*made)


def standard_normal(shape, dtype, device):
    """Independent standard normal numbers, drawn as torch draws them."""
    return ops.normal(
        ops.zeros(shape, dtype=dtype, device=device), ops.ones(shape, dtype=dtype, device=device)
    )


def sum_rightmost(value, dim: int):
    """Sum over the last ``dim`` dimensions."""
    return value if dim == 0 else value.reshape([*value.shape[: value.ndim - dim], -1]).sum(-1)


_standard_normal, _sum_rightmost = standard_normal, sum_rightmost


def logits_to_probs(logits, is_binary=False):
    """Probabilities of log-odds: a sigmoid each, or a softmax over the last dimension."""
    return ops.sigmoid(logits) if is_binary else F.softmax(logits, dim=-1)


def clamp_probs(probs):
    """Probabilities kept away from 0 and 1 by the type's precision."""
    eps = eps_of(probs.dtype)
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs, is_binary=False):
    """Log-odds of probabilities (binary), or their logarithms."""
    kept = clamp_probs(probs)
    return ops.log(kept) - ops.log1p(-kept) if is_binary else ops.log(kept)


class lazy_property:
    """A property that is computed once and then kept on the object; gradients are recorded while it is."""

    def __init__(self, wrapped):
        self.wrapped = wrapped
        functools.update_wrapper(self, wrapped)

    def __get__(self, instance, owner=None):
        if instance is None:
            return _LazyOnClass(self.wrapped)
        mode = _C.is_grad_enabled()
        _C.set_grad_enabled(True)
        try:
            value = self.wrapped(instance)
        finally:
            _C.set_grad_enabled(mode)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _LazyOnClass(property):
    """What the class shows of a lazy property: something with its documentation."""

    def __init__(self, wrapped):
        super().__init__(wrapped)


def tril_matrix_to_vec(mat, diag=0):
    """The elements on and below diagonal ``diag`` of square matrices, as vectors."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = ops.tril_indices(n, n, diag, device=mat.device)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec, diag=0):
    """The inverse of ``tril_matrix_to_vec``."""
    count = vec.shape[-1]
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * count + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if round(n) - n > eps_of(vec.dtype):
        raise ValueError(
            f"The size of last dimension is {count} which cannot be expressed as the lower triangular "
            "part of a square D x D "
            "matrix."
        )
    n = round(n)
    mat = vec.new_zeros([*vec.shape[:-1], n, n])
    rows, columns = ops.tril_indices(n, n, diag, device=vec.device)
    mat[..., rows, columns] = vec
    return mat

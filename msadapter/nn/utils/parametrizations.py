"""Parametrisations provided by PyTorch: orthogonal, weight norm and spectral norm."""

from __future__ import annotations

from enum import Enum, auto

from ... import ops
from ..._values.dtype import float64
from ...autograd import no_grad
from .. import functional as F
from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module
from . import parametrize
from ._norms import norm_except_dim, weight_from

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


def _is_orthogonal(q, eps=None):
    """Return whether the columns of ``q`` are orthonormal up to rounding."""
    n, k = q.size(-2), q.size(-1)
    identity = ops.eye(k, dtype=q.dtype, device=q.device)
    if eps is None:
        eps = 10.0 * n * (2.0**-52 if q.abs().dtype == float64 else 2.0**-23)
    return bool(ops.allclose(q.mH @ q, identity, atol=eps))


def _make_orthogonal(a):
    """Return the factor Q of a QR decomposition in which the diagonal of R is positive."""
    q, r = ops.linalg_qr(a)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """Computes an orthogonal (or semi-orthogonal) matrix from an unconstrained one."""

    def __init__(self, weight, orthogonal_map, *, use_trivialization=True):
        super().__init__()
        if weight.is_complex() and orthogonal_map == _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X):
        n, k = X.size(-2), X.size(-1)
        transposed = n < k
        if transposed:
            X = X.mT
            n, k = k, n
        if self.orthogonal_map is _OrthMaps.householder:
            Q = self._from_reflections(X)
        else:
            Q = self._from_skew(X, n, k)
        if getattr(self, "base", None) is not None:
            Q = self.base @ Q
        return Q.mT if transposed else Q

    def _from_skew(self, X, n, k):
        X = X.tril()
        if n != k:
            X = ops.cat([X, X.new_zeros(n, n - k).expand(*X.shape[:-2], -1, -1)], -1)
        A = X - X.mH
        if self.orthogonal_map is _OrthMaps.matrix_exp:
            Q = ops.matrix_exp(A)
        else:
            identity = ops.eye(n, dtype=A.dtype, device=A.device)
            Q = ops.linalg_solve(identity - 0.5 * A, identity + 0.5 * A)
        return Q[..., :k] if n != k else Q

    @staticmethod
    def _from_reflections(X):
        A = X.tril(-1)
        tau = 2.0 / (1.0 + (A * A).sum(-2))
        Q = ops.linalg_householder_product(A, tau)
        # The diagonal of X holds the signs of the columns.
        return Q * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)

    def right_inverse(self, Q):
        """Return an unconstrained matrix that gives ``Q``."""
        with no_grad():
            return self._right_inverse(Q)

    def _right_inverse(self, Q):
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. "
                f"Got a tensor of shape {Q.shape}."
            )
        given = Q
        n, k = Q.size(-2), Q.size(-1)
        transpose = n < k
        if transpose:
            Q = Q.mT
            n, k = k, n
        if not hasattr(self, "base"):
            if self.orthogonal_map is not _OrthMaps.householder:
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley "
                    "parametrizations when use_trivialization=False."
                )
            A, tau = ops.geqrf(Q)
            A.diagonal(dim1=-2, dim2=-1).sign_()
            A.diagonal(dim1=-2, dim2=-1)[tau == 0.0] *= -1
            return A.mT if transpose else A
        if n == k:
            Q = Q.clone() if _is_orthogonal(Q) else _make_orthogonal(Q)
        else:
            extra = ops.randn(*Q.size()[:-2], n, n - k, dtype=Q.dtype, device=Q.device)
            Q = _make_orthogonal(ops.cat([Q, extra], -1))
        self.base = Q
        start = ops.zeros_like(given)
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start


def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """Keep ``module.name`` (semi-)orthogonal during training. Returns the module.

    ``orthogonal_map`` is matrix_exp, cayley or householder. The default depends on the shape.
    """
    weight = getattr(module, name, None)
    if not hasattr(weight, "ndim"):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    kind = getattr(_OrthMaps, orthogonal_map, None)
    if kind is None:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    made = _Orthogonal(weight, kind, use_trivialization=use_trivialization)
    parametrize.register_parametrization(module, name, made, unsafe=True)
    return module


class _WeightNorm(Module):
    """Computes weight = magnitude * direction / |direction|."""

    def __init__(self, dim=0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v):
        return weight_from(weight_v, weight_g, self.dim)

    def right_inverse(self, weight):
        """Return (magnitude, direction) of ``weight``."""
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module, name="weight", dim=0):
    """Replace ``module.name`` by a trained magnitude (``original0``) and direction (``original1``).

    Returns the module. State dicts of the older form (``name_g``, ``name_v``) can be loaded.
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def accept_old_names(
        state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        g_key, v_key = f"{prefix}{name}_g", f"{prefix}{name}_v"
        if g_key in state_dict and v_key in state_dict:
            state_dict[f"{prefix}parametrizations.{name}.original0"] = state_dict.pop(g_key)
            state_dict[f"{prefix}parametrizations.{name}.original1"] = state_dict.pop(v_key)

    module._register_load_state_dict_pre_hook(accept_old_names)
    return module


class _SpectralNorm(Module):
    """Divides a weight by its largest singular value, which power iteration estimates."""

    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._reshape_weight_to_matrix(weight)
            h, w = matrix.size()
            u = matrix.new_empty(h).normal_(0, 1)
            v = matrix.new_empty(w).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _reshape_weight_to_matrix(self, weight):
        if self.dim != 0:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.flatten(1)

    def _power_method(self, matrix, n_power_iterations):
        with no_grad():
            for _ in range(n_power_iterations):
                self._u.copy_(F.normalize(ops.mv(matrix, self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(ops.mv(matrix.mH, self._u), dim=0, eps=self.eps))

    def forward(self, weight):
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # Copies are used, because the next call changes the buffers and backward needs the present values.
        u, v = self._u.clone(), self._v.clone()
        return weight / ops.vdot(u, ops.mv(matrix, v))

    def right_inverse(self, value):
        """Return the value unchanged. It is normalised when it is read."""
        return value


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divide ``module.name`` by its spectral norm. Returns the module."""
    weight = getattr(module, name, None)
    if not hasattr(weight, "ndim"):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0
    parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
    return module

"""The multivariate normal distribution."""

from __future__ import annotations

import math

import msadapter

from .. import ops
from . import constraints
from ._parametrized import OfFactor, one_matrix
from .distribution import Distribution
from .utils import lazy_property, standard_normal

__all__ = ["MultivariateNormal"]


def batch_mv(matrix, vector):
    """Products of matrices and vectors."""
    return ops.matmul(matrix, vector.unsqueeze(-1)).squeeze(-1)


def batch_mahalanobis(factor, x):
    """Squared length of L^-1 x, for batches of triangular L (n x n) and vectors x whose batches broadcast."""
    solved = ops.linalg_solve_triangular(factor, x.unsqueeze(-1), upper=False)
    return solved.squeeze(-1).pow(2).sum(-1)


def precision_to_scale_tril(precision):
    """The Cholesky factor of the inverse, without inverting: by the factor of the reversed matrix."""
    reverse = ops.linalg_cholesky(ops.flip(precision, (-2, -1)))
    inverse = ops.transpose(ops.flip(reverse, (-2, -1)), -2, -1)
    identity = ops.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return ops.linalg_solve_triangular(inverse, identity, upper=False)


def factor_of(name: str, matrix):
    """Return the Cholesky factor of a covariance that is given by the parameter ``name``."""
    if name == "scale_tril":
        return matrix
    return ops.linalg_cholesky(matrix) if name == "covariance_matrix" else precision_to_scale_tril(matrix)


def _shapes(*shapes):
    return msadapter.broadcast_shapes(*shapes)


class MultivariateNormal(OfFactor, Distribution):
    """Normal vectors with mean ``loc`` and one of covariance, precision, or Cholesky factor of the covariance."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None
    ):
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = one_matrix(
            ValueError,
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        if matrix.ndim < 2:
            raise ValueError(
                f"{name} must be at least two-dimensional, with optional leading batch dimensions"
                if name != "scale_tril"
                else "scale_tril matrix must be at least two-dimensional, with optional leading batch dimensions"
            )
        batch = _shapes(matrix.shape[:-2], loc.shape[:-1])
        self.loc = loc.expand([*batch, loc.shape[-1]])
        setattr(self, name, matrix.expand([*batch, *matrix.shape[-2:]]))
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = factor_of(name, matrix)

    def _expand_rest(self, new, batch_shape) -> None:
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril

    @lazy_property
    def precision_matrix(self):
        """Inverse of the covariance."""
        return self._square(ops.cholesky_inverse(self._unbroadcasted_scale_tril))

    mean = mode = property(lambda self: self.loc)

    @property
    def variance(self):
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand([*self._batch_shape, *self._event_shape])

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        eps = standard_normal(shape, self.loc.dtype, self.loc.device)
        return self.loc + batch_mv(self._unbroadcasted_scale_tril, eps)

    def _half_log_det(self):
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        distance = batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - self._half_log_det()

    def entropy(self):
        found = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
        return found if not self._batch_shape else found.expand(list(self._batch_shape))

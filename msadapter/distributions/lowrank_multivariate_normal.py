"""Normal vectors whose covariance is a diagonal plus a matrix of low rank."""

from __future__ import annotations

import math

from .. import ops
from . import constraints
from .distribution import Distribution
from .multivariate_normal import _shapes, batch_mahalanobis, batch_mv
from .utils import lazy_property, standard_normal

__all__ = ["LowRankMultivariateNormal"]


def capacitance_tril(w, d):
    """Cholesky factor of I + W^T D^-1 W."""
    scaled = w.mT / d.unsqueeze(-2)
    inner = ops.matmul(scaled, w)
    return ops.linalg_cholesky(inner + ops.eye(w.shape[-1], dtype=w.dtype, device=w.device))


def log_det(w, d, capacitance):
    """log det(W W^T + D), by the matrix determinant lemma."""
    return 2 * capacitance.diagonal(dim1=-2, dim2=-1).log().sum(-1) + d.log().sum(-1)


def mahalanobis(w, d, x, capacitance):
    """x^T (W W^T + D)^-1 x, by Woodbury's identity."""
    inner = batch_mv(w.mT / d.unsqueeze(-2), x)
    return (x.pow(2) / d).sum(-1) - batch_mahalanobis(capacitance, inner)


class LowRankMultivariateNormal(Distribution):
    """Normal vectors with mean ``loc`` and covariance cov_factor cov_factor^T + diag(cov_diag)."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None):
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event = loc.shape[-1:]
        if cov_factor.ndim < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading batch dimensions"
            )
        if cov_factor.shape[-2:-1] != event:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event[0]} x m")
        if cov_diag.shape[-1:] != event:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event}")
        try:
            batch = _shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag "
                f"{cov_diag.shape}"
            ) from error
        self.loc = loc.expand([*batch, *event])
        self.cov_factor = cov_factor.expand([*batch, *cov_factor.shape[-2:]])
        self.cov_diag = cov_diag.expand([*batch, *event])
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        self._capacitance_tril = capacitance_tril(cov_factor, cov_diag)
        super().__init__(batch, event, validate_args=validate_args)

    def _expand_rest(self, new, batch_shape) -> None:
        for name in ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril"):
            setattr(new, name, getattr(self, name))

    def _vector(self, x):
        return x.expand([*self._batch_shape, *self._event_shape])

    def _square(self, x):
        return x.expand([*self._batch_shape, *self._event_shape, *self._event_shape])

    mean = mode = property(lambda self: self.loc)

    @lazy_property
    def variance(self):
        """Diagonal of the covariance."""
        return self._vector(self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag)

    @lazy_property
    def scale_tril(self):
        """Cholesky factor of the covariance."""
        # Of the well-conditioned D^-1/2 W W^T D^-1/2 + I, scaled back.
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        inner = ops.matmul(scaled, scaled.mT)
        n = self._event_shape[0]
        factor = ops.linalg_cholesky(inner + ops.eye(n, dtype=inner.dtype, device=inner.device))
        return self._square(root * factor)

    @lazy_property
    def covariance_matrix(self):
        """Covariance."""
        w = self._unbroadcasted_cov_factor
        return self._square(ops.matmul(w, w.mT) + ops.diag_embed(self._unbroadcasted_cov_diag))

    @lazy_property
    def precision_matrix(self):
        """Inverse of the covariance."""
        scaled = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        solved = ops.linalg_solve_triangular(self._capacitance_tril, scaled, upper=False)
        inner = ops.diag_embed(self._unbroadcasted_cov_diag.reciprocal())
        return self._square(inner - solved.mT @ solved)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        kind = (self.loc.dtype, self.loc.device)
        low = standard_normal([*shape[:-1], self.cov_factor.shape[-1]], *kind)
        own = standard_normal(shape, *kind)
        return (
            self.loc
            + batch_mv(self._unbroadcasted_cov_factor, low)
            + self._unbroadcasted_cov_diag.sqrt() * own
        )

    def _terms(self):
        return self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        distance = mahalanobis(*self._terms(), value - self.loc, self._capacitance_tril)
        size = log_det(*self._terms(), self._capacitance_tril)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + size + distance)

    def entropy(self):
        size = log_det(*self._terms(), self._capacitance_tril)
        found = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + size)
        return found if not self._batch_shape else found.expand(list(self._batch_shape))

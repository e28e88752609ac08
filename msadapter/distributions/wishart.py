"""The Wishart distribution."""

from __future__ import annotations

import math
import warnings

from .. import ops
from ..tensor import Size
from ..tensor._tensor import tensor
from . import constraints
from ._limits import eps_of
from ._parametrized import OfFactor, is_number, one_matrix
from .chi2 import Chi2
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .multivariate_normal import _shapes, factor_of
from .utils import lazy_property

__all__ = ["Wishart"]
_LOG_2 = math.log(2)


def _mvdigamma(x, p: int):
    """Derivative of the multivariate log-gamma function."""
    steps = ops.arange(p, dtype=x.dtype, device=x.device)
    return ops.digamma(x.unsqueeze(-1) - steps.div(2).expand([*x.shape, p])).sum(-1)


def _kept_positive(x):
    return x.clamp(min=eps_of(x.dtype))


class Wishart(OfFactor, ExponentialFamily):
    """Positive definite matrices: sums of ``df`` outer squares of normal vectors of a covariance.

    The scale is given as covariance, precision, or Cholesky factor of the covariance.
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self):
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def __init__(
        self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None
    ):
        name, matrix = one_matrix(
            AssertionError,
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        if matrix.ndim < 2:
            raise ValueError(
                "scale_tril must be at least two-dimensional, with optional leading batch dimensions"
            )
        batch = matrix.shape[:-2] if is_number(df) else _shapes(matrix.shape[:-2], df.shape)
        event = Size(matrix.shape[-2:])
        df = tensor(df, dtype=matrix.dtype, device=matrix.device) if is_number(df) else df
        self.df = df.expand(list(batch))
        if bool((self.df <= event[-1] - 1).any()):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {event[-1] - 1}.")
        setattr(self, name, matrix.expand([*batch, -1, -1]))
        super().__init__(batch, event, validate_args=validate_args)
        if bool((self.df < event[-1]).any()):
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        self._unbroadcasted_scale_tril = factor_of(name, matrix)
        self._chi2 = self._columns(batch)

    def _columns(self, batch):
        """Chi-squared numbers of the Bartlett decomposition's diagonal."""
        p = self._event_shape[-1]
        steps = ops.arange(p, dtype=self._unbroadcasted_scale_tril.dtype, device=self.df.device)
        return Chi2(df=self.df.unsqueeze(-1) - steps.expand([*batch, -1]))

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Wishart, _instance)
        batch_shape = Size(batch_shape)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand(
            [*batch_shape, *self.event_shape]
        )
        new.df = self.df.expand(list(batch_shape))
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in self.__dict__:
                new.__dict__[name] = self.__dict__[name].expand([*batch_shape, *self.event_shape])
        new._batch_shape, new._event_shape = batch_shape, self.event_shape
        new._chi2 = new._columns(batch_shape)
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @lazy_property
    def precision_matrix(self):
        """Inverse of the covariance."""
        n = self._event_shape[-1]
        identity = ops.eye(n, dtype=self._unbroadcasted_scale_tril.dtype, device=self.df.device)
        return self._square(ops.cholesky_solve(identity, self._unbroadcasted_scale_tril))

    mean = property(lambda self: self.df.view([*self._batch_shape, 1, 1]) * self.covariance_matrix)

    @property
    def mode(self):
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = factor.masked_fill(factor <= 0, float("nan"))
        return factor.view([*self._batch_shape, 1, 1]) * self.covariance_matrix

    @property
    def variance(self):
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        return self.df.view([*self._batch_shape, 1, 1]) * (
            v.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        )

    def _bartlett_sampling(self, sample_shape):
        p = self._event_shape[-1]
        noise = ops.diag_embed(_kept_positive(self._chi2.rsample(sample_shape).sqrt()), dim1=-2, dim2=-1)
        i, j = ops.tril_indices(p, p, offset=-1)
        shape = [*sample_shape, *self._batch_shape, p * (p - 1) // 2]
        noise[..., i, j] = ops.randn(shape, dtype=noise.dtype, device=noise.device)
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def rsample(self, sample_shape=(), max_try_correction=None):
        """Matrices by Bartlett's decomposition.

        Singular matrices are drawn again, at most ``max_try_correction`` times (10). PyTorch also replaces the first ones
        that are positive definite, once; the same is done here, so that seeds give its samples.
        """
        tries = 10 if max_try_correction is None else max_try_correction
        sample = self._bartlett_sampling(Size(sample_shape))
        again = self._flagged(sample)
        if not bool(again.any()):
            return sample
        warnings.warn("Singular sample detected.", stacklevel=2)
        for _ in range(tries):
            new = self._bartlett_sampling(Size([int(again.sum())]))
            sample[again] = new
            again[again.clone()] = ops.logical_not(self._flagged(new))
            if not bool(again.any()):
                break
        return sample

    def _flagged(self, sample):
        """One answer of ``support.check`` for each sample of the whole batch."""
        held = self.support.check(sample)
        if not self._batch_shape:
            return held
        return held.amax(tuple(range(held.ndim - len(self._batch_shape), held.ndim)))

    def _half_log_det(self):
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        nu, p = self.df, self._event_shape[-1]
        solved = ops.cholesky_solve(value, self._unbroadcasted_scale_tril)
        return (
            -nu * (p * _LOG_2 / 2 + self._half_log_det())
            - ops.mvlgamma(nu / 2, p=p)
            + (nu - p - 1) / 2 * ops.linalg_slogdet(value)[1]
            - solved.diagonal(dim1=-2, dim2=-1).sum(-1) / 2
        )

    def entropy(self):
        nu, p = self.df, self._event_shape[-1]
        return (
            (p + 1) * (p * _LOG_2 / 2 + self._half_log_det())
            + ops.mvlgamma(nu / 2, p=p)
            - (nu - p - 1) / 2 * _mvdigamma(nu / 2, p=p)
            + nu * p / 2
        )

    @property
    def _natural_params(self):
        nu, p = self.df, self._event_shape[-1]
        return -self.precision_matrix / 2, (nu - p - 1) / 2

    def _log_normalizer(self, x, y):
        p = self._event_shape[-1]
        return (y + (p + 1) / 2) * (-ops.linalg_slogdet(-2 * x)[1] + _LOG_2 * p) + ops.mvlgamma(
            y + (p + 1) / 2, p=p
        )

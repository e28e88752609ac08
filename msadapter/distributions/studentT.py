"""Student's t-distribution."""

from __future__ import annotations

import math

from .. import ops
from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .utils import broadcast_all, standard_normal

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t with ``df`` degrees of freedom, around ``loc`` with ``scale``."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.shape, validate_args=validate_args)

    def _expand_rest(self, new, batch_shape) -> None:
        new._chi2 = self._chi2.expand(batch_shape)

    @property
    def mean(self):
        mean = self.loc.clone()
        mean[self.df <= 1] = math.nan
        return mean

    mode = property(lambda self: self.loc)

    @property
    def variance(self):
        found = self.df.clone()
        some = self.df > 2
        found[some] = self.scale[some].pow(2) * self.df[some] / (self.df[some] - 2)
        found[(self.df <= 2) & (self.df > 1)] = math.inf
        found[self.df <= 1] = math.nan
        return found

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        x = standard_normal(shape, self.df.dtype, self.df.device)
        z = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (x * ops.rsqrt(z / self.df))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        constant = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + ops.lgamma(0.5 * self.df)
            - ops.lgamma(0.5 * (self.df + 1.0))
        )
        return -0.5 * (self.df + 1.0) * ops.log1p(y**2.0 / self.df) - constant

    def entropy(self):
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = ops.lgamma(half) + math.lgamma(0.5) - ops.lgamma(more)
        return (
            self.scale.log() + more * (ops.digamma(more) - ops.digamma(half)) + 0.5 * self.df.log() + log_beta
        )

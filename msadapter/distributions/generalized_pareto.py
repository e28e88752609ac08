"""The generalized Pareto distribution."""

from __future__ import annotations

import math

from .. import ops
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Generalized Pareto from ``loc`` on, with ``scale`` and shape ``concentration`` (0: exponential)."""

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(self, loc, scale, concentration, validate_args=None):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        upper = ops.where(self.concentration < 0, self.loc - self.scale / self.concentration, math.inf)
        return constraints.interval(self.loc, upper)

    def _is_exponential(self):
        return ops.isclose(self.concentration, ops.zeros_like(self.concentration))

    def _divisor(self):
        """The concentration, without zeros."""
        return ops.where(self._is_exponential(), ops.ones_like(self.concentration), self.concentration)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return self.icdf(ops.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        c = self._divisor()
        heavy = -(1 + 1 / c) * ops.log1p(c * z)
        return ops.where(self._is_exponential(), -z, heavy) - ops.log(self.scale)

    def _z(self, value):
        return (value - self.loc) / self.scale

    def log_survival_function(self, value):
        """Logarithm of the probability of values above ``value``."""
        if self._validate_args:
            self._validate_sample(value)
        z, c = self._z(value), self._divisor()
        return ops.where(self._is_exponential(), -z, -ops.log1p(c * z) / c)

    def log_cdf(self, value):
        """Logarithm of the probability of values up to ``value``."""
        if self._validate_args:
            self._validate_sample(value)
        return ops.log1p(-ops.exp(self.log_survival_function(value)))

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return ops.exp(self.log_cdf(value))

    def icdf(self, value):
        c = self._divisor()
        rest = ops.log1p(-value)
        heavy = self.loc + self.scale * ops.expm1(-c * rest) / c
        return ops.where(self._is_exponential(), self.loc - self.scale * rest, heavy)

    @property
    def mean(self):
        kept = ops.where(self.concentration < 1, self.concentration, 0.5)
        return ops.where(self.concentration < 1, self.loc + self.scale / (1 - kept), math.inf)

    @property
    def variance(self):
        c = self.concentration
        kept = ops.where(c < 0.5, c, 0.25)
        found = self.scale**2 / ((1 - kept) ** 2 * (1 - 2 * kept))
        return ops.where(c < 0.5, found, ops.full_like(c, math.inf))

    def entropy(self):
        return (ops.log(self.scale) + self.concentration + 1).expand(list(self._batch_shape))

    mode = property(lambda self: self.loc)

"""The Cauchy distribution."""

from __future__ import annotations

import math

from .. import ops
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Cauchy"]


class Cauchy(Distribution):
    """Cauchy around ``loc`` with half width ``scale``."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def _full(self, value):
        return ops.full(list(self._extended_shape()), value, dtype=self.loc.dtype, device=self.loc.device)

    mean = property(lambda self: self._full(math.nan))
    variance = property(lambda self: self._full(math.inf))
    mode = property(lambda self: self.loc)

    def rsample(self, sample_shape=()):
        eps = self.loc.new_empty(list(self._extended_shape(sample_shape))).cauchy_()
        return self.loc + eps * self.scale

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return ops.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value):
        return ops.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self):
        return math.log(4 * math.pi) + self.scale.log()

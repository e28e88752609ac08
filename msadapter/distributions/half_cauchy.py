"""The half-Cauchy distribution."""

from __future__ import annotations

import math

from .. import ops
from ..tensor import Tensor
from ..tensor._tensor import tensor
from . import constraints
from ._of_base import OfBase
from .cauchy import Cauchy
from .transforms import AbsTransform

__all__ = ["HalfCauchy"]


class HalfCauchy(OfBase):
    """Absolute value of a Cauchy number around 0 with ``scale``."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative

    def __init__(self, scale, validate_args=None):
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    scale = property(lambda self: self.base_dist.scale)
    mean = property(
        lambda self: ops.full(
            list(self._extended_shape()), math.inf, dtype=self.scale.dtype, device=self.scale.device
        )
    )
    mode = property(lambda self: ops.zeros_like(self.scale))
    variance = property(lambda self: self.base_dist.variance)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        value = value if isinstance(value, Tensor) else tensor(value, dtype=self.base_dist.scale.dtype)
        found = self.base_dist.log_prob(value) + math.log(2)
        return ops.where(value >= 0, found, -math.inf)

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob):
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self):
        return self.base_dist.entropy() - math.log(2)

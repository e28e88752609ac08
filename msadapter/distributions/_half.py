"""Absolute values of symmetric distributions around 0."""

from __future__ import annotations

import math

from .. import ops
from ..tensor import Tensor
from ..tensor._tensor import tensor
from . import constraints
from ._of_base import OfBase
from .transforms import AbsTransform


class Half(OfBase):
    """|x| of ``base``, a distribution symmetric around 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative

    def __init__(self, base, validate_args):
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    scale = property(lambda self: self.base_dist.scale)
    mode = property(lambda self: ops.zeros_like(self.scale))

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

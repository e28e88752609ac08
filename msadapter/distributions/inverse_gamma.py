"""The inverse gamma distribution."""

from __future__ import annotations

from .. import ops
from . import constraints
from ._of_base import OfBase
from .gamma import Gamma
from .transforms import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(OfBase):
    """Reciprocal of a Gamma number."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive

    def __init__(self, concentration, rate, validate_args=None):
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones([])), validate_args=validate_args)

    concentration = property(lambda self: self.base_dist.concentration)
    rate = property(lambda self: self.base_dist.rate)

    @property
    def mean(self):
        found = self.rate / (self.concentration - 1)
        return ops.where(self.concentration > 1, found, ops.full_like(found, float("inf")))

    mode = property(lambda self: self.rate / (self.concentration + 1))

    @property
    def variance(self):
        c = self.concentration
        found = self.rate.square() / ((c - 1).square() * (c - 2))
        return ops.where(c > 2, found, ops.full_like(found, float("inf")))

    def entropy(self):
        c = self.concentration
        return c + self.rate.log() + c.lgamma() - (1 + c) * c.digamma()

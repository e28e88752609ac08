"""The Weibull distribution."""

from __future__ import annotations

from .. import ops
from . import constraints
from ._of_base import OfParameters
from .exponential import Exponential
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(OfParameters):
    """Weibull with ``scale`` and shape ``concentration``."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale, concentration, validate_args=None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base, transforms = self._made(validate_args)
        super().__init__(base, transforms, validate_args=validate_args)

    def _made(self, validate_args=None):
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(ops.ones_like(self.scale), validate_args=validate_args)
        return base, [PowerTransform(self.concentration_reciprocal), AffineTransform(loc=0, scale=self.scale)]

    mean = property(lambda self: self.scale * ops.exp(ops.lgamma(1 + self.concentration_reciprocal)))

    @property
    def mode(self):
        c = self.concentration
        return self.scale * ((c - 1) / c) ** c.reciprocal()

    @property
    def variance(self):
        second = ops.exp(ops.lgamma(1 + 2 * self.concentration_reciprocal))
        first = ops.exp(2 * ops.lgamma(1 + self.concentration_reciprocal))
        return self.scale.pow(2) * (second - first)

    def entropy(self):
        inverse = self.concentration_reciprocal
        return euler_constant * (1 - inverse) + ops.log(self.scale * inverse) + 1

"""The Kumaraswamy distribution."""

from __future__ import annotations

import math

from .. import ops
from . import constraints
from ._of_base import OfParameters
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


def _moment(a, b, n: int):
    """Mean of the n-th power."""
    first = 1 + n / a
    return ops.exp(ops.lgamma(first) + ops.lgamma(b) - ops.lgamma(first + b)) * b


class Kumaraswamy(OfParameters):
    """Numbers of (0, 1) with distribution function 1 - (1 - x^a)^b."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base, transforms = self._made(validate_args)
        super().__init__(base, transforms, validate_args=validate_args)

    def _made(self, validate_args=None):
        base = Uniform(
            ops.full_like(self.concentration0, 0),
            ops.full_like(self.concentration0, 1),
            validate_args=validate_args,
        )
        first, last = (
            PowerTransform(self.concentration0.reciprocal()),
            PowerTransform(self.concentration1.reciprocal()),
        )
        return base, [first, AffineTransform(loc=1.0, scale=-1.0), last]

    mean = property(lambda self: _moment(self.concentration1, self.concentration0, 1))

    @property
    def mode(self):
        a, b = self.concentration1, self.concentration0
        size = a.reciprocal() * (-b).log1p() - (-a * b).log1p()
        size[(a < 1) | (b < 1)] = math.nan
        return size.exp()

    @property
    def variance(self):
        return _moment(self.concentration1, self.concentration0, 2) - self.mean.pow(2)

    def entropy(self):
        one, zero = 1 - self.concentration1.reciprocal(), 1 - self.concentration0.reciprocal()
        harmonic = ops.digamma(self.concentration0 + 1) + euler_constant
        return zero + one * harmonic - ops.log(self.concentration1) - ops.log(self.concentration0)

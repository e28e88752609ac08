"""The Gumbel distribution."""

from __future__ import annotations

import math

from .. import ops
from . import constraints
from ._limits import eps_of, tiny_of
from ._of_base import OfParameters
from ._parametrized import is_number
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Gumbel"]


class Gumbel(OfParameters):
    """Gumbel around ``loc`` with ``scale``."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc, scale, validate_args=None):
        numbers = is_number(loc) and is_number(scale)
        self.loc, self.scale = broadcast_all(loc, scale)
        base, transforms = self._made(numbers, validate_args)
        super().__init__(base, transforms, validate_args=validate_args)

    def _made(self, numbers=False, validate_args=None):
        low, high = tiny_of(self.loc.dtype), 1 - eps_of(self.loc.dtype)
        if not numbers:
            low, high = ops.full_like(self.loc, low), ops.full_like(self.loc, high)
        flip = AffineTransform(loc=0, scale=-ops.ones_like(self.scale))
        steps = [
            ExpTransform().inv,
            flip,
            ExpTransform().inv,
            AffineTransform(loc=self.loc, scale=-self.scale),
        ]
        return Uniform(low, high, validate_args=validate_args), steps

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    mean = property(lambda self: self.loc + self.scale * euler_constant)
    mode = property(lambda self: self.loc)
    stddev = property(lambda self: (math.pi / math.sqrt(6)) * self.scale)
    variance = property(lambda self: self.stddev.pow(2))

    def entropy(self):
        return self.scale.log() + (1 + euler_constant)

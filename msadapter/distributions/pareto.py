"""The Pareto distribution."""

from __future__ import annotations

from . import constraints
from ._of_base import OfParameters
from .exponential import Exponential
from .transforms import AffineTransform, ExpTransform
from .utils import broadcast_all

__all__ = ["Pareto"]


class Pareto(OfParameters):
    """Pareto from ``scale`` on, with shape ``alpha``."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale, alpha, validate_args=None):
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base, transforms = self._made(validate_args)
        super().__init__(base, transforms, validate_args=validate_args)

    def _made(self, validate_args=None):
        base = Exponential(self.alpha, validate_args=validate_args)
        return base, [ExpTransform(), AffineTransform(loc=0, scale=self.scale)]

    @property
    def mean(self):
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    mode = property(lambda self: self.scale)

    @property
    def variance(self):
        a = self.alpha.clamp(min=2)
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.greater_than_eq(self.scale)

    def entropy(self):
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())

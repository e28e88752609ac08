"""The logistic-normal distribution."""

from __future__ import annotations

from . import constraints
from ._of_base import OfBase
from .normal import Normal
from .transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(OfBase):
    """Points of the simplex made of Normal numbers by stick breaking."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex

    def __init__(self, loc, scale, validate_args=None):
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    loc = property(lambda self: self.base_dist.base_dist.loc)
    scale = property(lambda self: self.base_dist.base_dist.scale)

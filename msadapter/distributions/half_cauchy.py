"""The half-Cauchy distribution."""

from __future__ import annotations

import math

from .. import ops
from ._half import Half
from .cauchy import Cauchy

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """Absolute value of a Cauchy number around 0 with ``scale``."""

    def __init__(self, scale, validate_args=None):
        super().__init__(Cauchy(0, scale, validate_args=False), validate_args)

    mean = property(
        lambda self: ops.full(
            list(self._extended_shape()), math.inf, dtype=self.scale.dtype, device=self.scale.device
        )
    )
    variance = property(lambda self: self.base_dist.variance)

"""The chi-squared distribution."""

from __future__ import annotations

from . import constraints
from .gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """Sum of ``df`` squared standard normal numbers."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df, validate_args=None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Chi2, _instance)
        for name in ("concentration", "rate"):
            new.__dict__[name] = getattr(self, name).expand(list(batch_shape))
        return super().expand(batch_shape, new)

    df = property(lambda self: self.concentration * 2)

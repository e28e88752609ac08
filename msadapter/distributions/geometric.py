"""The geometric distribution."""

from __future__ import annotations

from .. import ops
from ..autograd.grad_mode import no_grad
from ..nn import functional as F
from . import constraints
from ._limits import tiny_of
from ._parametrized import Binary
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Geometric"]


class Geometric(Binary, Distribution):
    """Number of failures before the first success of probability ``probs`` (log-odds ``logits``)."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)
        if self._validate_args and probs is not None:
            value = self.probs
            if not bool((value > 0).all()):
                raise ValueError(
                    f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) of "
                    "distribution "
                    f"{self!r} to be positive but found invalid values:\n{value}"
                )

    mean = property(lambda self: 1.0 / self.probs - 1.0)
    mode = property(lambda self: ops.zeros_like(self.probs))
    variance = property(lambda self: (1.0 / self.probs - 1.0) / self.probs)

    def sample(self, sample_shape=()):
        shape = list(self._extended_shape(sample_shape))
        with no_grad():
            u = self.probs.new_empty(shape).uniform_(tiny_of(self.probs.dtype), 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        probs = probs.clone()
        probs[(probs == 1) & (value == 0)] = 0
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self):
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs

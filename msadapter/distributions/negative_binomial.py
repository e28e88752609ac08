"""The negative binomial distribution."""

from __future__ import annotations

from .. import ops
from ..autograd.grad_mode import no_grad
from ..nn import functional as F
from . import constraints
from ._parametrized import Binary
from .distribution import Distribution
from .gamma import Gamma
from .utils import lazy_property

__all__ = ["NegativeBinomial"]


class NegativeBinomial(Binary, Distribution):
    """Number of successes (probability ``probs``, log-odds ``logits``) before ``total_count`` failures."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(self, total_count, probs=None, logits=None, validate_args=None):
        self._take_counted(total_count, probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    mean = property(lambda self: self.total_count * ops.exp(self.logits))

    @property
    def mode(self):
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    variance = property(lambda self: self.mean / ops.sigmoid(-self.logits))

    @lazy_property
    def _gamma(self):
        return Gamma(concentration=self.total_count, rate=ops.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape=()):
        with no_grad():
            return ops.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        unnormalized = self.total_count * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        orders = (
            -ops.lgamma(self.total_count + value) + ops.lgamma(1.0 + value) + ops.lgamma(self.total_count)
        )
        orders = orders.masked_fill(self.total_count + value == 0.0, 0.0)
        return unnormalized - orders

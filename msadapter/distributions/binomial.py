"""The binomial distribution."""

from __future__ import annotations

from .. import ops
from ..autograd.grad_mode import no_grad
from . import constraints
from ._parametrized import Binary
from .distribution import Distribution

__all__ = ["Binomial"]


def _positive_part(x):
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2


class Binomial(Binary, Distribution):
    """Number of successes of ``total_count`` trials with probability ``probs`` (log-odds ``logits``)."""

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        self._take_counted(total_count, probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    mean = property(lambda self: self.total_count * self.probs)
    mode = property(lambda self: ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count))
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return ops.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        orders = (
            ops.lgamma(self.total_count + 1)
            - ops.lgamma(value + 1)
            - ops.lgamma(self.total_count - value + 1)
        )
        # log(1 + exp(logits)), of the size of the numbers that are there
        normalizer = self.total_count * (
            _positive_part(self.logits) + ops.log1p(ops.exp(-ops.abs(self.logits)))
        )
        return value * self.logits + orders - normalizer

    def entropy(self):
        most = int(self.total_count.max())
        if not bool(self.total_count.min() == most):
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(ops.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand=True):
        most = int(self.total_count.max())
        if not bool(self.total_count.min() == most):
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        values = ops.arange(1 + most, dtype=self._param.dtype, device=self._param.device)
        values = values.view([-1] + [1] * len(self._batch_shape))
        return values.expand([-1, *self._batch_shape]) if expand else values

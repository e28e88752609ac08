"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math

from .. import ops
from ..autograd.grad_mode import no_grad
from ..nn import functional as F
from . import constraints
from ._parametrized import Binary, one_of
from .exp_family import ExponentialFamily
from .utils import broadcast_all, clamp_probs, lazy_property, probs_to_logits

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(Binary, ExponentialFamily):
    """Numbers of [0, 1] with density proportional to p^x (1 - p)^(1 - x).

    Between ``lims`` around one half, formulas that divide by 1 - 2p are replaced by Taylor expansions.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None):
        one_of(probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
            if validate_args is not None and not bool(self.arg_constraints["probs"].check(self.probs).all()):
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
        else:
            (self.logits,) = broadcast_all(logits)
        self._lims = lims
        super().__init__(self._param.shape, validate_args=validate_args)

    def _expand_rest(self, new, batch_shape) -> None:
        new._lims = self._lims

    def _outside(self):
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut(self):
        """Probabilities with those near one half moved to the border."""
        return ops.where(self._outside(), self.probs, ops.full_like(self.probs, self._lims[0]))

    def _log_norm(self):
        """Logarithm of the normalizing constant."""
        p = self._cut()
        below = ops.where(p <= 0.5, p, ops.zeros_like(p))
        above = ops.where(p >= 0.5, p, ops.ones_like(p))
        exact = ops.log(ops.abs(ops.log1p(-p) - ops.log(p))) - ops.where(
            p <= 0.5, ops.log1p(-2.0 * below), ops.log(2.0 * above - 1.0)
        )
        x = (self.probs - 0.5) ** 2
        return ops.where(self._outside(), exact, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self):
        p, x = self._cut(), self.probs - 0.5
        exact = p / (2.0 * p - 1.0) + 1.0 / (ops.log1p(-p) - ops.log(p))
        return ops.where(self._outside(), exact, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x**2) * x)

    @property
    def variance(self):
        p, x = self._cut(), (self.probs - 0.5) ** 2
        exact = p * (p - 1.0) / (1.0 - 2.0 * p) ** 2 + 1.0 / (ops.log1p(-p) - ops.log(p)) ** 2
        return ops.where(self._outside(), exact, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    stddev = property(lambda self: ops.sqrt(self.variance))

    @lazy_property
    def logits(self):
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self):
        return clamp_probs(ops.sigmoid(self.logits))

    def _drawn(self, sample_shape):
        return ops.rand(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device)

    def sample(self, sample_shape=()):
        with no_grad():
            return self.icdf(self._drawn(sample_shape))

    def rsample(self, sample_shape=()):
        return self.icdf(self._drawn(sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none") + self._log_norm()

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        p = self._cut()
        exact = (ops.pow(p, value) * ops.pow(1.0 - p, 1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        found = ops.where(self._outside(), exact, value)
        high = ops.where(value >= 1.0, ops.ones_like(found), found)
        return ops.where(value <= 0.0, ops.zeros_like(found), high)

    def icdf(self, value):
        p = self._cut()
        exact = (ops.log1p(-p + value * (2.0 * p - 1.0)) - ops.log1p(-p)) / (ops.log(p) - ops.log1p(-p))
        return ops.where(self._outside(), exact, value)

    def entropy(self):
        zero, one = ops.log1p(-self.probs), ops.log(self.probs)
        return self.mean * (zero - one) - self._log_norm() - zero

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, x):
        low, high = (math.log(p) - math.log1p(-p) for p in self._lims)
        outside = (x <= low) | (x > high)
        cut = ops.where(outside, x, ops.full_like(x, low))
        exact = ops.log(ops.abs(ops.special_expm1(cut))) - ops.log(ops.abs(cut))
        return ops.where(outside, exact, 0.5 * x + x**2 / 24.0 - x**4 / 2880.0)

"""Categorical distributions over unit vectors."""

from __future__ import annotations

from .. import ops
from ..autograd.grad_mode import no_grad
from ..nn import functional as F
from ..tensor import Size
from . import constraints
from .categorical import Categorical
from .distribution import Distribution

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(Distribution):
    """Unit vectors of n numbers, with the probabilities of a Categorical."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(OneHotCategorical, _instance)
        new._categorical = self._categorical.expand(Size(batch_shape))
        Distribution.__init__(new, Size(batch_shape), self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    probs = mean = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    variance = property(lambda self: self._categorical.probs * (1 - self._categorical.probs))
    param_shape = property(lambda self: self._categorical.param_shape)

    @property
    def mode(self):
        probs = self._categorical.probs
        return F.one_hot(probs.argmax(dim=-1), probs.shape[-1]).to(probs)

    def sample(self, sample_shape=()):
        probs = self._categorical.probs
        with no_grad():
            drawn = self._categorical.sample(Size(sample_shape))
            return F.one_hot(drawn, self._categorical._num_events).to(probs)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self):
        return self._categorical.entropy()

    def enumerate_support(self, expand=True):
        n = self.event_shape[0]
        values = ops.eye(n, dtype=self._categorical._param.dtype, device=self._categorical._param.device)
        values = values.view([n] + [1] * len(self.batch_shape) + [n])
        return values.expand([n, *self.batch_shape, n]) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """OneHotCategorical whose samples have the probabilities' gradient."""

    has_rsample = True

    def rsample(self, sample_shape=()):
        samples = self.sample(sample_shape)
        probs = self._categorical.probs
        return samples + (probs - probs.detach())

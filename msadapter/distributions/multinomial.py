"""The multinomial distribution."""

from __future__ import annotations

from .. import ops
from ..autograd.grad_mode import no_grad
from ..tensor import Size
from ..tensor._tensor import tensor
from . import constraints
from .binomial import Binomial
from .categorical import Categorical
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """Counts of each category in ``total_count`` draws from a Categorical."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    total_count: int

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Multinomial, _instance)
        new.total_count = self.total_count
        new._categorical = self._categorical.expand(Size(batch_shape))
        new._binomial = self._binomial.expand(Size([*batch_shape, *self.event_shape]))
        Distribution.__init__(new, Size(batch_shape), self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))
    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    param_shape = property(lambda self: self._categorical.param_shape)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        return constraints.multinomial(self.total_count)

    def sample(self, sample_shape=()):
        sample_shape = Size(sample_shape)
        with no_grad():
            drawn = self._categorical.sample(Size([self.total_count, *sample_shape]))
            drawn = drawn.permute(*range(1, drawn.ndim), 0)  # the draws last
            counts = self._categorical.logits.new_zeros(list(self._extended_shape(sample_shape)))
            counts.scatter_add_(-1, drawn, ops.ones_like(drawn).type_as(counts))
            return counts.type_as(self.probs)

    def entropy(self):
        n = tensor(self.total_count)
        term = self.total_count * self._categorical.entropy() - ops.lgamma(n + 1)
        values = self._binomial.enumerate_support(expand=False)[1:]
        weights = ops.exp(self._binomial.log_prob(values))
        return term + (weights * ops.lgamma(values + 1)).sum([0, -1])

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.clone()
        orders = ops.lgamma(value.sum(-1) + 1) - ops.lgamma(value + 1).sum(-1)
        logits[(value == 0) & (logits == -float("inf"))] = 0
        return orders + (logits * value).sum(-1)

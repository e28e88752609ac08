"""The categorical distribution."""

from __future__ import annotations

import math

from .. import ops
from .._values.dtype import int64
from ..autograd.grad_mode import no_grad
from . import constraints
from ._limits import _finfo
from ._parametrized import Binary, one_of
from .distribution import Distribution

__all__ = ["Categorical"]


class Categorical(Binary, Distribution):
    """Numbers 0 .. n - 1 with probabilities in the last dimension of ``probs`` (logarithms in ``logits``)."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _binary = False

    def __init__(self, probs=None, logits=None, validate_args=None):
        one_of(probs, logits)
        if probs is not None:
            if probs.ndim < 1:
                raise ValueError("`probs` parameter must be at least one-dimensional.")
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            if logits.ndim < 1:
                raise ValueError("`logits` parameter must be at least one-dimensional.")
            self.logits = logits - logits.logsumexp(-1, keepdim=True)
        self._num_events = self._param.shape[-1]
        super().__init__(self._param.shape[:-1], validate_args=validate_args)

    def _expand_rest(self, new, batch_shape) -> None:
        new._num_events = self._num_events

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self._num_events - 1)

    def _unknown(self):
        shape = self._extended_shape()
        return ops.full(list(shape), math.nan, dtype=self.probs.dtype, device=self.probs.device)

    mean = property(_unknown)
    variance = property(_unknown)
    mode = property(lambda self: self.probs.argmax(dim=-1))

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        count = shape.numel() // max(self._batch_shape.numel(), 1)
        with no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            return ops.multinomial(rows, count, True).t().reshape(list(shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        value, logits = ops.broadcast_tensors(value.to(int64).unsqueeze(-1), self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self):
        low = _lowest(self.logits.dtype)
        return -(ops.clamp(self.logits, min=low) * self.probs).sum(-1)

    def enumerate_support(self, expand=True):
        values = ops.arange(self._num_events, dtype=int64, device=self._param.device)
        values = values.view([-1] + [1] * len(self._batch_shape))
        return values.expand([-1, *self._batch_shape]) if expand else values


def _lowest(dtype) -> float:
    return _finfo(dtype).min

"""Distributions that are given by probabilities or by log-odds."""

from __future__ import annotations

from ..tensor._tensor import tensor
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits


def one_of(probs, logits) -> None:
    """Raise ValueError unless exactly one of the two is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


def one_matrix(error: type[Exception], **given) -> tuple:
    """(name, value) of the one matrix that is given; ``error`` if it is not exactly one.

    ``given`` holds covariance_matrix, precision_matrix and scale_tril, each a (..., n, n) tensor or None.
    """
    given = {name: value for name, value in given.items() if value is not None}
    if len(given) != 1:
        raise error("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
    return given.popitem()


class OfFactor:
    """Adds ``scale_tril`` and ``covariance_matrix`` to a class, from its Cholesky factor ``_unbroadcasted_scale_tril``."""

    def _square(self, matrix):
        """Return a (..., n, n) matrix, expanded to the batch of this distribution."""
        return matrix.expand([*self._batch_shape, *matrix.shape[-2:]])

    @lazy_property
    def scale_tril(self):
        """Cholesky factor of the covariance."""
        return self._square(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self):
        """Covariance."""
        factor = self._unbroadcasted_scale_tril
        return self._square(factor @ factor.mT)


class Binary:
    """Adds ``probs`` and ``logits`` to a class. Each is computed from the other, with one number for each distribution."""

    _binary = True

    def _take(self, probs, logits) -> None:
        """Store the parameter that is given."""
        one_of(probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)

    def _take_counted(self, total_count, probs, logits) -> None:
        """Store ``total_count`` and the parameter that is given, broadcast to one shape and dtype."""
        one_of(probs, logits)
        if probs is not None:
            self.total_count, self.probs = broadcast_all(total_count, probs)
        else:
            self.total_count, self.logits = broadcast_all(total_count, logits)
        self.total_count = self.total_count.type_as(self._param)

    @property
    def _param(self):
        return self.__dict__["probs"] if "probs" in self.__dict__ else self.__dict__["logits"]

    @lazy_property
    def logits(self):
        """Log-odds."""
        return probs_to_logits(self.probs, is_binary=self._binary)

    @lazy_property
    def probs(self):
        """Probabilities."""
        return logits_to_probs(self.logits, is_binary=self._binary)

    @property
    def param_shape(self):
        """Shape of the parameter."""
        return self._param.shape

    def _new(self, *args, **kwargs):
        return self._param.new(*args, **kwargs)


def is_number(x) -> bool:
    """Return whether a parameter is a Python number."""
    return isinstance(x, (int, float, bool))


def as_tensor(x, like):
    """Return a number as a tensor with the dtype and device of another tensor."""
    return tensor(x, dtype=like.dtype, device=like.device) if is_number(x) else x

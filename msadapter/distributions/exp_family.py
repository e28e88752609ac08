"""Exponential families."""

from __future__ import annotations

from .. import autograd
from ..autograd.grad_mode import enable_grad
from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Densities of the form exp(<natural parameters, statistics> - log normalizer) times a carrier measure."""

    @property
    def _natural_params(self):
        raise NotImplementedError

    def _log_normalizer(self, *natural_params):
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self):
        """Mean of the logarithm of the carrier measure."""
        raise NotImplementedError

    def entropy(self):
        """Of the log normalizer A at parameters p: A(p) - <p, grad A(p)> - the carrier's mean."""
        carrier = self._mean_carrier_measure
        with enable_grad():
            parameters = [p.detach().requires_grad_() for p in self._natural_params]
            normalizer = self._log_normalizer(*parameters)
            slopes = autograd.grad(normalizer.sum(), parameters, create_graph=True)
        result = normalizer - carrier
        for p, slope in zip(parameters, slopes, strict=True):
            result = result - (p * slope).reshape([*self._batch_shape, -1]).sum(-1)
        return result

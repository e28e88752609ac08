"""Transformed distributions whose parameters are those of their base."""

from __future__ import annotations

from .transformed_distribution import TransformedDistribution


class OfBase(TransformedDistribution):
    """A transformed distribution with the base's parameters: expanding the base expands it."""

    has_rsample = True

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(self._class_here(), _instance))


class OfParameters(TransformedDistribution):
    """A transformed distribution with its own parameters. ``_made`` computes the base and the transforms from them."""

    def _made(self):
        raise NotImplementedError

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(self._class_here(), _instance)
        for name in self._parameters_here():
            new.__dict__[name] = getattr(self, name).expand(list(batch_shape))
        new._validate_args = self._validate_args
        base, transforms = new._made()
        TransformedDistribution.__init__(new, base, transforms, validate_args=False)
        new._validate_args = self._validate_args
        return new

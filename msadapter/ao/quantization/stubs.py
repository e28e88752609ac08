"""Modules at the places of a model where quantised values begin and end. Until it is converted, they change nothing."""

from ...nn import Module

__all__ = ["DeQuantStub", "QuantStub"]


class _Stub(Module):
    def __init__(self, qconfig=None):
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x):
        """Return the input."""
        return x


class QuantStub(_Stub):
    """Stands where a conversion puts the quantisation of an input. ``qconfig``: how that would quantise."""


class DeQuantStub(_Stub):
    """Stands where a conversion puts the way back to floating point."""

"""Padding layers with constant, zero, reflected, replicated and circular borders."""

from .. import functional as F
from .module import Module
from .utils import _ntuple, _pair, _quadruple

__all__ = [
    f"{kind}Pad{n}d"
    for kind in ("Circular", "Constant", "Reflection", "Replication", "Zero")
    for n in (1, 2, 3)
]

_sextuple = _ntuple(6)


class _Pad(Module):
    """Base class of padding layers. ``padding`` holds a pair for each dimension, the last dimension first."""

    __constants__ = ["padding"]
    _mode: str
    _expand = None

    def __init__(self, padding):
        super().__init__()
        self.padding = type(self)._expand(padding)

    def forward(self, input):
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self):
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    __constants__ = ["padding", "value"]
    _mode = "constant"

    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class _CircularPadNd(_Pad):
    _mode = "circular"
    _spatial: int

    def _check_input_dim(self, input):
        low = self._spatial + 1
        if input.dim() not in (low, low + 1):
            raise ValueError(f"expected {low}D or {low + 1}D input (got {input.dim()}D input)")

    def forward(self, input):
        self._check_input_dim(input)
        return F.pad(input, self.padding, "circular")


class _ReflectionPadNd(_Pad):
    _mode = "reflect"


class _ReplicationPadNd(_Pad):
    _mode = "replicate"


class ConstantPad1d(_ConstantPadNd):
    """Pads the last dimension with a value."""

    _expand = staticmethod(_pair)


class ConstantPad2d(_ConstantPadNd):
    """Pads the last 2 dimensions with a value."""

    __constants__ = ["padding", "value"]
    _expand = staticmethod(_quadruple)


class ConstantPad3d(_ConstantPadNd):
    """Pads the last 3 dimensions with a value."""

    _expand = staticmethod(_sextuple)


class ZeroPad1d(ConstantPad1d):
    """Pads the last dimension with zeros."""

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Pads the last 2 dimensions with zeros."""

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Pads the last 3 dimensions with zeros."""

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class CircularPad1d(_CircularPadNd):
    """Pads the last dimension by wrapping around."""

    _expand = staticmethod(_pair)
    _spatial = 1


class CircularPad2d(_CircularPadNd):
    """Pads the last 2 dimensions by wrapping around."""

    _expand = staticmethod(_quadruple)
    _spatial = 2


class CircularPad3d(_CircularPadNd):
    """Pads the last 3 dimensions by wrapping around."""

    _expand = staticmethod(_sextuple)
    _spatial = 3


class ReflectionPad1d(_ReflectionPadNd):
    """Pads the last dimension by reflection."""

    _expand = staticmethod(_pair)


class ReflectionPad2d(_ReflectionPadNd):
    """Pads the last 2 dimensions by reflection."""

    _expand = staticmethod(_quadruple)


class ReflectionPad3d(_ReflectionPadNd):
    """Pads the last 3 dimensions by reflection."""

    _expand = staticmethod(_sextuple)


class ReplicationPad1d(_ReplicationPadNd):
    """Pads the last dimension with the border value."""

    _expand = staticmethod(_pair)


class ReplicationPad2d(_ReplicationPadNd):
    """Pads the last 2 dimensions with the border values."""

    _expand = staticmethod(_quadruple)


class ReplicationPad3d(_ReplicationPadNd):
    """Pads the last 3 dimensions with the border values."""

    _expand = staticmethod(_sextuple)

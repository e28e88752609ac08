"""torch.finfo and torch.iinfo: the limits of dtypes."""

from __future__ import annotations

import numpy as np

from .._host.native import load
from .dtype import FEW_BITS, dtype

_C = load()
# Limits of types that numpy does not have: eps, smallest normal, largest, lowest, resolution (decimal).
_SMALL = {
    "bfloat16": (0.0078125, 1.1754943508222875e-38, 3.3895313892515355e38, -3.3895313892515355e38, 0.01),
    "float8_e4m3fn": (0.125, 0.015625, 448.0, -448.0, 1.0),
    "float8_e5m2": (0.25, 2.0**-14, 57344.0, -57344.0, 1.0),
    "float8_e4m3fnuz": (0.125, 0.0078125, 240.0, -240.0, 1.0),
    "float8_e5m2fnuz": (0.125, 2.0**-15, 57344.0, -57344.0, 1.0),
    # this type has powers of two only, and no sign
    "float8_e8m0fnu": (1.0, 2.0**-127, 2.0**127, 2.0**-127, 1.0),
}


class finfo:
    """Limits of a floating point dtype, by default the default dtype.

    A complex dtype stands for its parts.
    """

    def __init__(self, type: dtype | None = None):
        d = type or _C.default_dtype()
        name = d.to_real().name
        if not (d.is_floating_point or d.is_complex):
            raise TypeError(
                f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{d}'"
            )
        if name in _SMALL:
            self.eps, self.tiny, self.max, self.min, self.resolution = _SMALL[name]
            self.bits = d.itemsize * 8
        else:
            f = np.finfo(name)
            self.eps, self.tiny, self.max, self.min, self.resolution = (
                float(v) for v in (f.eps, f.tiny, f.max, f.min, f.resolution)
            )
            self.bits = f.bits
        self.dtype, self.smallest_normal = name, self.tiny

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.tiny:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:
    """Limits of an integer dtype."""

    def __init__(self, type: dtype):
        # PyTorch has integers of few bits as names alone, without limits.
        if type.is_floating_point or type.is_complex or type.name == "bool" or type.name in FEW_BITS:
            raise TypeError(
                f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{type}'"
            )
        self.dtype, self.bits = type.name, type.itemsize * 8
        self.min = -(1 << self.bits - 1) if type.is_signed else 0
        self.max = (1 << self.bits - type.is_signed) - 1

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


for _class in (finfo, iinfo):
    _class.__module__ = "torch"

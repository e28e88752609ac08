"""Mixed precision of DistributedDataParallel: the module runs on cast copies of its parameters.

The casts are part of the graph, so autograd returns gradients in the original dtype.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from ...tensor import dtype


@dataclass
class _MixedPrecision:
    """Dtypes of the parameters in forward, of the reduction and of buffers. None keeps the original dtype."""

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    buffer_dtype: dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = True


@contextlib.contextmanager
def cast_parameters(module, wanted, ignored):
    """Inside the block, the module's floating point parameters are replaced by casts to ``wanted``.

    Autograd records the casts, so the original parameters receive the gradients.
    """
    held, casts = [], {}
    for sub in module.modules():
        for name, parameter in sub._parameters.items():
            if parameter is not None and parameter.is_floating_point() and parameter not in ignored:
                held.append((sub, name, parameter))
    try:
        for sub, name, parameter in held:
            if parameter not in casts:
                casts[parameter] = parameter.to(wanted)
            sub._parameters[name] = casts[parameter]
        yield
    finally:
        for sub, name, parameter in held:
            sub._parameters[name] = parameter


def cast_buffers(module, wanted) -> None:
    """Cast floating point buffers to the dtype ``wanted`` permanently."""
    for sub in module.modules():
        for name, buffer in sub._buffers.items():
            if buffer is not None and buffer.is_floating_point():
                sub._buffers[name] = buffer.to(wanted)

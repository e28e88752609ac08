"""Mixed precision of DistributedDataParallel: the module runs on cast parameters, gradients come back through the cast."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from ...tensor import dtype


@dataclass
class _MixedPrecision:
    """Types of the parameters in use, of gradient reduction and of buffers; None keeps the original."""

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    buffer_dtype: dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = True


@contextlib.contextmanager
def cast_parameters(module, wanted, ignored):
    """A block in which the module's floating parameters are casts of themselves; autograd undoes the cast."""
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
    """Floating buffers in another type, for good."""
    for sub in module.modules():
        for name, buffer in sub._buffers.items():
            if buffer is not None and buffer.is_floating_point():
                sub._buffers[name] = buffer.to(wanted)

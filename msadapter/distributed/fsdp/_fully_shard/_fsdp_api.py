"""Policies of fully_shard."""

from __future__ import annotations

from dataclasses import dataclass

from ....tensor import dtype


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """Types of the parameters in use, of gradient reduction and of outputs; None keeps the original."""

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    output_dtype: dtype | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Where parameters wait between uses: on their device."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parameters, gradients and optimizer state wait in host memory."""

    pin_memory: bool = True

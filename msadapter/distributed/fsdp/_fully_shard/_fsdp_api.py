"""Policies of fully_shard."""

from __future__ import annotations

from dataclasses import dataclass

from ....tensor import dtype


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of unsharded parameters, gradient reduction and outputs; None keeps the original dtype."""

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    output_dtype: dtype | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Base class of offload policies. This policy keeps the sharded parameters on their device."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Keeps sharded parameters, gradients and optimizer state in host memory."""

    pin_memory: bool = True

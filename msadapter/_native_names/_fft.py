"""torch._C._fft: the operators of torch.fft by their names in ATen, such as fft_rfft."""

from __future__ import annotations

from ._operators import operator_of


def __getattr__(name: str):
    return operator_of("_fft", name)

"""torch._C._special: the operators of torch.special by their names in ATen, such as special_erf."""

from __future__ import annotations

from ._operators import operator_of


def __getattr__(name: str):
    return operator_of("_special", name)

"""torch._C._linalg: the operators of torch.linalg by their names in ATen, such as linalg_inv."""

from __future__ import annotations

from ._operators import operator_of


def __getattr__(name: str):
    return operator_of("_linalg", name)

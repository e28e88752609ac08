"""torch._C._nn: the operators of layers by their names in ATen, and how Module.to reads its arguments."""

from __future__ import annotations

from ..nn.modules.module import _parse_to  # noqa: F401
from ._operators import operator_of


def __getattr__(name: str):
    return operator_of("_nn", name)

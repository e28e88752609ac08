"""torch._C._nn: the operators of layers by their names in ATen, and how Module.to reads its arguments."""

from __future__ import annotations

import warnings

from ..autograd import Function
from ..nn.modules.module import _parse_to  # noqa: F401
from ._operators import operator_of


class _WarnInBackward(Function):
    @staticmethod
    def forward(ctx, tensor):
        return tensor.clone()

    @staticmethod
    def backward(ctx, grad):
        warnings.warn("Warn from backward", UserWarning, stacklevel=2)
        return grad


def _test_warn_in_autograd(tensor):
    """Return a copy whose backward shows the warning with which PyTorch tests warnings of its engine."""
    return _WarnInBackward.apply(tensor)


def __getattr__(name: str):
    return operator_of("_nn", name)

"""torch._C._functions: nodes and functions of PyTorch's native autograd that tests and tools use."""

from __future__ import annotations

from .._host.native import load
from .function import Function

_C = load()
AccumulateGrad = _C.node_class("AccumulateGrad")


def _one_or_all(outputs: tuple):
    return outputs[0] if len(outputs) == 1 else outputs


class DelayedError:
    """DelayedError(message, count)(*tensors) returns the tensors. Their backward raises RuntimeError(message)."""

    def __init__(self, message: str, count: int):
        self.message = message  # the count of tensors is that of the call

    def __call__(self, *tensors):
        return _one_or_all(_Delayed.apply(self.message, *tensors))


class _Delayed(Function):
    @staticmethod
    def forward(ctx, message, *tensors):
        ctx.message = message
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def backward(ctx, *grads):
        raise RuntimeError(ctx.message)


class UndefinedGrad:
    """UndefinedGrad()(*tensors) returns the tensors. Their backward has no gradient."""

    def __call__(self, *tensors):
        return _one_or_all(_Undefined.apply(*tensors))


class _Undefined(Function):
    @staticmethod
    def forward(ctx, *tensors):
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def backward(ctx, *grads):
        return (None,) * len(grads)

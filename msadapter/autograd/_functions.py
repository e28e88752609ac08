"""torch._C._functions: nodes and functions of PyTorch's native autograd that tests and tools use."""

from __future__ import annotations

from .._host.native import load
from .function import Function

_C = load()
AccumulateGrad = _C.node_class("AccumulateGrad")


class DelayedError:
    """DelayedError(message, count)(*tensors) returns the tensors. Their backward raises RuntimeError(message)."""

    def __init__(self, message: str, count: int):
        self.message, self.count = message, count

    def __call__(self, *tensors):
        outputs = _Delayed.apply(self.message, *tensors)
        return outputs[0] if len(outputs) == 1 else outputs


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
        outputs = _Undefined.apply(*tensors)
        return outputs[0] if len(outputs) == 1 else outputs


class _Undefined(Function):
    @staticmethod
    def forward(ctx, *tensors):
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def backward(ctx, *grads):
        return (None,) * len(grads)

"""torch._C._functions: nodes and functions of PyTorch's native autograd that tests and tools use."""

from __future__ import annotations

import math

from .._host.native import load
from .function import DelayedError as DelayedError
from .function import Function

_C = load()
AccumulateGrad = _C.node_class("AccumulateGrad")


def _one_or_all(outputs: tuple):
    return outputs[0] if len(outputs) == 1 else outputs


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


class Resize(Function):
    """Resize.apply(tensor, sizes): a contiguous tensor with other sizes and the same number of elements."""

    @staticmethod
    def forward(ctx, tensor, sizes):
        count = math.prod(sizes)
        if count != tensor.numel():
            raise RuntimeError(
                f"requested resize to {'x'.join(map(str, sizes))} ({count} elements in total), but the given tensor has a size of "
                f"{'x'.join(map(str, tensor.shape))} ({tensor.numel()} elements). autograd's resize can only change the shape of a "
                "given tensor, while preserving the number of elements. "
            )
        ctx.sizes = tensor.shape
        return tensor.contiguous().view(sizes)

    @staticmethod
    def backward(ctx, grad):
        return grad.contiguous().view(ctx.sizes), None

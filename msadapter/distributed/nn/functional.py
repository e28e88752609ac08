"""Differentiable collectives."""

from ... import ops
from ...autograd import Function
from .. import collectives
from ..process_group import resolve
from ..reduce_op import ReduceOp


class _AllReduce(Function):
    @staticmethod
    def forward(ctx, op, group, tensor):
        ctx.op, ctx.group = op, group
        out = tensor.clone()
        collectives.all_reduce(out, op, group)
        return out

    @staticmethod
    def backward(ctx, grad):
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grad)


class _Broadcast(Function):
    @staticmethod
    def forward(ctx, src, group, tensor):
        ctx.src, ctx.group = src, group
        out = tensor.clone()
        collectives.broadcast(out, src, group)
        return out

    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        collectives.reduce(grad, ctx.src, ReduceOp.SUM, ctx.group)
        if resolve(ctx.group)._ranks[resolve(ctx.group).rank()] != ctx.src:
            grad.zero_()
        return None, None, grad


class _AllGather(Function):
    @staticmethod
    def forward(ctx, group, tensor):
        ctx.group = group
        pieces = [ops.empty_like(tensor) for _ in range(resolve(group).size())]
        collectives.all_gather(pieces, tensor.contiguous(), group)
        return tuple(pieces)

    @staticmethod
    def backward(ctx, *grads):
        out = ops.empty_like(grads[resolve(ctx.group).rank()])
        collectives.reduce_scatter(out, [g.contiguous() for g in grads], ReduceOp.SUM, ctx.group)
        return None, out


class _AllToAll(Function):
    @staticmethod
    def forward(ctx, group, outputs, *tensors):
        ctx.group, ctx.shapes = group, [tensor.shape for tensor in tensors]
        collectives.all_to_all(outputs, [tensor.contiguous() for tensor in tensors], group)
        return tuple(outputs)

    @staticmethod
    def backward(ctx, *grads):
        back = [ops.empty(shape, dtype=grads[0].dtype, device=grads[0].device) for shape in ctx.shapes]
        return None, None, *_AllToAll.apply(ctx.group, back, *grads)


def all_reduce(tensor, op=ReduceOp.SUM, group=None):
    """The reduction over the group. Gradients are reduced in the same way."""
    return _AllReduce.apply(op, group, tensor)


def broadcast(tensor, src, group=None):
    """The tensor of src. Gradients are summed at src."""
    return _Broadcast.apply(src, group, tensor)


def all_gather(tensor, group=None):
    """The tensors of all processes. Each process's gradient is the sum of the gradients for its tensor."""
    return _AllGather.apply(group, tensor)


def all_to_all(output_tensor_list, input_tensor_list, group=None):
    """One tensor for each process is exchanged for one from each. The gradients take the opposite way."""
    return _AllToAll.apply(group, output_tensor_list, *input_tensor_list)

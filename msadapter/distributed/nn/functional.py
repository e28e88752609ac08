"""Differentiable collectives. Backward passes consist of these collectives, so that gradients have gradients."""

from ... import ops
from ...autograd import Function
from .. import collectives
from ..process_group import resolve
from ..reduce_op import ReduceOp


def _is_here(group, rank: int) -> bool:
    """Return whether this process is the one with the global rank `rank`."""
    members = resolve(group)
    return members._ranks[members.rank()] == rank


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
        grad = _Reduce.apply(ctx.src, ReduceOp.SUM, ctx.group, grad)
        if not _is_here(ctx.group, ctx.src):
            grad.zero_()
        return None, None, grad


class _Reduce(Function):
    @staticmethod
    def forward(ctx, dst, op, group, tensor):
        ctx.dst, ctx.group = dst, group
        out = tensor.clone()
        collectives.reduce(out, dst, op, group)
        return out

    @staticmethod
    def backward(ctx, grad):
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.group, grad)


class _Gather(Function):
    @staticmethod
    def forward(ctx, dst, group, tensor):
        ctx.dst, ctx.group = dst, group
        pieces = [ops.zeros_like(tensor) for _ in range(resolve(group).size())]
        collectives.gather(tensor.contiguous(), pieces if _is_here(group, dst) else None, dst, group)
        return tuple(pieces)

    @staticmethod
    def backward(ctx, *grads):
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *grads)


class _Scatter(Function):
    @staticmethod
    def forward(ctx, src, group, *tensors):
        ctx.src, ctx.group = src, group
        if any(tensor.shape != tensors[0].shape for tensor in tensors):
            raise AssertionError
        out = ops.zeros_like(tensors[0])
        pieces = [tensor.contiguous() for tensor in tensors]
        collectives.scatter(out, pieces if _is_here(group, src) else None, src, group)
        return out

    @staticmethod
    def backward(ctx, grad):
        return None, None, *_Gather.apply(ctx.src, ctx.group, grad)


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx, op, group, output, *tensors):
        ctx.group = group
        output = output.contiguous()
        collectives.reduce_scatter(output, [tensor.contiguous() for tensor in tensors], op, group)
        return output

    @staticmethod
    def backward(ctx, grad):
        return None, None, None, *_AllGather.apply(ctx.group, grad)


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
        return None, _ReduceScatter.apply(ReduceOp.SUM, ctx.group, out, *grads)


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


class _AllToAllSingle(Function):
    @staticmethod
    def forward(ctx, group, output, output_sizes, input_sizes, tensor):
        ctx.group, ctx.shape, ctx.sizes = group, tensor.shape, (input_sizes, output_sizes)
        collectives.all_to_all_single(output, tensor.contiguous(), output_sizes, input_sizes, group)
        return output

    @staticmethod
    def backward(ctx, grad):
        back = ops.empty(ctx.shape, dtype=grad.dtype, device=grad.device)
        return None, None, None, None, _AllToAllSingle.apply(ctx.group, back, *ctx.sizes, grad)


def all_reduce(tensor, op=ReduceOp.SUM, group=None):
    """The reduction over the group. Gradients are reduced in the same way."""
    return _AllReduce.apply(op, group, tensor)


def broadcast(tensor, src, group=None):
    """The tensor of src. Gradients are summed at src."""
    return _Broadcast.apply(src, group, tensor)


def reduce(tensor, dst, op=ReduceOp.SUM, group=None):
    """The reduction over the group at dst. The others get a copy of their tensor. The gradient is that of dst."""
    return _Reduce.apply(dst, op, group, tensor)


def gather(tensor, dst=0, group=None):
    """The tensors of all processes at dst, and zeros at the others. The gradients of dst go back."""
    return _Gather.apply(dst, group, tensor)


def scatter(tensors, src=0, group=None):
    """One of the tensors of src for each process. All give a list, of tensors of the same shape. Gradients are gathered at src."""
    return _Scatter.apply(src, group, *tensors)


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None):
    """The reduction of the tensors at this process's place, in `output`. Gradients are gathered, whatever `op` is."""
    return _ReduceScatter.apply(op, group, output, *input_list)


def all_gather(tensor, group=None):
    """The tensors of all processes. Each process's gradient is the sum of the gradients for its tensor."""
    return _AllGather.apply(group, tensor)


def all_to_all(output_tensor_list, input_tensor_list, group=None):
    """One tensor for each process is exchanged for one from each. The gradients take the opposite way."""
    return _AllToAll.apply(group, output_tensor_list, *input_tensor_list)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None):
    """Like ``all_to_all``, for parts of a tensor along dim 0. Without sizes, all parts are equal."""
    return _AllToAllSingle.apply(group, output, output_split_sizes, input_split_sizes, input)

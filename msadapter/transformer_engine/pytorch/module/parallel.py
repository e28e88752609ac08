"""Differentiable communication between tensor parallel ranks before and after a product."""

from .... import autograd
from ....distributed import all_gather_single, all_reduce, get_world_size, reduce_scatter_single


def gathered(tensor, group):
    """All-gathers the ranks' tensors along dimension 0, without gradient."""
    tensor = tensor.contiguous()
    out = tensor.new_empty((tensor.shape[0] * get_world_size(group), *tensor.shape[1:]))
    all_gather_single(out, tensor, group=group)
    return out


def scattered_sum(tensor, group):
    """Reduce-scatters along dimension 0, without gradient."""
    tensor = tensor.contiguous()
    out = tensor.new_empty((tensor.shape[0] // get_world_size(group), *tensor.shape[1:]))
    reduce_scatter_single(out, tensor, group=group)
    return out


def summed(tensor, group):
    """All-reduces (sums) over the ranks, without gradient."""
    tensor = tensor.contiguous().clone()
    all_reduce(tensor, group=group)
    return tensor


class _Exchange(autograd.Function):
    """Runs `there` in forward and `back` on the gradient."""

    @staticmethod
    def forward(ctx, tensor, group, there, back):
        ctx.group, ctx.back = group, back
        return there(tensor, group)

    @staticmethod
    def backward(ctx, grad):
        return ctx.back(grad, ctx.group), None, None, None


def _same(tensor, group):
    return tensor.view_as(tensor)


def before_column(tensor, group, sequence_parallel: bool):
    """The input of a column-parallel product: the complete sequence. Backward sums the gradients."""
    there, back = (gathered, scattered_sum) if sequence_parallel else (_same, summed)
    return _Exchange.apply(tensor, group, there, back)


def after_row(tensor, group, sequence_parallel: bool):
    """The output of a row-parallel product: the sum over the ranks, or this rank's part of its sequence."""
    there, back = (scattered_sum, gathered) if sequence_parallel else (summed, _same)
    return _Exchange.apply(tensor, group, there, back)


def gathered_with_sum_back(tensor, group):
    """All-gathers the ranks' tensors along dimension 0. Backward reduce-scatters the gradient."""
    return _Exchange.apply(tensor, group, gathered, scattered_sum)

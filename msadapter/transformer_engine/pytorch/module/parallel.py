"""What travels between the ranks of tensor parallelism before and after a product, with its gradient."""

from .... import autograd
from ....distributed import all_gather_into_tensor, all_reduce, get_world_size, reduce_scatter_tensor


def gathered(tensor, group):
    """The ranks' tensors behind each other along dimension 0, nothing recorded."""
    tensor = tensor.contiguous()
    out = tensor.new_empty((tensor.shape[0] * get_world_size(group), *tensor.shape[1:]))
    all_gather_into_tensor(out, tensor, group=group)
    return out


def scattered_sum(tensor, group):
    """Own part along dimension 0 of the sum over the ranks, nothing recorded."""
    tensor = tensor.contiguous()
    out = tensor.new_empty((tensor.shape[0] // get_world_size(group), *tensor.shape[1:]))
    reduce_scatter_tensor(out, tensor, group=group)
    return out


def summed(tensor, group):
    """The sum over the ranks, nothing recorded."""
    tensor = tensor.contiguous().clone()
    all_reduce(tensor, group=group)
    return tensor


class _Exchange(autograd.Function):
    """`there` forward, `back` for the gradient."""

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
    """Input of a product whose weight is split by outputs: the whole sequence; gradients are summed."""
    there, back = (gathered, scattered_sum) if sequence_parallel else (_same, summed)
    return _Exchange.apply(tensor, group, there, back)


def after_row(tensor, group, sequence_parallel: bool):
    """Output of a product whose weight is split by inputs: the sum over the ranks, or own part of the sequence of it."""
    there, back = (scattered_sum, gathered) if sequence_parallel else (summed, _same)
    return _Exchange.apply(tensor, group, there, back)


def gathered_with_sum_back(tensor, group):
    """The ranks' tensors behind each other along dimension 0; the gradient is the ranks' sum of own part."""
    return _Exchange.apply(tensor, group, gathered, scattered_sum)

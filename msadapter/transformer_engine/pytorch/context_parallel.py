"""Communication of context parallelism.

Rank r of n has the pieces r and 2 n - 1 - r of 2 n pieces of the sequence, which balances the work of causal attention.
"""

from ... import arange, autograd, cat
from ...distributed import all_to_all_single, get_world_size
from .module.parallel import gathered_with_sum_back


def places(length: int, rank: int, size: int, device):
    """The positions of a rank's part in the sequence."""
    pieces = arange(length, device=device).view(2 * size, -1)
    return cat((pieces[rank], pieces[2 * size - 1 - rank]))


def _order(size: int) -> list:
    """The order in which the pieces of the concatenated parts of all ranks form the sequence."""
    held = [piece for rank in range(size) for piece in (rank, 2 * size - 1 - rank)]
    return [held.index(piece) for piece in range(2 * size)]


def _rearranged(tensor, order):
    """Reorders the pieces of dimension 0."""
    pieces = tensor.chunk(len(order), 0)
    return cat([pieces[i] for i in order])


def whole_sequence(tensor, group):
    """Gathers (b, h, s / n, d) of every rank to (b, h, s, d) in the order of the sequence."""
    parts = gathered_with_sum_back(tensor.permute(2, 0, 1, 3), group)
    return _rearranged(parts, _order(get_world_size(group))).permute(1, 2, 0, 3)


class _Swap(autograd.Function):
    """All-to-all: sends the i-th part along dimension 0 to rank i. Backward sends the gradients back."""

    @staticmethod
    def forward(ctx, tensor, group):
        ctx.group = group
        return _swapped(tensor, group)

    @staticmethod
    def backward(ctx, grad):
        return _swapped(grad, ctx.group), None


def _swapped(tensor, group):
    tensor = tensor.contiguous()
    out = tensor.new_empty(tensor.shape)
    all_to_all_single(out, tensor, group=group)
    return out


def heads_for_pieces(tensor, group):
    """All-to-all from (b, h, s / n, d), all heads of a part of the sequence, to (b, h / n, s, d), some heads of all of it."""
    size = get_world_size(group)
    b, h, s, d = tensor.shape
    if h % size:
        raise ValueError(f"context parallelism by a2a needs heads ({h}) that {size} ranks can share")
    parts = _Swap.apply(
        tensor.view(b, size, h // size, s, d).permute(1, 3, 0, 2, 4), group
    )  # n, s / n, b, h / n, d
    return _rearranged(parts.flatten(0, 1), _order(size)).permute(1, 2, 0, 3)


def pieces_for_heads(tensor, group):
    """The inverse of heads_for_pieces: (b, h / n, s, d) to (b, h, s / n, d)."""
    size = get_world_size(group)
    b, h, s, d = tensor.shape
    order = _order(size)
    back = [order.index(i) for i in range(2 * size)]
    parts = _rearranged(tensor.permute(2, 0, 1, 3), back).view(size, s // size, b, h, d)
    parts = _Swap.apply(parts, group)  # n (heads), s / n, b, h / n, d
    return parts.permute(2, 0, 3, 1, 4).reshape(b, size * h, s // size, d)

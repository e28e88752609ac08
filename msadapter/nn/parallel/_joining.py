"""``DistributedDataParallel.join``: what a process does when it has no inputs left, but others have."""

from __future__ import annotations

from ... import ops
from ...autograd import is_grad_enabled, no_grad
from ...distributed import collectives
from ...distributed.algorithms.join import JoinHook
from ...distributed.reduce_op import ReduceOp


def common_rank(ddp, candidate: bool) -> int:
    """Return the highest rank in the group for which ``candidate`` is true. Every rank must call this."""
    group = ddp.process_group
    rank = ops.zeros((1,), dtype=ops.tensor(0).dtype) + (group.rank() if candidate else -1)
    collectives.all_reduce(rank, ReduceOp.MAX, group)
    if rank.item() == -1:
        raise AssertionError("BUG! Expected rank_cond to be true for at least one process.")
    return int(rank.item())


def gradients_are_due(ddp, joined: bool) -> bool:
    """Return whether any process will reduce gradients in this step.

    Every rank calls this before a forward.
    """
    due = not joined and ddp.require_backward_grad_sync and is_grad_enabled()
    flag = ops.ones(1) if due else ops.zeros(1)
    collectives.all_reduce(flag, group=ddp.process_group)
    return bool(flag.item())


class DDPJoinHook(JoinHook):
    """Takes part in the collectives of the other processes' forward and backward, with gradients of zero.

    At the end, all processes take the parameters of one that had inputs to the end.
    """

    def __init__(self, ddp, divide_by_initial_world_size: bool):
        self.ddp = ddp
        ddp._divide_by_initial_world_size = divide_by_initial_world_size

    def main_hook(self) -> None:
        """Take part in one training step of the other processes."""
        ddp = self.ddp
        due = gradients_are_due(ddp, joined=True)
        if due:
            ddp._share_buffers(candidate=False)
            with no_grad():
                ddp.reducer.follow(ddp.find_unused_parameters or ddp.static_graph)

    def post_hook(self, is_last_joiner: bool) -> None:
        """Broadcast the parameters and buffers of a process that had inputs until the end."""
        ddp = self.ddp
        root = common_rank(ddp, is_last_joiner)
        with no_grad():
            for tensor in (*ddp.module.parameters(), *ddp.module.buffers()):
                collectives.broadcast(tensor.detach(), group=ddp.process_group, group_src=root)

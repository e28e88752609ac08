"""Post-local SGD: averages gradients over all processes at first, and later only within subgroups.

An averager then averages the parameters periodically.
"""

from __future__ import annotations

from ....futures import Future
from ...setup import new_subgroups
from .default_hooks import allreduce_hook


class PostLocalSGDState:
    """State of the hook.

    `process_group` is used in the first start_localSGD_iter steps, `subgroup` (default: the processes of a node) afterwards.
    """

    def __init__(
        self, process_group, subgroup, start_localSGD_iter: int, post_local_gradient_allreduce: bool = True
    ):
        self.process_group, self.subgroup = process_group, subgroup
        self.start_localSGD_iter, self.post_local_gradient_allreduce = (
            start_localSGD_iter,
            post_local_gradient_allreduce,
        )
        self.iter = 0

    def maybe_increase_iter(self, bucket) -> None:
        """Increments the step counter at the last bucket of a step."""
        if bucket.is_last():
            self.iter += 1


def post_localSGD_hook(state: PostLocalSGDState, bucket):
    """The communication hook. `state` is the first argument of register_comm_hook."""
    start, whole = state.start_localSGD_iter, state.iter
    state.maybe_increase_iter(bucket)
    if whole < start:
        return allreduce_hook(state.process_group, bucket)
    if not state.post_local_gradient_allreduce:
        future = Future()
        future.set_result(bucket.buffer())
        return future
    if state.subgroup is None:
        state.subgroup, _ = new_subgroups()
    return allreduce_hook(state.subgroup, bucket)

"""The groups of processes of the engine, over torch.distributed.

MindSpeed-RL makes them itself and writes them into the variables below; these are vLLM's names for what it then asks.
"""

from __future__ import annotations

from typing import Any

import torch.distributed as dist

_WORLD: GroupCoordinator | None = None
_TP: GroupCoordinator | None = None
_PP: GroupCoordinator | None = None
_DP: GroupCoordinator | None = None
_EP: GroupCoordinator | None = None


class GroupCoordinator:
    """The group of this process among groups that together have all processes."""

    def __init__(self, group_ranks: list[list[int]], local_rank: int, backend: str) -> None:
        self.rank, self.local_rank = dist.get_rank(), local_rank
        self.ranks: list[int] = []
        for ranks in group_ranks:
            group = dist.new_group(ranks, backend=backend)  # all processes make all groups
            if self.rank in ranks:
                self.ranks, self.device_group = list(ranks), group
        if not self.ranks:
            raise ValueError(f"rank {self.rank} is in none of the groups {group_ranks}")
        self.world_size = len(self.ranks)
        self.rank_in_group = self.ranks.index(self.rank)

    @property
    def first_rank(self) -> int:
        return self.ranks[0]

    @property
    def last_rank(self) -> int:
        return self.ranks[-1]

    @property
    def is_first_rank(self) -> bool:
        return self.rank == self.first_rank

    @property
    def is_last_rank(self) -> bool:
        return self.rank == self.last_rank


def init_distributed_environment(
    world_size: int = -1,
    rank: int = -1,
    distributed_init_method: str = "env://",
    local_rank: int = -1,
    backend: str = "nccl",
) -> None:
    """Joins the processes, if MindSpeed-RL has not done so, and makes the group of all."""
    global _WORLD
    if not dist.is_initialized():
        dist.init_process_group(backend, distributed_init_method, world_size=world_size, rank=rank)
    if _WORLD is None:
        _WORLD = GroupCoordinator([list(range(dist.get_world_size()))], local_rank, dist.get_backend())


def init_model_parallel_group(
    group_ranks: list[list[int]], local_rank: int, backend: str, **_: Any
) -> GroupCoordinator:
    """A group. vLLM's further arguments choose between ways of communication and names for logs."""
    return GroupCoordinator(group_ranks, local_rank, backend)


def _made(group: GroupCoordinator | None, name: str) -> GroupCoordinator:
    if group is None:
        raise AssertionError(f"{name} is not initialized")
    return group


def get_world_group() -> GroupCoordinator:
    return _made(_WORLD, "world group")


def get_tp_group() -> GroupCoordinator:
    return _made(_TP, "tensor model parallel group")


def get_pp_group() -> GroupCoordinator:
    return _made(_PP, "pipeline model parallel group")


def get_dp_group() -> GroupCoordinator:
    return _made(_DP, "data parallel group")


def get_ep_group() -> GroupCoordinator:
    return _made(_EP, "expert parallel group")


get_tensor_model_parallel_group = get_tp_group
get_pipeline_model_parallel_group = get_pp_group


def get_tensor_model_parallel_rank() -> int:
    return get_tp_group().rank_in_group


def get_tensor_model_parallel_world_size() -> int:
    return get_tp_group().world_size

"""The sampler that gives each process of a job its part of a dataset."""

import math

from ... import distributed as dist
from ... import ops
from .sampler import Sampler, _new_generator

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler):
    """The indices of one process: every num_replicas-th index, equally many on each process.

    set_epoch changes the order of shuffled samples. If the number of samples is not divisible, the first ones are repeated, or
    with drop_last the last ones are left out.
    """

    def __init__(
        self,
        dataset,
        num_replicas=None,
        rank=None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ):
        if num_replicas is None or rank is None:
            num_replicas = dist.get_world_size() if num_replicas is None else num_replicas
            rank = dist.get_rank() if rank is None else rank
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        count = len(dataset)
        uneven = drop_last and count % num_replicas != 0
        self.num_samples = math.ceil((count - num_replicas if uneven else count) / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self):
        count = len(self.dataset)
        if self.shuffle:
            indices = ops.randperm(count, generator=_new_generator(self.seed + self.epoch)).tolist()
        else:
            indices = list(range(count))
        if self.drop_last:
            indices = indices[: self.total_size]
        else:
            missing = self.total_size - count
            indices += (indices * math.ceil(missing / count))[:missing] if missing else []
        if len(indices) != self.total_size:
            raise AssertionError(
                f"Number of indices ({len(indices)}) does not match total_size ({self.total_size})"
            )
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, which changes the order of the shuffled samples."""
        self.epoch = epoch

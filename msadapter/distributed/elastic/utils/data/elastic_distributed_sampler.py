"""A sampler that goes on in the middle of an epoch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sized

from ..... import ops
from .....utils.data.distributed import DistributedSampler
from .....utils.data.sampler import _new_generator

__all__ = ["ElasticDistributedSampler"]


class ElasticDistributedSampler(DistributedSampler):
    """A DistributedSampler of the part of a dataset that begins at ``start_index``, in an order that the epoch determines.

    When the number of processes changes, a job goes on with the samples that have not been seen. Each process has equally many
    samples; if they do not divide evenly, the first ones are repeated.
    """

    def __init__(
        self, dataset, num_replicas: int | None = None, rank: int | None = None, start_index: int = 0
    ):
        super().__init__(dataset=dataset, num_replicas=num_replicas, rank=rank)
        if not isinstance(dataset, Sized):
            raise TypeError("Dataset must be an instance of collections.abc.Sized")
        if start_index >= len(dataset):
            raise ValueError(f"Start index {start_index} should be less than dataset size {len(dataset)}")
        self.start_index = start_index
        self.num_samples = math.ceil((len(dataset) - start_index) / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset) - self.start_index
        drawn = ops.randperm(count, generator=_new_generator(self.epoch)).tolist()
        order = [self.start_index + place for place in drawn]
        order += order[: self.total_size - count]
        if len(order) != self.total_size:
            raise AssertionError(f"{count} samples are too few for {self.num_replicas} processes")
        return iter(order[self.rank : self.total_size : self.num_replicas])

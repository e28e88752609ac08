"""Epochs of samplers, generators of samplers and loaders, lengths and refusals."""

from __future__ import annotations

import random

import numpy as np

from tests.golden.answers import refusal
from tests.utils.data.data_cases import make_datasets, plain


def epochs_of_distributed_samplers(torch):
    found = []
    for options in (
        {},
        {"seed": 5},
        {"drop_last": True},
        {"shuffle": False},
        {"shuffle": False, "drop_last": True},
        {"seed": 3, "drop_last": True},
    ):
        for size in (1, 3, 10, 11):
            parts = [
                torch.utils.data.DistributedSampler(range(size), 4, rank, **options) for rank in range(4)
            ]
            for epoch in (None, 0, 3, 4, 1):
                for part in parts:
                    if epoch is not None:
                        part.set_epoch(epoch)
                found.append([[list(part) for part in parts], [len(part) for part in parts]])
    return found


def refusals_of_distributed_samplers(torch):
    make = torch.utils.data.DistributedSampler
    return [
        refusal(make, range(3), 4, 4),
        refusal(make, range(3), 4, -1),
        refusal(make, range(3), 4, 3),
        refusal(make, range(3))[0],
    ]


def generators_of_samplers(torch):
    data = torch.utils.data
    found = []
    for make in (
        lambda g: data.RandomSampler(range(9), generator=g),
        lambda g: data.RandomSampler(range(9), num_samples=20, generator=g),
        lambda g: data.RandomSampler(range(9), True, 40, generator=g),
        lambda g: data.RandomSampler(range(9), True, generator=g),
        lambda g: data.SubsetRandomSampler([4, 2, 7], generator=g),
        lambda g: data.WeightedRandomSampler([0.1, 3.0, 0.2], 7, generator=g),
        lambda g: data.WeightedRandomSampler([0.1, 3.0, 0.2], 2, replacement=False, generator=g),
        lambda g: data.BatchSampler(data.RandomSampler(range(9), generator=g), 4, True),
    ):
        generator = torch.Generator().manual_seed(11)
        torch.manual_seed(2)
        sampler = make(generator)
        orders = [list(sampler), list(sampler), len(sampler)]
        found.append([orders, torch.rand(1, generator=generator).item(), torch.rand(1).item()])
        torch.manual_seed(2)
        sampler = make(None)
        found.append([list(sampler), list(sampler), torch.rand(1).item()])
    return found


def splits(torch):
    split = torch.utils.data.random_split
    found = []
    for lengths in ([3, 4, 2], [0.5, 0.5], [0.21, 0.39, 0.4], [9, 0]):
        parts = split(range(9), lengths, torch.Generator().manual_seed(4))
        found.append([[part.indices for part in parts], [len(part) for part in parts], list(parts[0])])
    return [*found, refusal(split, range(9), [3, 3])[0], refusal(split, range(9), [0.5, 0.6])[0]]


def _rows(loader):
    return [[plain(batch) for batch in loader] for _ in range(2)]


def generators_of_loaders(torch):
    """The loader's generator determines the order of the samples and the seeds of the workers. The global one does not change."""
    found = []
    for workers in (0, 2):
        for given in (True, False):
            torch.manual_seed(9)
            random.seed(1)
            np.random.seed(2)
            generator = torch.Generator().manual_seed(21) if given else None
            loader = torch.utils.data.DataLoader(
                make_datasets(torch)["noise"], 4, shuffle=True, num_workers=workers, generator=generator
            )
            found.append([_rows(loader), torch.rand(1).item()])
            found.append(None if generator is None else torch.rand(1, generator=generator).item())
    return found


def seeds_of_workers(torch):
    """Each worker's seed is the loader's seed plus the worker's number. It differs between epochs."""

    class Seeds(torch.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            info = torch.utils.data.get_worker_info()
            return [info.id, info.num_workers, info.seed == torch.initial_seed(), info.seed % 1000]

    torch.manual_seed(3)
    loader = torch.utils.data.DataLoader(Seeds(), batch_size=None, num_workers=2)
    return [list(loader), list(loader)]


def lengths_of_loaders(torch):
    data = torch.utils.data
    found = []
    for size in (0, 1, 7, 8, 9):
        for options in (
            {"batch_size": 4},
            {"batch_size": 4, "drop_last": True},
            {"batch_size": None},
            {"batch_sampler": [[0], [0, 0]]},
            {"sampler": data.SequentialSampler(range(3)), "batch_size": 2},
        ):
            loader = data.DataLoader(list(range(size)), **options)
            found.append([len(loader), loader.batch_size, loader.drop_last])
    return found


def options_that_exclude_each_other(torch):
    data = torch.utils.data
    rows, stream = list(range(5)), make_datasets(torch)["stream"]
    order = data.SequentialSampler(rows)
    return [
        refusal(data.DataLoader, rows, sampler=order, shuffle=True),
        refusal(data.DataLoader, rows, sampler=order, shuffle=False),
        refusal(data.DataLoader, stream, shuffle=True)[0],
        refusal(data.DataLoader, stream, shuffle=False)[0],
        refusal(data.DataLoader, stream, sampler=order)[0],
        refusal(data.DataLoader, stream, batch_sampler=[[1]])[0],
        refusal(data.DataLoader, rows, batch_size=2, batch_sampler=[[1]])[0],
        refusal(data.DataLoader, rows, batch_size=1, batch_sampler=[[1]])[0],
        refusal(data.DataLoader, rows, batch_size=None, drop_last=True)[0],
        refusal(data.DataLoader, rows, shuffle=True, batch_sampler=[[1]])[0],
        refusal(data.DataLoader, rows, num_workers=-1)[0],
        refusal(data.DataLoader, rows, timeout=-1)[0],
        refusal(data.DataLoader, rows, num_workers=0, prefetch_factor=2)[0],
        refusal(data.DataLoader, rows, num_workers=0, persistent_workers=True)[0],
        refusal(data.DataLoader, rows, batch_size=0)[0],
        refusal(data.BatchSampler, order, 0, False)[0],
        refusal(data.BatchSampler, order, 2, 1)[0],
        refusal(data.RandomSampler, rows, 3)[0],
        refusal(data.RandomSampler, rows, num_samples=0)[0],
        refusal(data.RandomSampler, [])[0],
        refusal(data.WeightedRandomSampler, [1.0], 0)[0],
        refusal(data.WeightedRandomSampler, [1.0], 1, 1)[0],
        refusal(data.WeightedRandomSampler, [[1.0]], 1)[0],
    ]


CASES: dict = {}

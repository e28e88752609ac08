"""DistributedDataParallel against one process that sees all data."""

import contextlib
import copy

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.aside = nn.Linear(4, 300), nn.Linear(300, 2), nn.Linear(4, 2)

    def forward(self, x, aside=False):
        out = self.two(torch.relu(self.one(x)))
        return out + self.aside(x) if aside else out


def data(rank):
    generator = torch.Generator().manual_seed(rank)
    return torch.randn(8, 4, generator=generator)


def models(rank, **options):
    torch.manual_seed(rank)  # different at first: the wrapper makes them equal
    model = DDP(Net(), **options)
    return model, copy.deepcopy(model.module)


def grads(module):
    return {name: p.grad for name, p in module.named_parameters()}


def compare(model, alone):
    for name, expected in grads(alone).items():
        got = grads(model.module)[name]
        assert (got is None) == (expected is None), name
        assert got is None or torch.allclose(got, expected, atol=1e-6), name


def reference(alone, size, aside=lambda rank: True):
    for rank in range(size):
        (alone(data(rank), aside(rank)).square().mean() / size).backward()


def check_gradients_are_averaged(rank, size):
    for options in ({}, {"bucket_cap_mb": 0.001}, {"gradient_as_bucket_view": True}):
        model, alone = models(rank, **options)
        for _ in range(2):
            model.zero_grad()
            alone.zero_grad()
            model(data(rank), True).square().mean().backward()
            reference(alone, size)
            compare(model, alone)


def check_no_sync_accumulates(rank, size):
    model, alone = models(rank)
    for sync in (False, True):
        with contextlib.nullcontext() if sync else model.no_sync():
            model(data(rank), True).square().mean().backward()
        reference(alone, size)
    compare(model, alone)


def check_unused_parameters(rank, size):
    model, alone = models(rank, find_unused_parameters=True)
    model(data(rank), rank == 0).square().mean().backward()  # only rank 0 uses `aside`
    reference(alone, size, lambda rank: rank == 0)
    compare(model, alone)
    model, alone = models(rank, find_unused_parameters=True)
    model(data(rank)).square().mean().backward()  # nobody does
    reference(alone, size, lambda rank: False)
    compare(model, alone)


def check_unused_parameters_are_an_error_otherwise(rank, size):
    model, _ = models(rank)
    model(data(rank)).square().mean().backward()
    try:
        model(data(rank))
    except RuntimeError as err:
        assert "Expected to have finished reduction in the prior iteration" in str(err)
    else:
        raise AssertionError("no error")


def check_communication_hook(rank, size):
    model, alone = models(rank, bucket_cap_mb=0.001)
    seen = []

    def hook(state, bucket):
        seen.append((bucket.index(), bucket.is_last()))
        work = torch.distributed.all_reduce(bucket.buffer(), async_op=True)
        return work.get_future().then(lambda future: future.value()[0] / state)

    model.register_comm_hook(size, hook)
    model(data(rank), True).square().mean().backward()
    reference(alone, size)
    compare(model, alone)
    assert [i for i, _ in seen] == list(range(len(seen))) and len(seen) > 2 and seen[-1][1]


def check_buffers_are_those_of_rank_0(rank, size):
    model = DDP(nn.BatchNorm1d(4))
    model(data(rank))
    model(data(rank))
    expected = nn.BatchNorm1d(4)
    expected(data(0))
    with torch.no_grad():
        model.eval()
        model(data(rank))
    assert torch.allclose(model.module.running_mean, 0.9 * expected.running_mean + 0.1 * data(0).mean(0), atol=1e-6)

"""DistributedDataParallel, compared with one process that gets all data."""

import contextlib
import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed._composable import replicate
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks as hooks
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer as Zero
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.nn.parallel.distributed import _MixedPrecision


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
    torch.manual_seed(rank)  # different at first, so that the wrapper must make them equal
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


def check_replicate_gives_the_gradients_of_the_wrapper(rank, size):
    torch.manual_seed(rank)  # different at first, so that replicate must make them equal
    model = Net()
    names = [name for name, _ in model.named_parameters()]
    assert replicate(model, device_mesh=dist.device_mesh.init_device_mesh("cpu", (size,))) is model
    assert isinstance(model, Net) and type(model).__name__ == "DDPNet"
    assert [name for name, _ in model.named_parameters()] == names  # no wrapper's names before them
    model(data(rank), True).square().mean().backward()
    alone = Net()
    alone.load_state_dict(model.state_dict())
    reference(alone, size)
    for name, expected in grads(alone).items():
        assert torch.allclose(grads(model)[name], expected, atol=1e-6), name
    refused(AssertionError, "more than once", lambda: replicate(model))
    refused(AssertionError, "DDP does not support deepcopy", lambda: copy.deepcopy(model))


def check_replicate_leaves_ignored_modules_alone(rank, size):
    torch.manual_seed(rank)
    model = Net()
    own = model.aside.weight.detach().clone()
    replicate(model, ignored_modules=[model.aside])
    model(data(rank), True).square().mean().backward()
    assert torch.equal(model.aside.weight, own)  # the weights of rank 0 were not sent
    summed = model.aside.weight.grad.clone()
    dist.all_reduce(summed)
    assert not torch.allclose(summed, model.aside.weight.grad * size)
    shared = model.one.weight.grad.clone()
    dist.all_reduce(shared)
    assert torch.allclose(shared, model.one.weight.grad * size)


def check_replicate_accumulates_and_takes_hooks(rank, size):
    torch.manual_seed(0)
    model = replicate(nn.Linear(4, 1), device_id=torch.device("cpu"))
    seen = []

    def hook(state, bucket):
        seen.append(state)
        return hooks.allreduce_hook(None, bucket)

    model.register_comm_hook("state", hook)
    model.set_requires_gradient_sync(False)
    model(data(rank)).sum().backward()
    assert not seen and torch.allclose(model.weight.grad, data(rank).sum(0))
    model.set_requires_gradient_sync(True)
    model(data(rank)).sum().backward()
    expected = sum(2 * data(r).sum(0) for r in range(size)) / size
    assert seen == ["state"] and torch.allclose(model.weight.grad, expected, atol=1e-5)


def check_replicate_refuses(rank, size):
    refused(
        NotImplementedError, "mixed_precision", lambda: replicate(Net(), mixed_precision=_MixedPrecision())
    )
    refused(RuntimeError, "Expected device_id", lambda: replicate(Net(), device_id="cpu"))


def refused(kind, text, call):
    try:
        call()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"no {kind.__name__}")


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
    model(data(rank)).square().mean().backward()  # no rank does
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
    assert torch.allclose(
        model.module.running_mean, 0.9 * expected.running_mean + 0.1 * data(0).mean(0), atol=1e-6
    )


def learned(rank, size, model, alone, optimizer, plain=None, steps=3, atol=1e-6):
    """The wrapped model on each rank's data and a model with all data must have the same parameters after
    some steps.
    """
    first, second = optimizer(model.parameters()), plain or torch.optim.AdamW(alone.parameters(), 1e-2)
    for _ in range(steps):
        model(data(rank), True).square().mean().backward()
        reference(alone, size)
        for o in (first, second):
            o.step()
            o.zero_grad()
    for p, q in zip(model.parameters(), alone.parameters(), strict=True):
        assert torch.allclose(p, q, atol=atol), (p - q).abs().max()
    return first, second


def check_zero_redundancy_optimizer(rank, size):
    for options in ({}, {"parameters_as_bucket_view": True}):
        model, alone = models(rank)
        zero, plain = learned(
            rank, size, model, alone, lambda p, o=options: Zero(p, torch.optim.AdamW, lr=1e-2, **o)
        )
        own = sum(p.numel() for g in zero.optim.param_groups for p in g["params"])
        assert own < sum(p.numel() for p in model.parameters()) and len(zero.optim.state) < 6
        try:
            zero.state_dict()
        except RuntimeError as err:
            assert "consolidate_state_dict" in str(err)
        else:
            raise AssertionError("no error")
        for to in range(size):
            zero.consolidate_state_dict(to)
            if rank == to:
                whole = zero.state_dict()
        expected = plain.state_dict()
        assert list(whole["state"]) == list(expected["state"])
        for i, state in expected["state"].items():
            for key, value in state.items():
                assert torch.allclose(whole["state"][i][key], value, atol=1e-6), (i, key)
        fresh, _ = models(rank)
        second = Zero(fresh.parameters(), torch.optim.AdamW, lr=1e-3)
        second.load_state_dict(whole)
        assert second.param_groups[0]["lr"] == 1e-2
        with torch.no_grad():
            for p, q in zip(fresh.parameters(), alone.parameters(), strict=True):
                p.copy_(q)
        learned(rank, size, fresh, alone, lambda p, s=second: s, plain)


def check_zero_with_schedule_closure_and_groups(rank, size):
    model, _ = models(rank)
    zero = Zero([{"params": model.module.one.parameters()}, {"params": model.module.two.parameters(), "lr": 0.5}],
                torch.optim.SGD, lr=0.1)  # fmt: skip
    zero.add_param_group({"params": list(model.module.aside.parameters()), "lr": 0.25})
    scheduler = torch.optim.lr_scheduler.StepLR(zero, 1, 0.1)
    calls = []

    def closure():
        calls.append(1)
        zero.zero_grad()
        loss = model(data(rank), True).square().mean()
        loss.backward()
        return loss

    assert zero.step(closure).ndim == 0 and calls == [1]
    scheduler.step()
    zero.step(closure)
    assert [round(g["lr"], 9) for g in zero.optim.param_groups] == [0.01, 0.05, 0.025]
    for p in model.parameters():
        everywhere = [torch.zeros_like(p) for _ in range(size)]
        torch.distributed.all_gather(everywhere, p.detach())
        assert torch.equal(everywhere[0], everywhere[-1])
    try:
        Zero(model.parameters(), torch.optim.SGD, lr=1, overlap_with_ddp=True)
    except NotImplementedError:
        return
    raise AssertionError("no error")


def check_join_with_uneven_inputs(rank, size):
    for initial in (True, False):
        model, alone = models(rank)
        first = torch.optim.SGD(model.parameters(), 0.1)
        second = torch.optim.SGD(alone.parameters(), 0.1)
        with model.join(divide_by_initial_world_size=initial):
            for _ in range(2 + rank):  # the last rank has the most inputs
                first.zero_grad()
                model(data(rank), True).square().mean().backward()
                first.step()
        for step in range(1 + size):
            present = [r for r in range(size) if step < 2 + r]
            second.zero_grad()
            for r in present:
                (alone(data(r), True).square().mean() / (size if initial else len(present))).backward()
            second.step()
        for p, q in zip(model.parameters(), alone.parameters(), strict=True):
            assert torch.allclose(p, q, atol=1e-6)


def check_join_with_buffers_unused_parameters_and_zero(rank, size):
    model = DDP(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)), find_unused_parameters=True)
    zero = Zero(model.parameters(), torch.optim.SGD, lr=0.1)
    with Join([model, zero]):
        for step in range(1 + 2 * rank):
            zero.zero_grad()
            with model.no_sync() if step == 1 else contextlib.nullcontext():
                model(data(rank)).square().sum().backward()
            zero.step()
    for tensor in (*model.parameters(), *model.buffers()):
        everywhere = [torch.zeros_like(tensor) for _ in range(size)]
        torch.distributed.all_gather(everywhere, tensor.detach())
        assert torch.equal(everywhere[0], everywhere[-1])


def check_join_that_throws(rank, size):
    model, _ = models(rank)
    try:
        with model.join(throw_on_early_termination=True):
            for _ in range(1 + rank):
                model(data(rank), True).square().mean().backward()
    except RuntimeError as err:
        assert ("exhausted all inputs" if rank == 0 else "Throwing across all ranks") in str(err)
    else:
        raise AssertionError("no error")


def check_default_hooks(rank, size):
    for hook, atol in ((hooks.allreduce_hook, 1e-6), (hooks.bf16_compress_hook, 1e-2), (hooks.fp16_compress_hook, 1e-3),
                       (hooks.bf16_compress_wrapper(hooks.allreduce_hook), 1e-2),
                       (hooks.fp16_compress_wrapper(hooks.allreduce_hook), 1e-3)):  # fmt: skip
        model, alone = models(rank, bucket_cap_mb=0.001)
        model.register_comm_hook(None, hook)
        model(data(rank), True).square().mean().backward()
        reference(alone, size)
        for name, expected in grads(alone).items():
            got = grads(model.module)[name]
            assert got.dtype is torch.float32 and torch.allclose(got, expected, atol=atol), name


def check_power_sgd(rank, size):
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power

    matrix = torch.arange(24.0).reshape(6, 4) + 1
    for wide in (1, 4):
        model = DDP(nn.Linear(4, 6, bias=False), bucket_cap_mb=1)
        state = power.PowerSGDState(
            None, matrix_approximation_rank=wide, start_powerSGD_iter=2, min_compression_rate=0.1
        )
        model.register_comm_hook(state, power.powerSGD_hook)
        for _ in range(4):
            model.zero_grad()
            (model(torch.eye(4)).t() * matrix * (rank + 1)).sum().backward()
        expected = matrix * (size + 1) / 2
        error = (model.module.weight.grad - expected).norm() / expected.norm()
        assert error < (1e-5 if wide == 4 else 0.2), (wide, error)


def check_post_local_sgd(rank, size):
    from torch.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook as post
    from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
    from torch.distributed.optim import PostLocalSGDOptimizer

    model, alone = models(rank)
    state = post.PostLocalSGDState(None, None, start_localSGD_iter=1, post_local_gradient_allreduce=False)
    model.register_comm_hook(state, post.post_localSGD_hook)
    optimizer = PostLocalSGDOptimizer(
        torch.optim.SGD(model.parameters(), 0.1), PeriodicModelAverager(period=2, warmup_steps=1)
    )
    single = [copy.deepcopy(alone) for _ in range(size)]
    for step in range(4):
        optimizer.zero_grad()
        model(data(rank), True).square().mean().backward()
        optimizer.step()
        for r, one in enumerate(single):
            one.zero_grad()
            one(data(r), True).square().mean().backward()
        together = [
            sum(p.grad for p in column) / size
            for column in zip(*(one.parameters() for one in single), strict=True)
        ]
        for one in single:
            for p, g in zip(one.parameters(), together, strict=True):
                p.data.sub_(0.1 * (g if step == 0 else p.grad))
        if step >= 1 and (step - 1) % 2 == 0:
            for column in zip(*(one.parameters() for one in single), strict=True):
                mean = sum(p.detach() for p in column) / size
                for p in column:
                    p.data.copy_(mean)
    for p, q in zip(model.parameters(), single[rank].parameters(), strict=True):
        assert torch.allclose(p, q, atol=1e-6)
    assert optimizer.state_dict()["step"] == 4


def check_mixed_precision(rank, size):
    seen = []
    policy = _MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    model, alone = models(rank, mixed_precision=policy)
    model.module.one.register_forward_hook(lambda m, x, y: seen.append((m.weight.dtype, x[0].dtype, y.dtype)))
    model(data(rank), True).float().square().mean().backward()
    assert seen == [(torch.bfloat16,) * 3]
    reference(alone, size)
    for name, expected in grads(alone).items():
        got = grads(model.module)[name]
        assert got.dtype is torch.float32 and torch.allclose(got, expected, atol=0.02), name
    assert all(p.dtype is torch.float32 and isinstance(p, nn.Parameter) for p in model.parameters())


def check_static_graph(rank, size):
    model, alone = models(rank, static_graph=True)
    for _ in range(2):
        model.zero_grad()
        alone.zero_grad()
        model(data(rank)).square().mean().backward()  # `aside` is never used
        reference(alone, size, lambda rank: False)
        compare(model, alone)

"""Pipelines against one process: losses, results and gradients. Runs on two and on four ranks."""

import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleLoopedBFS,
    SplitPoint,
    pipeline,
)
from torch.nn.parallel import DistributedDataParallel

MICROBATCHES = 8


class Two(nn.Module):
    """Takes and gives two tensors, of which the second has integers and no gradient, and the first may be unused."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x, keys=None, scale=1.0):
        keys = torch.arange(x.shape[0]) if keys is None else keys
        return self.linear(x).tanh() * scale, keys + 1


class First(nn.Module):
    """Gives the first of two tensors, weighted by the second."""

    def forward(self, x, keys):
        return x * keys[:, None]


def whole(count):
    """The stages of one model, the same on every rank."""
    torch.manual_seed(3)
    return [nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 4)) for _ in range(count)]


def batch(rows=16):
    torch.manual_seed(4)
    return torch.randn(rows, 4), torch.randn(rows, 4)


def alone(stages, x, y, rows=16):
    """Losses of the microbatches, the result, and the gradients of every stage, computed by this process."""
    stages = copy.deepcopy(stages)
    outputs, losses = [], []
    for part, want in zip(x.tensor_split(MICROBATCHES), y.tensor_split(MICROBATCHES), strict=True):
        for stage in stages:
            part = stage(*part) if isinstance(part, tuple) else stage(part)
        outputs.append(part)
        losses.append(nn.functional.mse_loss(part, want))
        (losses[-1] / MICROBATCHES).backward()
    return losses, torch.cat(outputs), [[p.grad for p in stage.parameters()] for stage in stages]


def same(schedule, own, stages, rank, size, x=None, y=None):
    """Two steps of a schedule give what one process computes."""
    if x is None:
        x, y = batch()
    want_losses, want, gradients = alone(stages, x, y)
    last = any(i == len(stages) - 1 for i in own)
    for _ in range(2):
        for i in own:
            stages[i].zero_grad()
        losses = []
        out = schedule.step(*([x] if 0 in own else []), target=y if last else None, losses=losses)
        assert (out is not None) == last
        if last:
            assert torch.allclose(out, want, atol=1e-6)
            assert torch.allclose(torch.stack(losses), torch.stack(want_losses), atol=1e-6)
        for i in own:
            for p, g in zip(stages[i].parameters(), gradients[i], strict=True):
                assert torch.allclose(p.grad, g, atol=1e-6), (i, p.grad, g)
        for stage in schedule._stages:
            assert not stage.fwd_cache and not stage._sending
    losses = []
    out = schedule.eval(*([x] if 0 in own else []), target=y if last else None, losses=losses)
    if last:
        assert torch.allclose(out, want, atol=1e-6) and len(losses) == MICROBATCHES


def run_single(kind, rank, size, stages=None, **batches):
    stages = whole(size) if stages is None else stages
    stage = PipelineStage(stages[rank], rank, size, torch.device("cpu"))
    schedule = kind(stage, MICROBATCHES, loss_fn=nn.functional.mse_loss)
    same(schedule, [rank], stages, rank, size, **batches)


def run_several(kind, rank, size, each):
    stages = whole(size * each)
    own = list(range(rank, size * each, size))
    made = [PipelineStage(stages[i], i, size * each, torch.device("cpu")) for i in own]
    same(kind(made, MICROBATCHES, loss_fn=nn.functional.mse_loss), own, stages, rank, size)


def check_gpipe(rank, size):
    run_single(ScheduleGPipe, rank, size)


def check_1f1b(rank, size):
    run_single(Schedule1F1B, rank, size)


def check_interleaved(rank, size):
    run_several(ScheduleInterleaved1F1B, rank, size, 2)
    run_several(ScheduleInterleaved1F1B, rank, size, 3)


def check_breadth_first(rank, size):
    run_several(ScheduleLoopedBFS, rank, size, 2)


def check_microbatches_of_different_lengths(rank, size):
    torch.manual_seed(4)
    x, y = torch.randn(19, 4), torch.randn(19, 4)
    run_single(Schedule1F1B, rank, size, x=x, y=y)


def check_several_tensors(rank, size):
    torch.manual_seed(3)
    run_single(Schedule1F1B, rank, size, [*(Two() for _ in range(size - 1)), First()])


def check_frozen_stage(rank, size):
    """Stages without gradients at the start send nothing back, and the others train."""
    stages = whole(size)
    frozen = stages[0].requires_grad_(False)
    x, y = batch()
    stage = PipelineStage(stages[rank], rank, size, torch.device("cpu"))
    Schedule1F1B(stage, MICROBATCHES, loss_fn=nn.functional.mse_loss).step(
        *([x] if rank == 0 else []), target=y
    )
    assert all(p.grad is None for p in frozen.parameters())
    if rank:
        _, _, gradients = alone(stages, x, y)
        for p, g in zip(stages[rank].parameters(), gradients[rank], strict=True):
            assert torch.allclose(p.grad, g, atol=1e-6)


def check_keywords_and_unscaled_gradients(rank, size):
    """Each rank gives its own stage keyword arguments; gradients are sums if they are not scaled."""
    torch.manual_seed(3)
    stages = [*(Two() for _ in range(size - 1)), First()]
    x, y = batch()
    stage = PipelineStage(stages[rank], rank, size, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, MICROBATCHES, loss_fn=nn.functional.mse_loss, scale_grads=False)
    more = {"scale": 0.5} if rank == 0 else {}
    out = schedule.step(*([x] if rank == 0 else []), target=y, **more)
    reference = copy.deepcopy(stages)
    reference[0].zero_grad()
    total = 0.0
    outputs = []
    for part, want in zip(x.tensor_split(MICROBATCHES), y.tensor_split(MICROBATCHES), strict=True):
        part = reference[0](part, scale=0.5)
        for one in reference[1:]:
            part = one(*part)
        outputs.append(part)
        total = total + nn.functional.mse_loss(part, want)
    for p in reference[rank].parameters():
        p.grad = None
    total.backward()
    for p, q in zip(stages[rank].parameters(), reference[rank].parameters(), strict=True):
        assert torch.allclose(p.grad, q.grad, atol=1e-6)
    if rank == size - 1:
        assert torch.allclose(out, torch.cat(outputs), atol=1e-6)


def check_with_data_parallel(rank, size):
    """On four ranks, two pipelines: each pair of ranks with the same stage reduces its gradients once a step."""
    if size != 4:
        return
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "pipeline"))
    line, pair = mesh["pipeline"].get_group(), mesh["data"].get_group()
    at, copy_of = line.rank(), pair.rank()
    stages = whole(2)
    x, y = batch(32)
    halves = [(x[:16], y[:16]), (x[16:], y[16:])]
    wanted = [alone(stages, *half)[2][at] for half in halves]
    wrapped = DistributedDataParallel(stages[at], process_group=pair)
    stage = PipelineStage(wrapped, at, 2, torch.device("cpu"), group=line)
    schedule = Schedule1F1B(stage, MICROBATCHES, loss_fn=nn.functional.mse_loss)
    for _ in range(2):
        wrapped.zero_grad()
        schedule.step(*([halves[copy_of][0]] if at == 0 else []), target=halves[copy_of][1])
        for p, one, two in zip(wrapped.parameters(), *wanted, strict=True):
            assert torch.allclose(p.grad, (one + two) / 2, atol=1e-6)


class Skipping(nn.Module):
    """A model whose first result and whose second argument are used by the last stage too."""

    def __init__(self, count):
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 4)
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(count)])

    def forward(self, x, scale):
        start = hidden = self.first(x)
        for block in self.blocks:
            hidden = block(hidden)
        return self.last(hidden + start.view(x.shape[0], -1)) * scale


def check_split_model(rank, size):
    """Stages that pipeline() makes of one model, with values that pass stages which do not use them."""
    torch.manual_seed(3)
    model = Skipping(size - 1)
    reference = copy.deepcopy(model)
    x, y = batch()
    scale = torch.linspace(0.5, 1.5, 16)[:, None]
    spec = {f"blocks.{i}": SplitPoint.BEGINNING for i in range(size - 1)}
    pipe = pipeline(model, (x[:2], scale[:2]), split_spec=spec)
    assert pipe.num_stages == size
    assert torch.allclose(pipe(x[:2], scale[:2])[0], reference(x[:2], scale[:2]))
    stage = pipe.build_stage(rank, torch.device("cpu"))
    schedule = Schedule1F1B(stage, MICROBATCHES, loss_fn=nn.functional.mse_loss)
    losses = []
    out = schedule.step(*([x, scale] if rank == 0 else []), target=y, losses=losses)
    want = reference(x, scale)
    loss = nn.functional.mse_loss(want, y)
    loss.backward()
    wanted = dict(reference.named_parameters())
    own = dict(stage.submod.named_parameters())
    assert own
    for name, parameter in own.items():
        assert torch.allclose(parameter.grad, wanted[name].grad, atol=1e-6), name
    if rank == size - 1:
        assert torch.allclose(out, want, atol=1e-6)
        assert torch.allclose(torch.stack(losses).mean(), loss, atol=1e-6)


def check_refusals(rank, size):
    stage = PipelineStage(whole(1)[0], rank, size, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, 2, loss_fn=nn.functional.mse_loss)
    try:
        with torch.no_grad():
            schedule.step(torch.randn(4, 4))
    except RuntimeError as err:
        assert "Please call eval() instead" in str(err)
    else:
        raise AssertionError("a step without gradients was accepted")
    try:
        Schedule1F1B(stage, size - 1)
    except ValueError as err:
        assert f"Number of microbatches ({size - 1}) must be greater" in str(err)
    else:
        raise AssertionError("too few microbatches were accepted")
    try:
        PipelineStage(nn.Identity(), 0, 1, "cpu")
    except RuntimeError as err:
        assert f"Pipeline group size {size} cannot be larger than number of stages 1" in str(err)
    else:
        raise AssertionError("more ranks than stages were accepted")
    dist.barrier()

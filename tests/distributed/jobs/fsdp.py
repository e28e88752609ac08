"""fully_shard, compared with one process that gets all data."""

import copy
import os
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor import parallel as tp
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, width=6, recompute=False, hidden=9):
        super().__init__()
        self.norm, self.up, self.down = (
            nn.LayerNorm(width),
            nn.Linear(width, hidden),
            nn.Linear(hidden, width),
        )
        self.recompute = recompute

    def inner(self, x):
        return self.down(torch.relu(self.up(self.norm(x))))

    def forward(self, x):
        return x + (checkpoint(self.inner, x, use_reentrant=False) if self.recompute else self.inner(x))


class Net(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.embed = nn.Embedding(11, 6)
        self.blocks = nn.ModuleList(Block(**options) for _ in range(3))
        self.head = nn.Linear(6, 11, bias=False)
        self.head.weight = self.embed.weight  # shared

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def pair(**options):
    torch.manual_seed(11)
    alone = Net(**options)
    return alone, copy.deepcopy(alone)


def spread(model, **options):
    for block in model.blocks:
        fully_shard(block, **options)
    return fully_shard(model, **options)


def batch(step, rank):
    return (torch.arange(10) * 7 + step * 3 + rank).reshape(2, 5) % 11


def loss_of(model, ids):
    return F.cross_entropy(model(ids).float().flatten(0, 1), ids.flatten())


def whole(x):
    return x.full_tensor() if isinstance(x, DTensor) else x


def trained(
    rank,
    size,
    alone,
    model,
    optimizer=lambda p: torch.optim.AdamW(p, 1e-2),
    steps=3,
    atol=1e-6,
    parts=1,
    ranks=None,
):
    """Each rank learns from its own data, and the single process from all. parts: micro batches in a step."""
    first, second = optimizer(alone.parameters()), optimizer(model.parameters())
    count = ranks or size
    for step in range(steps):
        expected = 0
        for part in range(parts):
            for r in range(count):
                loss = loss_of(alone, batch(step + 10 * part, r)) / count / parts
                loss.backward()
                expected += loss.item()
        got = 0
        for part in range(parts):
            if parts > 1:
                model.set_requires_gradient_sync(part == parts - 1)
            own = loss_of(model, batch(step + 10 * part, rank % count)) / parts
            own.backward()
            got += own.detach()
        torch.distributed.all_reduce(got)
        assert abs(got.item() / size - expected) < atol, (step, got.item() / size, expected)
        norms = [nn.utils.clip_grad_norm_(m.parameters(), 0.5) for m in (alone, model)]
        assert torch.allclose(norms[0], whole(norms[1]), atol=10 * atol), norms
        for o in (first, second):
            o.step()
            o.zero_grad()
    for (name, p), q in zip(alone.named_parameters(), model.parameters(), strict=True):
        assert torch.allclose(p, whole(q).to(p.dtype), atol=10 * atol), name


def check_learns_as_one_process(rank, size):
    for options in (
        {},
        {"reshard_after_forward": False},
        {"mesh": init_device_mesh("cpu", (size,))},
        {"offload_policy": CPUOffloadPolicy()},
        {"shard_placement_fn": lambda p: Shard(p.ndim - 1)},
    ):
        alone, model = pair()
        spread(model, **options)
        assert isinstance(model, FSDPModule) and isinstance(model, Net) and type(model).__name__ == "FSDPNet"
        trained(rank, size, alone, model)
        assert all(isinstance(p, DTensor) for p in model.parameters())
        assert model.head.weight is model.embed.weight


def check_recomputation(rank, size):
    alone, model = pair(recompute=True)
    trained(rank, size, alone, spread(model))


def check_gradient_accumulation(rank, size):
    alone, model = pair()
    trained(rank, size, alone, spread(model), parts=2)


def check_only_the_root(rank, size):
    alone, model = pair()
    trained(rank, size, alone, fully_shard(model), lambda p: torch.optim.SGD(p, 0.1, momentum=0.9))


def check_several_modules_as_one_group(rank, size):
    alone, model = pair()
    fully_shard([model.blocks[0], model.blocks[1]])
    trained(rank, size, alone, fully_shard(model))


def check_replicas(rank, size):
    if size < 4:
        return
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    alone, model = pair()
    spread(model, mesh=mesh)
    assert model.embed.weight.placements == (Replicate(), Shard(0))
    trained(rank, size, alone, model)


def check_with_tensor_parallelism(rank, size):
    if size < 4:
        return
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    alone, model = pair(hidden=8)
    for block in model.blocks:
        tp.parallelize_module(block, mesh["tp"], {"up": tp.ColwiseParallel(), "down": tp.RowwiseParallel()})
        fully_shard(block, mesh=mesh["dp"])
    fully_shard(model, mesh=mesh["dp"])
    up = model.blocks[0].up.weight
    assert (
        up.device_mesh.mesh_dim_names == ("dp", "tp")
        and up.placements[1] == Shard(0)
        and up.placements[0].split_factor == 2
    )
    assert torch.equal(up.full_tensor(), alone.blocks[0].up.weight)
    # the parameters belong to two meshes, and each kind has its own optimizer, as in PyTorch
    first, second = (
        torch.optim.AdamW(alone.parameters(), 1e-2),
        torch.optim.AdamW(model.parameters(), 1e-2, foreach=False),
    )
    row = mesh.get_local_rank("dp")
    for step in range(3):
        for r in range(2):
            (loss_of(alone, batch(step, r)) / 2).backward()
        loss_of(model, batch(step, row)).backward()
        for (name, p), q in zip(alone.named_parameters(), model.parameters(), strict=True):
            assert torch.allclose(p.grad, whole(q.grad), atol=1e-6), (step, name)
        for o in (first, second):
            o.step()
            o.zero_grad()
    for p, q in zip(alone.parameters(), model.parameters(), strict=True):
        assert torch.allclose(p, whole(q), atol=1e-5)


def check_mixed_precision(rank, size):
    seen = []
    alone, model = pair()
    policy = {"param_dtype": torch.bfloat16, "reduce_dtype": torch.float32}
    for block in model.blocks:
        fully_shard(block, mp_policy=MixedPrecisionPolicy(**policy))
    fully_shard(model, mp_policy=MixedPrecisionPolicy(**policy, output_dtype=torch.float32))
    model.blocks[0].up.register_forward_hook(lambda m, x, y: seen.append((m.weight.dtype, y.dtype)))
    out = model(batch(0, rank))
    out.sum().backward()
    assert seen[0] == (torch.bfloat16, torch.bfloat16) and out.dtype is torch.float32
    assert all(p.dtype is torch.float32 and p.grad.dtype is torch.float32 for p in model.parameters())
    alone.zero_grad()
    model.zero_grad()
    trained(rank, size, alone, model, steps=1, atol=0.02)


def check_parameters_are_gathered_and_released(rank, size):
    _, model = pair()
    spread(model)
    block = model.blocks[0]
    block.unshard()
    whole_weight = block.up.weight
    assert not isinstance(whole_weight, DTensor) and whole_weight.shape == (9, 6)
    block.reshard()
    assert isinstance(block.up.weight, DTensor) and whole_weight.untyped_storage().nbytes() == 0
    assert (
        block.up.weight.to_local().shape[0] == torch.arange(9).chunk(size)[rank].numel() if rank < 3 else True
    )
    model(batch(0, rank))
    assert isinstance(block.up.weight, DTensor) and not isinstance(
        model.embed.weight, DTensor
    )  # the root stays gathered
    assert all(isinstance(v, DTensor) for v in model.state_dict().values())


def check_meta_device(rank, size):
    alone, _ = pair()
    with torch.device("meta"):
        model = Net()
    spread(model)
    assert model.head.weight.is_meta
    model.to_empty(device="cpu")
    from torch.distributed.tensor import distribute_tensor

    model.load_state_dict(
        {
            k: distribute_tensor(v, init_device_mesh("cpu", (size,)), [Shard(0)])
            for k, v in alone.state_dict().items()
        }
    )
    trained(rank, size, alone, model)


def check_unused_and_frozen_parameters(rank, size):
    alone, model = pair()
    for m in (alone, model):
        m.blocks[0].up.weight.requires_grad_(False)
        m.aside = nn.Linear(3, 3)
    with torch.no_grad():
        for p, q in zip(alone.aside.parameters(), model.aside.parameters(), strict=True):
            q.copy_(p)
            torch.distributed.broadcast(q, 0)
            p.copy_(q)
    trained(rank, size, alone, spread(model))
    assert model.aside.weight.grad is None


def learned(model, rank, steps, start=0, optimizer=None):
    """Train some steps and return (optimizer, losses)."""
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), 1e-2)
    losses = []
    for step in range(start, start + steps):
        loss = loss_of(model, batch(step, rank))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return optimizer, losses


def check_checkpoints_with_another_division(rank, size):
    _, model = pair()
    optimizer, _ = learned(spread(model), rank, 2)
    model_state, optimizer_state = get_state_dict(model, optimizer)
    assert (
        isinstance(model_state["blocks.0.up.weight"], DTensor)
        and "blocks.0.up.weight" in optimizer_state["state"]
    )
    path = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(path)
    dcp.save({"model": model_state, "optimizer": optimizer_state}, checkpoint_id=path[0])
    _, expected = learned(model, rank, 2, 2, optimizer)

    def other():
        torch.manual_seed(99)
        fresh = Net()
        if size == 4:
            return spread(fresh, mesh=init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard")))
        return fully_shard(fresh, shard_placement_fn=lambda p: Shard(p.ndim - 1))

    for flat in (False, True):
        options = StateDictOptions(flatten_optimizer_state_dict=flat)
        fresh = other()
        second = torch.optim.AdamW(fresh.parameters(), 1e-2)
        state = dict(zip(("model", "optimizer"), get_state_dict(fresh, second, options=options), strict=True))
        if flat:
            saved = [tempfile.mkdtemp() if rank == 0 else None]
            dist.broadcast_object_list(saved)
            dcp.save(
                {"model": model_state, "optimizer": get_state_dict(model, optimizer, options=options)[1]},
                checkpoint_id=saved[0],
            )
            dcp.load(state, checkpoint_id=saved[0])
            assert set_state_dict(fresh, second, model_state_dict=state["model"], optim_state_dict=state["optimizer"],
                                  options=options) == ([], [])  # fmt: skip
            continue
        dcp.load(state, checkpoint_id=path[0])
        set_state_dict(fresh, second, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        _, got = learned(fresh, rank, 2, 2, second)
        assert all(abs(a - b) < 1e-6 for a, b in zip(got, expected, strict=True)), (got, expected)


def check_whole_state_dicts(rank, size):
    _, model = pair()
    optimizer, _ = learned(spread(model), rank, 2)
    full = StateDictOptions(full_state_dict=True, cpu_offload=True)
    states = copy.deepcopy(get_state_dict(model, optimizer, options=full))  # training goes on in place
    assert (rank == 0) == bool(states[0])
    if rank == 0:
        assert not any(isinstance(v, DTensor) for v in states[0].values()) and states[0][
            "embed.weight"
        ].shape == (11, 6)
    _, expected = learned(model, rank, 2, 2, optimizer)
    torch.manual_seed(rank)
    fresh = spread(Net())
    second = torch.optim.AdamW(fresh.parameters(), 1e-2)
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_state_dict(fresh, second, model_state_dict=states[0], optim_state_dict=states[1], options=options)
    _, got = learned(fresh, rank, 2, 2, second)
    assert all(abs(a - b) < 1e-6 for a, b in zip(got, expected, strict=True)), (got, expected)


def check_errors(rank, size):
    model = fully_shard(nn.Linear(4, 4))
    for kind, call in (
        (AssertionError, lambda: fully_shard(model)),
        (ValueError, lambda: fully_shard(nn.ModuleList())),
        (AssertionError, lambda: copy.deepcopy(model)),
        (NotImplementedError, lambda: fully_shard(nn.Linear(4, 4), reshard_after_forward=2)),
    ):
        try:
            call()
        except kind:
            continue
        raise AssertionError(f"no {kind.__name__}")


WITH_FOUR = ("check_replicas", "check_with_tensor", "check_checkpoints", "check_only_the_root")
if os.environ["WORLD_SIZE"] == "4":
    for _name in [n for n in globals() if n.startswith("check_") and not n.startswith(WITH_FOUR)]:
        del globals()[_name]

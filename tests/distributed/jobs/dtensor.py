"""DTensor: operators compared with PyTorch's values and placements, modules with one process."""

import copy
import io
import os
import pickle

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_module, distribute_tensor
from torch.distributed.tensor import parallel as tp
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.experimental import implicit_replication, local_map

from tests.golden import dtensor_cases as cases
from tests.golden import store
from tests.golden.verdict import compare

OWN_PLACEMENTS = {"tril": ["Shard0"]}  # the batch stays divided here, while PyTorch gathers it


def compared(name, chosen, shape):
    got = cases.outcome(getattr(cases, chosen)[name], init_device_mesh("cpu", shape))
    if name in OWN_PLACEMENTS:
        assert got["placements"] == OWN_PLACEMENTS[name]
        got["placements"] = store.load("dtensor").cases[f"{chosen} {name}"]["placements"]
    compare("dtensor", f"{chosen} {name}", got)


for _size, _chosen, _shape in ((2, "CASES", (2,)), (4, "CASES_OF_FOUR", (2, 2))):
    for _name in getattr(cases, _chosen):

        def _check(rank, size, name=_name, chosen=_chosen, shape=_shape, needed=_size):
            if size == needed:
                compared(name, chosen, shape)

        globals()["check_case_" + _name] = _check


# ---- modules
class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        return self.down(torch.relu(self.up(self.norm(x))))


def pair():
    torch.manual_seed(3)
    alone = Mlp()
    return alone, copy.deepcopy(alone)


def whole(x):
    return x.full_tensor() if isinstance(x, DTensor) else x


def trained(alone, spread, given, optimizer, steps=4):
    """Train both models. Losses, clipped norms and parameters must agree."""
    first, second = optimizer(alone.parameters()), optimizer(spread.parameters())
    for step in range(steps):
        x = torch.sin(torch.arange(96.0) * 0.3 + step).reshape(2, 6, 8)
        a, b = alone(x).square().mean(), whole(spread(given(x)).square().mean())
        assert abs(a.item() - b.item()) < 1e-6, (step, a, b)
        a.backward()
        b.backward()
        norms = [nn.utils.clip_grad_norm_(m.parameters(), 0.05) for m in (alone, spread)]
        assert torch.allclose(norms[0], whole(norms[1]), atol=1e-6)
        for o in (first, second):
            o.step()
            o.zero_grad()
    for (name, p), q in zip(alone.named_parameters(), spread.parameters(), strict=True):
        assert torch.allclose(p, whole(q), atol=1e-6), name


def check_tensor_parallel(rank, size):
    mesh = init_device_mesh("cpu", (size,))
    plan = {"up": tp.ColwiseParallel(), "down": tp.RowwiseParallel()}
    for optimizer in (
        lambda p: torch.optim.AdamW(p, 1e-2),
        lambda p: torch.optim.AdamW(p, 1e-2, foreach=True),
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
    ):
        alone, spread = pair()
        tp.parallelize_module(spread, mesh, plan)
        assert spread.up.weight.placements == (Shard(0),) and spread.down.weight.placements == (Shard(1),)
        assert not isinstance(spread.norm.weight, DTensor)
        trained(alone, spread, lambda x: x, optimizer)


def check_sequence_parallel(rank, size):
    mesh = init_device_mesh("cpu", (size,))
    alone, spread = pair()
    tp.parallelize_module(spread, mesh, {
        "norm": tp.SequenceParallel(), "up": tp.ColwiseParallel(input_layouts=Shard(1)),
        "down": tp.RowwiseParallel(output_layouts=Shard(1), use_local_output=False)})  # fmt: skip
    trained(
        alone, spread, lambda x: distribute_tensor(x, mesh, [Shard(1)]), lambda p: torch.optim.AdamW(p, 1e-2)
    )


def check_prepared_inputs_and_outputs(rank, size):
    mesh = init_device_mesh("cpu", (size,))
    module = nn.Linear(8, 4)
    module = tp.parallelize_module(
        module,
        mesh,
        tp.PrepareModuleInput(
            input_layouts=Shard(0), desired_input_layouts=Replicate(), use_local_output=True
        ),
    )
    assert module(torch.ones(3, 8)).shape == (3 * size, 4)
    module = tp.parallelize_module(
        nn.Linear(8, 4),
        mesh,
        tp.PrepareModuleOutput(output_layouts=Shard(0), desired_output_layouts=Replicate()),
    )
    assert module(torch.ones(3, 8)).shape == (3 * size, 4)


def check_distribute_module_replicates(rank, size):
    mesh = init_device_mesh("cpu", (size,))
    alone, spread = pair()
    with torch.no_grad():
        for p in spread.parameters():
            p.add_(rank)  # the values of the first rank must win
    distribute_module(spread, mesh)
    assert all(p.placements == (Replicate(),) for p in spread.parameters())
    trained(
        alone,
        spread,
        lambda x: distribute_tensor(x, mesh, [Shard(0)]),
        lambda p: torch.optim.Adam(p, 1e-2, fused=False),
    )


def check_loss_parallel(rank, size):
    mesh = init_device_mesh("cpu", (size,))
    x = torch.sin(torch.arange(35.0) * 3).reshape(5, 7)
    target = torch.tensor([0, 6, -100, 3, 5])
    images = torch.cos(torch.arange(42.0)).reshape(2, 7, 3)
    labels = torch.tensor([[0, 6, -100], [3, 5, 1]])
    with tp.loss_parallel():
        found = F.cross_entropy(distribute_tensor(images, mesh, [Shard(1)]), labels)
    assert torch.allclose(whole(found), F.cross_entropy(images, labels), atol=1e-6)
    for reduction in ("mean", "sum", "none"):
        leaf = x.clone().requires_grad_()
        expected = F.cross_entropy(leaf, target, reduction=reduction)
        expected.sum().backward()
        spread = distribute_tensor(x, mesh, [Shard(1)]).requires_grad_()
        with tp.loss_parallel():
            loss = F.cross_entropy(spread, target, reduction=reduction)
            loss.sum().backward()
        assert torch.allclose(whole(loss), expected, atol=1e-6), (reduction, loss, expected)
        assert torch.allclose(spread.grad.full_tensor(), leaf.grad, atol=1e-6), reduction
        rows = distribute_tensor(x, mesh, [Shard(0)]).requires_grad_()
        F.cross_entropy(
            rows, distribute_tensor(target, mesh, [Shard(0)]), reduction=reduction
        ).sum().backward()
        assert torch.allclose(rows.grad.full_tensor(), leaf.grad, atol=1e-6), reduction


# ---- the class itself
def check_random_numbers_do_not_depend_on_the_cut(rank, size):
    mesh = init_device_mesh("cpu", (size,))
    torch.manual_seed(5)
    expected = [torch.randn(5, 3), torch.empty(5, 3).uniform_(-1, 1), F.dropout(torch.ones(5, 3))]
    torch.manual_seed(5 + rank)  # the state of the first rank must win
    from torch.distributed.tensor import empty, ones, randn

    got = [randn(5, 3, device_mesh=mesh, placements=[Shard(0)]),
           empty(5, 3, device_mesh=mesh, placements=[Shard(1)]).uniform_(-1, 1),
           F.dropout(ones(5, 3, device_mesh=mesh, placements=[Shard(0)]))]  # fmt: skip
    for a, b in zip(expected, got, strict=True):
        assert torch.equal(a, b.full_tensor()), (a, b.full_tensor())


def check_from_local_and_to_local(rank, size):
    mesh = init_device_mesh("cpu", (size,))
    x = torch.full((2, 3), float(rank), requires_grad=True)
    d = DTensor.from_local(x, mesh, [Shard(0)])
    assert d.shape == (2 * size, 3) and d.stride() == (3, 1) and d.to_local().shape == (2, 3)
    (d.to_local() * 2).sum().backward()
    assert x.grad.eq(2).all()
    whole_grad = distribute_tensor(torch.ones(4, 2), mesh, [Replicate()]).requires_grad_()
    part = whole_grad.to_local(grad_placements=[Partial()])
    (part * (rank + 1)).sum().backward()
    assert whole_grad.grad.to_local().eq(size * (size + 1) / 2).all()
    uneven = DTensor.from_local(
        torch.ones(2 if rank == 0 else 1, 2), mesh, [Shard(0)], shape=torch.Size((size + 1, 2)), stride=(2, 1)
    )
    assert uneven.shape == (size + 1, 2)


def check_class(rank, size):
    mesh = init_device_mesh("cpu", (size,))
    p = nn.Parameter(distribute_tensor(torch.arange(12.0).reshape(6, 2), mesh, [Shard(0)]))
    assert isinstance(p, nn.Parameter) and isinstance(p, DTensor) and p.requires_grad and p.is_leaf
    assert p.device.type == "cpu" and p.numel() == 12 and not p.is_meta
    seen = []
    p.register_hook(lambda g: seen.append(g) or g * 2)
    p.register_post_accumulate_grad_hook(lambda q: seen.append(q))
    (p * 3).sum().backward()
    assert (
        isinstance(seen[0], DTensor)
        and seen[1] is p
        and p.grad.full_tensor().eq(6).all()
        and p.grad is p.grad
    )
    (g,) = torch.autograd.grad((p * p).sum(), [p], create_graph=True)
    (second,) = torch.autograd.grad(g.sum(), [p])
    assert second.full_tensor().eq(8).all()  # two hooks double the value
    twin = copy.deepcopy(p)
    assert (
        isinstance(twin, nn.Parameter)
        and twin.placements == p.placements
        and torch.equal(twin.full_tensor(), p.full_tensor())
    )
    back = pickle.loads(pickle.dumps(p.detach()))
    assert torch.equal(back.full_tensor(), p.full_tensor()) and back.device_mesh == mesh
    assert p[1, 0].item() == 2 and p[1:3].full_tensor().tolist() == [[2, 3], [4, 5]]
    assert p.tolist()[5] == [10, 11] and "DTensor(local_tensor" in repr(p)
    half = p.detach().to(torch.bfloat16)
    assert half.dtype is torch.bfloat16 and half.placements == (Shard(0),)
    module = nn.Linear(2, 6, bias=False)
    module.weight = nn.Parameter(p.detach().clone())
    module.double()
    assert (
        isinstance(module.weight, DTensor)
        and module.weight.dtype is torch.float64
        and module.weight.to_local().dtype is torch.float64
    )


def raises(kind, text, function):
    try:
        function()
    except kind as err:
        assert text in str(err), err
    else:
        raise AssertionError(f"no {kind.__name__}")


def check_errors(rank, size):
    mesh = init_device_mesh("cpu", (size,))
    d = distribute_tensor(torch.ones(4, 4), mesh, [Shard(0)])
    raises(RuntimeError, "got mixed torch.Tensor and DTensor", lambda: d + torch.ones(4, 4))
    raises(NotImplementedError, "does not have a sharding strategy registered", lambda: torch.fft.fft(d))
    raises(
        ValueError,
        "`placements` must have the same length",
        lambda: distribute_tensor(torch.ones(2), mesh, [Shard(0), Shard(0)]),
    )
    raises(
        RuntimeError,
        "redistributing to Partial is for internal use only",
        lambda: d.redistribute(placements=[Partial()]),
    )
    part = DTensor.from_local(torch.ones(2), mesh, [Partial()])
    raises(RuntimeError, "in-place operations that require placement changes", lambda: part.exp_())

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    raises(NotImplementedError, "on a DTensor", lambda: Double.apply(d))


def check_values_decide_shapes(rank, size):
    mesh = init_device_mesh("cpu", (size,))
    d = distribute_tensor(torch.tensor([3.0, 0, 1, 0, 2]), mesh, [Shard(0)])
    assert d.nonzero().full_tensor().flatten().tolist() == [0, 2, 4]
    assert d[d > 0].full_tensor().tolist() == [3, 1, 2] and d[
        torch.tensor([4, 0])
    ].full_tensor().tolist() == [2, 3]
    assert torch.unique(d).full_tensor().tolist() == [0, 1, 2, 3]


def check_a_mesh_of_some_processes(rank, size):
    mesh = init_device_mesh("cpu", (1,))
    d = distribute_tensor(torch.ones(3, 2), mesh, [Shard(0)])
    made = (d @ torch.distributed.tensor.ones(2, 4, device_mesh=mesh)).sum(1)
    assert made.shape == (3,) and (
        made.to_local().tolist() == [8, 8, 8] if rank == 0 else made.to_local().numel() == 0
    )


def check_files(rank, size):
    mesh = init_device_mesh("cpu", (size,), mesh_dim_names=("x",))
    stream = io.BytesIO()
    w = nn.Parameter(distribute_tensor(torch.arange(10.0).reshape(5, 2), mesh, [Shard(0)]))
    torch.save({"w": w, "d": w.detach()}, stream)
    for weights_only in (True, False):
        stream.seek(0)
        back = torch.load(stream, weights_only=weights_only)
        assert (
            isinstance(back["w"], nn.Parameter)
            and back["d"].placements == (Shard(0),)
            and back["d"].device_mesh == mesh
        )
        assert torch.equal(back["d"].full_tensor(), torch.arange(10.0).reshape(5, 2))


def check_ranks_outside_a_mesh(rank, size):
    """They have DTensors of the same shape without numbers."""
    mesh, whole = DeviceMesh("cpu", list(range(1, size))), torch.arange(6.0).reshape(3, 2).requires_grad_()
    for placement in (Shard(0), Shard(1), Replicate()):
        d = distribute_tensor(whole, mesh, [placement])
        local = d.to_local()
        assert d.shape == (3, 2) and d.placements == (placement,) and d.requires_grad
        if rank == 0:
            assert mesh.get_coordinate() is None and local.numel() == 0 and local.shape == (0,)
        elif size == 2:
            assert torch.equal(local, whole)


def check_assignments_and_draws(rank, size):
    """Parts of a tensor that is sharded in one of two mesh dims are not assigned. Draws keep the dtype and the numbers."""
    mesh = init_device_mesh("cpu", (size // 2, 2))
    for placements in ([Shard(0), Replicate()], [Replicate(), Shard(1)], [Shard(0), Shard(1)]):
        d = distribute_tensor(torch.zeros(4, 2), mesh, placements)
        raises(NotImplementedError, "coverage", lambda d=d: d.__setitem__(0, 1.0))
        d[...] = 3.0
        assert torch.equal(d.full_tensor(), torch.full((4, 2), 3.0))
        for dtype in (torch.float64, torch.float16, torch.float32):
            torch.manual_seed(5)
            spread = distribute_tensor(torch.zeros(4, 2, dtype=dtype), mesh, placements)
            drawn = [spread.clone().uniform_(), torch.rand_like(spread), spread.clone().normal_(1.0, 2.0)]
            torch.manual_seed(5)
            alone = torch.zeros(4, 2, dtype=dtype)
            expected = [alone.clone().uniform_(), torch.rand_like(alone), alone.clone().normal_(1.0, 2.0)]
            for x, y in zip(drawn, expected, strict=True):
                assert x.dtype == dtype and torch.equal(x.full_tensor(), y)
    whole = distribute_tensor(torch.zeros(4, 2), mesh, [Replicate(), Replicate()])
    whole[1] = 2.0
    assert whole.full_tensor().tolist() == [[0, 0], [2, 2], [0, 0], [0, 0]]


def check_local_map_and_counts(rank, size):
    mesh = init_device_mesh("cpu", (size,))
    d = distribute_tensor(torch.arange(8.0).reshape(8, 1), mesh, [Shard(0)]).requires_grad_()
    twice = local_map(lambda x, k: x * k, out_placements=[Shard(0)], in_placements=([Shard(0)], None))
    with CommDebugMode() as counts:
        twice(d, 2).sum().full_tensor().backward()
    assert d.grad.full_tensor().eq(2).all() and counts.get_comm_counts() == {"all_reduce": 1}
    raises(
        ValueError, "mismatched placements", lambda: local_map(torch.relu, [Shard(0)], ([Replicate()],))(d)
    )
    moved = local_map(torch.relu, [Replicate()], ([Replicate()],), redistribute_inputs=True)
    assert moved(d).to_local().shape == (8, 1)
    with implicit_replication():
        assert (d + torch.ones(8, 1)).full_tensor()[1].item() == 2


def check_mesh_slices(rank, size):
    mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("a", "b"))
    both = mesh["a", "b"]._flatten("ab")
    assert (
        mesh["ab"] is both and both.size() == size and both.get_local_rank() == rank and mesh["b"].size() == 2
    )
    assert mesh["b"].get_group().size() == 2 and mesh["b"]._get_root_mesh() is mesh
    back = pickle.loads(pickle.dumps(mesh))
    assert back == mesh and back.get_group("b")._ranks == mesh.get_group("b")._ranks
    with mesh["b"]:
        assert distribute_tensor(torch.ones(4), placements=[Shard(0)]).to_local().shape == (2,)


def check_optimizers_and_scaler(rank, size):
    mesh = init_device_mesh("cpu", (size,))
    for make in (
        lambda p: torch.optim.Adagrad(p, 0.1),
        lambda p: torch.optim.RMSprop(p, 0.01),
        lambda p: torch.optim.NAdam(p, 0.01),
        lambda p: torch.optim.Adam(p, 0.01, amsgrad=True),
        lambda p: torch.optim.SGD(p, 0.1, nesterov=True, momentum=0.9),
    ):
        alone, spread = pair()
        distribute_module(spread, mesh, lambda name, mod, m: [
            mod.register_parameter(k, nn.Parameter(distribute_tensor(p.detach(), m, [Shard(0)])))
            for k, p in list(mod.named_parameters(recurse=False))])  # fmt: skip
        trained(alone, spread, lambda x: distribute_tensor(x, mesh, [Replicate()]), make, 2)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    p = nn.Parameter(distribute_tensor(torch.ones(4), mesh, [Shard(0)]))
    optimizer = torch.optim.SGD([p], 1.0)
    scaler.scale((p * 2).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert p.full_tensor().eq(-1).all()
    p.grad = distribute_tensor(torch.tensor([1.0, 1, 1, float("inf")]), mesh, [Shard(0)])
    scaler.step(optimizer)
    scaler.update()
    assert p.full_tensor().eq(-1).all() and scaler.get_scale() == 2


WITH_FOUR = (
    "check_tensor_parallel",
    "check_sequence",
    "check_mesh",
    "check_loss",
    "check_random",
    "check_from",
)
if os.environ["WORLD_SIZE"] == "4":
    for _name in [n for n in globals() if n.startswith("check_") and not n.startswith(WITH_FOUR)]:
        if _name.removeprefix("check_case_") not in cases.CASES_OF_FOUR:
            del globals()[_name]

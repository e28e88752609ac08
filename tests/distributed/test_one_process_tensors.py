"""DTensor, parallel styles and fully_shard in a job of one process."""

from __future__ import annotations

import copy
import importlib

import pytest

import msadapter as torch
import msadapter.distributed.tensor.parallel as tp
from msadapter import nn
from msadapter.distributed.device_mesh import init_device_mesh
from msadapter.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method
from msadapter.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
)

R, S0, S1 = Replicate(), Shard(0), Shard(1)


# ---- DTensor
def test_local_tensors_and_their_checks(world):
    x = torch.arange(6.0).reshape(3, 2)
    assert DTensor.from_local(x, world).placements == (R,)
    with pytest.raises(RuntimeError, match="both shape and stride"):
        DTensor.from_local(x, world, [S0], shape=(3, 2))
    d = DTensor.from_local(x, world, [Shard(-1)], run_check=True)
    assert d.placements == (S1,) and d.data_ptr() == 0 and d.untyped_storage().nbytes() == 24
    assert f"{d}" == repr(d) and d.get_device() == x.get_device() and d._spec.num_shards == 1
    assert not d._spec.is_replicated() and DTensor.from_local(x, world)._spec.is_replicated()
    for placements, error, text in (
        ([Shard(2)], RuntimeError, "Sharding dim 2 greater than"),
        ([Shard(-3)], RuntimeError, "Sharding dim"),
        ([3], RuntimeError, "must be a Shard, Replicate or Partial"),
        ([S0, S0], ValueError, "must have the same length"),
    ):
        with pytest.raises(error, match=text):
            DTensor.from_local(x, world, placements)
    d.requires_grad = True
    assert d.requires_grad and d.to_local().requires_grad
    y = d * 2
    y.retain_grad()
    y.sum().backward()
    assert y.grad.full_tensor().eq(1).all() and d.grad.full_tensor().eq(2).all()
    assert not y.detach_().requires_grad and not d.data.requires_grad and d.data.placements == (S1,)
    del d.grad
    assert d.grad is None
    with pytest.raises(TypeError, match="expected to be a DTensor"):
        d.grad = x
    with pytest.raises(RuntimeError, match=r"of size '\[2, 2\]' to a tensor of size '\[3, 2\]'"):
        d.grad = distribute_tensor(torch.ones(2, 2), world, [R])
    d.grad = distribute_tensor(torch.ones(3, 2), world, [R])
    assert d.grad.placements == (S1,)
    with pytest.raises(TypeError, match="data has to be a DTensor"):
        d.data = x
    other = d.detach().clone()
    for new in (
        torch.ones(4, 2),
        torch.ones(4, 2, dtype=torch.float64),
        torch.zeros(4, 2, dtype=torch.float64),
    ):
        other.data = distribute_tensor(new, world, [R])
        assert other.shape == (4, 2) and other.size(0) == 4 and other.placements == (R,)
        assert other.dtype is new.dtype and torch.equal(other.full_tensor(), new)
    with pytest.raises(RuntimeError, match="implicitly created only for scalar"):
        (d * 2).backward()
    (d * 2).backward(distribute_tensor(torch.full((3, 2), 3.0), world, [R]))
    assert d.grad.full_tensor().eq(7).all()
    with pytest.raises(RuntimeError, match="must be a DTensor"):
        (d * 2).backward(torch.ones(3, 2))
    assert d.detach().to(torch.float64, copy=True).dtype is torch.float64
    same = d.detach()
    assert (
        same.to("cpu") is same
        and same.to("cpu", copy=True) is not same
        and same.to(torch.float32).dtype is torch.float32
    )


def test_distributing_what_is_distributed(world):
    other = init_device_mesh("cpu", (1,), mesh_dim_names=("y",))
    d = distribute_tensor(torch.ones(4), world, [S0])
    assert distribute_tensor(d, world, [S0]) is d
    for mesh, placements, text in (
        (other, [S0], "different device mesh"),
        (world, [R], "different placements"),
    ):
        with pytest.raises(ValueError, match=text):
            distribute_tensor(d, mesh, placements)
    with pytest.raises(RuntimeError, match="unsupported placements on device mesh dimension 0"):
        distribute_tensor(torch.ones(4), world, [Partial()])
    x = torch.ones(4)
    distribute_tensor(x, world, [S0]).to_local().zero_()
    assert x.sum() == 4
    model = nn.BatchNorm1d(3)
    distribute_module(model, world, input_fn=lambda m, i, mesh: (distribute_tensor(i[0], mesh, [S0]),),
                      output_fn=lambda m, o, mesh: o.full_tensor())  # fmt: skip
    assert isinstance(model.running_mean, DTensor) and isinstance(model.weight, DTensor)
    assert type(model.eval()(torch.ones(2, 3))) is torch.Tensor
    with pytest.raises(RuntimeError, match="only be called once"):
        distribute_module(model, world)


def test_factories(world):
    from msadapter.distributed import tensor as dt

    for made, value in (
        (dt.zeros(3, 2, device_mesh=world, placements=[S0]), 0),
        (dt.zeros((3, 2), device_mesh=world), 0),
        (dt.ones([3, 2], device_mesh=world, placements=[S1]), 1),
        (dt.full((3, 2), 4, dtype=torch.float32, device_mesh=world), 4),
    ):
        assert made.shape == (3, 2) and made.full_tensor().eq(value).all() and made.stride() == (2, 1)
    assert dt.ones(2, device_mesh=world, requires_grad=True, dtype=torch.float64).requires_grad
    torch.manual_seed(3)
    want = torch.rand(3, 2), torch.randn(2)
    torch.manual_seed(3)
    found = dt.rand(3, 2, device_mesh=world, placements=[S0]), dt.randn(2, device_mesh=world)
    assert all(torch.equal(a, b.full_tensor()) for a, b in zip(want, found, strict=True))
    with pytest.raises(RuntimeError, match="must not contain Partial"):
        dt.zeros(3, device_mesh=world, placements=[Partial()])


def also(d, t):
    """`t` as a DTensor if `d` is one."""
    return distribute_tensor(t, d.device_mesh, [R]) if isinstance(d, DTensor) else t


CALLS = {
    "bernoulli": lambda d: torch.bernoulli(d.sigmoid(), 0.4),
    "multinomial": lambda d: torch.multinomial(d.sigmoid(), 2),
    "uniform": lambda d: d.clone().uniform_(1, 2),
    "rand_like": lambda d: torch.rand_like(d),
    "poisson": lambda d: torch.poisson(d.detach().abs()),
    "dropout": lambda d: nn.functional.dropout(d, 0.4),
    "vector_norm": lambda d: torch.linalg.vector_norm(d, float("inf"), 0),
    "low norm": lambda d: torch.linalg.vector_norm(d, -float("inf")),
    "count": lambda d: torch.linalg.vector_norm(d, 0, 1, keepdim=True),
    "third norm": lambda d: torch.linalg.vector_norm(d, 3, (0, 1)),
    "std": lambda d: d.std(0),
    "indexed": lambda d: d[torch.tensor([1, 0]), :2],
    "masked": lambda d: d[d > 0],
    "middle": lambda d: d[..., None, 1:],
    "stepped": lambda d: d[1, ::2],
    "embedding": lambda d: nn.functional.embedding(also(d, torch.tensor([[0, 2], [2, 2]])), d, padding_idx=2),
    "cross entropy": lambda d: nn.functional.cross_entropy(
        d, also(d, torch.tensor([1, 0, 3, -100])), reduction="sum"
    ),
    "weighted": lambda d: nn.functional.cross_entropy(
        d, also(d, torch.tensor([1, 0, 3, 2])), also(d, torch.arange(4.0)), label_smoothing=0.1
    ),
    "none": lambda d: nn.functional.cross_entropy(
        d, also(d, torch.tensor([1, 0, 3, -100])), reduction="none"
    ),
    "topk": lambda d: d.topk(2, 0).values,
    "kthvalue": lambda d: d.kthvalue(2, 1).values,
    "roll": lambda d: d.roll((1, 2), (0, 1)),
    "roll all": lambda d: d.roll(3),
    "triu": lambda d: d.triu(1),
    "gather": lambda d: d.gather(1, also(d, torch.tensor([[0, 1]] * 4))),
    "index_select": lambda d: d.index_select(1, also(d, torch.tensor([2, 0]))),
    "mv": lambda d: d @ d[0],
    "dot": lambda d: torch.dot(d[0], d[1]),
    "addmv": lambda d: torch.addmv(d[0], d, d[1], beta=2, alpha=3),
    "baddbmm": lambda d: torch.baddbmm(d, d[None], d[None]),
    "linear": lambda d: nn.functional.linear(d[None], d, d[0]),
    "vector weight": lambda d: nn.functional.linear(d, d[0]),
    "expand": lambda d: d[:, None].expand(4, 3, 4),
    "view": lambda d: d.view(2, 2, 2, 2),
    "view as integers": lambda d: d.view(torch.int32),
    "view of a transpose": lambda d: d.t().reshape(2, 8),
    "of ones": lambda d: d.view(1, 4, 1, 4).squeeze(),
    "squeezed": lambda d: d.view(4, 1, 4).squeeze(1),
    "transposed": lambda d: d[0].t(),
    "mse": lambda d: nn.functional.mse_loss(d, d * 2, reduction="sum"),
    "bce": lambda d: nn.functional.binary_cross_entropy_with_logits(
        d, d.sigmoid().detach(), reduction="none"
    ),
    "convolution": lambda d: nn.functional.conv1d(d[:, None], also(d, torch.ones(2, 1, 3))),
    "attention": lambda d: nn.functional.scaled_dot_product_attention(
        d[None, None], d[None, None], d[None, None]
    ),
    "new": lambda d: d.new_full((4, 4), 3.0),
    "new of other shape": lambda d: d.new_ones(2),
    "like": lambda d: torch.full_like(d, 2.0),
    "unfold": lambda d: d.unfold(1, 2, 1),
    "slices": lambda d: d[::2, 1:3],
    "prod": lambda d: d.prod(0),
    "min": lambda d: d.min(1).values,
    "any": lambda d: (d > 0).any(0),
    "qr": lambda d: torch.linalg.qr(d)[1].abs(),
    "cumsum": lambda d: d.cumsum(0),
    "sort": lambda d: d.sort(0).values,
    "half": lambda d: (d * 0.5).half(),
}


@pytest.mark.parametrize("placement", [S0, S1, R], ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_operators_give_what_ordinary_tensors_give(world, name, placement):
    x = (torch.arange(16.0) * 1.7).sin().reshape(4, 4)
    leaves = [x.clone().requires_grad_(), distribute_tensor(x, world, [placement]).requires_grad_()]
    wanted, found = [], []
    for leaf, out in zip(leaves, (wanted, found), strict=True):
        torch.manual_seed(4)
        made = CALLS[name](leaf)
        out.append(made)
        if made.requires_grad:
            total = made.float().square().sum()
            (total.full_tensor() if isinstance(total, DTensor) else total).backward()
        out.append(leaf.grad)
    assert (
        isinstance(found[0], DTensor)
        and found[0].shape == wanted[0].shape
        and found[0].dtype == wanted[0].dtype
    )
    assert torch.allclose(found[0].full_tensor(), wanted[0], atol=1e-6)
    assert found[1] is not None or wanted[1] is None or not wanted[1].any()
    if found[1] is not None:
        assert torch.allclose(found[1].full_tensor(), wanted[1], atol=1e-5)


def test_assignments_and_comparisons(world):
    x = torch.arange(12.0).reshape(3, 4)
    whole, cut = (distribute_tensor(x, world, [p]) for p in (R, S0))
    whole[1, :2] = 7
    whole[:, 3] = distribute_tensor(torch.ones(3), world, [R])
    whole[distribute_tensor(torch.tensor([0]), world, [R])] = 5
    x = x.clone()
    x[1, :2], x[:, 3], x[0] = 7, 1, 5
    assert torch.equal(whole.full_tensor(), x)
    with pytest.raises(NotImplementedError, match="parts of a sharded tensor"):
        cut[1] = 3
    cut[...] = 4
    assert cut.full_tensor().eq(4).all()
    cut[:] = whole
    assert torch.equal(cut, whole) and torch.allclose(cut, whole) and not torch.equal(cut, whole + 1)
    with pytest.raises(IndexError, match="too many indices"):
        cut[0, 0, 0]
    part = DTensor.from_local(x, world, [Partial()])
    with pytest.raises(RuntimeError, match="random numbers cannot be drawn"):
        torch.rand_like(part)
    with pytest.raises(NotImplementedError, match="gradient of"):
        torch.poisson(cut.detach().requires_grad_())
    grads = [distribute_tensor(torch.tensor([2.0, float("inf")]), world, [S0]), torch.ones(2)]
    found = torch.zeros(1)
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, torch.tensor([0.5]))
    assert found.item() == 1 and grads[1].tolist() == [0.5, 0.5] and grads[0].to_local()[0] == 1
    norms = torch._foreach_norm([distribute_tensor(torch.tensor([3.0, 4.0]), world, [S0]), torch.ones(4)])
    assert [float(n) for n in norms] == [5, 2]


# ---- parallel styles and fully_shard
def test_styles_of_embeddings_and_inputs(world):
    table = nn.Embedding(4, 6)
    for style, placement in ((tp.ColwiseParallel(), S1), (tp.RowwiseParallel(input_layouts=R), S0)):
        one = copy.deepcopy(table)
        tp.parallelize_module(one, world, style)
        assert one.weight.placements == (placement,)
        assert torch.allclose(one(torch.tensor([1, 3])), table(torch.tensor([1, 3])))
    for style in (tp.ColwiseParallel(), tp.RowwiseParallel()):
        with pytest.raises(NotImplementedError, match="currently only support"):
            tp.parallelize_module(nn.ReLU(), world, style)

    class Named(nn.Module):
        def forward(self, a, *, b=None, c=None):
            return a, b, c

    style = tp.PrepareModuleInputOutput(
        input_layouts=(S0,), desired_input_layouts=(R,), input_kwarg_layouts={"b": S0}, desired_input_kwarg_layouts={"b": R},
        output_layouts=(R, R, None), desired_output_layouts=(S0, S0, None), use_local_output=False)  # fmt: skip
    module = tp.parallelize_module(Named(), world, style)
    a, b, c = module(torch.ones(2), b=torch.ones(2), c=3)
    assert a.placements == (S0,) and b.placements == (S0,) and c == 3
    tree = nn.ModuleDict(
        {"a": nn.ModuleDict({"x": nn.Linear(2, 2)}), "b": nn.ModuleDict({"x": nn.Linear(2, 2)})}
    )
    tp.parallelize_module(tree, world, {"*.x": tp.ColwiseParallel()})
    assert tree["a"]["x"].weight.placements == tree["b"]["x"].weight.placements == (S0,)
    with pytest.warns(UserWarning):
        tp.parallelize_module(nn.ModuleDict(), world, {"absent.name": tp.ColwiseParallel()})


class Doubled(nn.Linear):
    def twice(self, x):
        return self(x) * 2 if False else nn.functional.linear(x, self.weight, self.bias) * 2


def test_parameters_that_were_loaded_are_gathered_before_a_forward(world):
    """A checkpoint replaces the parameters of a model on "meta"; unshard() before the first forward gathers the new ones."""
    whole = {name: value + 1 for name, value in nn.Linear(2, 4).state_dict().items()}
    with torch.device("meta"):
        model = nn.Linear(2, 4)
    fully_shard(model, mesh=world)
    given = {name: nn.Parameter(distribute_tensor(value, world, [Shard(0)])) for name, value in whole.items()}
    model.load_state_dict(given, assign=True)
    model.unshard()
    assert torch.equal(model.weight, whole["weight"]) and torch.equal(model.bias, whole["bias"])
    model(torch.ones(3, 2)).sum().backward()
    assert model.bias.grad.full_tensor().tolist() == [3] * 4


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("api", "DTensor distribute_module distribute_tensor empty full ones rand randn zeros"),
        ("device_mesh", "DeviceMesh init_device_mesh"),
        ("experimental", "context_parallel implicit_replication local_map"),
        ("placement_types", "Partial Placement Replicate Shard"),
    ],
)
def test_old_names_of_modules(module, names):
    """Programs import DTensor's modules under the name that the package had before PyTorch 2.5."""
    old = importlib.import_module(f"msadapter.distributed._tensor.{module}")
    new = importlib.import_module(f"msadapter.distributed.tensor{'' if module == 'api' else '.' + module}")
    for name in names.split():
        assert getattr(old, name) is getattr(new, name)


def test_switches_of_sharded_modules(world):
    model = nn.Sequential(Doubled(2, 2), nn.Linear(2, 2))
    alone = copy.deepcopy(model)
    for layer in model:
        fully_shard(layer, mesh=world)
    fully_shard(model, mesh=world)
    assert (
        isinstance(model, FSDPModule)
        and type(model[0]).__name__ == "FSDPDoubled"
        and isinstance(model[0], Doubled)
    )
    with pytest.raises(AssertionError, match="does not support deepcopy"):
        copy.deepcopy(model)
    fresh = type(model[0])(3, 4)
    assert type(fresh) is Doubled and fresh.out_features == 4
    for recurse in (False, True):
        model.set_reshard_after_forward(True, recurse)
        assert [model[0]._get_fsdp_state().auto, model._get_fsdp_state().auto] == [not recurse, False]
        model.set_reshard_after_backward(False, recurse=recurse)
        assert model[0]._get_fsdp_state().reshard_after_backward is not recurse
        model.set_requires_gradient_sync(False, recurse=recurse)
        assert model[0]._get_fsdp_state().group.reduces is not recurse
        model.set_requires_gradient_sync(True)
        model.set_requires_all_reduce(False, recurse=recurse)
        assert model[0]._get_fsdp_state().group.all_reduces is not recurse
        model.set_requires_all_reduce(True)
        model.set_reshard_after_backward(True)
    model.set_is_last_backward(False)
    assert not any(m._get_fsdp_state().is_last_backward for m in (model, *model))
    model.set_is_last_backward(True)
    model.set_modules_to_forward_prefetch([model[0]]), model.set_modules_to_backward_prefetch([model[1]])
    for call in (model.set_modules_to_forward_prefetch, model.set_modules_to_backward_prefetch):
        with pytest.raises(ValueError, match="Expected an FSDPModule to prefetch, but got Linear"):
            call([nn.Linear(1, 1)])
    with pytest.raises(NotImplementedError, match="set_unshard_in_backward"):
        model.set_unshard_in_backward(False)
    model.set_unshard_in_backward(True)
    assert isinstance(model[0].weight, DTensor)
    model[0].unshard(async_op=True).wait()
    assert not isinstance(model[0].weight, DTensor) and isinstance(model[1].weight, DTensor)
    assert model[0].unshard() is None
    model[0].reshard()
    assert isinstance(model[0].weight, DTensor)
    x = torch.ones(3, 2)
    register_fsdp_forward_method(model[0], "twice")
    register_fsdp_forward_method(alone[0], "twice")
    assert torch.allclose(model[0].twice(x), alone[0].twice(x)) and isinstance(model[0].weight, DTensor)
    with pytest.raises(ValueError, match="does not have a method absent"):
        register_fsdp_forward_method(model[0], "absent")
    model[0].set_gradient_divide_factor(4.0)
    seen = []
    model[1].set_all_reduce_hook(lambda flat: seen.append(flat.numel()))
    model(x).sum().backward()
    alone(x).sum().backward()
    assert torch.allclose(model[0].weight.grad.full_tensor() * 4, alone[0].weight.grad)
    assert torch.allclose(model[1].weight.grad.full_tensor(), alone[1].weight.grad)
    model.double()
    assert model[0].weight.dtype is torch.float64 and model[0].weight.to_local().dtype is torch.float64
    nothing = nn.Linear(1, 1)
    assert not isinstance(nothing, FSDPModule)


PARTS = {
    "clone": lambda d: d.clone(),
    "neg": lambda d: -d,
    "double": lambda d: d * 2,
    "plus": lambda d: d + d,
    "plus one": lambda d: d + 1,
    "exp": lambda d: d.exp(),
    "sum": lambda d: d.sum(0),
    "mean": lambda d: d.mean(1, keepdim=True),
    "amax": lambda d: d.amax(0),
    "tril": lambda d: d.tril(),
    "roll": lambda d: d.roll(1, 0),
    "transpose": lambda d: d.t(),
    "permute": lambda d: d.permute(1, 0),
    "view": lambda d: d.view(2, 6),
    "expand": lambda d: d.unsqueeze(0).expand(2, 3, 4),
    "squeeze": lambda d: d.unsqueeze(1).squeeze(1),
    "slice": lambda d: d[1:, ::2],
    "zeros": lambda d: torch.zeros_like(d),
    "ones": lambda d: torch.ones_like(d),
    "product": lambda d: d @ d.t(),
    "cumsum": lambda d: d.cumsum(1),
    "cat": lambda d: torch.cat([d, d]),
    "to shards": lambda d: d.redistribute(placements=[S1]),
}


@pytest.mark.parametrize("kind", ["sum", "avg", "max", "min", "product"])
@pytest.mark.parametrize("name", PARTS)
def test_operators_of_partial_values(world, name, kind):
    x = (torch.arange(12.0) * 1.7).sin().reshape(3, 4)
    found = PARTS[name](DTensor.from_local(x, world, [Partial(kind)]))
    wanted = x if name == "to shards" else PARTS[name](x)
    assert found.shape == wanted.shape and torch.allclose(found.full_tensor(), wanted, atol=1e-6)
    if name in ("exp", "plus one"):  # not linear, so the parts are added up first
        assert kind != "sum" or not found.placements[0].is_partial()
    if name in ("clone", "transpose", "view", "squeeze", "tril") and kind in ("sum", "avg"):
        assert found.placements == (Partial(kind),)


def test_maps_counts_and_moves(world, monkeypatch):
    from msadapter.distributed import tensor as dt

    monkeypatch.setenv("MSADAPTER_DEVICE", "cuda")

    x = torch.arange(6.0).reshape(3, 2)
    d = distribute_tensor(x, world, [S0])

    @dt.experimental.local_map(out_placements=[S0], in_placements=([S0], None), device_mesh=world)
    def scaled(part, factor):
        assert type(part) is torch.Tensor
        return part * factor

    assert scaled(d, 3).placements == (S0,) and torch.equal(scaled(d, 3).full_tensor(), x * 3)
    plain = dt.experimental.local_map(lambda part: part.sum(), None, ([S0],))
    assert plain(d) == 15 and plain(x) == 15
    several = dt.experimental.local_map(
        lambda a, b: (a + b, 5), ([R], None), ([R], [R]), redistribute_inputs=True
    )
    total, number = several(d, d)
    assert torch.equal(total.full_tensor(), 2 * x) and number == 5
    with pytest.raises(ValueError, match="mismatched placements"):
        dt.experimental.local_map(lambda part: part, [R], ([R],))(d)
    with dt.debug.CommDebugMode() as counts:
        d.redistribute(placements=[R]).sum().full_tensor()
        DTensor.from_local(x, world, [Partial()]).full_tensor()
    assert counts.get_total_counts() == sum(counts.get_comm_counts().values()) > 0
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        dt.absent  # noqa: B018
    assert dt._utils.compute_local_shape((3, 2), world, [S0]) == (3, 2)
    assert d.cpu() is d and d.to("meta").to_local().is_meta and d.to("meta").placements == (S0,)
    for moved, wanted in ((d.cuda(), x.cuda()), (d.npu(), x.npu()), (d.cuda(0), x.cuda(0))):
        assert moved.to_local().device == wanted.device and moved.placements == (S0,)

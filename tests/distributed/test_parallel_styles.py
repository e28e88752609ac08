"""Parallel styles, and the loss on sharded classes: arguments that programs give seldom, in one process."""

from __future__ import annotations

import pytest

import msadapter as torch
import msadapter.distributed.tensor.parallel as tp
import msadapter.nn.functional as F
from msadapter import nn
from msadapter.distributed.device_mesh import init_device_mesh
from msadapter.distributed.tensor import DTensor, Partial, Replicate, Shard, _api, distribute_tensor

R, S0, S1 = Replicate(), Shard(0), Shard(1)


class Scaled(nn.LayerNorm):
    """A norm that takes more than one input."""

    def forward(self, x, factor, shift=0):
        return super().forward(x) * factor + shift


class Sum(nn.Linear):
    def forward(self, x, other, shift=0):
        return super().forward(x) + other + shift


# ---- styles of layers
def test_further_inputs_of_a_sequence_parallel_module(world):
    norm, x = Scaled(4), torch.arange(24.0).reshape(2, 3, 4)
    wanted = norm(x, 3.0, 2.0)
    tp.parallelize_module(norm, world, tp.SequenceParallel())
    found = norm(x, 3.0, 2.0)
    assert found.placements == (S1,) and torch.allclose(found.full_tensor(), wanted, atol=1e-6)
    assert norm.weight.placements == norm.bias.placements == (R,)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("local", [False, True])
def test_where_sequences_are_divided(world, dim, local):
    x = torch.arange(24.0).reshape(2, 3, 4).sin()
    module, seen = nn.Dropout(0.0), []
    module.register_forward_pre_hook(lambda mod, inputs: seen.append(inputs[0].placements))
    style = tp.SequenceParallel(sequence_dim=dim, use_local_output=local)
    assert repr(style) == f"SequenceParallel(sequence_dim={dim}, use_local_output={local})"
    plain = nn.Dropout(0.0)
    tp.parallelize_module(plain, world, style)
    for given in (x, distribute_tensor(x, world, [R]), distribute_tensor(x, world, [Shard(dim)])):
        found = plain(given)
        assert isinstance(found, DTensor) != local
        assert local or found.placements == (Shard(dim),)
        assert torch.allclose(found if local else found.full_tensor(), x)
    with pytest.raises(ValueError, match="to be a torch.Tensor or DTensor, but got 3"):
        plain(3)


def test_frozen_parameters_stay_frozen(world):
    norm, linear = nn.LayerNorm(2), nn.Linear(2, 2)
    for module, style in (
        (norm, tp.SequenceParallel()),
        (linear, tp.ColwiseParallel()),
        (nn.Linear(2, 2), tp.RowwiseParallel()),
    ):
        module.bias.requires_grad_(False)
        values = module.weight.detach().clone(), module.bias.detach().clone()
        tp.parallelize_module(module, world, style)
        assert module.weight.requires_grad and not module.bias.requires_grad
        assert isinstance(module.weight, nn.Parameter) and isinstance(module.bias, DTensor)
        assert torch.equal(module.weight.full_tensor(), values[0])
        assert torch.equal(module.bias.full_tensor(), values[1])


@pytest.mark.parametrize("style, weight, bias, output", [
    (tp.ColwiseParallel, S0, S0, S1), (tp.RowwiseParallel, S1, R, R),
])  # fmt: skip
def test_layers_and_what_they_give(world, style, weight, bias, output):
    x, other = torch.arange(6.0).reshape(2, 3), distribute_tensor(torch.ones(2, 4), world, [R])
    for options, placements in (
        ({}, None),
        ({"use_local_output": False}, (output,)),
        ({"use_local_output": False, "output_layouts": S0}, (S0,)),
        ({"use_local_output": False, "input_layouts": S0}, (output,)),
        ({"use_local_output": False, "output_layouts": Shard(-2)}, (S0,)),
    ):
        layer = Sum(3, 4)
        wanted = layer(x, torch.ones(2, 4), 5.0)
        tp.parallelize_module(layer, world, style(**options))
        assert layer.weight.placements == (weight,) and layer.bias.placements == (bias,)
        found = layer(x, other, 5.0)
        if placements is None:
            assert type(found) is torch.Tensor
        else:
            assert found.placements == placements
        assert torch.allclose(found.full_tensor() if placements else found, wanted, atol=1e-6)
    default = style()
    wanted = {tp.ColwiseParallel: ((R,), (Shard(-1),)), tp.RowwiseParallel: ((Shard(-1),), (R,))}[style]
    assert (default.input_layouts, default.output_layouts) == wanted and default.use_local_output is True
    assert repr(default) == f"{style.__name__}(input_layouts={wanted[0]}, output_layouts={wanted[1]})"


# ---- prepared inputs and outputs
class Told(nn.Module):
    """Gives back what it is given."""

    def forward(self, *inputs, **named):
        return (*inputs, named) if named else inputs if len(inputs) > 1 else inputs[0]


def test_prepared_inputs(world):
    x = torch.arange(6.0).reshape(3, 2)
    style = tp.PrepareModuleInput(input_layouts=(S0, None, R), desired_input_layouts=(R, None, None))
    a, b, c = tp.parallelize_module(Told(), world, style)(x, x, x)
    assert a.placements == c.placements == (R,) and b is x
    given = tp.parallelize_module(Told(), world, style)(3, x, "text")
    assert given == (3, x, "text")
    for count in (2, 4):
        with pytest.raises(ValueError, match="module inputs and input_layouts should have same length!"):
            tp.parallelize_module(Told(), world, style)(*[x] * count)
    one = tp.PrepareModuleInput(input_layouts=Shard(-1), desired_input_layouts=Shard(-2))
    assert tp.parallelize_module(Told(), world, one)(x).placements == (S0,)
    one = tp.PrepareModuleInput(input_layouts=S0, desired_input_layouts=R, use_local_output=True)
    found = tp.parallelize_module(Told(), world, one)(x)
    assert type(found) is torch.Tensor and torch.equal(found, x)
    already = distribute_tensor(x, world, [S1])
    one = tp.PrepareModuleInput(input_layouts=S0, desired_input_layouts=R)
    assert tp.parallelize_module(Told(), world, one)(already).placements == (R,)
    assert not one.use_local_output
    by_name = tp.PrepareModuleInput(
        input_kwarg_layouts={"k": S0, "n": S0}, desired_input_kwarg_layouts={"k": S1, "n": None}
    )
    first, named = tp.parallelize_module(Told(), world, by_name)(x, k=x, n=x, other=x, text="a")
    assert first is x and named["k"].placements == (S1,) and named["n"].placements == (S0,)
    assert named["other"] is x and named["text"] == "a"


def test_layouts_that_do_not_fit():
    for options, text in (
        ({"input_layouts": S0}, "desired module inputs should not be None!"),
        ({"input_layouts": (S0, R), "desired_input_layouts": (S0,)}, "should have same length!"),
        (
            {"input_kwarg_layouts": {"a": S0}, "desired_input_kwarg_layouts": {"b": S0}},
            "input_kwarg_layouts and desired_input_kwarg_layouts should have same length!",
        ),
        ({"input_kwarg_layouts": {"a": S0}}, "should have same length!"),
    ):
        with pytest.raises(AssertionError, match=text):
            tp.PrepareModuleInput(**options)
    with pytest.raises(AssertionError, match="output_layouts and desired_output_layouts should have same"):
        tp.PrepareModuleOutput(output_layouts=(S0, S0), desired_output_layouts=S0)
    assert tp.PrepareModuleInput(desired_input_layouts=R).input_layouts is None


def test_prepared_outputs(world):
    x = torch.arange(6.0).reshape(3, 2)
    style = tp.PrepareModuleOutput(output_layouts=(S0, None, Partial()), desired_output_layouts=(R, None, S1))
    a, b, c = tp.parallelize_module(Told(), world, style)(x, x, x)
    assert all(type(t) is torch.Tensor and torch.equal(t, x) for t in (a, b, c)) and b is x
    style.use_local_output = False
    a, b, c = tp.parallelize_module(Told(), world, style)(x, x, x)
    assert a.placements == (R,) and b is x and c.placements == (S1,)
    with pytest.raises(ValueError, match="module outputs and output_layouts should have same length!"):
        tp.parallelize_module(Told(), world, style)(x, x)
    style = tp.PrepareModuleOutput(
        output_layouts=S0, desired_output_layouts=Shard(-1), use_local_output=False
    )
    assert tp.parallelize_module(Told(), world, style)(x).placements == (S1,)
    both = tp.PrepareModuleInputOutput(
        input_layouts=S0, desired_input_layouts=R, output_layouts=R, desired_output_layouts=S0
    )
    assert not both.prepare_module_input.use_local_output and both.prepare_module_output.use_local_output
    found = tp.parallelize_module(Told(), world, both)(x)
    assert type(found) is torch.Tensor and torch.equal(found, x)
    both = tp.PrepareModuleInputOutput(
        input_layouts=S0, desired_input_layouts=R, use_local_input=True, output_layouts=S1,
        desired_output_layouts=S0, use_local_output=False)  # fmt: skip
    assert tp.parallelize_module(Told(), world, both)(x).placements == (S0,)


# ---- losses
LOGITS = torch.tensor([[1.0, -2.0, 3.0], [0.5, 0.0, -1.0], [2.0, 2.0, 1.0], [0.0, 4.0, 1.0]])
TARGET = torch.tensor([2, 0, -100, 1])


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("ignored", [-100, 0])
def test_the_loss_on_sharded_classes(world, reduction, ignored):
    target = TARGET.clamp(min=0) if ignored == 0 else TARGET
    plain = LOGITS.clone().requires_grad_()
    wanted = F.cross_entropy(plain, target, reduction=reduction, ignore_index=ignored)
    wanted.sum().backward()
    for labels in (target, distribute_tensor(target, world, [R]), distribute_tensor(target, world, [S0])):
        logits = distribute_tensor(LOGITS, world, [S1]).requires_grad_()
        with tp.loss_parallel():
            loss = F.cross_entropy(logits, labels, reduction=reduction, ignore_index=ignored)
            assert loss.placements == (R,) and torch.allclose(loss.full_tensor(), wanted, atol=1e-6)
            loss.sum().backward()
        assert torch.allclose(logits.grad.full_tensor(), plain.grad, atol=1e-6)


def test_losses_that_are_not_supported_on_sharded_classes(world):
    """A mesh of two dims, weights and smoothing, each alone."""
    from msadapter.distributed.tensor import _class_loss

    square = init_device_mesh("cpu", (1, 1))
    sharded = distribute_tensor(LOGITS, world, [S1])
    weight = distribute_tensor(torch.ones(3), world, [R])
    assert not _class_loss.active()
    with tp.loss_parallel():
        with tp.loss_parallel():
            pass
        assert _class_loss.active()
        for logits, target, options in (
            (distribute_tensor(LOGITS, square, [S1, R]), TARGET, {}),
            (distribute_tensor(LOGITS, square, [R, S1]), TARGET, {}),
            (sharded, TARGET, {"weight": weight}),
            (sharded, TARGET, {"label_smoothing": 0.1}),
        ):
            with pytest.raises(
                NotImplementedError, match="loss_parallel: weights, label smoothing and a mesh"
            ):
                F.cross_entropy(logits, target, **options)
        for placement in (S0, R):
            with pytest.raises(ValueError, match="only when the input tensor is sharded on the class dim"):
                F.cross_entropy(distribute_tensor(LOGITS, world, [placement]), TARGET)
        assert F.cross_entropy(LOGITS, TARGET).item() > 0  # ordinary tensors are as ever
    assert not _class_loss.active()
    whole = distribute_tensor(TARGET, square, [R, R])
    found = F.cross_entropy(distribute_tensor(LOGITS, square, [S1, R]), whole)
    assert torch.allclose(found.full_tensor(), F.cross_entropy(LOGITS, TARGET))


def test_whose_parameters_are_taken(world, monkeypatch):
    """Those of the first process along the mesh, unless the program names another one, or says that all are equal."""
    asked = []
    same = _api._same_everywhere
    monkeypatch.setattr(_api, "_same_everywhere", lambda t, mesh, src: asked.append(src) or same(t, mesh, 0))
    tp.ColwiseParallel()._apply(nn.Linear(2, 2), world)
    tp.parallelize_module(nn.Linear(2, 2), world, tp.RowwiseParallel())
    assert asked == [0, 0, 0, 0]
    asked.clear()
    tp.parallelize_module(nn.Sequential(nn.Linear(2, 2)), world, {"0": tp.ColwiseParallel()}, src_data_rank=3)
    assert asked == [3, 3]
    tp.parallelize_module(nn.Linear(2, 2), world, tp.ColwiseParallel(), src_data_rank=None)
    assert asked == [3, 3]

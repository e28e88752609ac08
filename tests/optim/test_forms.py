"""Every optimizer with options away from their defaults, in each form, and its derivatives, against PyTorch."""

from __future__ import annotations

import pytest

import msadapter as torch
from msadapter import ops
from tests.golden import store
from tests.golden.verdict import compare, difference, rule_of
from tests.optim import form_cases

GRADIENTS = [case for case in store.load("optim_forms").cases if case.startswith("gradients ")]
RUNS = [
    (name, form)
    for name, (kind, _, dtype) in form_cases.cases().items()
    for form in form_cases.forms(kind, dtype)
]


@pytest.mark.parametrize(("name", "form"), RUNS)
def test_every_form_of_an_optimizer_agrees_with_pytorch(name, form):
    kind, _, dtype = form_cases.cases()[name]
    compare("optim_forms", name, form_cases.run(torch, name, form_cases.forms(kind, dtype)[form]))


@pytest.mark.parametrize("name", [n for n in form_cases.cases() if n.endswith("-0-float64")])
def test_rate_as_a_tensor(name):
    seen = form_cases.run(torch, name, {}, lr_tensor=True)
    wanted = store.load("optim_forms").cases[name]
    assert (
        difference({k: seen[k] for k in wanted}, wanted, rule_of("optim_forms", f"{name} rate as a tensor"))
        is None
    )


@pytest.mark.parametrize("name", GRADIENTS)
def test_differentiable(name):
    kind, row, steps = name.removeprefix("gradients ").split("-")
    compare("optim_forms", name, form_cases.run_differentiable(torch, kind, int(row), int(steps)))


@pytest.mark.parametrize("kind", ["Adam", "AdamW"])
def test_the_fused_kernel_is_taken_only_if_no_other_form_is_named(kind, monkeypatch):
    name = "_fused_adam_" if kind == "Adam" else "_fused_adamw_"
    kernel, calls = getattr(ops, name), []
    monkeypatch.setattr(ops, name, lambda *a, **k: calls.append(1) or kernel(*a, **k))
    taken = {}
    for options in ({}, {"fused": True}, {"fused": False}, {"foreach": False}, {"foreach": True}):
        p = torch.nn.Parameter(torch.ones(2))
        p.grad = torch.ones(2)
        calls.clear()
        getattr(torch.optim, kind)([p], **options).step()
        taken[str(options)] = bool(calls)
    assert taken == {
        "{}": True,
        "{'fused': True}": True,
        "{'fused': False}": False,
        "{'foreach': False}": False,
        "{'foreach': True}": False,
    }


def test_groups_list_their_options_in_the_order_of_pytorch():
    p = torch.nn.Parameter(torch.ones(2, 2))
    assert " ".join(torch.optim.RMSprop([p]).param_groups[0]) == (
        "params lr momentum alpha eps centered weight_decay capturable foreach maximize differentiable"
    )
    assert torch.optim.AdamW([p], weight_decay=0.5).param_groups[0]["decoupled_weight_decay"] is True


@pytest.mark.parametrize(
    ("kind", "options", "error", "text"),
    [
        ("Adamax", {"eps": -1.0}, ValueError, "Invalid epsilon value: -1.0"),
        ("NAdam", {"momentum_decay": -1.0}, ValueError, "Invalid momentum_decay value: -1.0"),
        ("RAdam", {"betas": (0.5, 1.0)}, ValueError, "Invalid beta parameter at index 1: 1.0"),
        ("RMSprop", {"alpha": -1.0}, ValueError, "Invalid alpha value: -1.0"),
        ("RMSprop", {"momentum": -1.0}, ValueError, "Invalid momentum value: -1.0"),
        ("Adagrad", {"lr_decay": -1.0}, ValueError, "Invalid lr_decay value: -1.0"),
        ("Adagrad", {"initial_accumulator_value": -1.0}, ValueError, "Invalid initial_accumulator_value value: -1.0"),
        ("Adadelta", {"rho": 1.5}, ValueError, "Invalid rho value: 1.5"),
        ("ASGD", {"weight_decay": -1.0}, ValueError, "Invalid weight_decay value: -1.0"),
        ("Rprop", {"etas": (1.5, 1.2)}, ValueError, "Invalid eta values: 1.5, 1.2"),
        ("SGD", {"nesterov": True}, ValueError, "Nesterov momentum requires a momentum and zero dampening"),
        ("SGD", {"fused": True, "foreach": True}, RuntimeError, "`fused` and `foreach` cannot be `True` together."),
        ("Adam", {"fused": True, "differentiable": True}, RuntimeError, "`fused` does not support `differentiable`"),
        ("Adafactor", {"lr": -1.0}, ValueError, "Learning rate should be >= 0 but is: -1.0"),
        ("Adafactor", {"eps": (-1.0, 1e-3)}, ValueError, "epsilon1 should be >= 0 but is: -1.0"),
        ("Adafactor", {"d": 0.5}, ValueError, "Clipping threshold d should be >= 1 but is: 0.5"),
    ],
)  # fmt: skip
def test_numbers_out_of_range(kind, options, error, text):
    with pytest.raises(error) as caught:
        getattr(torch.optim, kind)([torch.nn.Parameter(torch.ones(2, 2))], **options)
    assert str(caught.value) == text


def test_a_rate_as_tensor_with_foreach_is_refused_by_adam_alone():
    p, lr = torch.nn.Parameter(torch.ones(2)), torch.tensor(0.1)
    with pytest.raises(
        ValueError, match="lr as a Tensor is not supported for capturable=False and foreach=True"
    ):
        torch.optim.Adam([p], lr=lr, foreach=True)
    for kind in ("Adamax", "RMSprop", "SGD", "ASGD"):
        torch.optim.__dict__[kind]([p], lr=lr, foreach=True)
    with pytest.raises(ValueError, match="Tensor lr must be 1-element"):
        torch.optim.SGD([p], lr=torch.ones(2))


@pytest.mark.parametrize("kind", ["Adam", "SGD", "Adagrad"])
@pytest.mark.parametrize("fused", [True, False])
def test_a_scaled_step(kind, fused):
    """A step with scaled gradients equals one with plain gradients. After an overflow nothing changes, not even the counter."""
    found = []
    for scale in (1.0, 8.0):
        p = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        optimizer = getattr(torch.optim, kind)([p], lr=0.1, fused=fused)
        p.grad = torch.tensor([0.5, 4.0]) * scale
        if scale != 1.0:
            optimizer.grad_scale, optimizer.found_inf = torch.tensor(scale), torch.zeros(())
        optimizer.step()
        found.append(p.tolist())
    assert found[0] == found[1] != [1.0, -2.0]
    before = [p.tolist(), {k: v.tolist() for k, v in optimizer.state[p].items() if v is not None}]
    optimizer.found_inf = torch.ones(())
    optimizer.step()
    assert before == [p.tolist(), {k: v.tolist() for k, v in optimizer.state[p].items() if v is not None}]

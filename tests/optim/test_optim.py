"""Optimizers, schedules and their errors against PyTorch."""

import pytest

import msadapter as torch
from tests.golden.answers import record
from tests.golden.verdict import compare
from tests.optim import optim_cases as cases


@pytest.mark.parametrize("resume_at", [None, 3], ids=["through", "resumed"])
@pytest.mark.parametrize("name", cases.OPTIMIZERS)
def test_optimizer(name, resume_at):
    compare("optim", f"optimizer {name}", record(cases.run_optimizer(torch, name, resume_at=resume_at)))


@pytest.mark.parametrize("name", cases.SCHEDULES)
def test_schedule(name):
    compare("optim", f"schedule {name}", cases.run_schedule(torch, name))


@pytest.mark.parametrize("name", cases.ERRORS)
def test_error(name):
    compare("optim", f"error {name}", cases.error_of(torch, name))


def _sgd():
    p = torch.nn.Parameter(torch.ones(2))
    p.grad = torch.ones(2)
    return p, torch.optim.SGD([p], lr=0.5)


def test_step_hooks_run_in_order():
    p, optimizer = _sgd()
    seen = []
    handle = optimizer.register_step_pre_hook(lambda *_: seen.append("pre"))
    optimizer.register_step_post_hook(lambda *_: seen.append("post"))
    optimizer.step()
    handle.remove()
    optimizer.step()
    assert seen == ["pre", "post", "post"]
    assert p.tolist() == [0.0, 0.0]


def test_state_dict_hooks():
    _, optimizer = _sgd()
    optimizer.register_state_dict_post_hook(lambda _, state: {**state, "more": 1})
    assert optimizer.state_dict()["more"] == 1
    seen = []
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append(o))
    optimizer.load_state_dict(optimizer.state_dict())
    assert seen == [optimizer]


def test_zero_grad_keeps_the_tensor_only_if_asked():
    p, optimizer = _sgd()
    grad = p.grad
    optimizer.zero_grad(set_to_none=False)
    assert p.grad is grad
    assert grad.tolist() == [0.0, 0.0]
    optimizer.zero_grad()
    assert p.grad is None


def test_loaded_state_has_the_parameters_dtype():
    p = torch.nn.Parameter(torch.ones(2, dtype=torch.float64))
    p.grad = torch.ones(2, dtype=torch.float64)
    optimizer = torch.optim.Adam([p])
    optimizer.step()
    state = optimizer.state_dict()
    state["state"][0]["exp_avg"] = state["state"][0]["exp_avg"].float()
    optimizer.load_state_dict(state)
    assert optimizer.state[p]["exp_avg"].dtype == torch.float64
    assert optimizer.state[p]["step"].item() == 1.0


def test_averaged_model():
    model = torch.nn.Linear(2, 1)
    average = torch.optim.swa_utils.AveragedModel(model)
    for value in (1.0, 2.0, 6.0):
        with torch.no_grad():
            model.weight.fill_(value)
        average.update_parameters(model)
    assert average.module.weight.tolist() == [[3.0, 3.0]]
    assert int(average.n_averaged) == 3


@pytest.mark.parametrize("kind", ["Adam", "AdamW", "SGD", "Adagrad"])
@pytest.mark.parametrize("fused", [True, False, None])
def test_fused_optimizers_say_that_they_undo_the_scaling_of_gradients(kind, fused):
    optimizer = getattr(torch.optim, kind)([torch.nn.Parameter(torch.ones(2))], fused=fused)
    assert getattr(optimizer, "_step_supports_amp_scaling", False) is bool(fused)

"""Autocast's state and policies, and GradScaler against PyTorch."""

import pickle

import pytest

import msadapter as torch
from msadapter.amp.state import state
from tests.amp import amp_cases as cases
from tests.golden.verdict import check


def test_scaler_run():
    check("amp", "scaler", cases.run_scaler, torch)


def test_scaler_refuses_a_second_unscale_and_a_second_step():
    p = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([p], lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(p.sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="already been called since the last update"):
        scaler.step(optimizer)


def test_scaler_pickles():
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    assert pickle.loads(pickle.dumps(scaler)).get_scale() == 8.0


def test_disabled_scaler_passes_everything():
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    loss = torch.ones(())
    assert scaler.scale(loss) is loss
    assert scaler.state_dict() == {}


def test_nesting_restores_the_state():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert state.enabled
        with torch.autocast("cpu", enabled=False):
            assert not state.enabled
        assert state.enabled
    assert not state.enabled


def test_weights_are_cast_once_in_a_block():
    weight = torch.nn.Parameter(torch.ones(2, 2))
    x = torch.ones(2, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        graph = (x @ weight).grad_fn, (x @ weight).grad_fn
        casts = [node.next_functions[1][0] for node in graph]
        assert casts[0] is casts[1]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (x @ weight).grad_fn.next_functions[1][0] is not casts[0]


def test_matmul_runs_in_the_lower_precision():
    weight = torch.nn.Parameter(torch.randn(4, 4))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = torch.randn(2, 4) @ weight
        assert out.dtype == torch.bfloat16
        loss = torch.nn.functional.mse_loss(out, torch.zeros(2, 4, dtype=torch.bfloat16))
        assert loss.dtype == torch.float32
    loss.backward()
    assert weight.grad.dtype == torch.float32


def test_decorator():
    @torch.autocast("cpu", dtype=torch.bfloat16)
    def run():
        return torch.is_autocast_enabled("cpu")

    assert run() is True
    assert torch.is_autocast_enabled("cpu") is False


def test_foreach_unscale_and_update_of_the_scale():
    """The two operators that loss scalers use. Megatron calls them directly."""
    grads, found, inverse = (
        [torch.full((3,), 4.0), torch.tensor([1.0, 2.0]).half()],
        torch.zeros(1),
        torch.tensor([0.5]),
    )
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, inverse)
    assert grads[0].tolist() == [2, 2, 2] and grads[1].tolist() == [0.5, 1] and found.item() == 0
    torch._amp_foreach_non_finite_check_and_unscale_([torch.tensor([1.0, float("inf")])], found, inverse)
    assert found.item() == 1
    with pytest.raises(RuntimeError, match="found_inf must be a float tensor"):
        torch._amp_foreach_non_finite_check_and_unscale_(grads, found.int(), inverse)
    scale, tracker = torch.tensor([8.0]), torch.tensor([1], dtype=torch.int32)
    torch._amp_update_scale_(scale, tracker, torch.zeros(1), 2.0, 0.5, 2)
    assert (scale.item(), tracker.item()) == (16, 0)
    torch._amp_update_scale_(scale, tracker, found, 2.0, 0.5, 2)
    assert (scale.item(), tracker.item()) == (8, 0)

"""Which precision autocast gives an operator on which device, against PyTorch."""

import pytest

import msadapter as torch
from tests.amp import policy_cases as cases
from tests.golden import store

GOLDEN = store.load("autocast").cases


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("call", cases.CALLS)
def test_result_types_are_torchs(call, device, monkeypatch):
    monkeypatch.setenv("MSADAPTER_DEVICE", "cuda")
    for kinds, wanted in zip(cases.KINDS, GOLDEN[f"{device} {call}"], strict=True):
        made, plain = (cases.run(torch, call, device, kinds, enabled) for enabled in (True, False))
        assert made == (plain if wanted is None else wanted), kinds


def test_each_device_has_its_own_settings(monkeypatch):
    """CPU autocast leaves tensors of an accelerator alone, and the other way round."""
    monkeypatch.setenv("MSADAPTER_DEVICE", "cuda")
    host, far = torch.ones(2, 2), torch.ones(2, 2, device="cuda")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (host @ host).dtype == torch.bfloat16 and (far @ far).dtype == torch.float32
        with torch.autocast("cuda", dtype=torch.float16):
            assert (host @ host).dtype == torch.bfloat16 and (far @ far).dtype == torch.float16
            assert host.bfloat16().exp().dtype == torch.bfloat16 and far.half().exp().dtype == torch.float32
    with torch.autocast("cuda", dtype=torch.float16):
        assert (host @ host).dtype == torch.float32 and (far @ far).dtype == torch.float16


def test_losses_unsafe_in_half_precision_are_refused(monkeypatch):
    monkeypatch.setenv("MSADAPTER_DEVICE", "cuda")
    half = torch.full((2,), 0.5, device="cuda")
    with (
        torch.autocast("cuda"),
        pytest.raises(RuntimeError, match="are unsafe to autocast.\nMany models use a sigmoid"),
    ):
        torch.nn.functional.binary_cross_entropy(half, half)
    with torch.autocast("cuda", enabled=False):
        torch.nn.functional.binary_cross_entropy(half, half)
    with torch.autocast("cpu"):
        torch.nn.functional.binary_cross_entropy(half.cpu(), half.cpu())


@pytest.mark.parametrize("enabled", [True, False])
def test_cache_of_casts(enabled):
    """With cache_enabled=False a parameter is cast at each use, so that a change between two uses is seen."""
    from msadapter.ops import t

    weight = torch.nn.Parameter(torch.ones(2, 2))
    with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=enabled):
        assert torch.is_autocast_cache_enabled() is enabled
        first, second = (t._autocast_cast(weight, torch.bfloat16) for _ in range(2))
    assert (first is second) is enabled
    assert torch.is_autocast_cache_enabled()

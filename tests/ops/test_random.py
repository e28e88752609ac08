"""The CPU generator equals PyTorch's: numbers, states and errors (tests/golden/random_cases.py)."""

from __future__ import annotations

import copy
import io
import pickle

import pytest

import msadapter as torch
from tests.batches import together
from tests.golden import store
from tests.golden.suites import cases
from tests.golden.verdict import check

CASES = cases("random")


@together(CASES)
def test_case(case):
    check("random", case, CASES[case], torch)


def test_state_written_by_pytorch_continues_its_stream():
    state, following = store.load("random").cases["state and what follows"]
    torch.set_rng_state(torch.tensor(list(bytes.fromhex(state)), dtype=torch.uint8))
    assert bytes(torch.get_rng_state().tolist()).hex() == state
    torch.testing.assert_close(torch.randn(4), torch.tensor(following["values"]), rtol=3e-7, atol=0)


def test_generators_are_independent():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    g = torch.Generator()
    assert g.initial_seed() == 67280421310721 and g.device.type == "cpu"
    assert g.manual_seed(11) is g
    first = torch.rand(5, generator=g)
    assert torch.get_rng_state().tolist() == before.tolist()
    assert torch.rand(5, generator=torch.Generator().manual_seed(11)).tolist() == first.tolist()
    twin = g.clone_state()
    assert torch.rand(3, generator=twin).tolist() == torch.rand(3, generator=g).tolist()
    assert isinstance(g.seed(), int) and g.initial_seed() != 11


def test_generator_is_pickled_with_its_state(torch_by_name):
    """As PyTorch does it, so that both read each other's files, with weights_only too."""
    assert torch._C.Generator is torch.Generator and torch.Generator.__module__ == "torch._C"
    g = torch.Generator().manual_seed(5)
    build, (device,), (seed, offset, state) = g.__reduce__()
    assert (build, device.type, seed, offset, state.shape) == (torch.Generator, "cpu", 5, None, (5056,))
    file = io.BytesIO()
    torch.save(g, file)
    with pytest.raises(pickle.UnpicklingError, match="Generator"):
        torch.load(io.BytesIO(file.getvalue()), weights_only=True)
    with torch.serialization.safe_globals([torch._C.Generator]):
        loaded = torch.load(io.BytesIO(file.getvalue()), weights_only=True)
    assert torch.rand(3, generator=loaded).tolist() == torch.rand(3, generator=copy.deepcopy(g)).tolist()
    torch.rand(3, generator=g)
    again = pickle.loads(pickle.dumps(g))
    assert torch.rand(3, generator=again).tolist() == torch.rand(3, generator=g).tolist()
    assert torch.rand(3, generator=copy.deepcopy(g)).tolist() == torch.rand(3, generator=g).tolist()


def test_fork_rng_restores():
    torch.manual_seed(9)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        torch.rand(3)
    inside = torch.rand(3).tolist()
    torch.manual_seed(9)
    assert torch.rand(3).tolist() == inside


def test_in_place_draw_has_gradient_zero_and_counts_as_a_write():
    x = torch.ones(4, requires_grad=True)
    y = x * 2
    version = y._version
    y.uniform_()
    assert y._version == version + 1
    (y * 3).sum().backward()
    assert x.grad.tolist() == [0.0] * 4


def test_returns_self_and_writes_into_views():
    base = torch.zeros(6, 6)
    view = base[1:4, ::2]
    assert view.normal_() is view
    assert bool((base[1:4, ::2] != 0).all()) and base[0].abs().sum() == 0 and base[:, 1].abs().sum() == 0


def test_fused_dropout_keeps_its_mask():
    torch.manual_seed(0)
    x = torch.rand(1000, requires_grad=True)
    out, mask = torch.native_dropout(x, 0.25, True)
    out.sum().backward()
    assert mask.dtype is torch.bool
    torch.testing.assert_close(x.grad, mask.float() / 0.75)
    assert 700 < int(mask.sum()) < 800


def test_gradient_of_gamma_samples():
    torch.manual_seed(0)
    a = torch.linspace(0.3, 8, 9, dtype=torch.float64, requires_grad=True)
    x = torch._standard_gamma(a)
    x.sum().backward()
    # the distribution function is constant along the path of the sample: dF/da + f dx/da = 0
    h = 1e-5
    with torch.no_grad():
        change = (torch.special.gammainc(a + h, x) - torch.special.gammainc(a - h, x)) / (2 * h)
        density = torch.exp((a - 1) * x.log() - x - torch.lgamma(a))
    torch.testing.assert_close(a.grad, -change / density, rtol=1e-5, atol=1e-8)

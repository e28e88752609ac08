"""scatter, replicate, parallel_apply, gather and DataParallel over the devices that one process names."""

from __future__ import annotations

from collections import namedtuple

import pytest

import msadapter as torch
from msadapter.nn.parallel import DataParallel, gather, parallel_apply, replicate, scatter

Pair = namedtuple("Pair", "x y")


@pytest.fixture(autouse=True)
def two_devices(monkeypatch):
    monkeypatch.setenv("MSADAPTER_DEVICE", "cuda")
    monkeypatch.setenv("MSADAPTER_DEVICE_COUNT", "2")


def test_what_is_cut_and_what_is_repeated():
    x = torch.arange(10).reshape(5, 2)
    rows = scatter((x, {"k": [x, "text"]}, Pair(x, 3)), [0, 1])
    assert [row[0].shape[0] for row in rows] == [3, 2]
    assert rows[1][1]["k"][0].tolist() == [[6, 7], [8, 9]] and rows[0][1]["k"][1] == "text"
    assert isinstance(rows[0][2], Pair) and rows[0][2].y == 3
    assert [str(row[0].device) for row in rows] == ["cuda:0", "cuda:1"]
    back = gather(rows[0][:1] + rows[1][:1], "cpu")
    assert torch.equal(back, x)


def test_gather_joins_every_kind():
    found = gather([{"a": torch.ones(2), "b": None}, {"a": torch.zeros(1), "b": None}], "cpu")
    assert found["a"].tolist() == [1, 1, 0] and found["b"] is None
    assert gather([torch.tensor(1.0), torch.tensor(2.0)], "cpu").tolist() == [1, 2]
    assert isinstance(gather([Pair(torch.ones(1), torch.ones(1))] * 2, "cpu"), Pair)
    with pytest.raises(ValueError, match="same number of keys"):
        gather([{"a": torch.ones(1)}, {}], "cpu")


def _network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2)).eval()


def test_gradients_of_the_copies_meet_in_the_original():
    network, x = _network(), torch.randn(5, 3)
    copies = replicate(network, [0, 1])
    assert copies[1][0].weight.device == torch.device("cuda:1") and copies[0] is not network
    out = gather(parallel_apply(copies, scatter((x,), [0, 1])), "cpu")
    out.pow(2).sum().backward()
    found = [p.grad.clone() for p in network.parameters()]
    network.zero_grad()
    network(x).pow(2).sum().backward()
    for have, want in zip(found, (p.grad for p in network.parameters()), strict=True):
        torch.testing.assert_close(have.cpu(), want)


def test_data_parallel_is_the_module():
    network, x = _network().cuda(), torch.randn(5, 3)
    wrapped = DataParallel(network, device_ids=[0, 1])
    torch.testing.assert_close(wrapped(x).cpu(), network(x.cuda()).cpu())
    assert [name.partition(".")[0] for name, _ in wrapped.named_parameters()] == ["module"] * 6


def test_the_first_error_is_raised():
    def fail(x):
        raise ZeroDivisionError("here")

    with pytest.raises(ZeroDivisionError, match="here"):
        parallel_apply([torch.nn.Identity(), fail], [1, 2])
    with pytest.raises(AssertionError, match="number of modules 1"):
        parallel_apply([torch.nn.Identity()], [1, 2])

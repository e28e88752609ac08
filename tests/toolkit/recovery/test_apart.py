"""Checkpoints whose tensors are in safetensors."""

from __future__ import annotations

import argparse
import collections
from pathlib import Path

import numpy
import pytest

import msadapter as torch
from megatron_ms.recovery import apart

Pair = collections.namedtuple("Pair", "first second")


@pytest.fixture(autouse=True)
def _torch(torch_by_name):
    """`import torch` is this project in every test of this file."""


def state() -> dict:
    """Everything that a checkpoint of upstream has, and more."""
    generator = torch.Generator().manual_seed(5)
    weight = torch.rand(5, 7, generator=generator)
    ordered = collections.OrderedDict(weight=weight, tied=weight, turned=weight.T, part=weight[1:3, ::2])
    return {
        "args": argparse.Namespace(lr=0.1),
        "iteration": 7,
        "model": ordered,
        "optimizer": {
            "state": {0: {"exp_avg": weight.bfloat16(), "step": torch.tensor(3)}, "0": [torch.zeros(0, 4)]},
            "groups": [{"lr": 0.1, "params": [0, 1]}, None],
            "params": [torch.nn.Parameter(weight.double()), torch.ones(2, requires_grad=True)],
        },
        "rng": [{"numpy": ("MT19937", numpy.arange(4)), "torch": torch.get_rng_state()}],
        "pair": Pair(torch.tensor([True, False]), (torch.arange(3, dtype=torch.int16), "text")),
        "complex": torch.ones(2, dtype=torch.complex64),
        "__metadata__": torch.ones(1),
    }


def same(one, other) -> None:
    """Structures, types and all bits are equal."""
    assert type(one) is type(other)
    if isinstance(one, torch.Tensor):
        assert one.dtype == other.dtype and torch.equal(one, other)
        assert one.requires_grad == other.requires_grad
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            same(one[key], other[key])
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            same(left, right)
    elif isinstance(one, numpy.ndarray):
        assert (one == other).all()
    else:
        assert one == other


def test_what_is_written_is_read(tmp_path: Path) -> None:
    file, before, given = tmp_path / "model_optim_rng.pt", (torch.save, torch.load), state()
    with apart.writing():
        torch.save(given, file)
    with apart.reading():
        found = torch.load(file, map_location="cpu", weights_only=False)
    same(found, given)
    assert found["model"]["weight"] is found["model"]["tied"]
    assert (torch.save, torch.load) == before
    assert file.stat().st_size < 20_000


def test_weights_alone_are_read_without_trust(tmp_path: Path) -> None:
    given = {"param": torch.rand(5), "numel": 5, "more": [torch.nn.Parameter(torch.ones(2))]}
    with apart.writing():
        torch.save(given, tmp_path / "distrib_optim.pt")
    with apart.reading():
        same(torch.load(tmp_path / "distrib_optim.pt", weights_only=True), given)


def test_other_programs_read_the_tensors(tmp_path: Path) -> None:
    from safetensors import safe_open

    with apart.writing():
        torch.save(state(), tmp_path / "a.pt")
        torch.save(state(), tmp_path / "a.other")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.other", "a.pt", "a.safetensors"]
    with safe_open(tmp_path / "a.safetensors", "numpy") as opened:
        names = set(opened.keys())
        assert {"model.weight", "optimizer.state.0.step", "optimizer.params.0", "pair.0"} < names
        assert "model.tied" not in names, "what is shared is written once"
        assert (opened.get_tensor("model.weight") == state()["model"]["weight"].numpy()).all()


def test_a_divided_checkpoint_becomes_upstreams_own(tmp_path: Path, monkeypatch) -> None:
    """What `convert` does before it reads one."""
    from megatron_ms.conversion import joining_program

    for folder in ("divided", "joined"):
        (tmp_path / folder / "mp_rank_00").mkdir(parents=True)
    with apart.writing():
        torch.save(state(), tmp_path / "divided" / "mp_rank_00" / "model_optim_rng.pt")
    monkeypatch.setattr("sys.argv", ["", str(tmp_path / "divided"), str(tmp_path / "joined")])
    joining_program.main()
    same(torch.load(tmp_path / "joined" / "mp_rank_00" / "model_optim_rng.pt", weights_only=False), state())


def test_files_that_are_not_divided_are_read_as_they_are(tmp_path: Path) -> None:
    torch.save(state(), tmp_path / "a.pt")
    with apart.reading():
        same(torch.load(tmp_path / "a.pt", weights_only=False), state())


def test_a_file_without_its_tensors_is_an_error(tmp_path: Path) -> None:
    with apart.writing():
        torch.save(state(), tmp_path / "a.pt")
    (tmp_path / "a.safetensors").unlink()
    with apart.reading(), pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "a.pt", weights_only=False)
    torch.save({"tensors apart": 9, "structure": {}}, tmp_path / "b.pt")
    with apart.reading(), pytest.raises(ValueError, match="is divided in the way 9, and 1 is known here"):
        torch.load(tmp_path / "b.pt", weights_only=False)

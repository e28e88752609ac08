"""torch.distributed.checkpoint: between ranks, and files exchanged with PyTorch."""

import subprocess

import pytest

import msadapter as torch
import msadapter.distributed.checkpoint as dcp
from tests.distributed.ranks import checks_of, outcomes_of

CHECKS = checks_of("checkpoints.py")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    return outcomes_of("checkpoints.py", 2, tmp_path_factory.mktemp("outcomes"))


@pytest.mark.parametrize("name", CHECKS)
def test_check(outcomes, name):
    for rank, outcome in enumerate(outcomes):
        assert outcome[name] == "ok", f"rank {rank}: {outcome[name]}"


def test_one_process_without_a_job(tmp_path):
    dcp.save({"a": torch.arange(4), "b": {"c": "text"}}, checkpoint_id=tmp_path)
    state = {"a": torch.zeros(4, dtype=torch.int64), "b": {"c": None}}
    dcp.load(state, checkpoint_id=tmp_path)
    assert state["a"].tolist() == [0, 1, 2, 3] and state["b"]["c"] == "text"


def test_the_storage_as_second_argument(tmp_path):
    """The earlier form, which Megatron-LM 0.19 uses, warns as in PyTorch."""
    value = {"x": torch.arange(4.0)}
    with pytest.warns(UserWarning, match="argument order of save has been changed"):
        dcp.save(value, dcp.FileSystemWriter(tmp_path), no_dist=True)
    found = {"x": torch.zeros(4)}
    with pytest.warns(UserWarning, match="argument order of load has been changed"):
        dcp.load(found, dcp.FileSystemReader(tmp_path), no_dist=True)
    assert found["x"].tolist() == [0, 1, 2, 3]
    reader = dcp.FileSystemReader(tmp_path)
    with pytest.warns(UserWarning), pytest.raises(AssertionError, match="storage_reader in kwargs"):
        dcp.load(found, reader, storage_reader=reader)
    with pytest.raises(TypeError):
        dcp.load(found, reader, None)


def test_files_of_pytorch_both_ways(tmp_path, torch_python):
    dcp.save({"w": torch.arange(6.0).reshape(2, 3), "n": {"step": 3}}, checkpoint_id=tmp_path / "ours")
    code = f"""
import torch, torch.distributed.checkpoint as dcp
state = {{"w": torch.zeros(2, 3), "n": {{"step": 0}}}}
dcp.load(state, checkpoint_id={str(tmp_path / "ours")!r})
assert state["w"].tolist() == [[0, 1, 2], [3, 4, 5]] and state["n"]["step"] == 3
dcp.save({{"w": state["w"].bfloat16() * 2, "n": {{"step": 4}}}}, checkpoint_id={str(tmp_path / "theirs")!r})
"""
    subprocess.run([torch_python, "-c", code], check=True, env={})
    state = {"w": torch.zeros(2, 3, dtype=torch.bfloat16), "n": {"step": 0}}
    dcp.load(state, checkpoint_id=tmp_path / "theirs")
    assert state["w"].tolist() == [[0, 2, 4], [6, 8, 10]] and state["n"]["step"] == 4


def test_lists_are_entered_for_what_the_caller_looks_for():
    from msadapter.distributed.checkpoint._traverse import traverse_state_dict

    state = {"a": [1, 2], "b": [torch.ones(1), 3], "c": {"d": [[{"e": 4}]]}, "f": (torch.ones(1),), "g": {}}
    leaves = {}
    traverse_state_dict(state, lambda path, value: leaves.__setitem__(path, value))
    assert set(leaves) == {("a",), ("b", 0), ("b", 1), ("c", "d", 0, 0, "e"), ("f",)}
    leaves.clear()
    traverse_state_dict(state, lambda path, value: leaves.__setitem__(path, value), lambda x: x == 2)
    assert ("a", 1) in leaves and leaves["c", "d", 0, 0, "e"] == 4

"""torch.distributed.checkpoint in folders of safetensors files, in one process. Several ranks: jobs/checkpoints.py."""

import json

import pytest
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

import msadapter as torch
import msadapter.distributed.checkpoint as dcp
from msadapter.distributed.checkpoint._consolidate_hf_safetensors import consolidate_safetensors_files
from msadapter.distributed.checkpoint.hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter

STATE = {
    "a": torch.arange(12.0).reshape(3, 4),
    "b": torch.full((5,), 3.0, dtype=torch.bfloat16),
    "c": torch.tensor(7),
}


def _read(folder, names="abc"):
    state = {name: torch.zeros_like(STATE[name]) for name in names}
    dcp.load(state, storage_reader=HuggingFaceStorageReader(folder))
    return state


def _piece(folder, name, tensors, offsets):
    """Write a file as PyTorch 2.13 writes those of a rank."""
    notes = {fqn: {"saved_offsets": begin} for fqn, begin in offsets.items()}
    arrays = {fqn: tensor.numpy() for fqn, tensor in tensors.items()}
    save_file(
        arrays, folder / name, {"DCP_SHARDING_INFO": json.dumps(notes), "DCP_VERSION": "1.0", "format": "pt"}
    )


def test_a_folder_with_an_index(tmp_path):
    mapping = {"a": 1, "b": 2, "c": 2}
    dcp.save(STATE, storage_writer=HuggingFaceStorageWriter(tmp_path, mapping, thread_count=2))
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    files = {name: f"model-0000{number}-of-00002.safetensors" for name, number in mapping.items()}
    assert index == {"metadata": {"total_size": 48 + 10 + 8}, "weight_map": files}
    assert all(torch.equal(found, STATE[name]) for name, found in _read(tmp_path).items())


def test_what_a_rank_notes(tmp_path):
    dcp.save(STATE, storage_writer=HuggingFaceStorageWriter(tmp_path, save_distributed=True))
    (file,) = tmp_path.iterdir()
    assert file.name == "shard-00001-model-00001-of-00001.safetensors"
    with safe_open(str(file), framework="numpy") as opened:
        notes = opened.metadata()
    assert json.loads(notes.pop("DCP_SHARDING_INFO")) == {
        "a": {"saved_offsets": [0, 0]},
        "b": {"saved_offsets": [0]},
        "c": {"saved_offsets": []},
    }
    assert notes == {"DCP_VERSION": "1.0", "format": "pt"}
    assert all(torch.equal(found, STATE[name]) for name, found in _read(tmp_path).items())


def test_pieces_become_whole(tmp_path):
    upper, lower = STATE["a"][:2].clone(), STATE["a"][2:].clone()
    _piece(tmp_path, "one.safetensors", {"a": upper, "c": STATE["c"]}, {"a": [0, 0], "c": []})
    _piece(tmp_path, "two.safetensors", {"a": lower}, {"a": [2, 0]})
    assert torch.equal(_read(tmp_path, "a")["a"], STATE["a"])
    consolidate_safetensors_files(str(tmp_path), str(tmp_path / "whole"), {"a": 1, "c": 1})
    assert all(torch.equal(found, STATE[name]) for name, found in _read(tmp_path / "whole", "ac").items())
    with pytest.raises(KeyError, match="no piece of 'missing'"):
        consolidate_safetensors_files(str(tmp_path), str(tmp_path / "whole"), {"missing": 1})


@pytest.mark.parametrize("second", [[1, 0], [3, 0], [2, 1]], ids=["overlap", "gap", "shifted"])
def test_pieces_that_do_not_fit(tmp_path, second):
    _piece(tmp_path, "one.safetensors", {"a": STATE["a"][:2].clone()}, {"a": [0, 0]})
    _piece(tmp_path, "two.safetensors", {"a": STATE["a"][2:].clone()}, {"a": second})
    with pytest.raises(RuntimeError, match="pieces of 'a' do not make up a tensor"):
        consolidate_safetensors_files(str(tmp_path), str(tmp_path / "whole"), {"a": 1})
    assert not list((tmp_path / "whole").glob("*"))


@pytest.mark.parametrize("place", [[0], [-1, 0], [0.0, 0], [2**62, 0], [True, 0]])
def test_places_that_cannot_be(tmp_path, place):
    _piece(tmp_path, "one.safetensors", {"a": STATE["a"]}, {"a": place})
    with pytest.raises(RuntimeError, match="'a' cannot begin at"):
        HuggingFaceStorageReader(tmp_path).read_metadata()


def test_other_bad_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="contains no file"):
        HuggingFaceStorageReader(tmp_path).read_metadata()
    _piece(tmp_path, "one.safetensors", {"a": STATE["a"]}, {})
    with pytest.raises(RuntimeError, match="the note DCP_SHARDING_INFO is damaged"):
        HuggingFaceStorageReader(tmp_path).read_metadata()
    (tmp_path / "one.safetensors").write_bytes(b"\xff" * 40)
    with pytest.raises(SafetensorError):
        HuggingFaceStorageReader(tmp_path).read_metadata()


def test_what_is_no_tensor(tmp_path):
    with pytest.raises(dcp.CheckpointException, match="'step' is not a tensor"):
        dcp.save({"step": 3}, storage_writer=HuggingFaceStorageWriter(tmp_path))
    assert not list(tmp_path.iterdir())

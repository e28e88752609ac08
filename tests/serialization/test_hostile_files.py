"""Damaged and hostile files raise the reader's own errors. Nothing is executed, and no other file is read."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import pickle
import random
import re
import struct
from pathlib import Path

import pytest

import msadapter as torch
import msadapter.distributed.checkpoint as dcp

FILES = Path(__file__).resolve().parents[1] / "golden" / "files"
REFUSED = (RuntimeError, pickle.UnpicklingError, EOFError)


def _damaged(content: bytes, chance: random.Random) -> bytes:
    """Change, remove or overwrite some bytes."""
    found = bytearray(content)
    kind = chance.randrange(3)
    if kind == 0:
        for _ in range(chance.randrange(1, 6)):
            found[chance.randrange(len(found))] = chance.randrange(256)
    elif kind == 1:
        at = chance.randrange(len(found))
        del found[at : at + chance.randrange(1, 200)]
    else:
        at = chance.randrange(len(found) - 8)
        found[at : at + 8] = struct.pack("<Q", chance.choice([0, 2**40, 2**63 - 1, 2**64 - 1]))
    return bytes(found)


@pytest.mark.parametrize("name", ["zip.pt", "legacy.pt", "sparse.pt"])
@pytest.mark.parametrize("weights_only", [True, False])
def test_a_file_that_ends_early(name, weights_only):
    content = (FILES / name).read_bytes()
    for end in range(0, len(content), max(len(content) // 40, 1)):
        with pytest.raises(REFUSED):
            torch.load(io.BytesIO(content[:end]), weights_only=weights_only)


@pytest.mark.parametrize("name", ["zip.pt", "legacy.pt", "sparse.pt"])
def test_a_file_with_chance_bytes(name):
    content, chance, refused = (FILES / name).read_bytes(), random.Random(5), 0
    for _ in range(200):
        try:
            torch.load(io.BytesIO(_damaged(content, chance)))
        except REFUSED:
            refused += 1
    assert refused > 50  # in the other files only values or unimportant bytes have changed


@pytest.mark.parametrize("method", [8, 9, 12, 14, 93, 99])
@pytest.mark.parametrize("record", ["data/0", "data.pkl"])
def test_a_record_that_is_not_compressed_as_it_says(method, record):
    """The methods of a zip archive are deflate, deflate64, bzip2, LZMA and zstandard; 99 is an encrypted record."""
    content = bytearray((FILES / "zip.pt").read_bytes())
    at = content.rfind(
        record.encode()
    )  # the last one is in the central directory, 46 bytes after its entry's start
    entry = content.rfind(b"PK\x01\x02", 0, at)
    content[entry + 10 : entry + 12] = struct.pack("<H", method)
    with pytest.raises(RuntimeError, match=re.escape(f"failed reading file {record}")):
        torch.load(io.BytesIO(content))


def _safetensors(header: dict, content: bytes = b"\0" * 64) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + content


@pytest.mark.parametrize(
    "content",
    [
        b"",
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", 2**40) + b"{}",
        b"\0" * 8,
        _safetensors({"a": {"dtype": "F32", "shape": [2**62, 4], "data_offsets": [0, 16]}}),
        _safetensors({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}),
        _safetensors({"a": {"dtype": "F32", "shape": [4], "data_offsets": [16, 0]}}),
        _safetensors({"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 2**63]}}),
        _safetensors({"a": {"dtype": "XX", "shape": [4], "data_offsets": [0, 16]}}),
    ],
)
def test_headers_of_safetensors_that_lie(content, tmp_path):
    safetensors = pytest.importorskip("safetensors")
    from safetensors.numpy import load

    (tmp_path / "x.safetensors").write_bytes(content)
    with pytest.raises(safetensors.SafetensorError):
        load(content)
    with (
        pytest.raises(safetensors.SafetensorError),
        safetensors.safe_open(tmp_path / "x.safetensors", "np") as stream,
    ):
        stream.keys()


# ---- folders of torch.distributed.checkpoint
class _Call:
    """Pickled as a call."""

    def __init__(self, function, *args):
        self.function, self.args = function, args

    def __reduce__(self):
        return self.function, self.args


@pytest.fixture
def folder(tmp_path):
    dcp.save({"a": torch.arange(4.0)}, checkpoint_id=tmp_path)
    return tmp_path


def _load(folder):
    state = {"a": torch.zeros(4)}
    dcp.load(state, checkpoint_id=folder)
    return state["a"]


def _refused_with(folder, text: str) -> None:
    with pytest.raises(dcp.CheckpointException) as caught:
        _load(folder)
    assert text in str(caught.value)


def test_metadata_calls_nothing(folder):
    target = folder / "touched"
    (folder / ".metadata").write_bytes(pickle.dumps(_Call(open, str(target), "w")))
    _refused_with(folder, "io.open, which is not allowed")
    for program in (
        b"cos\nsystem\n(S'true'\ntR.",
        b"\x80\x04\x8c\x27torch.distributed.checkpoint.filesystem\x8c\x09os.system\x93\x8c\x01:\x85R.",
        b"ctorch.distributed.checkpoint.state_dict_loader\nload\n(tR.",
        b"ctorch.hub\nload\n(S'x'\ntR.",
    ):
        (folder / ".metadata").write_bytes(program)
        _refused_with(folder, "UnpicklingError")
    assert not os.path.exists(target)


def test_metadata_that_is_damaged_or_something_else(folder):
    content, chance = (folder / ".metadata").read_bytes(), random.Random(2)
    (folder / ".metadata").write_bytes(pickle.dumps({"a": 1}))
    _refused_with(folder, "holds dict, no Metadata")
    for end in (0, 1, len(content) // 2, len(content) - 1):
        (folder / ".metadata").write_bytes(content[:end])
        _refused_with(folder, "UnpicklingError")
    for _ in range(100):
        (folder / ".metadata").write_bytes(_damaged(content, chance))
        try:
            torch.distributed.checkpoint.FileSystemReader(folder).read_metadata()
        except pickle.UnpicklingError:
            continue
    (folder / ".metadata").write_bytes(content)
    assert _load(folder).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("elsewhere", ["../outside", "/etc/hostname", "a/../../outside"])
def test_files_outside_of_the_folder_are_not_read(folder, elsewhere):
    reader = dcp.FileSystemReader(folder)
    metadata = reader.read_metadata()
    for place in metadata.storage_data.values():
        object.__setattr__(place, "relative_path", elsewhere)
    (folder / ".metadata").write_bytes(_dumped(metadata))
    _refused_with(folder, "which is not in its folder")


def _dumped(metadata) -> bytes:
    from msadapter._serialization.pickler import SaveContext, make_pickler

    stream = io.BytesIO()
    make_pickler(stream, pickle, 4, SaveContext()).dump(metadata)
    return stream.getvalue()


def test_a_class_that_the_user_allows(folder):
    reader = dcp.FileSystemReader(folder)
    metadata = reader.read_metadata()
    metadata.planner_data = random.Random  # a class of no kind that metadata may name
    (folder / ".metadata").write_bytes(_dumped(metadata))
    _refused_with(folder, "random.Random, which is not allowed")
    with torch.serialization.safe_globals([random.Random]):
        assert dcp.FileSystemReader(folder).read_metadata().planner_data is random.Random


@dataclasses.dataclass(frozen=True)
class DerivedPlan(dcp.SavePlan):
    more: dict | None = None


class Empty:
    """A class such as programs keep for their old files."""


class WithCode:
    def __setstate__(self, state):
        raise AssertionError("ran")


def test_classes_that_the_program_has_made_of_plans(folder):
    metadata = dcp.FileSystemReader(folder).read_metadata()
    metadata.planner_data = {"plan": DerivedPlan([], more={"shape": (2, 3)}), "old": Empty()}
    (folder / ".metadata").write_bytes(_dumped(metadata))
    read = dcp.FileSystemReader(folder).read_metadata().planner_data
    assert read["plan"] == DerivedPlan([], more={"shape": (2, 3)}) and type(read["old"]) is Empty
    held = WithCode()
    held.state = 1
    metadata.planner_data = held
    (folder / ".metadata").write_bytes(_dumped(metadata))
    _refused_with(folder, "WithCode, which is not allowed")

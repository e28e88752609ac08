"""Megatron's bin and idx: equal to what its own builder writes, and damage is found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from megatron_ms.data.indexed import bin_path, dtype_for, idx_path, open_indexed, write_index
from megatron_ms.errors import UserError

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = Path(__file__).with_name("golden") / "indexed.json"
# name -> dtype, and documents of sequences of ids
SETS: dict[str, tuple[str, list[list[list[int]]]]] = {
    "plain": ("uint16", [[[1, 2, 3]], [[65499]], [[7, 7]]]),
    "wide": ("int32", [[[-100, 70000]], [[1]]]),
    "empty document": ("uint16", [[[4]], [], [[5, 6]]]),
    "sentences": ("uint16", [[[1], [2, 3]], [[4, 5, 6]]]),
    "nothing": ("int32", []),
}
# Run with Megatron: prints what its builder writes, as hexadecimal text.
PROGRAM = """
import json, sys, tempfile
from pathlib import Path
import numpy, torch
from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
found = {}
for name, (dtype, documents) in json.loads(sys.stdin.read()).items():
    with tempfile.TemporaryDirectory() as folder:
        prefix = folder + "/x"
        builder = IndexedDatasetBuilder(prefix + ".bin", dtype=getattr(numpy, dtype))
        for sequences in documents:
            builder.add_document([id for one in sequences for id in one], [len(one) for one in sequences])
        builder.finalize(prefix + ".idx")
        found[name] = [Path(prefix + ending).read_bytes().hex() for ending in (".bin", ".idx")]
print("FOUND " + json.dumps(found, indent=1).replace("\\n", " "))
"""


def write(prefix: Path, dtype: str, documents: list[list[list[int]]]) -> Path:
    sequences = [one for document in documents for one in document]
    kind = numpy.dtype(dtype)
    bin_path(prefix).write_bytes(numpy.array([id for one in sequences for id in one], kind).tobytes())
    lengths = numpy.array([len(one) for one in sequences], numpy.int32)
    write_index(
        idx_path(prefix), kind, lengths, numpy.array([len(document) for document in documents], numpy.int32)
    )
    return prefix


@pytest.mark.parametrize("name", SETS)
def test_same_bytes_as_megatrons_builder(name: str, tmp_path: Path) -> None:
    prefix = write(tmp_path / "x", *SETS[name])
    assert [bin_path(prefix).read_bytes().hex(), idx_path(prefix).read_bytes().hex()] == json.loads(
        GOLDEN.read_text(encoding="utf-8")
    )[name]


def record(megatron: Path) -> dict[str, list[str]]:
    """What the builder of a Megatron checkout writes."""
    places = [ROOT / "msadapter/alias/shim", ROOT, megatron]
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(SETS),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places))},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout.partition("FOUND ")[2])


def test_megatron_still_writes_what_is_recorded(megatron_checkout: Path) -> None:
    assert record(megatron_checkout) == json.loads(GOLDEN.read_text(encoding="utf-8"))


def test_reads_back_what_was_written(tmp_path: Path) -> None:
    found = open_indexed(write(tmp_path / "x", *SETS["sentences"]))
    assert (found.documents, len(found), found.largest()) == (2, 3, 6)
    assert [found[number].tolist() for number in range(3)] == [[1], [2, 3], [4, 5, 6]]
    assert len(open_indexed(write(tmp_path / "y", *SETS["nothing"]))) == 0


def test_the_type_of_the_ids_changes_at_megatrons_limit() -> None:
    assert (dtype_for(65499), dtype_for(65500)) == (numpy.dtype("uint16"), numpy.dtype("int32"))


def _cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def _change(path: Path, place: int, raw: bytes) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:place] + raw + whole[place + len(raw) :])


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data, index: _cut(data, 5), "x.bin: is truncated: it has 5 bytes, and x.idx describes 12"),
        (
            lambda data, index: data.write_bytes(bytes(14)),
            "x.bin: does not belong to its index: it has 14 bytes",
        ),
        (
            lambda data, index: _cut(index, 20),
            "x.idx: is truncated: it has 20 bytes, its header alone has 34",
        ),
        (
            lambda data, index: _cut(index, 60),
            "x.idx: is truncated: it has 60 bytes, and its header describes 102",
        ),
        (lambda data, index: _change(index, 0, b"X"), "x.idx: is not an index of Megatron"),
        (lambda data, index: _change(index, 9, b"\x02"), "x.idx: has the version 2"),
        (
            lambda data, index: _change(index, 17, b"\x63"),
            "x.idx: is damaged: there is no type of ids with the code 99",
        ),
        (
            lambda data, index: _change(index, 34, b"\x09"),
            "sequence 1 does not begin where the one before ends",
        ),
        (lambda data, index: _change(index, 37, b"\xff"), "x.idx: is damaged: a sequence has the length -"),
        (
            lambda data, index: _change(index, 94, b"\x01"),
            "x.idx: is damaged: the document marks do not go from 0 to 3",
        ),
        (lambda data, index: data.unlink(), "x.bin: there is no such file"),
    ],
)
def test_damage_is_found(damage, words: str, tmp_path: Path) -> None:
    prefix = write(tmp_path / "x", *SETS["plain"])
    damage(bin_path(prefix), idx_path(prefix))
    with pytest.raises(UserError) as caught:
        open_indexed(prefix)
    assert words in str(caught.value)

"""Sources: every format gives the same rows, offline too, and what is wrong with a file is said with its place."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import socket
import time
from pathlib import Path

import pytest

from megatron_ms.data.sources import Files, HubData
from megatron_ms.errors import UserError

pytest.importorskip("pyarrow", reason="needs the extra toolkit")

ROWS = [
    {"text": "Grüße, 世界", "title": "a"},
    {"text": "two\nlines", "title": "b,c"},
    {"text": "", "title": '"'},
]


def _jsonl() -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS).encode()


def _parquet(path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)


def _arrow(path: Path) -> None:
    import pyarrow

    table = pyarrow.Table.from_pylist(ROWS)
    with pyarrow.OSFile(str(path), "wb") as file, pyarrow.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)


_CSV = 'text,title\n"Grüße, 世界",a\n"two\nlines","b,c"\n,""""\n'
WRITERS = {
    "a.jsonl": lambda path: path.write_bytes(_jsonl()),
    "bom.jsonl": lambda path: path.write_bytes(b"\xef\xbb\xbf" + _jsonl()),
    "blank.jsonl": lambda path: path.write_bytes(_jsonl().replace(b"\n", b"\r\n\n  \n")),
    "lines.json": lambda path: path.write_bytes(b"\n" + _jsonl()),
    "list.json": lambda path: path.write_text(json.dumps(ROWS, indent=1)),
    "a.csv": lambda path: path.write_text(_CSV, encoding="utf-8"),
    "a.parquet": _parquet,
    "a.arrow": _arrow,
    "a.jsonl.gz": lambda path: path.write_bytes(gzip.compress(_jsonl())),
    "a.jsonl.bz2": lambda path: path.write_bytes(bz2.compress(_jsonl())),
    "a.jsonl.xz": lambda path: path.write_bytes(lzma.compress(_jsonl())),
}


def _rows(path: Path, **options) -> list[dict]:
    return [entry.values() for entry in Files(path, **options).entries()]


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_rows(name: str, tmp_path: Path) -> None:
    WRITERS[name](tmp_path / name)
    assert _rows(tmp_path / name) == ROWS


def test_a_folder_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/2.txt").write_text("second\n")
    (tmp_path / "1.txt").write_text("first\nline")
    (tmp_path / "notes.md").write_text("no data")
    (tmp_path / ".hidden.txt").write_text("no")
    assert [row["text"] for row in _rows(tmp_path)] == ["first", "line", "second"]


def test_texts_by_file_and_by_paragraphs(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n\n" + "x" * 2000 + "\nmore\n\n\nlast\n")
    assert _rows(path, unit="file") == [{"text": path.read_text()}]
    assert [row["text"] for row in _rows(path, unit="paragraphs")] == [
        "one\n\n" + "x" * 2000 + "\nmore",
        "last",
    ]


@pytest.mark.parametrize(
    ("name", "raw", "words"),
    [
        ("a.jsonl", b'{"text": "a"}\n{"text": \n', "a.jsonl, line 2: is not JSON: "),
        ("a.jsonl", b'{"text": "a"}\n\n[1]\n', "a.jsonl, line 3: is not a JSON object with keys, but [1]"),
        ("a.jsonl", b'{"text": "a"}\n{"text": "\xff"}\n', "a.jsonl, line 2: byte 11 (0xff) is not UTF-8"),
        ("a.json", b'[{"text": "a"}, 3]', "a.json, entry 2: is not a JSON object with keys, but 3"),
        ("a.json", b'[{"text": "a"}', "a.json: is not JSON: "),
        ("a.txt", b"good\nb\xe4d\n", "a.txt, line 2: byte 2 (0xe4) is not UTF-8"),
        ("a.csv", b'text,b\n1,2\n"x\ny",3\n4\n', "a.csv, line 5: has 1 fields, and the first line names 2"),
        ("a.csv", b'text\n"open\n', "a.csv, line 2: is not CSV: "),
        ("a.parquet", b"PAR1 not really", "a.parquet: is not a complete parquet file (after row 0): "),
        ("a.arrow", b"no arrow", "a.arrow: is not a complete Arrow file (after row 0): "),
        (
            "a.jsonl.gz",
            gzip.compress(_jsonl(), mtime=0)[:-9],
            "a.jsonl.gz: the compressed file is damaged or truncated",
        ),
        (
            "a.jsonl.gz",
            gzip.compress(_jsonl(), mtime=0)[:10] + b"\xff" * 9,
            "a.jsonl.gz: the compressed file is damaged or truncated",
        ),
        (
            "a.jsonl.bz2",
            bz2.compress(_jsonl())[:20],
            "a.jsonl.bz2: the compressed file is damaged or truncated",
        ),
        ("a.txt.bz2", b"no", "a.txt.bz2: the compressed file is damaged or truncated"),
        ("a.jsonl", b"[" * 100_000 + b"\n", "a.jsonl, line 1: is not JSON: "),
        ("a.json", b"[" * 100_000, "a.json: is not JSON: "),
        ("a.jsonl.xz", b"no", "a.jsonl.xz: the compressed file is damaged or truncated"),
        ("a.jsonl", b"", "a.jsonl: the file is empty"),
        ("a.doc", b"x", "a.doc: its name ends with none of .jsonl"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(name: str, raw: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(UserError) as caught:
        _rows(tmp_path / name)
    assert words in str(caught.value)


def test_a_truncated_parquet_file(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    _parquet(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UserError, match=r"a\.parquet: is not a complete parquet file"):
        _rows(path)


def test_a_path_that_is_absent(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no file or folder .*nothing"):
        Files(tmp_path / "nothing")
    with pytest.raises(UserError, match="the folder has no file whose name ends with"):
        Files(tmp_path)


@pytest.fixture
def offline(monkeypatch) -> None:
    """Every attempt to reach another machine fails."""

    def refuse(*arguments, **options):
        raise OSError("the network is off")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)  # the library tries again, after waiting


@pytest.fixture
def hub_home(tmp_path, monkeypatch) -> None:
    """A cache of its own for the library datasets."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


def test_saved_data_and_folders_by_name_work_offline(tmp_path: Path, offline, hub_home) -> None:
    import datasets

    data = datasets.Dataset.from_list(ROWS)
    data.save_to_disk(str(tmp_path / "saved"))
    datasets.DatasetDict({"test": data}).save_to_disk(str(tmp_path / "split"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/train.jsonl").write_bytes(_jsonl())
    sources = [
        HubData(str(tmp_path / "saved"), None, "train", None, False),
        HubData(str(tmp_path / "split"), None, "test", None, False),
        HubData(str(tmp_path / "folder"), None, "train", None, False),
        HubData(str(tmp_path / "folder"), None, "train", None, True),
    ]
    for source in sources:
        assert [entry.values() for entry in source.entries()] == ROWS
        assert source.identity() == source.identity()
    with pytest.raises(UserError, match="has no split train; it has test"):
        HubData(str(tmp_path / "split"), None, "train", None, False).identity()


def test_a_name_is_read_from_the_cache_offline(tmp_path: Path, offline, hub_home) -> None:
    """What an earlier load from the hub left behind: here that of a folder, under the names that a load from the hub gives it."""
    import datasets

    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/train.jsonl").write_bytes(_jsonl())
    datasets.load_dataset(str(tmp_path / "kept"))
    (info,) = (tmp_path / "cache/kept").rglob("dataset_info.json")
    facts = json.loads(info.read_text(encoding="utf-8"))
    info.write_text(json.dumps(facts | {"config_name": "default"}), encoding="utf-8")
    place = tmp_path / "cache/nobody___kept/default" / facts["version"]["version_str"]
    place.mkdir(parents=True)
    info.parent.rename(place / info.parent.name)
    source = HubData("nobody/kept", None, "train", None, False)
    assert [entry.values() for entry in source.entries()] == ROWS
    first = next(iter(source.entries()))
    assert first.place == "nobody/kept (train), row 1"
    with pytest.raises(UserError, match="the data set nobody/kept cannot be loaded"):
        HubData("nobody/kept", None, "validation", None, False).identity()


def test_a_name_that_cannot_be_reached(offline, hub_home) -> None:
    with pytest.raises(UserError) as caught:
        list(HubData("nobody/nothing", None, "train", None, True).entries())
    assert "data.sources: the data set nobody/nothing cannot be loaded: " in str(caught.value)
    assert "looked up on the Hugging Face hub" in str(caught.value)

"""The making of data sets: workers, interruptions, files that exist, and wrong input."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import numpy
import pytest

from megatron_ms.data import pipeline, work
from megatron_ms.data.encode import Encoder
from megatron_ms.data.indexed import open_indexed
from megatron_ms.errors import UserError
from tests.toolkit.data import toys


@pytest.fixture
def rows(tmp_path) -> Path:
    """Three hundred texts."""
    return toys.write_rows(tmp_path / "rows.jsonl", [{"text": "é" * (number % 7)} for number in range(300)])


def _content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def test_documents_end_with_the_end_token(make, tmp_path) -> None:
    source = toys.write_rows(tmp_path / "t.jsonl", toys.TEXTS)
    (made,) = make(sources=str(source), keys=["text", "title"])
    for key in ("text", "title"):
        data = open_indexed(tmp_path / f"out/set_{key}_document")
        texts = [row[key] for row in toys.TEXTS if row[key]]
        assert [bytes(data[number][:-1].tolist()).decode() for number in range(len(data))] == texts
        assert {int(data[number][-1]) for number in range(len(data))} == {256}
        assert data.documents == len(toys.TEXTS)
        assert data.dtype == numpy.uint16
    assert made.stamp["counts"]["empty documents"] == 2


def test_a_list_of_texts_is_a_document_of_several_sequences(make, tmp_path) -> None:
    source = toys.write_rows(tmp_path / "t.jsonl", [{"text": ["a", "", "bc"]}, {"text": ["d"]}])
    make(sources=str(source), eod=False)
    data = open_indexed(tmp_path / "out/set_text_document")
    assert [data[number].tolist() for number in range(len(data))] == [[97], [98, 99], [100]]
    assert data.marks.tolist() == [0, 2, 3]


def test_any_number_of_workers_gives_the_same_files(make, rows, tmp_path) -> None:
    make(sources=str(rows), output=str(tmp_path / "one/set"))
    make(sources=str(rows), output=str(tmp_path / "two/set"), workers=2)
    assert _content(tmp_path / "one") == _content(tmp_path / "two")
    assert len(open_indexed(tmp_path / "one/set_text_document").ids) > 1000


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_a_worker_reaches_the_user(make, rows, tmp_path, workers: int) -> None:
    with open(rows, "a") as file:
        file.write('{"words": "no text"}\n')
    with pytest.raises(
        UserError, match=r"rows\.jsonl, line 301: there is no key 'text'; the keys are 'words'; name others"
    ):
        make(sources=str(rows), workers=workers)
    assert not any((tmp_path / "out").iterdir())


@pytest.mark.parametrize("how", [KeyboardInterrupt, OSError(errno.ENOSPC, "No space left on device")])
@pytest.mark.parametrize("after", [0, 1, 3])
def test_interrupted_work_is_continued(make, rows, tmp_path, monkeypatch, how, after: int) -> None:
    make(sources=str(rows), output=str(tmp_path / "whole/set"))
    monkeypatch.setattr(pipeline, "SAVE_EVERY", 100)
    calls = []
    encode = Encoder.encode

    def stop(self, entries):
        if len(calls) == after:
            raise how
        calls.append(len(entries))
        return encode(self, entries)

    with monkeypatch.context() as patch, pytest.raises((KeyboardInterrupt, OSError)):
        patch.setattr(Encoder, "encode", stop)
        make(sources=str(rows))
    assert [path.name for path in (tmp_path / "out").iterdir()] == [".set.work"]
    (made,) = make(sources=str(rows))
    assert made.resumed == (64 * after if how is KeyboardInterrupt else {0: 0, 1: 0, 3: 128}[after])
    assert _content(tmp_path / "out") == _content(tmp_path / "whole")
    assert not (tmp_path / "out/.set.work").exists()


def test_interrupted_between_two_files(make, rows, tmp_path, monkeypatch) -> None:
    make(sources=str(rows), output=str(tmp_path / "whole/set"))
    moves = []
    rename = work.os.rename

    def stop(source, destination):
        if len(moves) == 1:
            raise KeyboardInterrupt
        moves.append(destination)
        rename(source, destination)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(work.os, "rename", stop)
        make(sources=str(rows))
    assert not (tmp_path / "out/set.data.json").exists()
    make(sources=str(rows))
    assert _content(tmp_path / "out") == _content(tmp_path / "whole")


def test_work_for_other_input_begins_again(make, rows, tmp_path, monkeypatch) -> None:
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Encoder, "encode", lambda self, entries: (_ for _ in ()).throw(KeyboardInterrupt))
        make(sources=str(rows))
    (made,) = make(sources=str(rows), eod=False)
    assert made.resumed == 0
    assert open_indexed(tmp_path / "out/set_text_document").largest() < 256


def test_a_finished_data_set_is_made_once(make, rows, tmp_path) -> None:
    (first,) = make(sources=str(rows))
    (again,) = make(sources=str(rows), workers=3)
    assert not first.already and again.already
    assert again.stamp == first.stamp


def test_nothing_is_overwritten(make, rows, tmp_path) -> None:
    make(sources=str(rows))
    before = _content(tmp_path / "out")
    with pytest.raises(
        UserError, match=r"set_text_document\.bin: exists already and was made from something else"
    ):
        make(sources=str(rows), eod=False)
    with open(rows, "a") as file:
        file.write('{"text": "new"}\n')
    with pytest.raises(UserError, match="exists already"):
        make(sources=str(rows))
    assert _content(tmp_path / "out") == before


def test_a_stranger_under_a_final_name_is_kept(make, rows, tmp_path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/set_text_document.idx").write_text("mine")
    with pytest.raises(UserError, match=r"set_text_document\.idx: exists already"):
        make(sources=str(rows))
    assert _content(tmp_path / "out") == {"set_text_document.idx": b"mine"}


def test_two_runs_at_once(make, rows, tmp_path, monkeypatch) -> None:
    encode, seen = Encoder.encode, []

    def second(self, entries):
        if not seen:
            seen.append(True)
            with pytest.raises(UserError, match="another run is making this data set"):
                make(sources=str(rows))
        return encode(self, entries)

    monkeypatch.setattr(Encoder, "encode", second)
    make(sources=str(rows))
    assert seen


@pytest.mark.parametrize(
    ("row", "keys", "words"),
    [
        ({"text": None}, {}, "line 1: text: is not text but None"),
        ({"text": 5}, {}, "line 1: text: is not text but 5"),
        ({"text": "a\ud800"}, {}, "line 1: text: character 2 is half of a surrogate pair"),
        (
            {"text": "ab"},
            {"vocab_size": 98, "eod": False},
            "line 1: the id 98 is outside of the vocabulary of 98 ids",
        ),
    ],
)
def test_wrong_values_are_named(make, tmp_path, row, keys, words: str) -> None:
    source = tmp_path / "t.jsonl"
    source.write_text(json.dumps(row) + "\n")
    with pytest.raises(UserError) as caught:
        make(sources=str(source), **keys)
    assert words in str(caught.value)
    assert not any((tmp_path / "out").iterdir())


def test_only_so_many_entries(make, rows) -> None:
    (made,) = make(sources=str(rows), max_entries=7)
    assert made.stamp["entries"] == 7

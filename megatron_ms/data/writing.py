"""Writes the files of a data set from its encoded streams: Megatron's bin and idx, or JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

import numpy

from ..errors import UserError
from .encode import Encoder, Stream
from .indexed import bin_path, idx_path, write_index
from .packing import pack
from .templates import IGNORE
from .work import Work

_CHUNK = 1 << 20  # ids that are written at once


def final_files(prefix: Path, encoder: Encoder) -> dict[str, Path]:
    """The names of the files that a data set will have: name in the folder of work -> path."""
    if encoder.data.format == "jsonl":
        return {"rows.jsonl": prefix.with_name(f"{prefix.name}.jsonl")}
    middle = (
        "" if encoder.data.task == "pretrain" else "packed_"
    )  # MindSpeed-LLM's name for these, packed or not
    files = {}
    for stream in (*encoder.streams, *(("attention_mask",) if encoder.data.task == "instruction" else ())):
        # Without packing, the encoded ids are in their final form already.
        made = encoder.data.pack or stream not in encoder.streams
        final = prefix.with_name(f"{prefix.name}_{middle}{stream}_document")
        files[f"{stream}.bin" if made else f"{stream}.ids"] = bin_path(final)
        files[f"{stream}.idx"] = idx_path(final)
    return files


def write(work: Work, encoder: Encoder) -> dict[str, Any]:
    """Writes all files into the folder of work. Returns facts about them."""
    data = encoder.data
    facts: dict[str, Any] = {}
    rows: list[list[int]] | None = None
    if data.pack:
        assert data.seq_length is not None
        lengths = work.stream("input_ids").lengths
        rows = pack(lengths, data.seq_length - 1)
        facts = {
            "rows": len(rows),
            "filled": round(float(lengths.sum()) / max(1, len(rows) * data.seq_length), 4),
        }
    if data.format == "jsonl":
        _write_lines(work, encoder, rows)
    elif rows is not None:
        _write_packed(work, encoder, rows)
    else:
        _write_indexed(work, encoder)
    return facts


def _write_indexed(work: Work, encoder: Encoder) -> None:
    for name in encoder.streams:
        stream = work.stream(name)
        write_index(work.folder / f"{name}.idx", work.dtype, stream.lengths, stream.sequences)
    if encoder.data.task == "instruction":
        stream = work.stream("input_ids")
        write_index(work.folder / "attention_mask.idx", work.dtype, stream.lengths, stream.sequences)
        with open(work.folder / "attention_mask.bin", "wb") as file:
            for start in range(0, len(stream.ids), _CHUNK):
                file.write(numpy.ones(min(_CHUNK, len(stream.ids) - start), work.dtype).tobytes())


def _write_packed(work: Work, encoder: Encoder, rows: list[list[int]]) -> None:
    """Rows of exactly seq_length ids. Behind the samples stands the filler, which is not learned."""
    data = encoder.data
    assert data.seq_length is not None
    filler = encoder.tokenizer.pad if encoder.tokenizer.pad is not None else encoder.tokenizer.eos
    if filler is None:
        raise UserError(
            f"data.pack: the tokenizer {encoder.tokenizer.name} has neither a filler nor an end token"
        )
    numbered = data.pack == "numbered"
    samples = {name: _Sequences(work.stream(name)) for name in encoder.streams}
    names = ("input_ids", "attention_mask", "labels")
    with ExitStack() as opened:
        files = {name: opened.enter_context(open(work.folder / f"{name}.bin", "wb")) for name in names}
        for row in rows:
            ids = [samples["input_ids"][number] for number in row]
            labels = [samples["labels"][number] for number in row]
            mask = [numpy.full(len(one), place if numbered else 1) for place, one in enumerate(ids, start=1)]
            room = data.seq_length - sum(map(len, ids))
            rests = {
                "input_ids": (ids, filler),
                "attention_mask": (mask, 0 if numbered else 1),
                "labels": (labels, IGNORE),
            }
            for name, (arrays, rest) in rests.items():
                whole = numpy.concatenate([*arrays, numpy.full(room, rest)])
                files[name].write(whole.astype(work.dtype).tobytes())
    lengths = numpy.full(len(rows), data.seq_length, numpy.int32)
    for name in names:
        write_index(work.folder / f"{name}.idx", work.dtype, lengths, numpy.ones(len(rows), numpy.int32))


class _Sequences:
    """The sequences of a stream by their numbers."""

    def __init__(self, stream: Stream) -> None:
        self._ids = stream.ids
        self._ends = numpy.cumsum(stream.lengths, dtype=numpy.int64)
        self._lengths = stream.lengths

    def __len__(self) -> int:
        return len(self._lengths)

    def __getitem__(self, number: int) -> numpy.ndarray:
        end = int(self._ends[number])
        return self._ids[end - int(self._lengths[number]) : end]


def _write_lines(work: Work, encoder: Encoder, rows: list[list[int]] | None) -> None:
    samples = {name: _Sequences(work.stream(name)) for name in encoder.streams}
    lines = {"pretrain": _documents, "pairs": _pairs}.get(encoder.data.task)
    with open(work.folder / "rows.jsonl", "w", encoding="utf-8") as file:
        found = lines(work, samples) if lines else _rows(samples, rows)
        for line in found:
            file.write(json.dumps(line) + "\n")


def _documents(work: Work, samples: dict[str, _Sequences]) -> Iterator[dict[str, list[int]]]:
    """A line for each document. With one key its ids are named input_ids, with several as the keys."""
    marks = {name: numpy.cumsum([0, *work.stream(name).sequences]) for name in samples}
    for document in range(len(next(iter(marks.values()))) - 1):
        line = {}
        for name, own in samples.items():
            sequences = [own[number] for number in range(marks[name][document], marks[name][document + 1])]
            line["input_ids" if len(samples) == 1 else name] = [int(id) for some in sequences for id in some]
        yield line


def _pairs(work: Work, samples: dict[str, _Sequences]) -> Iterator[dict[str, list[int]]]:
    """The question once, and both answers without it."""
    for number in range(len(samples["chosen_labels"])):
        asked = int((samples["chosen_labels"][number] != IGNORE).argmax())
        yield {
            "prompt_input_ids": samples["chosen_input_ids"][number][:asked].tolist(),
            "chosen_input_ids": samples["chosen_input_ids"][number][asked:].tolist(),
            "rejected_input_ids": samples["rejected_input_ids"][number][asked:].tolist(),
        }


def _rows(samples: dict[str, _Sequences], rows: list[list[int]] | None) -> Iterator[dict[str, list[int]]]:
    """The samples, or rows of several samples with positions that begin with each of them."""
    for row in rows if rows is not None else ([number] for number in range(len(samples["input_ids"]))):
        ids = [samples["input_ids"][number].tolist() for number in row]
        labels = [samples["labels"][number].tolist() for number in row]
        line = {"input_ids": list(chain(*ids)), "labels": list(chain(*labels))}
        if rows is not None:
            line["position_ids"] = [place for one in ids for place in range(len(one))]
        yield line

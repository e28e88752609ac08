"""The mask check: prints samples with what is learned of them, and proves that each learns something."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from typing import TextIO

from ..errors import UserError
from .encode import ENCODERS, Encoded, Encoder
from .reading import groups
from .section import Data
from .templates import IGNORE

_LEARNED, _OTHER, _TITLE, _END = "\x1b[1;32m", "\x1b[2m", "\x1b[1m", "\x1b[0m"


@dataclass(frozen=True)
class Shown:
    """One sequence: where it comes from, its ids, and its labels."""

    title: str
    ids: list[int]
    labels: list[int]


def show(data: Data, count: int, output: TextIO, colours: bool) -> int:
    """Prints the first samples. Returns how many of them have something wrong, which is printed too.

    On a terminal, what is learned is green and the rest is pale. Elsewhere what is learned stands between ⟦ and ⟧.
    """
    encoder = ENCODERS[data.task](data)
    encoded = Encoded({})
    wrong = total = learned = 0
    for sample in islice(_samples(data, encoder, encoded), count):
        own = [label != IGNORE for label in sample.labels]
        total, learned = total + len(own), learned + sum(own)
        title = f"{sample.title}: {len(own)} ids, {sum(own)} learned"
        print(f"{_TITLE}{title}{_END}" if colours else title, file=output)
        print(_marked(sample, encoder, colours), end="\n\n", file=output)
        if not any(own):
            wrong += 1
            print(f"WRONG: nothing of {sample.title} would be learned", file=output)
    for reason, places in encoded.left_out.items():
        wrong += reason.startswith("nothing")
        print(
            f"{'WRONG' if reason.startswith('nothing') else 'left out'}: {reason}: {', '.join(places)}",
            file=output,
        )
    if not total:
        raise UserError("data.sources: there is no sample that could be shown")
    share = 100 * learned / total
    print(
        f"{learned} of {total} ids are learned ({share:.1f} %); all are below {encoder.vocabulary}",
        file=output,
    )
    return wrong


def _samples(data: Data, encoder: Encoder, encoded: Encoded) -> Iterator[Shown]:
    """The sequences of one entry after the other. Raises UserError at an id outside of the vocabulary, as encoding does."""
    for group in groups(data):
        for entry in group.entries():
            for place, streams in encoder.documents([entry], encoded):
                for name in streams:
                    for sequence in streams[name]:
                        encoder.check_ids([sequence], place)
                if data.task == "pretrain":
                    for name, sequences in streams.items():
                        for ids in sequences:
                            yield Shown(f"{place}, {name}", ids, ids)
                elif not all(streams.values()):
                    continue  # too long
                elif data.task == "instruction":
                    yield Shown(place, streams["input_ids"][0], streams["labels"][0])
                else:
                    for side in ("chosen", "rejected"):
                        ids, labels = streams[f"{side}_input_ids"][0], streams[f"{side}_labels"][0]
                        yield Shown(f"{place}, {side}", ids, labels)


def _marked(sample: Shown, encoder: Encoder, colours: bool) -> str:
    """The text of a sample, with marks around the tokens that are learned. If a token's label is another id, both are shown."""
    text = ""
    pairs = zip(sample.ids, sample.labels, strict=True)
    for kind, run in groupby(
        pairs, key=lambda pair: "other" if pair[1] == IGNORE else "own" if pair[0] == pair[1] else "end"
    ):
        ids, labels = zip(*run, strict=True)
        part = _printable(encoder.tokenizer.decode(ids))
        if kind == "end":
            part = f"{part}→{_printable(encoder.tokenizer.decode(labels))}"
        if colours:
            text += f"{_OTHER if kind == 'other' else _LEARNED}{part}{_END}"
        else:
            text += part if kind == "other" else f"⟦{part}⟧"
    return text


def _printable(text: str) -> str:
    """The text without control characters, which could change the terminal."""
    return "".join(one if one.isprintable() or one in "\n\t" else f"\\x{ord(one):02x}" for one in text)

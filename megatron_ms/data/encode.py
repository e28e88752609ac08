"""Encodes entries for each task: documents for pretraining, conversations with labels, and pairs of answers.

An encoder is made in each worker. What it returns for a batch are arrays, which are cheap to hand over between processes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy

from ..errors import UserError
from .chat import ChatFormat
from .conversations import BadSample, Conversation, Layout, MissingKey
from .indexed import dtype_for
from .section import Data
from .sources import Entry
from .templates import IGNORE, Sample, TemplateFormat, template
from .tokenizer import Tokenizer, load_tokenizer

KEPT = 3  # how many places are kept of the samples that were left out for one reason


@dataclass
class Stream:
    """The sequences of one output: all ids, the length of each sequence, and the number of sequences of each document."""

    ids: numpy.ndarray
    lengths: numpy.ndarray
    sequences: numpy.ndarray


@dataclass
class Encoded:
    """What a batch of entries became. `left_out` has the first places of each reason."""

    streams: dict[str, Stream]
    counts: Counter[str] = field(default_factory=Counter)
    left_out: dict[str, list[str]] = field(default_factory=dict)

    def leave_out(self, reason: str, place: str) -> None:
        self.counts[f"left out: {reason}"] += 1
        places = self.left_out.setdefault(reason, [])
        if len(places) < KEPT:
            places.append(place)


class _Collector:
    """Collects the documents of one stream."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.lengths: list[int] = []
        self.sequences: list[int] = []

    def add(self, sequences: Sequence[Sequence[int]]) -> None:
        for sequence in sequences:
            self.ids += sequence
            self.lengths.append(len(sequence))
        self.sequences.append(len(sequences))

    def stream(self, dtype: numpy.dtype) -> Stream:
        return Stream(
            numpy.array(self.ids, dtype=dtype),
            numpy.array(self.lengths, dtype=numpy.int32),
            numpy.array(self.sequences, dtype=numpy.int32),
        )


class Encoder(ABC):
    """Turns entries into the streams of a task."""

    streams: tuple[str, ...]

    def __init__(self, data: Data) -> None:
        self.data = data
        self.tokenizer: Tokenizer = load_tokenizer(
            data.tokenizer.path, data.tokenizer.kind, data.tokenizer.merges
        )
        self.vocabulary = data.vocab_size or self.tokenizer.size
        eod = data.eod if data.eod is not None else data.task == "pretrain"
        self.eod: int | None = None
        if eod:
            if self.tokenizer.eos is None:
                raise UserError(
                    f"data.eod: the tokenizer {self.tokenizer.name} has no end token: set data.eod: false"
                )
            self.eod = self.tokenizer.eos

    @property
    def dtype(self) -> numpy.dtype:
        return numpy.dtype(numpy.int32)

    def encode(self, entries: Sequence[Entry]) -> Encoded:
        """Encodes a batch.

        Raises:
            UserError: an entry cannot be read, has no such key, or gives an id outside of the vocabulary.
        """
        collected = {name: _Collector() for name in self.streams}
        encoded = Encoded({})
        for place, documents in self.documents(entries, encoded):
            for name, sequences in documents.items():
                self.check_ids(sequences, place)
                collected[name].add(sequences)
        encoded.counts["entries"] += len(entries)
        encoded.streams = {name: found.stream(self.dtype) for name, found in collected.items()}
        return encoded

    @abstractmethod
    def documents(
        self, entries: Sequence[Entry], encoded: Encoded
    ) -> Iterator[tuple[str, dict[str, list[list[int]]]]]:
        """Yields the place of each entry that is used, with its sequences for each stream. Counts into `encoded`."""

    def check_ids(self, sequences: Sequence[Sequence[int]], place: str) -> None:
        """Raises UserError if an id is outside of the vocabulary. -100, which marks what is not learned, may stand anywhere."""
        for sequence in sequences:
            if not sequence:
                continue
            most, least = max(sequence), min(sequence)
            if most >= self.vocabulary or least < IGNORE or IGNORE < least < 0:
                wrong = most if most >= self.vocabulary else least
                raise UserError(
                    f"{place}: the id {wrong} is outside of the vocabulary of {self.vocabulary} ids: does the tokenizer "
                    f"{self.tokenizer.name} ({self.tokenizer.size} ids) belong to the model?"
                )


class PretrainEncoder(Encoder):
    """Documents: the ids of a text, and the end token. A list of texts gives a sequence for each."""

    def __init__(self, data: Data) -> None:
        super().__init__(data)
        self.streams = tuple(data.keys)

    @property
    def dtype(self) -> numpy.dtype:
        if self.data.dtype == "auto":
            return dtype_for(self.tokenizer.size)
        if self.data.dtype == "uint16" and self.vocabulary > 1 << 16:
            raise UserError(
                f"data.dtype: uint16 cannot hold a vocabulary of {self.vocabulary} ids: use int32"
            )
        return numpy.dtype(self.data.dtype)

    def documents(
        self, entries: Sequence[Entry], encoded: Encoded
    ) -> Iterator[tuple[str, dict[str, list[list[int]]]]]:
        rows = [entry.values() for entry in entries]
        found: list[dict[str, list[list[int]]]] = [{} for _ in rows]
        for key in self.streams:
            texts = [_texts(row, key, entry.place) for row, entry in zip(rows, entries, strict=True)]
            ids = iter(self.tokenizer.encode_documents([text for some in texts for text in some]))
            for number, some in enumerate(texts):
                sequences = [sequence for sequence in (list(next(ids)) for _ in some) if sequence]
                if sequences and self.eod is not None:
                    sequences[-1].append(self.eod)
                found[number][key] = sequences
                encoded.counts["ids"] += sum(map(len, sequences))
                encoded.counts["empty documents"] += not sequences
        encoded.counts["documents"] += len(rows)
        for entry, streams in zip(entries, found, strict=True):
            yield entry.place, streams


def _texts(row: dict[str, Any], key: str, place: str) -> list[str]:
    if key not in row:
        raise UserError(f"{place}: {MissingKey(key, row)}; name others with data.keys")
    texts = row[key] if isinstance(row[key], list) else [row[key]]
    for text in texts:
        if not isinstance(text, str):
            raise UserError(f"{place}: {key}: is not text but {text!r:.40}")
        _check_unicode(text, f"{place}: {key}")
    # The tokenizer may give an empty text its own tokens; Megatron asks it too, so what is empty is left to it.
    return texts


def _check_unicode(text: str, place: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UserError(
            f"{place}: character {error.start + 1} is half of a surrogate pair, which is not text"
        ) from None


class _ConversationEncoder(Encoder):
    """What instruction data and pairs have in common."""

    def __init__(self, data: Data) -> None:
        super().__init__(data)
        self.layout = Layout(data.form, data.columns, data.tags, data.history, data.task == "pairs")
        self.format = _format(data, self.tokenizer)
        long = self.format.long if data.long == "template" else data.long
        self.limit = data.seq_length if long == "cut" else None
        # The template may have chosen another end token.
        if self.eod is not None and self.tokenizer.eos is not None:
            self.eod = self.tokenizer.eos

    def documents(
        self, entries: Sequence[Entry], encoded: Encoded
    ) -> Iterator[tuple[str, dict[str, list[list[int]]]]]:
        for entry in entries:
            row = entry.values()
            try:
                conversation = self.layout.read(row)
                encoded.counts["tools ignored"] += conversation.tools
                found = self.sample(conversation, encoded)
            except MissingKey as error:
                raise UserError(f"{entry.place}: {error}; name others with data.columns") from None
            except BadSample as error:
                if self.data.bad == "stop":
                    raise UserError(
                        f"{entry.place}: {error} (data.bad: skip leaves such entries out)"
                    ) from None
                encoded.leave_out(str(error), entry.place)
                continue
            except UnicodeEncodeError:
                raise UserError(f"{entry.place}: has half of a surrogate pair, which is not text") from None
            longest = max(map(len, found.values()))
            if self.data.seq_length is not None and longest >= self.data.seq_length:
                encoded.leave_out(f"has {self.data.seq_length} ids or more", entry.place)
                # A document without sequences marks its place in the index, as in upstream's files.
                yield entry.place, {name: [] for name in found}
                continue
            encoded.counts["samples"] += 1
            yield entry.place, {name: [ids] for name, ids in found.items()}

    @abstractmethod
    def sample(self, conversation: Conversation, encoded: Encoded) -> dict[str, list[int]]:
        """The sequence of each stream. Raises BadSample if nothing of it would be learned."""


class InstructionEncoder(_ConversationEncoder):
    """Conversations: their ids, and labels that are -100 except on the answers."""

    streams = ("input_ids", "labels")

    def sample(self, conversation: Conversation, encoded: Encoded) -> dict[str, list[int]]:
        sample = self.format.conversation(conversation.messages, conversation.system, self.limit)
        if self.eod is not None:
            sample.add([self.eod], learned=True)
        learned = learned_ids(sample)
        if not learned:
            raise BadSample("nothing of it would be learned")
        encoded.counts["ids"] += len(sample.ids)
        encoded.counts["learned ids"] += learned
        return {"input_ids": sample.ids, "labels": sample.labels}


class PairEncoder(_ConversationEncoder):
    """Encodes pairs: the ids and labels of a question with its chosen answer, and those with its rejected answer."""

    streams = ("chosen_input_ids", "chosen_labels", "rejected_input_ids", "rejected_labels")

    def sample(self, conversation: Conversation, encoded: Encoded) -> dict[str, list[int]]:
        assert conversation.chosen is not None and conversation.rejected is not None
        prompt, chosen, rejected = self.format.pair(
            conversation.messages, conversation.chosen, conversation.rejected, conversation.system
        )
        if self.limit is not None:
            room = max(1, self.limit - 1 - max(len(chosen), len(rejected)))
            prompt = prompt[-room:]  # the end of the question is nearest to the answers
            chosen, rejected = (
                chosen[: self.limit - 1 - len(prompt)],
                rejected[: self.limit - 1 - len(prompt)],
            )
        if not chosen or not rejected:
            raise BadSample("nothing of it would be learned")
        found = {}
        for name, answer in (("chosen", chosen), ("rejected", rejected)):
            sample = Sample()
            sample.add(prompt, learned=False)
            sample.add(answer, learned=True)
            found[f"{name}_input_ids"], found[f"{name}_labels"] = sample.ids, sample.labels
            encoded.counts["ids"] += len(sample.ids)
            encoded.counts["learned ids"] += len(answer)
        return found


def learned_ids(sample: Sample) -> int:
    return sum(label != IGNORE for label in sample.labels)


def _format(data: Data, tokenizer: Tokenizer) -> TemplateFormat | ChatFormat:
    name = str(data.template)
    if name == "chat":
        return ChatFormat(tokenizer, data.thinking)
    if "/" in name or name.endswith((".jinja", ".j2", ".txt")):
        try:
            text = Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"data.template: {name} cannot be read: {error}") from None
        return ChatFormat(tokenizer, data.thinking, text)
    return TemplateFormat(template(name), tokenizer, data.thinking)


ENCODERS: dict[str, Callable[[Data], Encoder]] = {
    "pretrain": PretrainEncoder,
    "instruction": InstructionEncoder,
    "pairs": PairEncoder,
}

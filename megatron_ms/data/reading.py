"""Which sources a configuration names, and in which order their entries are encoded."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from ..convert.steps import digest
from ..errors import UserError
from . import blending, templates
from .encode import Encoder
from .section import Data, SourceKeys
from .sources import Entry, Files, HubData, Source, is_saved

_VERSION = 1  # changes when the same configuration gives other files


@dataclass(frozen=True)
class Group:
    """Sources whose entries go into the same files, which have names that begin with `prefix`."""

    prefix: Path
    sources: tuple[Source, ...]
    weights: tuple[float, ...] | None  # normalised; None if the sources follow each other
    repeat: bool
    most: int | None

    @property
    def size(self) -> int | None:
        """Bytes of all files, if all will be read to their ends once."""
        sizes = [source.size for source in self.sources]
        if self.weights is not None or self.most is not None or None in sizes:
            return None
        return sum(size for size in sizes if size is not None)

    def entries(self) -> Iterator[Entry]:
        return islice(self._all(), self.most)

    def _all(self) -> Iterator[Entry]:
        if self.weights is None:
            return chain.from_iterable(source.entries() for source in self.sources)
        return self._blended(self.weights)

    def _blended(self, weights: Sequence[float]) -> Iterator[Entry]:
        """Takes the entries by their ratios until a source has ended; with `repeat`, until each has."""
        running = [source.entries() for source in self.sources]
        ended: set[int] = set()
        for number in blending.order(weights):
            entry = next(running[number], None)
            if entry is None:
                ended.add(number)
                if not self.repeat or len(ended) == len(self.sources):
                    return
                running[number] = self.sources[number].entries()
                entry = next(running[number], None)
                if entry is None:
                    raise UserError(f"data.sources: {self.sources[number].name} has no entries")
            yield entry

    def ratios(self, entries: int) -> list[blending.Ratio]:
        """The realised ratio of each source in so many entries."""
        if self.weights is None:
            return []
        counts = Counter(islice(blending.order(self.weights), entries))
        names = [source.name for source in self.sources]
        return blending.realised(names, self.weights, [counts[number] for number in range(len(names))])

    def key(self, encoder: Encoder) -> str:
        """A hash of all that the written files depend on."""
        data = encoder.data
        wishes = data.model_dump(exclude={"workers", "output", "sources", "tokenizer"})
        facts = repr(templates.template(str(data.template))) if data.template in templates.names() else ""
        if data.template and not facts and Path(data.template).is_file():
            facts = Path(data.template).read_text(encoding="utf-8")
        texts = [source.text for source in data.sources]
        whole = [_VERSION, wishes, texts, [source.identity() for source in self.sources], self.weights]
        return digest(json.dumps(whole, sort_keys=True), encoder.tokenizer.description(), facts)


def prefixes(data: Data) -> list[Path]:
    """What the names of the written files begin with: `output`, or one for each source if Megatron is to mix them.

    Raises:
        UserError: two sources would write files of the same names.
    """
    output = Path(data.output)
    if not data.mixes_files:
        return [output]
    names = [keys.name or Path(str(keys.path or keys.dataset)).stem for keys in data.sources]
    if doubled := [name for name, count in Counter(names).items() if count > 1]:
        raise UserError(
            f"data.sources: {len(names)} sources would write files named {doubled[0]}: give each a `name`"
        )
    return [output.with_name(f"{output.name}_{name}") for name in names]


def megatron_data_path(data: Data) -> list[str]:
    """The words behind --data-path with which Megatron-LM, or MindSpeed-LLM for instruction data and pairs, reads the files."""
    if data.task != "pretrain":
        return [data.output]  # MindSpeed-LLM adds _packed and the names of the streams itself
    words = []
    for key in data.keys:
        for keys, prefix in zip(data.sources if data.mixes_files else [None], prefixes(data), strict=True):
            words += [f"{keys.weight:g}"] if keys else []
            words.append(str(prefix.with_name(f"{prefix.name}_{key}_document")))
    return words


def groups(data: Data) -> list[Group]:
    """The groups of a configuration, one for each of its prefixes."""
    sources = [_source(keys, data) for keys in data.sources]
    named = prefixes(data)
    if data.mixes_files:
        return [
            Group(prefix, (source,), None, False, data.max_entries)
            for prefix, source in zip(named, sources, strict=True)
        ]
    weights = [keys.weight for keys in data.sources if keys.weight is not None]
    ratios = tuple(blending.normalised(weights)) if weights else None
    return [Group(named[0], tuple(sources), ratios, data.repeat, data.max_entries)]


def _source(keys: SourceKeys, data: Data) -> Source:
    if keys.path is not None and not is_saved(Path(keys.path)):
        source: Source = Files(Path(keys.path), data.keys if data.task == "pretrain" else None, keys.text)
    else:
        name = str(keys.path if keys.path is not None else keys.dataset)
        source = HubData(name, keys.subset, keys.split, keys.revision, keys.streaming)
    if keys.name:
        source.name = keys.name
    return source

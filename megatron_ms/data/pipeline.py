"""Makes the data sets of a configuration: reads, encodes with several workers, and writes. Interrupted work is continued."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from tqdm import tqdm

from ..errors import UserError
from .blending import Ratio
from .encode import ENCODERS, Encoded, Encoder
from .reading import Group, groups
from .section import Data
from .sources import Entry
from .tokenizer import HuggingFace, quiet_transformers
from .work import Work, read_stamp, stamp_path
from .writing import final_files, write

BATCH = 64  # entries that a worker gets at once
SAVE_EVERY = 10_000  # entries after which the journal is written


@dataclass(frozen=True)
class Made:
    """A finished data set. `stamp` has its counts; `resumed` is the number of entries that an earlier run had encoded."""

    prefix: Path
    files: list[Path]
    stamp: dict[str, Any]
    ratios: list[Ratio]
    resumed: int = 0
    already: bool = False


def make_all(data: Data) -> list[Made]:
    """Makes every data set of the configuration that is not there yet.

    Raises:
        UserError: the input or the configuration is wrong, or a file is in the way. OSError: the system refused, for example
        for lack of space; the next run continues.
    """
    encoder = ENCODERS[data.task](data)
    return [make(group, encoder) for group in groups(data)]


def make(group: Group, encoder: Encoder) -> Made:
    """Makes one data set, unless it is there already."""
    key = group.key(encoder)
    files = final_files(group.prefix, encoder)
    stamp = read_stamp(stamp_path(group.prefix))
    if stamp is not None and stamp["key"] == key and _whole(group.prefix, stamp):
        return Made(group.prefix, list(files.values()), stamp, group.ratios(stamp["entries"]), already=True)
    work = Work(group.prefix, key, encoder.streams, encoder.dtype)
    if not work.begun():
        work.refuse_existing([*files.values(), stamp_path(group.prefix)])
    with work.held():
        resumed = work.done.entries
        if not work.moves:
            try:
                _encode(group, encoder, work)
            except UserError:
                work.remove()  # what has been encoded cannot be used once the input or the configuration is mended
                raise
            facts = write(work, encoder)
        else:
            facts = {}
        work.publish(files, facts)
    stamp = read_stamp(stamp_path(group.prefix))
    assert stamp is not None
    return Made(group.prefix, list(files.values()), stamp, group.ratios(stamp["entries"]), resumed)


def _whole(prefix: Path, stamp: dict[str, Any]) -> bool:
    """True if all files of a stamp are there and have their sizes."""
    paths = {prefix.with_name(name): size for name, (size, _) in stamp["files"].items()}
    return all(path.is_file() and path.stat().st_size == size for path, size in paths.items())


def _encode(group: Group, encoder: Encoder, work: Work) -> None:
    """Encodes the entries that the journal does not have yet."""
    if work.encoded:
        return
    work.save()
    entries = islice(group.entries(), work.done.entries, None)
    bar = tqdm(
        total=group.size, desc=group.prefix.name, unit="B", unit_scale=True, dynamic_ncols=True, disable=None
    )
    saved = work.done.entries
    with bar, _workers(encoder) as encode:
        try:
            for size, encoded in encode(entries):
                work.append(encoded)
                bar.update(size)
                bar.set_postfix_str(
                    f"{work.done.entries} entries, {work.done.counts['ids']} ids", refresh=False
                )
                if work.done.entries - saved >= SAVE_EVERY:
                    work.save(sync=True)
                    saved = work.done.entries
        except KeyboardInterrupt:
            work.save()
            print(f"\n{work.done.entries} entries are encoded; the same command continues with the next one")
            raise
    if not work.done.entries:
        raise UserError(
            f"data.sources: {', '.join(source.name for source in group.sources)}: there are no entries"
        )
    if encoder.data.task != "pretrain" and not work.done.counts["samples"]:
        reasons = "; ".join(f"{reason} ({places[0]})" for reason, places in work.done.left_out.items())
        raise UserError(f"none of the {work.done.entries} entries can be used: {reasons}")
    work.encoded = True
    work.save()


def _batches(entries: Iterator[Entry]) -> Iterator[list[Entry]]:
    while batch := list(islice(entries, BATCH)):
        yield batch


@contextmanager
def _workers(encoder: Encoder) -> Iterator[Any]:
    """Gives a function that encodes entries in order and yields the size and the result of each batch."""
    count = encoder.data.workers
    if count == 1:

        def here(entries: Iterator[Entry]) -> Iterator[tuple[int, Encoded]]:
            for batch in _batches(entries):
                yield sum(entry.size for entry in batch), encoder.encode(batch)

        yield here
        return
    # Workers are forked from a process without threads: neither tokenizers nor MindSpore survive a fork of ours.
    context = multiprocessing.get_context("forkserver")
    preload = ["megatron_ms.data.encode"]
    if isinstance(encoder.tokenizer, HuggingFace):
        quiet_transformers()
        preload.append("transformers")
    context.set_forkserver_preload(preload)
    pool = ProcessPoolExecutor(count, context, _start_worker, (encoder.data.model_dump(),))
    try:
        yield lambda entries: _in_order(pool, entries, 4 * count)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _in_order(
    pool: ProcessPoolExecutor, entries: Iterator[Entry], most: int
) -> Iterator[tuple[int, Encoded]]:
    waiting: deque[tuple[int, Future[Encoded]]] = deque()
    batches = _batches(entries)
    try:
        while True:
            for batch in islice(batches, most - len(waiting)):
                waiting.append((sum(entry.size for entry in batch), pool.submit(_encode_batch, batch)))
            if not waiting:
                return
            size, future = waiting.popleft()
            yield size, future.result()
    except BrokenProcessPool:
        raise UserError(
            "a worker ended suddenly, perhaps for lack of memory: run the same command again with fewer data.workers"
        ) from None


_encoder: Encoder | None = None


def _start_worker(values: dict[str, Any]) -> None:
    global _encoder
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C reaches all processes of the terminal; the main one decides
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    data = Data.model_validate(values)
    _encoder = ENCODERS[data.task](data)


def _encode_batch(batch: Sequence[Entry]) -> Encoded:
    assert _encoder is not None
    return _encoder.encode(batch)

"""The parts of a checkpoint that ranks wrote alone before their end, put together when all of them have ended.

A rank that writes a part also tells the numbers of that step. The ranks that record them otherwise, rank 0 in monitor.jsonl and the
last one in upstream's log, may have ended before they did so. The next attempt begins after the step and does not compute it again.
"""

from __future__ import annotations

import contextlib
import functools
import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from patches.tree import aside_of

from ..monitor import events, outputs
from . import manifest

FOLDER = ".last-words"  # in the folder of the checkpoints
ABOUT = (
    "parts.json"  # in the folder of a rank: its part, all parts of the model, and what it tells of the step
)
RECORDS = (outputs.MEASURED, outputs.LOGGED)  # the files with the numbers of the steps


def put_together(checkpoints: Path, folder: Path, records: Iterable[str] = RECORDS) -> int | None:
    """Makes a checkpoint of the newest step of which the ranks that were left have written all parts.

    Called when all ranks have ended. Returns its iteration; None if there is none that is newer than what is on the disk.
    folder: of the run. records: its files that get the numbers of the step, if they do not have them.
    """
    words = checkpoints / FOLDER
    if not words.is_dir():
        return None
    find = functools.partial(manifest.fault, content=False)
    try:
        on_disk = manifest.choose(checkpoints, find).iteration or 0
    except manifest.NothingWhole:
        on_disk = 0
    for number, places in sorted(_spoken(words).items(), reverse=True):
        if number > on_disk:
            told = [_about(place) for place in places.values()]
            for name in records:
                _record(folder, name, number, [one[name] for one in told if one.get(name)])
            _join(places, manifest.place_of(checkpoints, number))
            manifest.point(checkpoints, number)
            discard(checkpoints)
            return number
    return None


def said(number: int) -> str:
    """The line that tells of such a checkpoint."""
    return f"checkpoint {number} was put together from the parts that ranks have written before their end"


def discard(checkpoints: Path) -> None:
    """Removes what ranks have written that did not become a checkpoint."""
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(checkpoints / FOLDER)


def _spoken(words: Path) -> dict[int, dict[str, Path]]:
    """The steps of which all parts are there, whole and healthy: for each part a place that has it."""
    found: dict[int, dict[str, Path]] = {}
    wanted: dict[int, set[str]] = {}
    for place in sorted(words.glob("rank-*/iter_*")):
        if manifest.fault(place):
            continue  # the rank was ended while it wrote
        about = _about(place)
        number = int(place.name.removeprefix("iter_"))
        found.setdefault(number, {}).setdefault(about["part"], place)
        wanted.setdefault(number, set()).update(about["parts"])
    return {number: places for number, places in found.items() if wanted[number] <= set(places)}


def _about(place: Path) -> dict[str, Any]:
    """What the rank has told beside its part."""
    found: dict[str, Any] = json.loads((place.parent / ABOUT).read_text(encoding="utf-8"))
    return found


def _record(folder: Path, name: str, number: int, told: list[Mapping[str, Any]]) -> None:
    """Appends the numbers of a step to a file, if no line of it has them. Only the last stage of a pipeline knows the losses."""
    if told and all(line.get("iteration") != number for line in events.read(folder, name)):
        events.write(
            folder / name, max(told, key=lambda one: sum(value is not None for value in one.values()))
        )


def _join(places: dict[str, Path], target: Path) -> None:
    """Moves the parts into one checkpoint with a manifest."""
    kept = target.with_name(f".{target.name}.joined")
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir()
    measured: manifest.Measured = {}
    for part, place in places.items():
        files, _ = manifest.read(place)
        measured |= {name: facts for name, facts in files.items() if name.startswith(f"{part}/")}
        (place / part).rename(kept / part)
    manifest.write(kept, measured)
    if target.exists():
        target.rename(aside_of(target))
    kept.rename(target)

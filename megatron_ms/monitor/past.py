"""What the steps before an attempt have shown, so that an attempt that goes on from a checkpoint judges and counts as if it had
done them itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Told = Mapping[str, Any]
Values = dict[str, float | None]


@dataclass(frozen=True)
class Past:
    """skipped: the iterations that changed no parameter. spikes: with their lines. judged: the values of steps, in their order."""

    skipped: tuple[int, ...] = ()
    spikes: tuple[tuple[int, str], ...] = ()
    judged: tuple[tuple[int, Values], ...] = ()


def read(records: Iterable[Told], events: Iterable[Told], begins: int, most: int) -> Past:
    """The past of an attempt whose first iteration is `begins`.

    records, events: those of monitor.jsonl and events.jsonl, in their order. What an attempt found in iterations that a later one
    has computed again does not count. most: so many judged steps are enough.
    """
    skipped: set[int] = set()
    spikes: list[tuple[int, str]] = []
    for event in events:
        if event["kind"] == "step":
            first = event["iteration"]
            skipped = {number for number in skipped if number < first}
            spikes = [one for one in spikes if one[0] < first]
        elif event["kind"] == "skip":
            skipped.add(event["iteration"])
        elif event["kind"] == "spike":
            spikes.append((event["iteration"], event["text"]))
    judged: dict[int, Values] = {}
    for record in records:
        judged |= dict(record.get("judged", ()))
    chosen = sorted(number for number in judged if number < begins)[-most:]
    return Past(
        tuple(sorted(number for number in skipped if number < begins)),
        tuple(one for one in spikes if one[0] < begins),
        tuple((number, judged[number]) for number in chosen),
    )

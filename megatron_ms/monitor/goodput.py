"""How the time of a run was spent: on steps that count, on steps that were lost, on checkpoints, on restarts, on the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Told = Mapping[str, Any]


@dataclass(frozen=True)
class Spent:
    """Seconds of a run by their use.

    restarting: from a failure to the first step after it, and from a later command to its first step. `other` is what remains:
    the first start, validation, a step that a failure has cut, and the time between two commands.
    """

    training: float = 0.0
    lost: float = 0.0
    restarting: float = 0.0
    saving: float = 0.0
    total: float = 0.0

    @property
    def other(self) -> float:
        return max(self.total - self.training - self.lost - self.restarting - self.saving, 0.0)

    @property
    def goodput(self) -> float:
        """The share of the time in which the training went forward."""
        return self.training / self.total if self.total > 0 else 0.0


def spent(records: Iterable[Told], events: Iterable[Told], until: float, begins: int | None = None) -> Spent:
    """The use of the time from the first attempt to `until`.

    records: those of monitor.jsonl, in their order. Each tells the mean seconds of its `steps`, the last of which is its
    iteration. Where an iteration was computed twice, because an attempt failed after it, the earlier time was lost. events: those
    of events.jsonl. begins: the iteration with which an attempt begins now: what was computed of it and of later ones is lost.
    """
    last: dict[int, float] = {}
    everything = saving = 0.0
    for record in records:
        for number in _steps(record["iteration"], record.get("steps", 1)):
            last[number] = record["seconds"]
            everything += record["seconds"]
        saving += record.get("memory saving", 0.0)
    happened = list(events)
    for event in happened:
        if event["kind"] != "save":
            continue
        saving += event.get("seconds", 0.0)
        for number in _steps(event.get("iteration", 0), event.get("steps", 0)):
            if number not in last:  # a failure came before the record that would have had these steps
                last[number] = event["step"]
                everything += event["step"]
    began = min((event["time"] for event in happened), default=until)
    training = sum(seconds for number, seconds in last.items() if begins is None or number < begins)
    total = max(until - began, 0.0)
    return Spent(training, everything - training, _restarting(happened, until), saving, total)


def _steps(last: int, count: int) -> range:
    return range(last - count + 1, last + 1)


def _restarting(events: Iterable[Told], until: float) -> float:
    """The seconds in which the ranks were started again."""
    total, since, attempts = 0.0, None, 0
    for event in events:
        kind, when = event["kind"], event["time"]
        attempts += kind == "attempt"
        if since is None and (kind == "failure" or (kind == "attempt" and attempts > 1)):
            since = when
        elif since is not None and kind in ("step", "end", "done"):
            total, since = total + when - since, None
    return total if since is None else total + max(until - since, 0.0)

"""How the time of a run was spent: on steps that count, on steps that were lost, on checkpoints, on starting, on pauses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Spent:
    """Seconds of a run by their use. `other` is what remains: starts of the programs, pauses, and what came after the last step."""

    training: float
    lost: float
    saving: float
    total: float

    @property
    def other(self) -> float:
        return max(self.total - self.training - self.lost - self.saving, 0.0)

    @property
    def goodput(self) -> float:
        """The share of the time in which the training went forward."""
        return self.training / self.total if self.total > 0 else 0.0


def spent(records: Iterable[Mapping[str, Any]], events: Iterable[Mapping[str, Any]], until: float) -> Spent:
    """The use of the time from the first attempt to `until`.

    records: those of monitor.jsonl, in their order; each tells the seconds of its step. Where an iteration was computed twice,
    because an attempt failed after it, the earlier time was lost. events: those of events.jsonl.
    """
    last: dict[int, float] = {}
    everything = 0.0
    for record in records:
        last[record["iteration"]] = record["seconds"] * record.get("steps", 1)
        everything += last[record["iteration"]]
    happened = list(events)
    began = min((event["time"] for event in happened), default=until)
    saving = sum(event.get("seconds", 0.0) for event in happened if event["kind"] == "save")
    training = sum(last.values())
    return Spent(training, everything - training, saving, max(until - began, 0.0))

"""Finds ranks that work longer than the others, by the time of their own work: step time without waiting for other ranks."""

from __future__ import annotations

import collections
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

_LEAST_STEPS = 10
_LEAST_SECONDS = 20.0  # of steps; other work on a machine slows one rank down for shorter


@dataclass(frozen=True)
class _Step:
    """A measured step: own times, for each rank the median of the others, the ranks that are late, and the seconds since the
    measured step before."""

    own: Sequence[float]
    others: Sequence[float]
    late: frozenset[int]
    seconds: float


class Stragglers:
    """Keeps the last steps of all ranks: at least ten, and as many as took 20 s.

    factor: how many times the median of the others a rank's own time must be. A rank is named if this is so in more than half
    of these steps. So a single slow step names no rank, and neither does other work on a busy machine, which can slow one rank down
    for many short steps in a row. least, seconds: the least steps and seconds that are judged.
    """

    def __init__(self, factor: float, least: int = _LEAST_STEPS, seconds: float = _LEAST_SECONDS) -> None:
        self.factor, self.least, self.seconds = factor, least, seconds
        self._steps: collections.deque[_Step] = collections.deque()
        self._times: collections.Counter[int] = collections.Counter()  # rank -> how often it was late
        self._covered = 0.0
        self._named: set[int] = set()

    def add(self, own: Sequence[float], seconds: float) -> list[str]:
        """Takes the own times of a measured step in seconds, by rank. Returns a line for each rank that has become a straggler.

        A rank is named again only after it has kept up in between. seconds: those of all steps since the measured step before.
        """
        if len(own) < 2:
            return []
        others = _others(own)
        late = frozenset(rank for rank, time in enumerate(own) if time > self.factor * others[rank])
        self._steps.append(_Step(own, others, late, seconds))
        self._times.update(late)
        self._covered += seconds
        while len(self._steps) > self.least and self._covered - self._steps[0].seconds >= self.seconds:
            first = self._steps.popleft()
            self._times.subtract(first.late)
            self._covered -= first.seconds
        if len(self._steps) < self.least or self._covered < self.seconds:
            return []
        often = {rank for rank, times in self._times.items() if 2 * times > len(self._steps)}
        fresh, self._named = often - self._named, often
        return [self._said(rank) for rank in sorted(fresh)]

    def _said(self, rank: int) -> str:
        own = statistics.median(step.own[rank] for step in self._steps)
        others = statistics.median(step.others[rank] for step in self._steps)
        return (
            f"straggler: rank {rank} works {own / max(others, 1e-9):.1f} times as long as the others "
            f"({own:.3f} s of a step, they {others:.3f} s)"
        )


def _others(own: Sequence[float]) -> list[float]:
    """For each rank the median of the others."""
    order = sorted(range(len(own)), key=own.__getitem__)
    found = [0.0] * len(own)
    low, high = (len(own) - 2) // 2, (len(own) - 1) // 2  # of the places of the others
    for place, rank in enumerate(order):
        found[rank] = (own[order[low + (low >= place)]] + own[order[high + (high >= place)]]) / 2
    return found

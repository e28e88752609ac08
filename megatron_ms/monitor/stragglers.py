"""Finds ranks that work longer than the others, by the time of their own work: step time without waiting for other ranks."""

from __future__ import annotations

import collections
import statistics
from collections.abc import Sequence


class Stragglers:
    """Keeps the last steps of all ranks.

    factor: how many times the median of the others a rank's own time must be. A rank is named if this is so in four of five of the
    last `window` steps, so that a busy machine or a single slow step is not reported as a straggler.
    """

    def __init__(self, factor: float, window: int = 10) -> None:
        self.factor, self.window = factor, window
        self._steps: collections.deque[Sequence[float]] = collections.deque(maxlen=window)
        self._named: set[int] = set()

    def add(self, own: Sequence[float]) -> list[str]:
        """Takes the own times of a step, by rank. Returns a line for each rank that has become a straggler with it.

        A rank is named again only after it has kept up in between.
        """
        self._steps.append(own)
        if len(self._steps) < self.window or len(own) < 2:
            return []
        late = {rank for rank in range(len(own)) if self._late(rank)}
        fresh, self._named = late - self._named, late
        return [self._said(rank) for rank in sorted(fresh)]

    def _late(self, rank: int) -> bool:
        times = sum(step[rank] > self.factor * _others(step, rank) for step in self._steps)
        return 5 * times >= 4 * self.window

    def _said(self, rank: int) -> str:
        own = statistics.median(step[rank] for step in self._steps)
        others = statistics.median(_others(step, rank) for step in self._steps)
        return (
            f"straggler: rank {rank} works {own / max(others, 1e-9):.1f} times as long as the others "
            f"({own:.3f} s of a step, they {others:.3f} s)"
        )


def _others(step: Sequence[float], rank: int) -> float:
    return statistics.median([own for number, own in enumerate(step) if number != rank])

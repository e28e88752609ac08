"""Judges the numbers of steps: spikes that make a checkpoint unhealthy, and gradients with which no parameter may change."""

from __future__ import annotations

import collections
import math
import statistics
from collections.abc import Mapping

from .past import Past


class Spikes:
    """Compares each step with the median of the steps before it.

    factor: how many times the median a value must be to be a spike; None finds none. window: how many steps are remembered.
    A checkpoint is unhealthy if a spike is among the last `window` steps.
    """

    def __init__(self, factor: float | None, window: int) -> None:
        self.factor, self.window = factor, window
        self._values: dict[str, collections.deque[float]] = {}
        self._found: collections.deque[tuple[int, str]] = collections.deque()

    def add(self, iteration: int, values: Mapping[str, float | None]) -> list[str]:
        """Takes the values of a step by name, and returns a line for each spike. A spike does not become part of the median."""
        if self.factor is None:
            return []
        found = []
        for name, value in values.items():
            if value is None:
                continue
            before = self._values.setdefault(name, collections.deque(maxlen=self.window))
            usual = statistics.median(before) if 2 * len(before) >= self.window else math.inf
            if not math.isfinite(value) or value > self.factor * usual:
                found.append(f"{name} {value:.4g} at iteration {iteration} (usually {usual:.4g})")
            else:
                before.append(value)
        while self._found and self._found[0][0] <= iteration - self.window:
            self._found.popleft()
        self._found.extend((iteration, text) for text in found)
        return found

    def refill(self, past: Past) -> None:
        """Takes what steps before this attempt have shown."""
        for number, values in past.judged:
            self.add(number, values)
        self._found = collections.deque(past.spikes)  # as they were judged then

    def reasons(self, iteration: int) -> tuple[str, ...]:
        """Why a checkpoint of this iteration is unhealthy; () if it is not."""
        first = iteration - self.window
        return tuple(text for number, text in self._found if first < number <= iteration)


class Skips:
    """Counts steps whose gradient norm is over the threshold. `most` in a row are too many."""

    def __init__(self, threshold: float | None, most: int) -> None:
        self.threshold, self.most = threshold, most
        self.total = self.row = 0

    def over(self, norm: float) -> bool:
        """True if no parameter may change with a gradient of this norm. NaN and infinity are always over the threshold."""
        return self.threshold is not None and not norm <= self.threshold

    def refill(self, past: Past, begins: int) -> None:
        """Counts the steps before this attempt, whose first one is `begins`."""
        self.total, self.row = len(past.skipped), 0
        while begins - 1 - self.row in past.skipped:
            self.row += 1

    def count(self, skipped: bool) -> None:
        """Counts a step."""
        self.total += skipped
        self.row = self.row + 1 if skipped else 0

    @property
    def too_many(self) -> bool:
        return self.row >= self.most

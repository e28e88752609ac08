"""Packing: puts short samples together into rows that have exactly the sequence length."""

from __future__ import annotations

import bisect
from collections import defaultdict

import numpy


def pack(lengths: numpy.ndarray, capacity: int) -> list[list[int]]:
    """Distributes samples of these lengths over rows that hold at most `capacity` ids.

    Returns the numbers of the samples of each row. A row takes the longest sample that is left and fits, again and again,
    until none fits; of samples of equal length the last comes first. No length may exceed the capacity.
    """
    waiting: dict[int, list[int]] = defaultdict(list)
    for number, length in enumerate(lengths.tolist()):
        if length > capacity:
            raise ValueError(f"sample {number} has {length} ids, more than the {capacity} of a row")
        waiting[length].append(number)
    left = sorted(waiting)
    rows = []
    while left:
        row, room = [], capacity
        while (place := bisect.bisect_right(left, room) - 1) >= 0:
            length = left[place]
            row.append(waiting[length].pop())
            room -= length
            if not waiting[length]:
                del left[place]
        rows.append(row)
    return rows

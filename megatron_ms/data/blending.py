"""Blending of sources: which source each sample is taken from, and how near this comes to the wanted ratios."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy

from ..errors import UserError


def normalised(weights: Sequence[float]) -> list[float]:
    """The weights divided by their sum, as Megatron computes them."""
    if not weights or any(not weight > 0 for weight in weights):
        raise UserError(f"weights of sources must be greater than 0, not {list(weights)}")
    array = numpy.array(weights, dtype=numpy.float64)
    if not numpy.isfinite(array).all():
        raise UserError(f"weights of sources must be finite, not {list(weights)}")
    return list(map(float, array / array.sum()))


def order(weights: Sequence[float]) -> Iterator[int]:
    """Yields without end the number of the source that each sample comes from.

    The next sample comes from the source that is furthest behind its ratio; of two that are equally far, from the first. The
    weights must be normalised. The operations and their order are those of Megatron's helper, so each rounding is the same.
    """
    taken = [0] * len(weights)
    sample = 0
    while True:
        position = max(float(sample), 1.0)
        furthest, most = 0, weights[0] * position - float(taken[0])
        for source in range(1, len(weights)):
            behind = weights[source] * position - float(taken[source])
            if behind > most:
                furthest, most = source, behind
        taken[furthest] += 1
        sample += 1
        yield furthest


def blending_index(weights: Sequence[float], size: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    """For each sample the number of its source (int16) and its number within the source (int64)."""
    sources = numpy.fromiter(islice(order(weights), size), dtype=numpy.int16, count=size)
    numbers = numpy.empty(size, numpy.int64)
    for source in range(len(weights)):
        own = sources == source
        numbers[own] = numpy.arange(int(own.sum()))
    return sources, numbers


@dataclass(frozen=True)
class Ratio:
    """The wanted and the realised share of a source."""

    name: str
    wanted: float
    samples: int
    share: float


def realised(names: Sequence[str], weights: Sequence[float], counts: Sequence[int]) -> list[Ratio]:
    """The realised share of each source.

    Raises:
        UserError: a share differs from the wanted one by more than one sample for each source, which the greedy order never does.
    """
    total = sum(counts)
    found = [
        Ratio(name, wanted, count, count / total if total else 0.0)
        for name, wanted, count in zip(names, normalised(weights), counts, strict=True)
    ]
    allowed = len(names) / total if total else 0.0
    for ratio in found:
        if total and abs(ratio.share - ratio.wanted) > allowed:
            raise UserError(
                f"source {ratio.name}: {ratio.share:.4f} of {total} samples come from it, not {ratio.wanted:.4f}"
            )
    return found

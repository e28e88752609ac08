"""The registry of works. Works import only torch, so both sides run the same code."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Work:
    """A program to time. ``prepare`` makes its data and returns the function that is timed.

    ``flops`` and ``moved`` (bytes) of one call give its rate. ``target`` is the minimum ratio that the project aims at.
    With ``memory``, the peak memory is measured too.
    """

    group: str
    prepare: Callable[[], Callable[[], object]]
    flops: float = 0
    moved: float = 0
    target: float = 0
    memory: bool = False


class NotHere(Exception):
    """A work needs a library or a checkout that is missing. The work is left out, and the table shows this reason."""


WORKS: dict[str, Work] = {}


def work(name: str, group: str, **about):
    """A decorator that registers a ``prepare`` function as a work."""

    def register(prepare):
        WORKS[name] = Work(group, prepare, **about)
        return prepare

    return register

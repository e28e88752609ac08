"""Where works are registered. They import only torch, so that both sides run the very same code."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Work:
    """``prepare`` makes the data and returns what is timed.

    ``flops`` and ``moved`` (bytes) of one call turn its time into a rate; ``target`` is the least ratio that the project
    holds itself to; ``memory`` asks for the work's peak memory too.
    """

    group: str
    prepare: Callable[[], Callable[[], object]]
    flops: float = 0
    moved: float = 0
    target: float = 0
    memory: bool = False


class NotHere(Exception):
    """What a work needs (a library, a checkout) is not there: the work is left out, with this reason."""


WORKS: dict[str, Work] = {}


def work(name: str, group: str, **about):
    """Registers the decorated ``prepare``."""

    def register(prepare):
        WORKS[name] = Work(group, prepare, **about)
        return prepare

    return register

"""Takes some of the tests, so that a slow machine, such as an emulated one, runs a part of every operator's in time."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORD = re.compile(r"[A-Za-z_][\w.]*")


def sampled(names: Iterable[str], every: int) -> set[str]:
    """Return the names of the tests that are kept.

    names: pytest's node ids, in their order. `path::function[case]` is a case of `path::function`.
    every: a test is kept if it is the first of `every` in a row of its function's cases. It is also kept if its case has a
        word that no kept case of that function has: operators and dtypes stand in the names of cases, so each is kept at
        least once.
    """
    kept: set[str] = set()
    words: dict[str, set[str]] = {}
    counts: dict[str, int] = {}
    for name in names:
        function, _, case = name.partition("[")
        known = words.setdefault(function, set())
        found = set(_WORD.findall(case))
        number = counts.get(function, 0)
        if number % every == 0 or not found <= known:
            kept.add(name)
            known |= found
        counts[function] = number + 1
    return kept

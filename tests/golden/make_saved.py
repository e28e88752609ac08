"""The suite saved: which results and arguments of PyTorch's operators may be changed before the backward pass.

Its cases are samples: record the suite samples first.
"""

from __future__ import annotations

import sys

from tests.golden import saved, store


def golden_answers(torch) -> dict:
    told = store.load("samples")
    found = {}
    for name in saved.names(told.cases):
        try:
            allowed = saved.changeable(torch, told.cases[name], told.arrays)
        except (
            Exception
        ) as error:  # PyTorch refuses, for example a result that has one number in memory for many elements
            print(name, type(error).__name__, str(error)[:80], file=sys.stderr)
            continue
        if allowed:
            found[name] = "".join("01"[a] for a in allowed)
    return found

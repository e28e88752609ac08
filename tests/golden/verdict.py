"""How an answer is judged against PyTorch's: one table of tolerances, and the failures that are known.

`known_failures.tsv` has a line for every case that is known to differ: suite, case (a regular expression for the whole
name) and the reason, with tabs between. A case fails when it differs and no line names it, and when a line names it and
it no longer differs.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

FILE = Path(__file__).resolve().with_name("known_failures.tsv")

# Relative difference that rounding explains, by the dtype of the recorded answer; other dtypes agree exactly.
TOLERANCES = {
    "float64": 1e-9,
    "complex128": 1e-9,
    "float32": 2e-5,
    "complex64": 2e-5,
    "float16": 4e-3,
    "bfloat16": 2e-2,
}


def tolerance(dtype: str) -> float:
    """The relative difference allowed for a dtype, named with or without `torch.`."""
    return TOLERANCES.get(dtype.removeprefix("torch."), 0.0)


@cache
def known_failures() -> dict[str, list[tuple[re.Pattern, str]]]:
    """Pattern and reason of every known failure, by suite.

    Raises:
        ValueError: a line of the file has not three parts.
    """
    found: dict[str, list[tuple[re.Pattern, str]]] = {}
    for number, line in enumerate(FILE.read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        parts = line.split("\t")
        if len(parts) != 3 or not all(parts):
            raise ValueError(f"{FILE}:{number}: expected suite, case and reason with tabs between: {line!r}")
        suite, case, reason = parts
        found.setdefault(suite, []).append((re.compile(case), reason))
    return found


def judge(suite: str, case: str, difference: str | None) -> None:
    """Fails the test if an answer differs from PyTorch's and is not known to, or is known to and does not.

    difference: what differs, or None. A reason that begins with "rounding" allows both, because the last bits depend on
    the processor.
    """
    reason = next((why for known, why in known_failures().get(suite, ()) if known.fullmatch(case)), None)
    if reason is None:
        assert difference is None, f"{suite} {case}: {difference}"
    elif not reason.startswith("rounding"):
        assert difference is not None, (
            f"{suite} {case} is as PyTorch's now: take its line out of {FILE.name} (its reason: {reason})"
        )


def unused(suite: str, cases) -> list[str]:
    """The patterns of a suite that name none of its cases: lines to take out."""
    return [
        known.pattern for known, _ in known_failures().get(suite, ()) if not any(map(known.fullmatch, cases))
    ]

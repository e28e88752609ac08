"""Reads the lines that Megatron's trainer, or hf_program.py, prints."""

from __future__ import annotations

import json
import re
from typing import Any

_ITERATION = re.compile(r"\biteration\s+(\d+)/\s*(\d+) \|(.*)")
_VALIDATION = re.compile(r"validation loss at iteration (\d+) on (validation|test) set \|(.*)")
_RECORD = re.compile(r"\brecord: (\{.*\})$")  # of hf_program.py
_NAMES = {
    "elapsed time per iteration (ms)": "milliseconds",
    "learning_rate": "learning rate",
    "grad_norm": "grad norm",
}
_ERROR = re.compile(
    r"Error\b|Exception\b|error:|assert|out of memory|No space left|Address already in use|[Uu]nable to",
    re.IGNORECASE,
)
# The last line of a traceback, also with the name of a rank in front.
_RAISED = re.compile(r"(\S+ \d+: )?[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit|Failure)\b")


def record(line: str) -> dict[str, Any] | None:
    """The numbers of a line about an iteration or a validation; None for other lines.

    "iteration" is its number, "of" the last one; the other keys are upstream's names, such as "lm loss".
    """
    if found := _ITERATION.search(line):
        return {"iteration": int(found[1]), "of": int(found[2]), **_numbers(found[3])}
    if found := _VALIDATION.search(line):
        return {"iteration": int(found[1]), "set": found[2], **_numbers(found[3])}
    if found := _RECORD.search(line):
        values = json.loads(found[1])
        return {_NAMES.get(name, name): value for name, value in values.items()}
    return None


def _numbers(text: str) -> dict[str, float]:
    """NAME: NUMBER between bars."""
    found = {}
    for part in text.split("|"):
        name, colon, value = part.rpartition(":")
        try:
            number = float(value)
        except ValueError:
            continue
        if colon and name.strip():
            found[_NAMES.get(name.strip(), name.strip())] = number
    return found


def loss_of(values: dict[str, Any]) -> float | None:
    """The training's loss: `lm loss`, or the first name that ends with loss."""
    names = [name for name in values if name == "lm loss"] or [
        name for name in values if name.endswith("loss")
    ]
    return values[names[0]] if names else None


def last_errors(lines: list[str], most: int = 12) -> list[str]:
    """The lines that tell best why a run failed: from the last traceback on, else the last lines that name an error.

    Other processes may have written lines between those of a traceback, which ends with the name of an exception.
    """
    spoken = [line.rstrip() for line in lines if line.strip()]
    begins = [number for number, line in enumerate(spoken) if "Traceback (most recent call last)" in line]
    if begins:
        text = spoken[begins[-1] :]
        ends = [number for number, line in enumerate(text) if number and _RAISED.match(line)]
        if not ends:
            return text[-most:]
        after = next((n for n, line in enumerate(text) if n > ends[0] and not line[0].isspace()), len(text))
        return text[:after][-most:]  # a message may have several lines
    named = [line for line in spoken if _ERROR.search(line)]
    return (named or spoken)[-most:]

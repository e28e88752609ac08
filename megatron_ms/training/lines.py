"""Reads the lines that Megatron's trainer, or hf_program.py, prints."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
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

# What a line of upstream means in the terms of our file.
_ADVICE = (
    (
        re.compile(r"OptimizerParamScheduler: class input value .* do not match"),
        "The file asks for another schedule of the learning rate than the checkpoint has, for example by train.iterations or"
        " train.lr. resume.schedule=new takes the file's, resume.schedule=old keeps the checkpoint's.",
    ),
    (
        re.compile(r"AssertionError: Megatron requires CUDA"),
        "run.device=cuda lets the CPU take the place of the device that Megatron asks for.",
    ),
    (
        re.compile(r"assert .*\.type\(\) == 'torch\.cuda\.FloatTensor'"),
        "Megatron-LM asks for tensors that are called cuda: write run.device=cuda, which an NPU answers too.",
    ),
    (
        re.compile(r"No module named 'megatron\.core\.datasets\.helpers(_cpp)?'"),
        "The tree lacks its compiled helpers. `bash auto_convert.sh core --source TREE` makes one that has them; in a tree of"
        " your own, run `make` in megatron/core/datasets after `source build/env.sh`.",
    ),
)
# A rank that waited for one that had failed before.
_DESERTED = re.compile(r".*DistBackendError: .* cannot end")


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
    """The lines that tell best why a run failed: the last traceback, else the last lines that name an error.

    The traceback of a rank that only waited for one that had failed is taken if there is no other.
    """
    spoken = [line.rstrip() for line in lines if line.strip()]
    begins = [number for number, line in enumerate(spoken) if "Traceback (most recent call last)" in line]
    found = [_traceback(spoken[begin:]) for begin in begins]
    causes = [text for text in found if not any(_DESERTED.match(line) for line in text)]
    if found:
        return (causes or found)[-1][-most:]
    named = [line for line in spoken if _ERROR.search(line)]
    return (named or spoken)[-most:]


def _traceback(text: list[str]) -> list[str]:
    """The traceback that the lines begin with.

    Other processes may have written lines between its own. It ends with the name of an exception, whose message may have
    several lines.
    """
    ends = [number for number, line in enumerate(text) if number and _RAISED.match(line)]
    if not ends:
        return text
    after = next((n for n, line in enumerate(text) if n > ends[0] and not line[0].isspace()), len(text))
    return text[:after]


def advice(text: Iterable[str]) -> list[str]:
    """Return advice for the errors in the lines: which keys of the configuration to change."""
    shown = list(text)
    return [said for pattern, said in _ADVICE if any(pattern.search(line) for line in shown)]

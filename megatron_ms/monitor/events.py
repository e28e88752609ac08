"""What happened in a run beside its steps: events.jsonl in its folder, written by the supervisor and by rank 0."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NAME = "events.jsonl"


def append(folder: Path, kind: str, text: str, **more: Any) -> None:
    """Appends an event. Several processes may do so at the same time."""
    write(folder / NAME, {"time": time.time(), "kind": kind, "text": text, **more})


def write(file: Path, content: Mapping[str, Any]) -> None:
    """Appends a line of JSON that survives the end of this process."""
    handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, line_of(content).encode())
        os.fsync(handle)
    finally:
        os.close(handle)


def read(folder: Path, name: str = NAME) -> list[dict[str, Any]]:
    """The lines of a file of JSON lines. A line that a process left unfinished when it was killed is left out."""
    file = folder / name
    if not file.is_file():
        return []
    found = []
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            content = json.loads(line)
        except ValueError:
            continue
        if isinstance(content, dict):
            found.append(_numbers(content))
    return found


def line_of(content: Mapping[str, Any]) -> str:
    """A line of JSON. NaN and infinity, which JSON does not have, are written as the strings "NaN", "Infinity" and "-Infinity"."""
    return json.dumps(_strings(content), allow_nan=False) + "\n"


def _strings(value: Any) -> Any:
    """A value with strings for the numbers that JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {name: _strings(one) for name, one in value.items()}
    return [_strings(one) for one in value] if isinstance(value, list | tuple) else value


def _numbers(value: Any) -> Any:
    """A value with the numbers for which such strings stand."""
    if isinstance(value, dict):
        return {name: _numbers(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_numbers(one) for one in value]
    return float(value) if value in ("NaN", "Infinity", "-Infinity") else value

"""What happened in a run beside its steps: events.jsonl in its folder, written by the supervisor and by rank 0."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

NAME = "events.jsonl"


def append(folder: Path, kind: str, text: str, **more: Any) -> None:
    """Appends an event. Several processes may do so at the same time."""
    line = json.dumps({"time": time.time(), "kind": kind, "text": text, **more}) + "\n"
    handle = os.open(folder / NAME, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, line.encode())
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
            found.append(content)
    return found

"""Runs a script and notes which of the names that MindSpeed replaces for MindSpore have run, as the PyTorch flavour has them.

    python tests/npu/entered.py FOLDER script.py arguments...

writes FOLDER/<process>.json: {"run": what PYTEST_CURRENT_TEST says, "entered": names}. The names are those of
data/mindspore_targets.tsv; a name has run when a function that it leads to was called: itself, the one that it wraps, or
a method of the class.
"""

from __future__ import annotations

import atexit
import csv
import inspect
import json
import os
import runpy
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

TARGETS = Path(__file__).parent / "data" / "mindspore_targets.tsv"
_seen: set[CodeType] = set()


def targets() -> list[dict[str, str]]:
    """The rows of the table: name, why no replacement is needed, and what shows this if no training can."""
    with open(TARGETS, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def _note(frame: FrameType, event: str, argument: Any) -> None:
    _seen.add(frame.f_code)


def _object(name: str) -> Any:
    """The object of a dotted name, None if its module was not imported or does not have it."""
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        found: Any = sys.modules.get(".".join(parts[:end]))
        if found is not None:
            for part in parts[end:]:
                found = inspect.getattr_static(found, part, None)
            return found
    return None


def _codes(found: Any, depth: int = 0) -> Iterator[CodeType]:
    """The code objects of a function, of the functions that it wraps, and of the methods of a class."""
    if depth > 6:
        return
    if isinstance(found, (staticmethod, classmethod)):
        found = found.__func__
    if inspect.isclass(found):
        for member in vars(found).values():
            if inspect.isfunction(member) or isinstance(member, (staticmethod, classmethod)):
                yield from _codes(member, depth + 1)
    elif inspect.isfunction(found):
        if (
            not found.__code__.co_flags & inspect.CO_NESTED
        ):  # the code of wrappers is shared by all that they wrap
            yield found.__code__
        for cell in found.__closure__ or ():
            try:
                inner = cell.cell_contents
            except ValueError:  # not filled yet
                continue
            if inspect.isfunction(inner) and not inspect.isclass(inner):
                yield from _codes(inner, depth + 1)


def entered() -> list[str]:
    """The names of which a function has run in this process."""
    return [row["name"] for row in targets() if any(code in _seen for code in _codes(_object(row["name"])))]


def _write(folder: Path) -> None:
    sys.settrace(None)
    told = {"run": os.environ.get("PYTEST_CURRENT_TEST", ""), "entered": entered()}
    (folder / f"{os.getpid()}.json").write_text(json.dumps(told))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    sys.argv = sys.argv[2:]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    atexit.register(_write, folder)
    threading.settrace(_note)
    sys.settrace(_note)
    runpy.run_path(sys.argv[0], run_name="__main__")

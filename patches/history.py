"""Shows what the rules changed in a tree, and which of the changed lines a run executed."""

from __future__ import annotations

import atexit
import difflib
import json
import os
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from .drift import difference
from .manager import original_of, read_manifest
from .rules import PatchError
from .tree import MANIFEST, read_target


def diff(tree: Path) -> str:
    """All changes of a patched tree as one unified diff."""
    manifest = read_manifest(tree)
    parts = []
    for target in manifest["originals"]:
        before, after = _texts(tree, manifest, target)
        parts.append(difference(before, after, (f"a/{target}", f"b/{target}")))
    return "\n".join(parts)


def _texts(tree: Path, manifest: dict, target: str) -> tuple[str, str]:
    """The text of a patched file in upstream's version and in the tree."""
    after = read_target(target, tree, MANIFEST)[0]
    try:
        return original_of(manifest, target).decode("utf-8"), after
    except UnicodeDecodeError as error:
        raise PatchError(f"the original of {target} is not UTF-8 ({error})") from None


def changed_lines(tree: Path) -> dict[str, list[int]]:
    """For each patched file, the numbers of the new or changed lines."""
    manifest = read_manifest(tree)
    found = {}
    for target in manifest["originals"]:
        before, after = (text.splitlines() for text in _texts(tree, manifest, target))
        blocks = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        found[target] = [n + 1 for kind, _, _, a, b in blocks if kind != "equal" for n in range(a, b)]
    return found


def _lines_of(code: CodeType) -> set[int]:
    """The line numbers of a code object and of the code objects inside it."""
    found = {line for _, _, line in code.co_lines() if line is not None}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _lines_of(constant)
    return found


class Tracer:
    """Records which changed lines are executed. Code outside of the patched files runs at full speed."""

    def __init__(self, tree: Path) -> None:
        self.wanted = {
            str((tree / name).resolve()): set(lines) for name, lines in changed_lines(tree).items()
        }
        self.names = {str((tree / name).resolve()): name for name in changed_lines(tree)}
        self.seen: dict[str, set[int]] = {name: set() for name in self.names.values()}

    def _call(self, frame: FrameType, event: str, arg: Any) -> Any:
        name = frame.f_code.co_filename
        if name not in self.wanted:
            return None
        self._line(frame, "line", None)
        return self._line

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            name = frame.f_code.co_filename
            if frame.f_lineno in self.wanted[name]:
                self.seen[self.names[name]].add(frame.f_lineno)
        return self._line

    def start(self) -> None:
        threading.settrace(self._call)
        sys.settrace(self._call)

    def stop(self) -> None:
        sys.settrace(None)
        threading.settrace(None)


def trace(tree: Path, record: Path) -> Tracer:
    """Starts to trace this process. When the process ends, the executed lines are added to the file `record`."""
    tracer = Tracer(tree)
    tracer.start()

    def write() -> None:
        tracer.stop()
        lines = json.dumps({name: sorted(seen) for name, seen in tracer.seen.items()})
        with open(record, "a", encoding="utf-8") as file:
            file.write(lines + "\n")

    atexit.register(write)
    return tracer


def report(tree: Path, record: Path) -> list[dict]:
    """For each rule of the tree: its file, how many of the file's changed lines are executable, and how many were executed."""
    seen: dict[str, set[int]] = {}
    if record.exists():
        for line in record.read_text(encoding="utf-8").splitlines():
            for name, numbers in json.loads(line).items():
                seen.setdefault(name, set()).update(numbers)
    manifest, changed = read_manifest(tree), changed_lines(tree)
    rows = []
    for patch in manifest["patches"]:
        target = patch["target"]
        lines = set(changed[target])
        if target.endswith(".py"):
            source = (tree / target).read_bytes()
            lines &= _lines_of(compile(source, os.fspath(tree / target), "exec", dont_inherit=True))
        rows.append(
            {
                "id": patch["id"],
                "target": target,
                "lines": len(lines),
                "entered": len(lines & seen.get(target, set())),
            }
        )
    return rows

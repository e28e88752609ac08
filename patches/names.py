"""Names of torch that an upstream uses, and those of them that this project lacks: what to look at in a next release."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .rules import PatchError

ROOTS = ("torch", "torch_npu")
_SKIPPED = {"tests", "test", "tests_extend", "docs", "ci", ".git", "__pycache__"}

# Runs in a process of its own, in which `import torch` gives this project. It prints {name: why it does not resolve}.
_RESOLVE = r"""
import importlib, json, sys
import msadapter
msadapter.install()
wrong = {}
for name in json.load(sys.stdin):
    first, *rest = name.split(".")
    path = first
    try:
        found = importlib.import_module(first)
        for part in rest:
            if found is None:  # such as torch.version.cuda
                break
            path += "." + part
            if not hasattr(found, part):
                importlib.import_module(path)
            found = getattr(found, part)
    except ModuleNotFoundError as error:
        wrong[name] = "there is no such name" if error.name == path else str(error)
    except Exception as error:  # whatever an import raises is the answer
        wrong[name] = f"{type(error).__name__}: {error}".splitlines()[0]
print("wrong", json.dumps(wrong))
"""


@dataclass(frozen=True)
class Use:
    """The first use of a name. guarded: every use is in a `try` or behind `hasattr`, so the program may do without it."""

    place: str
    guarded: bool


class _Uses(ast.NodeVisitor):
    """Collects the dotted names under torch in one file, with its imports followed."""

    def __init__(self) -> None:
        self.bound = {root: root for root in ROOTS}
        self.found: dict[str, tuple[int, bool]] = {}
        self.depth = 0

    def _add(self, name: str, line: int) -> None:
        if name.split(".")[0] in ROOTS:
            before = self.found.get(name)
            self.found[name] = (
                before[0] if before else line,
                self.depth > 0 and (before is None or before[1]),
            )

    def visit_Import(self, node: ast.Import) -> None:
        for one in node.names:
            self.bound[one.asname or one.name.split(".")[0]] = (
                one.name if one.asname else one.name.split(".")[0]
            )
            self._add(one.name, node.lineno)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for one in node.names:
            if node.module and not node.level and one.name != "*":
                self.bound[one.asname or one.name] = f"{node.module}.{one.name}"
                self._add(f"{node.module}.{one.name}", node.lineno)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        name = self._dotted(node)
        if name is None:
            self.generic_visit(node)
        elif isinstance(node.ctx, ast.Load):
            self._add(name, node.lineno)

    def _dotted(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Attribute):
            before = self._dotted(node.value)
            return before and f"{before}.{node.attr}"
        return self.bound.get(node.id) if isinstance(node, ast.Name) else None

    def _guarded(self, node: ast.AST) -> None:
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1

    def visit_Try(self, node: ast.Try) -> None:
        self._guarded(node)

    def visit_If(self, node: ast.If) -> None:
        asks = (n for n in ast.walk(node.test) if isinstance(n, ast.Name) and n.id in ("hasattr", "getattr"))
        self._guarded(node) if next(asks, None) else self.generic_visit(node)


def used(tree: Path) -> dict[str, Use]:
    """The names of torch that the Python files of a tree use, without those of its tests.

    Raises:
        PatchError: a file is not Python.
    """
    found: dict[str, Use] = {}
    for path in sorted(tree.rglob("*.py")):
        relative = path.relative_to(tree)
        if _SKIPPED & set(relative.parts):
            continue
        try:
            parsed = ast.parse(path.read_bytes(), str(path))
        except (SyntaxError, ValueError) as error:
            raise PatchError(f"{path} does not parse: {error}") from None
        uses = _Uses()
        uses.visit(parsed)
        for name, (line, guarded) in uses.found.items():
            before = found.get(name)
            place = before.place if before else f"{relative.as_posix()}:{line}"
            found[name] = Use(place, guarded and (before is None or before.guarded))
    return found


def new_names(tree: Path, since: Path | None) -> dict[str, Use]:
    """The names that a tree uses and the tree `since` (default: none) does not."""
    old = used(since) if since is not None else {}
    return {name: use for name, use in used(tree).items() if name not in old}


def missing(names: Iterable[str]) -> Mapping[str, str]:
    """Those of the names that this project does not have, with the error that each raises.

    Raises:
        PatchError: msadapter cannot be imported.
    """
    run = subprocess.run(
        [sys.executable, "-c", _RESOLVE], input=json.dumps(sorted(names)), capture_output=True, text=True
    )
    answer = [line for line in run.stdout.splitlines() if line.startswith("wrong ")]
    if not answer:
        raise PatchError(
            f"the names cannot be looked up, because msadapter does not start:\n{run.stderr[-800:]}"
        )
    return dict(json.loads(answer[-1].removeprefix("wrong ")))

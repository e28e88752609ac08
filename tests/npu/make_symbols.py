"""Writes data/symbols.tsv: what MindSpeed and MindSpeed-LLM use of torch_npu, torch.npu, torch.ops and their own extensions.

    python tests/npu/make_symbols.py <MindSpeed checkout, 2.3.0> <MindSpeed-LLM checkout, 2.3.0>

Columns: the symbol, its uses in MindSpeed, in MindSpeed-LLM, and, where it is called, the most positional arguments that a call
gives and every keyword that one gives. Symbols are

- dotted names under torch_npu, torchair, torch.npu, torch.ops.npu and torch.ops.mindspeed, imports followed;
- mindspeed.<extension>.<function>: what is taken from the result of an op builder's load().
"""

from __future__ import annotations

import ast
import collections
import sys
from pathlib import Path

ROOTS = ("torch_npu", "torchair", "torch.npu", "torch.ops.npu", "torch.ops.mindspeed")
SKIPPED = {"tests", "tests_extend", "ci", "docs"}


def trees(root: Path):
    """The syntax trees of a checkout's Python files, except for its tests."""
    for path in sorted(root.rglob("*.py")):
        if not SKIPPED & set(path.relative_to(root).parts):
            yield ast.parse(path.read_text(encoding="utf-8"))


def extensions(root: Path) -> dict[str, str]:
    """The extension of each builder class."""
    found = {}
    for tree in trees(root):
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                for line in node.body:
                    if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) in ("OP_NAME", "NAME"):
                        found[node.name] = ast.literal_eval(line.value)
    return found


class Uses(ast.NodeVisitor):
    """Counts the symbols of one file."""

    def __init__(self, builders: dict[str, str]):
        self.builders = builders
        self.names: dict[str, str] = {"torch": "torch"}  # of the file, and what they stand for
        self.made: dict[str, str] = {}  # names of builders, and their extensions
        self.loaded: dict[str, str] = {}  # names of what they loaded
        self.found: collections.Counter = collections.Counter()
        self.calls: dict[str, tuple[int, set[str]]] = {}  # most positional arguments, keywords

    def visit_Import(self, node):
        for one in node.names:
            if one.asname:
                self.names[one.asname] = one.name
            else:
                self.names[one.name.split(".")[0]] = one.name.split(".")[0]
            self.count(one.name)

    def visit_ImportFrom(self, node):
        for one in node.names:
            name = f"{node.module}.{one.name}"
            self.names[one.asname or one.name] = name
            self.count(name)

    def visit_Assign(self, node):
        extension = self.builder_of(node.value)
        loaded = self.extension_of(node.value)
        for target in node.targets:
            last = ast.unparse(target).split(".")[-1]
            if extension:
                self.made[last] = extension
            if loaded:
                self.loaded[last] = loaded
        self.generic_visit(node)

    def builder_of(self, node) -> str | None:
        """The extension of the builder that an expression creates."""
        if isinstance(node, ast.Call) and not node.args:
            return self.builders.get(ast.unparse(node.func).split(".")[-1])
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self.made.get(ast.unparse(node).split(".")[-1])
        return None

    def extension_of(self, node) -> str | None:
        """The extension that an expression has loaded."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "load":
            return self.builder_of(node.func.value)
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self.loaded.get(ast.unparse(node).split(".")[-1])
        return None

    def symbol(self, node) -> str | None:
        if isinstance(node, ast.Attribute):
            extension = self.extension_of(node.value)
            if extension:
                return f"mindspeed.{extension}.{node.attr}"
            before = self.symbol(node.value)
            return before and f"{before}.{node.attr}"
        return self.names.get(node.id) if isinstance(node, ast.Name) else None

    def count(self, name: str | None) -> bool:
        wanted = name and (
            name.startswith("mindspeed.")
            and name.count(".") == 2
            and name.split(".")[1] in self.builders.values()
        )
        if name and (wanted or any(name.startswith(root + ".") for root in ROOTS)):
            self.found[name] += 1
            return True
        return False

    def visit_Call(self, node):
        name = self.symbol(node.func)
        if name:
            most, keywords = self.calls.get(name, (0, set()))
            given = 0 if any(isinstance(x, ast.Starred) for x in node.args) else len(node.args)
            self.calls[name] = max(most, given), keywords | {x.arg for x in node.keywords if x.arg}
        self.generic_visit(node)

    def visit_Attribute(self, node):
        if not self.count(self.symbol(node)):
            self.generic_visit(node)

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Load) and "." in self.names.get(node.id, ""):
            self.count(self.names[node.id])


def main(*roots: str) -> None:
    counts: list[collections.Counter] = []
    calls: dict[str, tuple[int, set[str]]] = {}
    builders = extensions(Path(roots[0]))
    for root in roots:
        counts.append(collections.Counter())
        for tree in trees(Path(root)):
            uses = Uses(builders)
            uses.visit(tree)
            counts[-1] += uses.found
            for name, (most, keywords) in uses.calls.items():
                before = calls.get(name, (0, set()))
                calls[name] = max(most, before[0]), keywords | before[1]
    target = Path(__file__).parent / "data/symbols.tsv"
    rows = ["symbol\tMindSpeed 2.3.0\tMindSpeed-LLM 2.3.0\tcalled with"]
    for name in sorted(set().union(*counts)):
        most, keywords = calls.get(name, ("", set()))
        rows.append(
            "\t".join(
                [name, *(str(c[name]) for c in counts), " ".join([str(most), *sorted(keywords)])]
            ).rstrip()
        )
    target.write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The modules that source code imports."""

from __future__ import annotations

import ast


def absolute_name(name: str, package: str, level: int) -> str:
    """Return the whole name of a module that is imported with ``level`` leading dots inside of ``package``.

    Raises:
        ValueError: there are more dots than packages.
    """
    parts = package.rsplit(".", level - 1)
    if len(parts) < level:
        raise ValueError("attempted relative import beyond top-level package")
    return f"{parts[0]}.{name}" if name else parts[0]


class _Finder(ast.NodeVisitor):
    def __init__(self, package: str):
        self._package = package
        self.found: dict[tuple[str, str | None], None] = {}

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.found[alias.name, None] = None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        name = node.module or ""
        if node.level:
            name = absolute_name(name, self._package, node.level)
        for alias in node.names:
            self.found[name, None if alias.name == "*" else alias.name] = None

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id == "__import__" and node.args:
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                self._called(first.value, node)
        self.generic_visit(node)

    def _called(self, name: str, node: ast.Call) -> None:
        """Note what a call of __import__ with a constant name imports. Without a fromlist, it is the top package too."""
        given = {word.arg: word.value for word in node.keywords}
        given |= dict(zip(("name", "globals", "locals", "fromlist", "level"), node.args, strict=False))
        names = [e.value for e in getattr(given.get("fromlist"), "elts", []) if isinstance(e, ast.Constant)]
        level = getattr(given.get("level"), "value", 0)
        name = absolute_name(name, self._package, level) if level else name
        for one in names:
            self.found[name, None if one == "*" else one] = None
        if not names:
            self.found[name, None] = None
            self.found[name.partition(".")[0], None] = None


def references(source: str, package: str) -> list[tuple[str, str | None]]:
    """Return pairs (module, name) of all imports in source code; the name is None if the module itself is imported.

    Args:
        package: the package of the code, for relative imports.

    Raises:
        SyntaxError: the source is no Python.
    """
    finder = _Finder(package)
    finder.visit(ast.parse(source))
    return list(finder.found)

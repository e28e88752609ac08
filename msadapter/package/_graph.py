"""The modules and pickles of an archive, and which of them needs which."""

from __future__ import annotations

from collections import deque
from typing import Any


class DependencyGraph:
    """A directed graph. An edge leads from what needs something to what it needs.

    Attributes:
        nodes: the facts about each node.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, Any]] = {}
        self._needs: dict[str, dict[str, None]] = {}
        self._needed_by: dict[str, dict[str, None]] = {}

    def add_node(self, name: str, **facts: Any) -> None:
        """Add a node, or facts to a node."""
        self.nodes.setdefault(name, {}).update(facts)
        self._needs.setdefault(name, {})
        self._needed_by.setdefault(name, {})

    def add_edge(self, user: str, used: str) -> None:
        """Note that one node needs another one."""
        self.add_node(user)
        self.add_node(used)
        self._needs[user][used] = None
        self._needed_by[used][user] = None

    def __contains__(self, name: str) -> bool:
        return name in self.nodes

    @property
    def edges(self) -> list[tuple[str, str]]:
        """Return all edges."""
        return [(user, used) for user, row in self._needs.items() for used in row]

    def users(self, name: str) -> list[str]:
        """Return the nodes that need a node."""
        return list(self._needed_by.get(name, {}))

    def _reached(self, start: str, edges: dict[str, dict[str, None]]) -> set[str]:
        found, waiting = {start}, deque([start])
        while waiting:
            new = [n for n in edges.get(waiting.popleft(), {}) if n not in found]
            found.update(new)
            waiting.extend(new)
        return found

    def first_path(self, name: str) -> list[str]:
        """Return a chain of nodes of which each needs the next, from one that nothing needs to ``name``."""
        path = [name]
        while True:
            before = next((user for user in self.users(path[0]) if user not in path), None)
            if before is None:
                return path
            path.insert(0, before)

    def dot(self, kept: set[str] | None = None) -> str:
        """Return the graph in the language of graphviz.

        Args:
            kept: the nodes to show, all by default.
        """
        edges = [f'"{a}" -> "{b}";' for a, b in self.edges if kept is None or (a in kept and b in kept)]
        return "digraph G {\nrankdir = LR;\nnode [shape=box];\n" + "\n".join(edges) + "\n}\n"

    def between(self, source: str, target: str) -> set[str]:
        """Return the nodes on all paths from one node to another."""
        return self._reached(source, self._needs) & self._reached(target, self._needed_by)

"""Finds the places of a graph that do what a pattern does."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from ....tensor import Tensor
from ...graph import Graph
from ...graph_module import _read
from ...node import Node

__all__ = ["InternalMatch", "SubgraphMatcher"]
logger = logging.getLogger(__name__)


@dataclass
class InternalMatch:
    """A place that does what the pattern does.

    Attributes:
        anchors: the last nodes of the pattern.
        nodes_map: node of the pattern -> node of the graph, or a value where the pattern has an input.
        placeholder_nodes: what stands in the place of the pattern's inputs, in their order.
        returning_nodes: what stands in the place of its results.
        name_node_map: name -> node, for patterns that name their nodes.
    """

    anchors: list[Node]
    nodes_map: dict = field(default_factory=dict)
    placeholder_nodes: list = field(default_factory=list)
    returning_nodes: list = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)


class SubgraphMatcher:
    """Finds the places of graphs that do what a pattern does.

    Args:
        pattern: the graph to look for.
        match_output: whether the place must be the end of the graph.
        match_placeholder: whether inputs of the pattern fit inputs of the graph alone, instead of any value.
        remove_overlapping_matches: whether a node belongs to one place at most, the first one.
        ignore_literals: whether constants may be other ones than in the pattern.
    """

    def __init__(self, pattern: Graph, match_output=False, match_placeholder=False, remove_overlapping_matches=True,
                 ignore_literals=False):  # fmt: skip
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        if any(n.op != "output" and not n.is_impure() and not n.users for n in pattern.nodes):
            raise AssertionError("SubgraphMatcher cannot be initialized with an pattern with dead code")
        self.pattern = pattern
        self.match_output, self.match_placeholder = match_output, match_placeholder
        self.remove_overlapping_matches, self.ignore_literals = remove_overlapping_matches, ignore_literals
        self.pattern_placeholder_nodes = [n for n in pattern.nodes if n.op == "placeholder"]
        output = next(iter(reversed(pattern.nodes)))
        self.pattern_returning_nodes = output.all_input_nodes
        # The search begins at results that nothing else in the pattern uses, and goes from there to the inputs.
        ends = [n for n in output.all_input_nodes if len(n.users) == 1]
        self.pattern_anchors = [output] if match_output else ends

    def _match_attributes(self, pn: Node, gn: Node) -> bool:
        """Return whether both nodes read tensors. Which ones does not count."""
        ours, theirs = (_read(n.graph.owning_module, n.target) for n in (pn, gn))
        if type(ours) is not type(theirs):
            return False
        if not isinstance(ours, Tensor):
            raise RuntimeError(f"Unsupported type {ours} when matching attributes")
        return True

    def _nodes_are_equal(self, pn: Node, gn: Node, node_name_match: str = "") -> bool:
        """Return whether two nodes do the same, whatever their arguments are."""
        if not self.match_placeholder and pn.op == "placeholder":
            return True
        if node_name_match and node_name_match in gn.name:
            return True
        if pn.op != gn.op:
            return False
        if pn.op == "get_attr":
            return self._match_attributes(pn, gn)
        return pn.op in ("placeholder", "output") or pn.target == gn.target

    def _match_values(self, pattern, ours, found: dict) -> bool:
        """Return whether an argument of the pattern fits one of the graph. Nodes that fit are added to `found`."""
        if isinstance(pattern, Node) and isinstance(ours, Node):
            return self._match_nodes(pattern, ours, found)
        if isinstance(pattern, (list, tuple)) and isinstance(ours, (list, tuple)):
            return len(pattern) == len(ours) and all(
                self._match_values(p, o, found) for p, o in zip(pattern, ours, strict=True)
            )
        return self._match_literals(pattern, ours, found) or self.ignore_literals

    def _match_literals(self, pattern, ours, found: dict) -> bool:
        if isinstance(pattern, Node):
            if pattern.op != "placeholder":
                return False
            return found.setdefault(pattern, ours) == ours
        return not isinstance(ours, Node) and type(ours) is type(pattern) and ours == pattern

    def _match_nodes(self, pn: Node, gn: Node, found: dict, node_name_match: str = "") -> bool:
        """Return whether two nodes and everything before them fit. If not, `found` may have nodes too many."""
        if pn in found:
            return found[pn] is gn
        if any(gn is other for other in found.values()) or not self._nodes_are_equal(pn, gn, node_name_match):
            return False
        found[pn] = gn
        if pn.op == "placeholder":
            return True
        if len(pn.args) != len(gn.args) or list(pn.kwargs) != list(gn.kwargs):
            return False
        ours = (*gn.args, *gn.kwargs.values())
        return self._match_values((*pn.args, *pn.kwargs.values()), ours, found)

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """Return the places of a graph that do what the pattern does.

        No node of a place is used elsewhere, but those of its results. Nothing outside a place is both behind and before it.

        Args:
            node_name_match: a text. A node with this text in its name fits the last nodes of the pattern, whatever it does.
        """
        found: list[dict] = [{}] if self.pattern_anchors else []
        for anchor in self.pattern_anchors:
            candidates = [n for n in graph.nodes if self._nodes_are_equal(anchor, n, node_name_match)]
            if not candidates:
                continue
            extended = []
            for before in found:
                for node in candidates:
                    after = dict(before)
                    if self._match_nodes(anchor, node, after, node_name_match):
                        extended.append(after)
            found = extended
        matches = [self._finished(nodes) for nodes in found if nodes]
        matches = [m for m in matches if self._is_contained(m.nodes_map) and validate_partition(_computed(m))]
        return self._without_overlaps(matches) if self.remove_overlapping_matches else matches

    def _finished(self, nodes_map: dict) -> InternalMatch:
        return InternalMatch(
            self.pattern_anchors,
            nodes_map,
            [nodes_map[pn] for pn in self.pattern_placeholder_nodes],
            [nodes_map[pn] for pn in self.pattern_returning_nodes],
        )

    def _is_contained(self, nodes_map: dict) -> bool:
        inside = {gn: pn for pn, gn in nodes_map.items() if pn.op != "placeholder"}
        return all(
            user in inside
            for gn, pn in inside.items()
            if pn not in self.pattern_returning_nodes
            for user in gn.users
        )

    def _without_overlaps(self, matches: list[InternalMatch]) -> list[InternalMatch]:
        taken: set[Node] = set()
        kept = []
        for match in matches:
            nodes = _computed(match)
            if taken.isdisjoint(nodes):
                kept.append(match)
                taken.update(nodes)
        return kept


def _computed(match: InternalMatch) -> list[Node]:
    """Return the nodes of a place, without those that stand for inputs and the output."""
    return [gn for pn, gn in match.nodes_map.items() if pn.op not in ("placeholder", "output")]


def validate_partition(partition: list[Node]) -> bool:
    """Return whether nodes can become one node: no path leaves them and comes back."""
    inside = set(partition)
    waiting = [user for node in inside for user in node.users if user not in inside]
    seen: set[Node] = set()
    while waiting:
        node = waiting.pop()
        if node in inside:
            return False
        if node not in seen:
            seen.add(node)
            waiting += node.users
    return True

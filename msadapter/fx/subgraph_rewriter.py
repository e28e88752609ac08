"""Replaces the parts of a graph that match a pattern."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import NamedTuple

from .. import nn
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule, _found
from .node import Node
from .passes.utils.matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """A match of a pattern: its last node, and the graph's node for each node of the pattern."""

    anchor: Node
    nodes_map: dict


@dataclass
class ReplacedPatterns:
    """A match, and the nodes that took its place."""

    anchor: Node
    nodes_map: dict
    replacements: list[Node]


def _graph_of(x) -> Graph:
    if isinstance(x, Graph):
        return x
    return x.graph if isinstance(x, GraphModule) else symbolic_trace(x).graph


def replace_pattern(gm: GraphModule, pattern, replacement) -> list[Match]:
    """Replace every part of the graph that does what ``pattern`` does by ``replacement``.

    Both are functions or modules with the same inputs and the same number of results. Of overlapping places the first one is
    replaced.
    """
    made = replace_pattern_with_filters(gm, pattern, replacement)
    return [Match(m.anchor, m.nodes_map) for m in made]


def replace_pattern_with_filters(gm: GraphModule, pattern, replacement=None, match_filters=None, ignore_literals=False,
                                 replacement_callback=None, node_name_match="") -> list[ReplacedPatterns]:  # fmt: skip
    """Replace parts of a graph as `replace_pattern` does, with a choice of the matches and of the replacement.

    Args:
        match_filters: functions of a match, the graph and the pattern's graph. A match is replaced if all of them are true.
        ignore_literals: whether constants may be other ones than in the pattern.
        replacement_callback: a function of the same arguments that returns the graph to put for a match.
        node_name_match: a text in the names of the last nodes of the places.
    """
    graph, wanted = gm.graph, _graph_of(pattern)
    matcher = SubgraphMatcher(wanted, ignore_literals=ignore_literals)
    matches = [
        match
        for match in matcher.match(graph, node_name_match)
        if all(accepts(match, graph, wanted) for accepts in match_filters or ())
    ]
    if replacement is None and replacement_callback is None:
        raise AssertionError("Must provide either a replacement GraphModule or a replacement callback")
    put = None if replacement is None else _graph_of(replacement)
    renamed: dict[Node, Node] = {}  # a result of a replaced match -> the node that computes it now
    made = []
    for match in matches:
        if replacement_callback is not None:
            put = replacement_callback(match, graph, wanted)
        made.append(_replace(graph, wanted, put, match, renamed))
    gm.recompile()
    if isinstance(replacement, nn.Module):
        _take_attributes(gm, replacement)
    return made


def _replace(
    graph: Graph, wanted: Graph, put: Graph, match: InternalMatch, renamed: dict
) -> ReplacedPatterns:
    inputs = [n for n in put.nodes if n.op == "placeholder"]
    if len(match.placeholder_nodes) != len(inputs):
        raise AssertionError(f"Placeholder count mismatch: {len(match.placeholder_nodes)} vs {len(inputs)}")
    match.nodes_map.update({p: renamed[n] for p, n in match.nodes_map.items() if _is_key(n, renamed)})
    match.placeholder_nodes = [renamed[n] if _is_key(n, renamed) else n for n in match.placeholder_nodes]
    values = dict(zip(inputs, match.placeholder_nodes, strict=True))
    with graph.inserting_before(_first_user(graph, match.returning_nodes)):
        results = graph.graph_copy(put, values)
    results = (results,) if isinstance(results, Node) else results
    if len(match.returning_nodes) != len(results):
        raise AssertionError(
            f"Returning nodes count mismatch: {len(match.returning_nodes)} vs {len(results)}"
        )
    added = [node for node in values.values() if not any(node is given for given in match.placeholder_nodes)]
    for old, new in zip(match.returning_nodes, results, strict=True):
        old.replace_all_uses_with(new)
        renamed[old] = new
    for node in reversed(wanted.nodes):
        if node.op not in ("placeholder", "output"):
            graph.erase_node(match.nodes_map[node])
    return ReplacedPatterns(match.anchors[0], match.nodes_map, added)


def _is_key(node, renamed: dict) -> bool:
    return isinstance(node, Node) and node in renamed


def _first_user(graph: Graph, nodes: list[Node]) -> Node:
    """Return the first node that uses one of these; the node behind the last of them, if none does."""
    users = {user for node in nodes for user in node.users}
    if users:
        return next(node for node in graph.nodes if node in users)
    last = next(node for node in reversed(graph.nodes) if node in nodes)
    if last.next.op == "root":
        raise AssertionError("The insert point can't be None")
    return last.next


def _take_attributes(gm: GraphModule, replacement) -> None:
    """Give a module what its new nodes read or call, from the module that was put into it."""
    gm.delete_all_unused_submodules()
    if isinstance(replacement, GraphModule):
        replacement.graph.lint()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr") or _found(gm, node.target) is not None:
            continue
        given = _found(replacement, node.target)
        if given is None:
            raise RuntimeError(
                'Attempted to create a "',
                node.op,
                f'" node during subgraph rewriting with target {node.target}, but the referenced attribute does not exist in '
                "the replacement GraphModule",
            )
        if isinstance(given, nn.Module):
            gm.add_submodule(node.target, copy.deepcopy(given))
        else:
            setattr(gm, node.target, copy.deepcopy(given))
    gm.graph.lint()

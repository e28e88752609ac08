"""Replaces the parts of a graph that match a pattern."""

from __future__ import annotations

from typing import NamedTuple

from .._errors import unsupported
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule, _assign, _read
from .node import Node, map_arg

__all__ = ["Match", "replace_pattern"]


class Match(NamedTuple):
    """A match of a pattern: its last node, and the graph's node for each node of the pattern."""

    anchor: Node
    nodes_map: dict


def _graph_of(x) -> Graph:
    if isinstance(x, Graph):
        return x
    return x.graph if isinstance(x, GraphModule) else symbolic_trace(x).graph


def _matches(pattern, ours, found: dict) -> bool:
    """Return whether an argument of the pattern matches one of the graph. Matched nodes are added to ``found``."""
    if isinstance(pattern, Node):
        if not isinstance(ours, Node):
            return False if pattern.op != "placeholder" else _note(pattern, ours, found)
        if pattern in found:
            return found[pattern] is ours
        if pattern.op == "placeholder":
            return _note(pattern, ours, found)
        if (pattern.op, pattern.target) != (ours.op, ours.target):
            return False
        found[pattern] = ours
        return _matches(pattern.args, ours.args, found) and _matches(pattern.kwargs, ours.kwargs, found)
    if isinstance(pattern, (tuple, list)):
        if not isinstance(ours, (tuple, list)) or len(pattern) != len(ours):
            return False
        return all(_matches(p, o, found) for p, o in zip(pattern, ours, strict=True))
    if isinstance(pattern, dict):
        if not isinstance(ours, dict) or pattern.keys() != ours.keys():
            return False
        return all(_matches(v, ours[k], found) for k, v in pattern.items())
    return type(pattern) is type(ours) and pattern == ours


def _note(pattern, ours, found) -> bool:
    if pattern in found:
        return found[pattern] is ours
    found[pattern] = ours
    return True


def _outputs(graph) -> list:
    made: list = []
    map_arg(graph.output_node().args[0], made.append)
    return made


def _contained(found: dict, last) -> bool:
    """Return whether no node outside the match uses a matched node other than the last one."""
    inside = {ours for p, ours in found.items() if p.op != "placeholder"}
    return all(user in inside for node in inside if node is not last for user in node.users)


def replace_pattern(gm: GraphModule, pattern, replacement) -> list[Match]:
    """Replaces every part of the graph that does what ``pattern`` does by ``replacement``.

    Both are functions or modules with the same inputs and one result. Overlapping places are replaced once.
    """
    wanted, put = _graph_of(pattern), _graph_of(replacement)
    ends = _outputs(wanted)
    if len(ends) != 1:
        raise unsupported("torch.fx.replace_pattern", "patterns of several results are not supported")
    inputs = [n for n in wanted.nodes if n.op == "placeholder"]
    new_inputs = [n for n in put.nodes if n.op == "placeholder"]
    matches, taken = [], set()
    for node in list(gm.graph.nodes):
        found: dict = {}
        if node.op in ("placeholder", "output") or not _matches(ends[0], node, found):
            continue
        inside = {ours for p, ours in found.items() if p.op != "placeholder"}
        if inside & taken or not _contained(found, node):
            continue
        taken |= inside
        matches.append(Match(node, found))
    renamed: dict = {}
    for match in matches:
        values = {}
        for old, new in zip(inputs, new_inputs, strict=True):
            given = match.nodes_map.get(old)
            values[new] = renamed.get(given, given) if isinstance(given, Node) else given
        with gm.graph.inserting_before(match.anchor):
            result = gm.graph.graph_copy(put, values)
        match.anchor.replace_all_uses_with(result)
        renamed[match.anchor] = result
    for match in matches:
        for node in [n for p, n in reversed(list(match.nodes_map.items())) if p.op != "placeholder"]:
            if not node._erased and not node.users:
                gm.graph.erase_node(node)
    gm.graph.eliminate_dead_code()
    if isinstance(replacement, GraphModule):
        for node in put.nodes:
            if node.op in ("get_attr", "call_module"):
                _assign(node.target, _read(replacement, node.target), gm)
    gm.recompile()
    return matches

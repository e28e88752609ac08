"""Patterns that name their nodes."""

from __future__ import annotations

from ....utils import _pytree as pytree
from ..._codegen import PyTreeCodeGen
from ...graph import Graph
from ...graph_module import GraphModule
from .matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["SubgraphMatcherWithNameNodeMap"]


def _split_to_graph_and_name_node_map(gm: GraphModule) -> tuple[GraphModule, dict]:
    """Take the names out of a pattern's results. Return the pattern and the names."""
    output, codegen = gm.graph.output_node(), gm.graph._codegen
    has_spec = isinstance(codegen, PyTreeCodeGen) and codegen.pytree_info.out_spec is not None
    results = output.args[0]
    if has_spec:
        results = pytree.tree_unflatten(list(results), codegen.pytree_info.out_spec)
    if not isinstance(results, tuple):
        raise AssertionError("Expecting the pattern graph to return a tuple")
    if len(results) < 2:
        raise AssertionError("Expecting the pattern graph to have at least two outputs")
    *rest, named = results
    if not isinstance(named, dict):
        raise AssertionError("Expecting the input graph to have a dict output as the last element")
    flat, spec = pytree.tree_flatten(rest)
    output.args = (flat,)
    if has_spec:
        codegen.pytree_info = codegen.pytree_info._replace(out_spec=spec)
    gm.recompile()
    return gm, dict(named)


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """Finds places of a pattern whose last result is a dict with names of its nodes. Each match has the nodes by these names."""

    def __init__(self, pattern_gm: GraphModule, match_output=False, match_placeholder=False, remove_overlapping_matches=True,
                 ignore_literals=False):  # fmt: skip
        pattern_gm, self.name_node_map = _split_to_graph_and_name_node_map(pattern_gm)
        super().__init__(
            pattern_gm.graph, match_output, match_placeholder, remove_overlapping_matches, ignore_literals
        )

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        matches = super().match(graph, node_name_match)
        for match in matches:
            match.name_node_map = {name: match.nodes_map[n] for name, n in self.name_node_map.items()}
        return matches

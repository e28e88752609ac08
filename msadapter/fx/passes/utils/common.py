"""A part of a graph as a module of its own."""

from __future__ import annotations

from .... import nn
from ...graph import Graph
from ...graph_module import GraphModule
from .matcher_utils import SubgraphMatcher

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


class HolderModule(nn.Module):
    """A module that only has others, under the names that the code of a graph reads."""

    def __init__(self, d: dict):
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def lift_subgraph_as_module(
    gm: GraphModule, subgraph: Graph, comp_name: str = "", class_name: str = "GraphModule"
) -> tuple[GraphModule, dict[str, str]]:
    """Return a module for a graph of copied nodes, which reads the attributes of the module that they come from.

    Returns:
        the module, and a dict: path of an attribute in `gm` -> its path with the name of the component before it.
    """
    holder = HolderModule({})
    paths: dict[str, str] = {}
    for node in subgraph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        *path, leaf = node.target.split(".")
        source, at = gm, holder
        for part in path:
            if not hasattr(at, part):
                at.add_module(part, HolderModule({}))
            source, at = getattr(source, part), getattr(at, part)
        paths[node.target] = f"{comp_name}.{node.target}"
        setattr(at, leaf, getattr(source, leaf))
    return GraphModule(holder, subgraph, class_name), paths


def compare_graphs(left: Graph, right: Graph) -> bool:
    """Return whether two graphs have the same inputs, nodes, connections and results."""
    return bool(SubgraphMatcher(left, match_output=True, match_placeholder=True).match(right))

"""Replaces nodes of a graph by the call of a module that does what they do."""

from __future__ import annotations

import copy

from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node
from ...proxy import Proxy
from ..tools_common import stable_topological_sort, topo_sort
from .common import lift_subgraph_as_module
from .matcher_utils import validate_partition

__all__ = [
    "erase_nodes",
    "fuse_as_graphmodule",
    "fuse_by_partitions",
    "insert_subgm",
    "topo_sort",
    "validate_partition",
]


class _Copied:
    """A graph with copies of nodes. What they read from outside becomes inputs."""

    def __init__(self, nodes):
        self.graph, self.copies, self.inputs = Graph(), {}, {}
        for node in nodes:
            self.copies[node] = self.graph.node_copy(node, self._input)

    def _input(self, x: Node) -> Node:
        if x in self.copies:
            return self.copies[x]
        if x not in self.inputs:
            self.inputs[x] = self.graph.placeholder(x.name, type_expr=x.type)
            self.inputs[x].meta = copy.copy(x.meta)
        return self.inputs[x]


def fuse_as_graphmodule(
    gm: GraphModule,
    nodes: list[Node],
    module_name: str,
    partition_lookup_table=None,
    *,
    always_return_tuple=False,
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:
    """Return a module that does what nodes of `gm` do, its inputs, and the nodes that it replaces outside.

    Args:
        nodes: in an order in which inputs come first.
        module_name: the name of its class.
        partition_lookup_table: the same nodes as the keys of a dict.
        always_return_tuple: whether one result is a tuple too.
    """
    for node in nodes:
        if node.graph.owning_module is not gm:
            raise AssertionError(f"{node} doesn't belong to passed in graph module {gm._get_name()}")
        if node._erased:
            raise AssertionError(f"{node} has been removed from owning graph")
    if not validate_partition(nodes):
        raise AssertionError("Invalid partition, found dependency cycles")
    inside = dict.fromkeys(nodes) if partition_lookup_table is None else partition_lookup_table
    copied = _Copied(nodes)
    outputs = [node for node in nodes if any(user not in inside for user in node.users)]
    results = tuple(copied.copies[node] for node in outputs)
    copied.graph.output(results[0] if len(results) == 1 and not always_return_tuple else results)
    copied.graph.lint()
    made, _ = lift_subgraph_as_module(gm, copied.graph, comp_name="", class_name=module_name)
    return made, tuple(copied.inputs), tuple(outputs)


def insert_subgm(
    gm: GraphModule, sub_gm: GraphModule, orig_inputs, orig_outputs, insertion_point=None
) -> GraphModule:
    """Add a module to `gm`, and let it compute what the nodes `orig_outputs` computed.

    Args:
        insertion_point: the node behind which it is called; the last one of `orig_outputs` by default.
    """
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    if insertion_point is None:
        insertion_point = next((n for n in reversed(gm.graph.nodes) if n in orig_outputs), None)
    if insertion_point is None:
        raise AssertionError(
            "Cannot determine insertion point: no insertion_point provided and orig_outputs is empty. Pass the last partition "
            "node as insertion_point."
        )
    with gm.graph.inserting_after(insertion_point):
        call = gm.graph.call_module(name, args=tuple(orig_inputs))
    if not orig_outputs:
        return gm
    if len(orig_outputs) == 1 and not isinstance(sub_gm.graph.output_node().args[0], tuple):
        orig_outputs[0].replace_all_uses_with(call, propagate_meta=True)
        return gm
    with gm.graph.inserting_before(call.next):
        for i, node in enumerate(orig_outputs):
            node.replace_all_uses_with(Proxy(call)[i].node, propagate_meta=True)
    call.meta["val"] = tuple(node.meta.get("val") for node in orig_outputs)
    return gm


def erase_nodes(gm: GraphModule, nodes: list[Node]) -> None:
    """Remove nodes that are given in an order in which inputs come first."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(
    gm: GraphModule, partitions: list[dict], prefix: str = "fused_", always_return_tuple: bool = False
) -> GraphModule:
    """Replace each partition, nodes as the keys of a dict, by the call of a module of this prefix and a number."""
    for number, partition in enumerate(partitions):
        nodes = topo_sort(list(partition))
        made, inputs, outputs = fuse_as_graphmodule(
            gm, nodes, f"{prefix}{number}", partition, always_return_tuple=always_return_tuple
        )
        insert_subgm(gm, made, inputs, outputs, nodes[-1])
        erase_nodes(gm, nodes)
    stable_topological_sort(gm)
    gm.graph.lint()
    return gm

"""What several passes need: the names of what nodes call, the tensors of a node, and the order of nodes."""

from __future__ import annotations

import collections
import heapq
from dataclasses import dataclass, field

from ...tensor import Tensor
from .._qualified import qualified_name
from ..graph_module import GraphModule
from ..node import Node

__all__ = [
    "FxNetAccFusionsFinder",
    "NodeEvent",
    "get_acc_ops_name",
    "get_node_target",
    "is_node_output_tensor",
    "legalize_graph",
    "stable_topological_sort",
]
Tensors = tuple[Tensor, ...] | list[Tensor]
TensorOrTensors = Tensor | Tensors
NodeList = list[Node]
NodeSet = set[Node]
Names = list[str]
CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


@dataclass
class NodeEvent:
    """Something that a pass did with a node.

    Attributes:
        source, desc: the node and what happened.
        dep: the node because of which it happened.
    """

    source: Node
    desc: str
    dep: Node | None = None

    def to_str(self) -> str:
        """Return the event as a line."""
        return f"{self.source.name}: {self.desc} {self.dep.name if self.dep else '#'}"


def get_acc_ops_name(k) -> str:
    """Return the name of a function or class, with acc_ops before those of an accelerator."""
    if isinstance(k, str):
        return k
    if k.__module__ and "acc_ops" in k.__module__:
        return f"acc_ops.{k.__name__}"
    return qualified_name(k)


def get_node_target(submodules, node: Node) -> str:
    """Return the name of what a node calls: the class of a module, a function with its module, or a method."""
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(
            f"Expect op types of {', '.join(sorted(CALLABLE_NODE_OPS))}, but found {node.op}"
        )
    if node.op == "call_method":
        return node.target
    if node.op == "call_function":
        if getattr(node.target, "__module__", None) == "_operator":
            return f"_operator.{node.target.__name__}"
        return get_acc_ops_name(node.target)
    return get_acc_ops_name(type(submodules[node.target]))


def is_node_output_tensor(node: Node) -> bool:
    """Return whether the value of a node is a tensor, as far as its metadata say so."""
    kind = node.meta.get("type")
    return kind is not None and issubclass(kind, Tensor)


class FxNetAccFusionsFinder:
    """Finds the nodes that must stay together because values that are no tensors go between them.

    Args:
        acc_nodes: the nodes that an accelerator takes. Those of a group are taken out if one of it is not among them.
    """

    def __init__(self, module: GraphModule, acc_nodes: NodeSet):
        self.module, self.nodes, self.acc_nodes = module, list(module.graph.nodes), acc_nodes

    @dataclass
    class FusionGroup:
        """A group that grows.

        Attributes:
            top_node_idx: the place of its first node.
            nodes, inputs: its nodes, and the nodes that it reads.
            nodes_need_process: nodes whose neighbours have not been looked at.
        """

        top_node_idx: int
        nodes: NodeSet
        inputs: NodeSet
        nodes_need_process: NodeSet = field(default_factory=set)

        def add_node(self, node: Node) -> None:
            """Add a node."""
            if node in self.nodes:
                return
            self.nodes_need_process.add(node)
            self.nodes.add(node)
            self.inputs.discard(node)
            self.inputs.update(
                n for n in node.all_input_nodes if n.op in CALLABLE_NODE_OPS and n not in self.nodes
            )

    def recursive_add_node(self, fusion_group, inputs, visited=None) -> bool:
        """Add the nodes on all ways from `inputs` back to the group. Return whether there is one."""
        visited = set() if visited is None else visited
        for x in inputs:
            if x in visited:
                continue
            visited.add(x)
            if x in fusion_group.nodes:
                return True
            if self.nodes.index(x) < fusion_group.top_node_idx:
                continue
            if self.recursive_add_node(fusion_group, x.all_input_nodes, visited):
                fusion_group.add_node(x)
                return True
        return False

    def __call__(self) -> dict[Node, NodeSet]:
        result: dict[Node, NodeSet] = {}
        for node in list(self.acc_nodes):
            if node in result or node.op not in CALLABLE_NODE_OPS or "tensor_meta" in node.meta:
                continue
            if node not in self.acc_nodes:
                continue
            inputs = set(node.all_input_nodes)
            group = self.FusionGroup(self.nodes.index(node), {node}, inputs, {node})
            while group.nodes_need_process:
                self._grow(group)
            if not group.nodes <= self.acc_nodes:
                self.acc_nodes -= group.nodes
            else:
                result.update(dict.fromkeys(group.nodes, group.nodes))
        return result

    def _grow(self, group) -> None:
        node = group.nodes_need_process.pop()
        self.recursive_add_node(group, group.inputs)
        if "tensor_meta" not in node.meta:  # its users need it as it is
            for user in node.users:
                if user.op in CALLABLE_NODE_OPS and user not in group.nodes:
                    group.add_node(user)
                    self.recursive_add_node(group, group.inputs)
        for x in node.all_input_nodes:
            if x.op in CALLABLE_NODE_OPS and "tensor_meta" not in x.meta and x not in group.nodes:
                group.add_node(x)
                group.top_node_idx = min(group.top_node_idx, self.nodes.index(x))
                self.recursive_add_node(group, group.inputs)


def topo_sort(nodes: NodeList) -> NodeList:
    """Return nodes in an order in which inputs come first. Otherwise they stay in their order."""
    place = {node: i for i, node in enumerate(nodes)}
    missing = {node: sum(x in place for x in node.all_input_nodes) for node in nodes}
    ready = [place[node] for node in nodes if missing[node] == 0]
    made: NodeList = []
    while ready:
        node = nodes[heapq.heappop(ready)]
        made.append(node)
        for user in node.users:
            if user in missing:
                missing[user] -= 1
                if missing[user] == 0:
                    heapq.heappush(ready, place[user])
    if len(made) != len(nodes):
        raise AssertionError("topological sorted nodes doesn't have same length as input nodes")
    return made


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """Put the nodes of a module in an order in which inputs come first. Otherwise they stay in their order."""
    nodes = list(gm.graph.nodes)
    for node in topo_sort(nodes):
        gm.graph._root.prepend(node)
    gm.recompile()
    return gm


def legalize_graph(gm: GraphModule) -> GraphModule:
    """Put the nodes of a module in an order in which inputs come first, by a search in breadth.

    Raises:
        RuntimeError: nodes depend on each other in a circle.
    """
    missing = {node: len(node.all_input_nodes) for node in gm.graph.nodes}
    first = [node for node, count in missing.items() if count == 0]
    ready = collections.deque(sorted(first, key=lambda node: node.op != "placeholder"))
    made = []
    while ready:
        node = ready.popleft()
        made.append(node)
        for user in node.users:
            missing[user] -= 1
            if missing[user] == 0:
                ready.append(user)
    if len(made) < len(missing):
        left = [node for node, count in missing.items() if count]
        raise RuntimeError(f"Input graph has cycles, unable to add {left}")
    for node in [*(n for n in made if n.op != "output"), *(n for n in made if n.op == "output")]:
        gm.graph._root.prepend(node)
    return gm

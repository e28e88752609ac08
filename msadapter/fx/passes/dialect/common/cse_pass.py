"""Computes equal calls of a graph once."""

from __future__ import annotations

import msadapter

from .....utils import _pytree as pytree
from ....graph import Graph
from ....graph_module import GraphModule
from ....node import Node
from ...infra.pass_base import PassBase, PassResult

__all__ = ["CSEPass", "get_CSE_banned_ops"]
# Operators whose calls differ: they draw random numbers, or nobody has set the values of their results.
_BANNED = """
dropout native_dropout _fused_dropout bernoulli bernoulli_ multinomial normal normal_ poisson binomial rand randn randint randperm
rand_like randn_like randint_like uniform_ rrelu exponential_ geometric_ log_normal_ cauchy_ random_ empty empty_like
empty_strided new_empty new_empty_strided _efficientzerotensor resize_ resize_as_ set_
""".split()  # noqa: SIM905 (a list literal would be a page of quotes)


def get_CSE_banned_ops() -> set:
    """Return the operators of torch.ops.aten of which equal calls have different results."""
    aten = msadapter.ops.aten
    return {getattr(aten, name) for name in _BANNED if hasattr(aten, name)}


class CSEPass(PassBase):
    """Computes equal calls once. It is right for graphs whose functions write to nothing.

    Args:
        banned_ops: operators that are called as often as before.
    """

    def __init__(self, banned_ops=None):
        self.banned_ops = set() if banned_ops is None else banned_ops

    def call(self, graph_module: GraphModule) -> PassResult:
        made, copies, known, modified = Graph(), {}, {}, False
        for node in graph_module.graph.nodes:
            target = getattr(node.target, "overloadpacket", node.target)
            kept = node.op in ("placeholder", "output", "get_attr") or target in self.banned_ops
            key = None if kept else _key(node, copies)
            if key is not None and key in known:
                copies[node], modified = known[key], True
                continue
            copies[node] = made.node_copy(node, lambda x: copies[x])
            if key is not None:
                known[key] = copies[node]
        return PassResult(GraphModule(graph_module, made) if modified else graph_module, modified)


def _key(node: Node, copies: dict) -> tuple:
    """Return what two calls have in common if one of them is enough."""
    leaves, spec = pytree.tree_flatten((tuple(node.args), dict(node.kwargs)))
    values = tuple((type(x), copies[x] if isinstance(x, Node) else x) for x in leaves)
    return node.op, node.target, values, repr(spec)

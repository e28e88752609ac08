"""Which nodes of a graph a backend can take."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence

from ...tensor import dtype
from ..node import Node
from .shape_prop import TensorMetadata
from .tools_common import CALLABLE_NODE_OPS, get_node_target

__all__ = ["OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain", "create_op_support"]
SupportDict = Mapping[str, tuple[Sequence[Sequence[dtype]], dict[str, Sequence[dtype]]] | None]


class OperatorSupportBase(abc.ABC):
    """Answers whether a node can be taken."""

    @abc.abstractmethod
    def is_node_supported(self, submodules, node: Node) -> bool:
        """Return whether a node can be taken. `submodules` are the modules of the graph, by their paths."""


class OperatorSupport(OperatorSupportBase):
    """Takes the nodes that call something in a table.

    Args:
        support_dict: name of what is called -> the dtypes of its positional and its keyword arguments; None for any.
    """

    _support_dict: SupportDict = {}

    def __init__(self, support_dict: SupportDict | None = None):
        self._support_dict = support_dict or self._support_dict

    def is_node_supported(self, submodules, node: Node) -> bool:
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        if self._support_dict[target] is None:
            return True
        positional, named = self._support_dict[target]
        pairs = [(allowed, node.args[i]) for i, allowed in enumerate(positional) if i < len(node.args)]
        pairs += [(allowed, node.kwargs[k]) for k, allowed in named.items() if k in node.kwargs]
        return all(_dtype_of(arg) in allowed for allowed, arg in pairs if isinstance(arg, Node))


def _dtype_of(arg: Node):
    """Return the dtype of a node's tensor; None for what is not known to be one."""
    meta = arg.meta.get("tensor_meta")
    return meta.dtype if isinstance(meta, TensorMetadata) else None


class _Function(OperatorSupportBase):
    def __init__(self, function: Callable):
        self._function = function

    def is_node_supported(self, submodules, node: Node) -> bool:
        return self._function(submodules, node)


def create_op_support(is_node_supported: Callable) -> OperatorSupportBase:
    """Return what answers with a function of the modules and a node."""
    return _Function(is_node_supported)


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Return what takes a node if all others do."""
    return _Function(lambda modules, node: all(one.is_node_supported(modules, node) for one in op_support))


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Return what takes a node if one of the others does."""
    return _Function(lambda modules, node: any(one.is_node_supported(modules, node) for one in op_support))


class OpSupports:
    """Answers that are needed often."""

    @classmethod
    def decline_if_input_dtype(cls, dtype) -> OperatorSupportBase:
        """Return what refuses nodes with an input of a dtype."""
        return _Function(lambda modules, node: all(_dtype_of(x) != dtype for x in node.all_input_nodes))

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """Return what refuses nodes by their names."""
        return _Function(lambda modules, node: node.name not in disallow_set)

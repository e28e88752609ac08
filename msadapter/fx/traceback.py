"""torch.fx.traceback: what new nodes inherit from the node, or the block of a program, that they are made for."""

from __future__ import annotations

import contextlib
import copy
import functools
import json
import traceback
from enum import Enum

from .graph import Graph
from .graph_module import GraphModule
from .node import Node
from .proxy import preserved

__all__ = [
    "NodeSource",
    "NodeSourceAction",
    "annotate",
    "annotate_fn",
    "format_stack",
    "get_current_meta",
    "get_current_replay_node",
    "get_graph_provenance_json",
    "has_preserved_node_meta",
    "preserve_node_meta",
    "reset_grad_fn_seq_nr",
    "set_current_meta",
    "set_current_replay_node",
    "set_grad_fn_seq_nr",
    "set_stack_trace",
]
GRADIENT_ACC_SPECIAL_STACK = "Gradient addition node due to multiple use of tensor around:"


class NodeSourceAction(Enum):
    """What a pass did to make a node."""

    CREATE = "create"
    REPLACE = "replace"


class NodeSource:
    """Where a node comes from: a pass, and the node that the pass made it of.

    Attributes:
        from_node: the sources of that node.
    """

    class NodeInfo:
        """A node by its name, its target and the id of its graph."""

        def __init__(self, name: str, target: str, graph_id: int):
            self.name, self.target, self.graph_id = name, target, graph_id

    def __init__(self, node: Node | None, pass_name: str = "", action=None):
        self.pass_name = pass_name
        self.action = [] if action is None else action if isinstance(action, list) else [action]
        for one in self.action:
            if not isinstance(one, NodeSourceAction):
                raise AssertionError(f"Expected NodeSourceAction, got {type(one)}")
        self.node_info, self.from_node = None, []
        if node:
            self.node_info = self.NodeInfo(node.name, str(node.target), id(node.graph))
            self.from_node = copy.deepcopy(node.meta.get("from_node", []))

    @property
    def name(self) -> str:
        """The name of the node; an empty text without one."""
        return self.node_info.name if self.node_info else ""

    @property
    def target(self) -> str:
        """The target of the node; an empty text without one."""
        return self.node_info.target if self.node_info else ""

    @property
    def graph_id(self) -> int:
        """The id of its graph; -1 without a node."""
        return self.node_info.graph_id if self.node_info else -1

    def _get_action_string(self) -> str:
        return "+".join(action.value for action in self.action)

    def print_readable(self, indent: int = 0) -> str:
        """Return the source and its own sources, ten levels of them, a line each."""
        if indent > 9:
            return ""
        own = (
            f"(name={self.name}, pass_name={self.pass_name}, action={self._get_action_string()}, "
            f"graph_id={self.graph_id})\n"
        )
        return " " * indent * 4 + own + "".join(one.print_readable(indent + 1) for one in self.from_node)

    __repr__ = print_readable

    def to_dict(self) -> dict:
        """Return the source as a dict, which json can write."""
        return {
            "name": self.name,
            "target": self.target,
            "graph_id": self.graph_id,
            "pass_name": self.pass_name,
            "action": self._get_action_string(),
            "from_node": [one.to_dict() for one in self.from_node],
        }

    def __eq__(self, other) -> bool:
        return isinstance(other, NodeSource) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_dict(), sort_keys=True))

    @classmethod
    def _from_dict(cls, d: dict | None) -> NodeSource | None:
        """Return the source of which `to_dict` made a dict."""
        if d is None:
            return None
        if not isinstance(d, dict):
            raise AssertionError(f"Expected a dict, got {type(d)}")
        known = {action.value: action for action in NodeSourceAction}
        words = d.get("action", "").split("+")
        source = cls(None, d.get("pass_name", ""), [known[w] for w in words if w in known])
        if {"name", "target", "graph_id"} <= d.keys():
            source.node_info = cls.NodeInfo(d["name"], d["target"], d["graph_id"])
        source.from_node = [cls._from_dict(one) for one in d.get("from_node") or () if one is not None]
        return source


@contextlib.contextmanager
def preserve_node_meta(enable: bool = True):
    """Within this block, new nodes get what `get_current_meta` holds."""
    saved = preserved.enabled, preserved.meta
    preserved.enabled, preserved.meta = enable, dict(preserved.meta)
    try:
        yield
    finally:
        preserved.enabled, preserved.meta = saved


def has_preserved_node_meta() -> bool:
    """Return whether new nodes get what `get_current_meta` holds."""
    return preserved.enabled


def get_current_meta() -> dict:
    """Return what new nodes get."""
    return preserved.meta


def set_stack_trace(stack: list[str]) -> None:
    """Set the lines of the program that new nodes get. An empty list takes them away."""
    if not preserved.enabled:
        return
    if stack:
        preserved.meta["stack_trace"] = "".join(stack)
    else:
        preserved.meta.pop("stack_trace", None)


@contextlib.contextmanager
def annotate(annotation_dict: dict):
    """Within this block, new nodes get these entries in ``meta["custom"]``."""
    before = preserved.meta
    preserved.meta = {**before, "custom": {**before.get("custom", {}), **annotation_dict}}
    try:
        yield
    finally:
        preserved.meta = before


def annotate_fn(annotation_dict: dict):
    """Return a decorator: the nodes that the function makes get these entries in ``meta["custom"]``."""

    def decorator(func):
        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            with annotate(annotation_dict):
                return func(*args, **kwargs)

        return wrapper

    return decorator


def set_grad_fn_seq_nr(seq_nr: int) -> None:
    """Note the number of the node of the autograd graph for which new nodes are made. Blocks may be nested."""
    if preserved.enabled:
        meta = preserved.meta
        meta["grad_fn_seq_nr"] = [*meta.get("grad_fn_seq_nr", []), seq_nr]
        meta["in_grad_fn"] = meta.get("in_grad_fn", 0) + 1


def reset_grad_fn_seq_nr() -> None:
    """Take back the last `set_grad_fn_seq_nr`."""
    if not preserved.enabled:
        return
    meta = preserved.meta
    level = meta["in_grad_fn"]
    if level <= 0:
        raise AssertionError(f"Expected current_level > 0, got {level}")
    if level == 1:
        del meta["in_grad_fn"], meta["grad_fn_seq_nr"]
    else:
        meta["in_grad_fn"] = level - 1
        meta["grad_fn_seq_nr"] = meta["grad_fn_seq_nr"][:-1]


def format_stack() -> list[str]:
    """Return the lines of the program for which nodes are made now: those of the current node, or of the call."""
    if preserved.enabled:
        return [preserved.meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


@contextlib.contextmanager
def set_current_meta(node: Node, pass_name: str = ""):
    """Within this block, new nodes inherit from `node`, if metadata are preserved at all.

    Args:
        pass_name: the pass that makes the new nodes, for their NodeSource.
    """
    if not (preserved.enabled and node.meta):
        yield
        return
    before = preserved.meta
    preserved.meta = {**node.meta, "from_node": [NodeSource(node, pass_name, NodeSourceAction.CREATE)]}
    try:
        yield
    finally:
        preserved.meta = before


@contextlib.contextmanager
def set_current_replay_node(node: Node | None):
    """Within this block, new nodes stand for `node`, which is computed again: they get its note and its stack trace."""
    before = preserved.replayed
    preserved.replayed = node
    try:
        yield
    finally:
        preserved.replayed = before


def get_current_replay_node() -> Node | None:
    """Return the node that is computed again, or None."""
    return preserved.replayed


def get_graph_provenance_json(graph: Graph) -> dict:
    """Return the sources of the nodes that call functions: name of a node -> list of sources."""
    return {
        node.name: [source.to_dict() for source in node.meta.get("from_node", [])]
        for node in graph.nodes
        if node.op == "call_function"
    }


def _get_custom_metadata(gm: GraphModule) -> str:
    """Return the annotations of the nodes, a line each. Those of a graph that is an attribute are one line."""
    if not isinstance(gm, GraphModule):
        raise AssertionError(f"Expected GraphModule, got {type(gm)}")
    return "\n".join(map(str, _annotated(gm)))


def _annotated(gm: GraphModule) -> list:
    found: list = []
    for node in gm.graph.nodes:
        if node.meta.get("custom"):
            found.append((node.op, node.name, node.meta["custom"]))
        if node.op == "get_attr" and isinstance(getattr(gm, node.target), GraphModule):
            found.append(_annotated(getattr(gm, node.target)))
    return found

"""Nodes: one recorded operation each."""

from __future__ import annotations

import builtins
import operator
import types
from collections.abc import Callable
from typing import Any

from .._serialization import names

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]
Target = Callable[..., Any] | str  # the types of a node's target and of its arguments, for annotations
Argument = Any
OPS = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")
_effects: set = set()


def has_side_effect(function):
    """Mark a function whose calls are kept even if their results are not used."""
    _effects.add(function)
    return function


def map_aggregate(a, fn):
    """``fn`` of every leaf of nested tuples, lists, dicts and slices."""
    if isinstance(a, tuple):
        made = [map_aggregate(x, fn) for x in a]
        return type(a)(*made) if hasattr(a, "_fields") else tuple(made)
    if isinstance(a, list):
        return [map_aggregate(x, fn) for x in a]
    if isinstance(a, dict):
        return {k: map_aggregate(v, fn) for k, v in a.items()}
    if isinstance(a, slice):
        return slice(*(map_aggregate(x, fn) for x in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a, fn):
    """``fn`` of every Node of an argument."""
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def qualified_name(function) -> str:
    """The name under which code finds a function."""
    name = getattr(function, "__name__", None) or repr(function)
    if getattr(builtins, name, None) is function:
        return f"builtins.{name}"
    if getattr(operator, name, None) is function:
        return f"operator.{name}"
    if isinstance(function, types.LambdaType) and name == "<lambda>":
        name = "lambda"
    module = getattr(function, "__module__", None) or "torch"
    return ".".join(names.place_of(function, name) or (module, name))


class Node:
    """An operation of a graph.

    ``op`` is placeholder, get_attr, call_function, call_module, call_method or output; ``target`` says what is read or
    called; ``args`` and ``kwargs`` hold values and other nodes; ``users`` are the nodes that read this one.
    """

    def __init__(self, graph, name, op, target, args, kwargs, return_type=None):
        if op not in OPS:
            raise AssertionError(f"op '{op}' is not in _legal_ops")
        if op == "call_function" and not callable(target):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} but a "
                "Callable is expected"
            )
        if op != "call_function" and not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} but a "
                "str is expected"
            )
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self._args, self._kwargs = (), {}
        self.users: dict[Node, None] = {}
        self._input_nodes: dict[Node, None] = {}
        self.meta: dict = {}
        self._prev = self._next = self
        self._erased = False
        self._set(args, kwargs)

    # ---- place in the graph
    next = property(lambda self: self._next)
    prev = property(lambda self: self._prev)

    def prepend(self, x) -> None:
        """Move node ``x`` before this one."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            return
        x._unlink()
        before = self._prev
        before._next, x._prev, x._next, self._prev = x, before, self, x

    def append(self, x) -> None:
        """Move node ``x`` behind this one."""
        self._next.prepend(x)

    def _unlink(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    # ---- arguments
    @property
    def args(self):
        return self._args

    @args.setter
    def args(self, value):
        self._set(value, self._kwargs)

    @property
    def kwargs(self):
        return self._kwargs

    @kwargs.setter
    def kwargs(self, value):
        self._set(self._args, value)

    @property
    def all_input_nodes(self) -> list:
        """Return the nodes among the arguments, each once."""
        return list(self._input_nodes)

    def _set(self, args, kwargs) -> None:
        for old in self._input_nodes:
            old.users.pop(self, None)
        self._input_nodes = {}
        self._args, self._kwargs = tuple(args), dict(kwargs)

        def note(x):
            self._input_nodes[x] = None
            x.users[self] = None
            return x

        map_arg((self._args, self._kwargs), note)

    def update_arg(self, idx: int, arg) -> None:
        """Replace a positional argument."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg) -> None:
        """Insert a positional argument."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg) -> None:
        """Replace a keyword argument."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input, new_input) -> None:
        """Replace ``old_input`` by ``new_input`` in the arguments."""
        self._set(*map_arg((self._args, self._kwargs), lambda n: new_input if n is old_input else n))

    def replace_all_uses_with(
        self, replace_with, delete_user_cb=lambda user: True, *, propagate_meta=False
    ) -> list:
        """Make all users of this node use another node instead. Return the users that changed."""
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but replace_with already has "
                    ".meta keys"
                )
            replace_with.meta.update(self.meta)
        changed = [user for user in list(self.users) if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def is_impure(self, impure_random: bool = True) -> bool:
        """Return whether the node has effects besides its value."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            return self.target in _effects or getattr(self.target, "__name__", "") in ("_assert", "setitem")
        if self.op == "call_method":
            return self.target.endswith("_") and not self.target.endswith("__")
        if self.op == "call_module":
            owner = self.graph.owning_module
            return owner is not None and getattr(owner.get_submodule(self.target), "_is_impure", False)
        return False

    def __repr__(self) -> str:
        return self.name

    def format_node(self, placeholder_names=None, maybe_return_typename=None) -> str | None:
        """Return the line for this node in a graph's text."""
        head = f"%{self.name} : [num_users={len(self.users)}] = {self.op}"
        if self.op == "placeholder":
            default = f"(default={self.args[0]})" if self.args else ""
            return f"{head}[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"{head}[target={self.target}]"
        if self.op == "output":
            return f"return {_shown(self.args[0], bare=True)}"
        target = self.target if isinstance(self.target, str) else qualified_name(self.target)
        kwargs = "{" + ", ".join(f"{k}: {_shown(v)}" for k, v in self.kwargs.items()) + "}"
        return f"{head}[target={target}](args = {_shown(self.args)}, kwargs = {kwargs})"


def _shown(a, bare: bool = False) -> str:
    """Return an argument as it appears in a graph's text, with nodes by their names."""
    if isinstance(a, tuple):
        inner = ", ".join(_shown(x, bare) for x in a)
        return f"({inner},)" if len(a) == 1 else f"({inner})"
    if isinstance(a, list):
        return "[" + ", ".join(_shown(x, bare) for x in a) + "]"
    if isinstance(a, dict):
        return (
            "{" + ", ".join((f"{k!r}: " if bare else f"{k}: ") + _shown(v, bare) for k, v in a.items()) + "}"
        )
    if isinstance(a, Node):
        return a.name if bare else f"%{a.name}"
    return repr(a) if bare else str(a)

"""Nodes: one recorded operation each."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import msadapter

from .._aten import OpOverload, OpOverloadPacket
from ..ops._declare import declaration_of
from . import operator_schemas
from ._qualified import qualified_name, shown_target, type_text
from .immutable_collections import immutable_dict, immutable_list

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]
Target = Callable[..., Any] | str  # the types of a node's target and of its arguments, for annotations
Argument = Any
BaseArgumentTypes = (
    str | int | float | bool | complex | msadapter.dtype | msadapter.Tensor | msadapter.device
    | msadapter.memory_format | msadapter.layout | OpOverload
)  # fmt: skip
base_types = BaseArgumentTypes.__args__
OPS = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")
_legal_ops = dict.fromkeys(OPS)
# Functions that are called for what they do, and not for their results.
_side_effectful_functions: set = {
    msadapter._assert,
    operator.setitem,
}
# Random numbers that are drawn at every call, whoever asks for an effect. Dropout and the like count with their overloads alone.
_GENERATORS = (
    "rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "normal", "poisson", "bernoulli",
    "multinomial",
)  # fmt: skip
_get_qualified_name, _type_repr = qualified_name, type_text


def has_side_effect(fn):
    """Mark a function whose calls are kept even if their results are not used."""
    _side_effectful_functions.add(fn)
    return fn


def map_aggregate(a, fn):
    """Return nested tuples, lists, dicts and slices with `fn` of each leaf. Lists and dicts of the result cannot change."""
    if isinstance(a, tuple):
        made = [map_aggregate(x, fn) for x in a]
        return type(a)(*made) if hasattr(a, "_fields") else tuple(made)
    if isinstance(a, list):
        return immutable_list(map_aggregate(x, fn) for x in a)
    if isinstance(a, dict):
        return immutable_dict((k, map_aggregate(v, fn)) for k, v in a.items())
    if isinstance(a, slice):
        return slice(*(map_aggregate(x, fn) for x in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a, fn):
    """Return an argument with `fn` of every Node in the place of the node."""
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def _check(graph, name: str, op: str, target) -> None:
    if op not in OPS:
        raise AssertionError(f"op '{op}' is not in _legal_ops")
    wanted = "Callable" if op == "call_function" else "str"
    if not (callable(target) if op == "call_function" else isinstance(target, str)):
        raise ValueError(
            f"Node [graph = {graph}, name = '{name}'] target {target} has type {msadapter.typename(target)} but a {wanted} "
            "is expected"
        )


class Node:
    """An operation of a graph.

    ``op`` is placeholder, get_attr, call_function, call_module, call_method or output; ``target`` says what is read or
    called; ``args`` and ``kwargs`` hold values and other nodes; ``users`` are the nodes that read this one.
    """

    def __init__(self, graph, name, op, target, args, kwargs, return_type=None):
        _check(graph, name, op, target)
        self._repr_fn = None  # writes the node instead of its name, while the code of the graph is written
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self._args, self._kwargs = (), immutable_dict()
        self.users: dict[Node, None] = {}
        self._input_nodes: dict[Node, None] = {}
        self.meta: dict = {}
        self._prev = self._next = self
        self._erased = False
        self._update_args_kwargs(args, kwargs)

    # ---- place in the graph
    next = property(lambda self: self._next)
    prev = property(lambda self: self._prev)

    def prepend(self, x) -> None:
        """Move node ``x`` before this one."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev, x._next, self._prev = x, before, self, x
        self.graph._places = None

    _prepend = prepend

    def append(self, x) -> None:
        """Move node ``x`` behind this one."""
        self._next.prepend(x)

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev
        self.graph._places = None

    def __lt__(self, other: Node) -> bool:
        return self.graph._place_of(self) < self.graph._place_of(other)

    def __gt__(self, other: Node) -> bool:
        return other < self

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return self is other or other < self

    # ---- arguments
    @property
    def args(self) -> tuple:
        """The positional arguments. They can be assigned."""
        return self._args

    @args.setter
    def args(self, value) -> None:
        self._update_args_kwargs(value, self._kwargs)

    @property
    def kwargs(self) -> dict:
        """The keyword arguments. They can be assigned."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, value) -> None:
        self._update_args_kwargs(self._args, value)

    @property
    def all_input_nodes(self) -> list:
        """Return the nodes among the arguments, each once."""
        return list(self._input_nodes)

    def _update_args_kwargs(self, args, kwargs) -> None:
        for old in self._input_nodes:
            old.users.pop(self, None)
        self._input_nodes = {}

        def note(x):
            self._input_nodes[x] = None
            x.users[self] = None
            return x

        self._args, self._kwargs = map_arg(tuple(args), note), map_arg(dict(kwargs), note)

    def update_arg(self, idx: int, arg) -> None:
        """Replace a positional argument."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg) -> None:
        """Insert a positional argument."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError(f"insert_args index must be between 0 and len(self.args), got {idx}")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg) -> None:
        """Replace a keyword argument."""
        self.kwargs = {**self.kwargs, key: arg}

    def _replace_input_with(self, old_input, new_input) -> None:
        self._update_args_kwargs(
            *map_arg((self._args, self._kwargs), lambda n: new_input if n is old_input else n)
        )

    def replace_input_with(self, old_input, new_input) -> None:
        """Replace ``old_input`` by ``new_input`` in the arguments."""
        for hook in self._replace_hooks():
            hook(old=old_input, new=new_input.name, user=self)
        self._replace_input_with(old_input, new_input)

    def replace_all_uses_with(self, replace_with, delete_user_cb=None, *, propagate_meta=False) -> list:
        """Make all users of this node use another node instead. Return the users that changed."""
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but replace_with already has "
                    ".meta keys"
                )
            replace_with.meta.update(self.meta)
        changed = [user for user in list(self.users) if delete_user_cb is None or delete_user_cb(user)]
        for user in changed:
            for hook in self._replace_hooks():
                hook(old=self, new=replace_with.name, user=user)
            user._replace_input_with(self, replace_with)
        return changed

    def _replace_hooks(self) -> list:
        return getattr(self.graph.owning_module, "_replace_hooks", None) or []

    def __setattr__(self, name: str, value) -> None:
        if name == "name" and "name" in self.__dict__:
            for user in self.users:
                for hook in self._replace_hooks():
                    hook(old=self, new=value, user=user)
        object.__setattr__(self, name, value)

    def _rename(self, candidate: str) -> None:
        """Give the node another name, or the first free one like it."""
        if candidate != self.name:
            self.name = self.graph._graph_namespace.create_name(candidate, None)
            self.graph._graph_namespace._rename_object(self, self.name)

    # ---- what is known about the operation
    @property
    def stack_trace(self) -> str | None:
        """The lines of the program that made the node, if the tracer recorded them."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random: bool = True) -> bool:
        """Return whether the node has effects besides its value.

        Args:
            impure_random: whether drawing random numbers is such an effect, because it moves the generator on.
        """
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_module":
            owner = self.graph.owning_module
            if owner is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            return getattr(owner.get_submodule(self.target), "_is_impure", False)
        return self.op == "call_function" and _has_effect(self.target, impure_random)

    def normalized_arguments(
        self, root, arg_types=None, kwarg_types=None, normalize_to_only_use_kwargs=False
    ):
        """Return the arguments of a call in the order of its signature, with defaults; None if that is not known.

        The types of the arguments say which overload is meant, where there are several.
        """
        options = {"normalize_to_only_use_kwargs": normalize_to_only_use_kwargs}
        if self.op == "call_function":
            return operator_schemas.normalize_function(
                self.target, self.args, self.kwargs, arg_types, kwarg_types, **options
            )
        if self.op == "call_module":
            return operator_schemas.normalize_module(root, self.target, self.args, self.kwargs, **options)
        return None

    # ---- text
    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn is not None else self.name

    _pretty_print_target = staticmethod(shown_target)

    def format_node(
        self, placeholder_names=None, maybe_return_typename=None, *, include_tensor_metadata=False
    ) -> str | None:
        """Return the line for this node in a graph's text."""
        kind = f"{type_text(self.type)} " if self.type is not None else ""
        if self.op == "placeholder":
            if placeholder_names:
                placeholder_names.append(
                    f"{self.target}: {type_text(self.type)}" if self.type else self.target
                )
                return None
            default = f"(default={self.args[0]})" if self.args else ""
            return f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}[target={self.target}]{default}"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {type_text(self.type)}"
            return f"return {self.args[0]}"
        if include_tensor_metadata:
            kind = _metadata_text(self) or kind
        head = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}[target={shown_target(self.target)}]"
        if self.op == "get_attr":
            return head
        return f"{head}(args = {_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)})"


def _has_effect(function, impure_random: bool) -> bool:
    """Return whether calls of a function have to stay although nobody uses their results."""
    if function in _side_effectful_functions:
        return True
    random = isinstance(function, (OpOverload, OpOverloadPacket)) and impure_random
    if isinstance(function, OpOverload):
        function = function._overloadpacket
    if isinstance(function, OpOverloadPacket):
        function = function._function
        if declaration_of(function)[1]:
            return True
    declaration, _ = declaration_of(function)
    drawn = declaration is not None and declaration.facts.random is not None
    return drawn and (random or declaration.schema.name in _GENERATORS)


def _metadata_text(node: Node) -> str:
    """Return the dtype, the shape, the strides and the device of a node's value, if it is a known tensor."""
    value = node.meta.get("val", node.meta.get("tensor_meta", node.meta.get("example_value")))
    if not isinstance(value, msadapter.Tensor) or value.layout is not msadapter.strided:
        return ""
    shape, strides = (f"[{', '.join(map(str, sizes))}]" for sizes in (value.shape, value.stride()))
    return f'Tensor "{DTYPE_NAMES[value.dtype]}{shape}{strides}{value.device}"'


def _format_arg(arg, max_list_len: float = float("inf")) -> str:
    """Return an argument as it appears in a graph's text. Long lists end after some elements."""
    if hasattr(arg, "_custom_fx_repr_fn"):
        return arg._custom_fx_repr_fn()
    if isinstance(arg, (list, tuple)):
        shown = [_format_arg(a) for i, a in enumerate(arg) if i < max_list_len]
        text = ", ".join(shown) + ("," if isinstance(arg, tuple) and len(arg) == 1 else "")
        text += f", ...[total_len={len(arg)}]" if len(arg) > max_list_len else ""
        return f"({text})" if isinstance(arg, tuple) else f"[{text}]"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{k}: {_format_arg(v)}" for k, v in arg.items()) + "}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


DTYPE_NAMES = {
    msadapter.bfloat16: "bf16", msadapter.float64: "f64", msadapter.float32: "f32", msadapter.float16: "f16",
    msadapter.complex32: "c32", msadapter.complex64: "c64", msadapter.complex128: "c128", msadapter.int8: "i8",
    msadapter.int16: "i16", msadapter.int32: "i32", msadapter.int64: "i64", msadapter.bool: "b8", msadapter.uint8: "u8",
    msadapter.uint16: "u16", msadapter.uint32: "u32", msadapter.uint64: "u64",
    msadapter.float8_e4m3fn: "f8e4m3fn", msadapter.float8_e5m2: "f8e5m2",
}  # fmt: skip

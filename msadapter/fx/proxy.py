"""Proxies, which stand for values during recording. Operations on them become nodes."""

from __future__ import annotations

import dis
import operator
import sys

from ..ops._declare import declaration_of
from ..tensor import Tensor
from ..utils._pytree import instances_in
from .node import Node

__all__ = ["Attribute", "GraphAppendingTracer", "Proxy", "TraceError", "TracerBase"]


class TraceError(ValueError):
    """Raised for programs that cannot be recorded by running them once."""


class Proxy:
    """Stands for a value. ``tracer`` records the operations on it."""

    def __init__(self, node: Node, tracer=None):
        if tracer is None:
            tracer = GraphAppendingTracer(node.graph)
        self.tracer, self.node = tracer, node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, name: str):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Attribute(self, name)

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self):
        frame = sys._getframe(1)
        step = next((i for i in dis.get_instructions(frame.f_code) if i.offset == frame.f_lasti), None)
        if step is not None and step.opname == "UNPACK_SEQUENCE":
            return (self[i] for i in range(step.argval))
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def keys(self):
        """Return the keys, for ``**proxy``."""
        return self.tracer.keys(self)

    def __len__(self):
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be "
            "recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )

    def __deepcopy__(self, memo):
        return self

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return record(function, args, kwargs or {})


class Attribute(Proxy):
    """The value of ``proxy.name``. Calling it records a method call; any other use records that the attribute is read."""

    def __init__(self, root: Proxy, attr: str):
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node = None

    @property
    def node(self):
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def proxies_in(tree) -> list:
    """Return every proxy in nested tuples, lists, dicts and slices."""
    return instances_in(tree, Proxy)


def record(function, args, kwargs):
    """Record a call of a function as a node, with the tracer of its proxies."""
    tracer = proxies_in((args, kwargs))[0].tracer
    return tracer.create_proxy("call_function", function, args, kwargs)


_BINARY = ("add", "sub", "mul", "floordiv", "truediv", "mod", "pow", "matmul", "lshift", "rshift", "xor")
_KEPT = ("eq", "ne", "lt", "gt", "le", "ge", "getitem", "pos", "neg", "invert", "abs")
_IN_PLACE = (
    "iadd",
    "isub",
    "imul",
    "itruediv",
    "ifloordiv",
    "imod",
    "ipow",
    "iand",
    "ior",
    "ixor",
    "imatmul",
)


def _forward(name: str, target):
    def method(self, *args):
        return self.tracer.create_proxy("call_function", target, (self, *args), {})

    method.__name__ = name
    setattr(Proxy, name, method)


def _reflected(name: str, target):
    def method(self, other):
        return self.tracer.create_proxy("call_function", target, (other, self), {})

    method.__name__ = name
    setattr(Proxy, name, method)


for _name in (*_BINARY, *_KEPT):
    _forward(f"__{_name}__", getattr(operator, _name))
for _name in ("and", "or"):
    _forward(f"__{_name}__", getattr(operator, _name + "_"))
    _reflected(f"__r{_name}__", getattr(operator, _name + "_"))
for _name in _BINARY:
    _reflected(f"__r{_name}__", getattr(operator, _name))
Proxy.__hash__ = object.__hash__


def _check_not_mutable(function) -> None:
    declaration, inplace = declaration_of(function)
    if inplace:
        raise RuntimeError(
            f"Tried to trace mutable operation {declaration.schema.text}. FX only supports functional code, so operations that "
            "mutate operands in-place (e.g. via `out` arguments) are not supported"
        )


class TracerBase:
    """Base class of tracers, which create nodes and proxies for operations."""

    graph = None
    # Whether functions in their in-place form are refused. As in PyTorch, not everything that writes is noticed.
    check_mutable_operations = False

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        """Create a node whose arguments are nodes and plain values.

        Raises:
            RuntimeError: the function writes to its operand, and `check_mutable_operations` is set.
        """
        if kind == "call_function" and self.check_mutable_operations:
            _check_not_mutable(target)
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node):
        """Return a proxy for the value of a node."""
        return Proxy(node, self)

    def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, proxy_factory_fn=None):
        """Create a node for an operation on proxies and values, and return its proxy."""
        args, kwargs = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, tuple(args), kwargs, name, type_expr)
        return self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)

    def create_arg(self, a):
        """Convert a value to an argument of a node. Raise NotImplementedError if a node cannot have such an argument."""
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return type(a)(*(self.create_arg(x) for x in a))
        if isinstance(a, (tuple, list)):
            return (
                type(a)(self.create_arg(x) for x in a)
                if type(a) in (tuple, list)
                else tuple(self.create_arg(x) for x in a)
            )
        if isinstance(a, dict):
            for key in a:
                if isinstance(key, Proxy):
                    raise RuntimeError(
                        f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key}"
                    )
            return {k: self.create_arg(v) for k, v in a.items()}
        if isinstance(a, slice):
            return slice(*(self.create_arg(x) for x in (a.start, a.stop, a.step)))
        if isinstance(a, range):
            return range(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if (
            a is None
            or a is ...
            or isinstance(a, (Node, str, int, float, bool, complex, bytes, type))
            or callable(a)
        ):
            return a
        if type(a).__module__ == "torch" and not isinstance(a, Tensor):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def to_bool(self, obj):
        """Called where a proxy decides a branch."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj):
        """Called where a proxy is looped over."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or "
            "as a *args or **kwargs "
            "function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of "
            "what types of control "
            "flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy iteration errors"
        )

    def keys(self, obj):
        """Called for ``**proxy``."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """A tracer that adds nodes to an existing graph."""

    def __init__(self, graph):
        self.graph = graph

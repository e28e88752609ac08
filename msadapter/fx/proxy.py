"""Proxies, which stand for values during recording. Operations on them become nodes."""

from __future__ import annotations

import copy
import dis
import enum
import operator
import sys
import traceback
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path

from .. import nn
from .._aten import OpOverload
from ..utils._pytree import instances_in
from ._codegen import magic_methods, reflectable_magic_methods
from ._qualified import is_method
from .node import Node, base_types, map_aggregate, map_arg
from .operator_schemas import check_for_mutable_operation

__all__ = [
    "Attribute",
    "GraphAppendingTracer",
    "ParameterProxy",
    "Proxy",
    "Scope",
    "ScopeContextManager",
    "TraceError",
    "TracerBase",
]
# What a new node takes over from the node for which it is made (torch.fx.traceback).
_COPY_META_FIELDS = [
    "nn_module_stack", "torch_fn", "source_fn_stack", "original_aten", "recompute", "ac_graph_id", "has_backward_hook",
    "from_node", "quantization_tag", "_numeric_debug_handle", "custom", "partitioner_tag",
]  # fmt: skip
_ROOT = Path(nn.__file__).parents[1]
# Files of this package through which a program's calls reach the tracer. They are no part of the program.
_PASSING_ON = tuple(str(_ROOT / name) for name in ("fx", "nn", "overrides.py", "_aten"))


@dataclass
class _Preserved:
    """What new nodes inherit: see torch.fx.traceback, which changes it.

    Attributes:
        enabled: whether they inherit at all.
        replayed: the node that is computed again, or None.
    """

    enabled: bool = False
    meta: dict = field(default_factory=dict)
    replayed: Node | None = None


preserved = _Preserved()


class Scope:
    """The module whose code runs: its path and its class."""

    def __init__(self, module_path: str, module_type):
        self.module_path, self.module_type = module_path, module_type


class ScopeContextManager:
    """Lets a Scope be another one within a block."""

    def __init__(self, scope: Scope, current_scope: Scope):
        self._scope, self._before = scope, copy.copy(scope)
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *args) -> None:
        self._scope.module_path, self._scope.module_type = self._before.module_path, self._before.module_type


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

    def __getattr__(self, k: str):
        if k.startswith("__") and k.endswith("__"):
            raise AttributeError(k)
        return Attribute(self, k)

    def __getstate__(self):
        return self.__dict__

    def __setstate__(self, d) -> None:
        self.__dict__.update(d)

    def __deepcopy__(self, memo):
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        made.__dict__.update({k: copy.deepcopy(v, memo) for k, v in self.__dict__.items()})
        return made

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self):
        frame = sys._getframe(1)
        step = next((i for i in dis.get_instructions(frame.f_code) if i.offset == frame.f_lasti), None)
        if step is not None and step.opname == "UNPACK_SEQUENCE":
            return (self[i] for i in range(step.argval))
        return self.tracer.iter(self)

    def __abs__(self):
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts and _is_asserted(sys._getframe(1)):
            self.tracer.create_proxy("call_function", assert_fn, (self,), {})
            return True
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

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return record(function, args, kwargs or {})


def assert_fn(x) -> None:
    """Raise AssertionError for something false."""
    if not x:
        raise AssertionError("Assertion failed")


def _is_asserted(frame) -> bool:
    """Return whether a frame is at the test of an `assert` statement."""
    steps = list(dis.get_instructions(frame.f_code))
    at = next(i for i, step in enumerate(steps) if step.offset == frame.f_lasti)
    return "POP_JUMP" in steps[at].opname and steps[at + 1].opname == "LOAD_ASSERTION_ERROR"


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


class ParameterProxy(Proxy):
    """Stands for a parameter. Its sizes are known, so a program may look at them."""

    def __init__(self, tracer, node: Node, name: str, param):
        super().__init__(node, tracer)
        if not isinstance(param, nn.Parameter):
            raise AssertionError(f"Expected Parameter, got {type(param)}")
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    shape = property(lambda self: self.param.shape)
    ndim = property(lambda self: self.param.ndim)

    def size(self):
        """Return the sizes of the parameter."""
        return self.param.size()

    def dim(self) -> int:
        """Return the number of its dimensions."""
        return self.param.dim()

    def numel(self) -> int:
        """Return the number of its elements."""
        return self.param.numel()

    nelement = numel


def proxies_in(tree) -> list:
    """Return every proxy in nested tuples, lists, dicts and slices."""
    return instances_in(tree, Proxy)


def record(function, args, kwargs):
    """Record a call as a node, with the tracer of its proxies. A method of Tensor becomes the call of a method.

    Raises:
        RuntimeError: the proxies belong to several tracers.
    """
    tracers = list(dict.fromkeys(proxy.tracer for proxy in proxies_in((args, kwargs))))
    if len(tracers) > 1:
        raise RuntimeError(
            f"Found multiple different tracers {tracers} while trying to trace operations {function}"
        )
    tracer = tracers[0]
    if is_method(function) or function.__name__ == "__get__":
        return tracer.create_proxy("call_method", function.__name__, args, kwargs)
    return tracer.create_proxy("call_function", function, args, kwargs)


def _forward(name: str, target) -> None:
    def method(self, *args):
        return self.tracer.create_proxy("call_function", target, (self, *args), {})

    method.__name__ = name
    setattr(Proxy, name, method)


def _reflected(name: str, target) -> None:
    def method(self, other):
        return self.tracer.create_proxy("call_function", target, (other, self), {})

    method.__name__ = name
    setattr(Proxy, name, method)


for _name in magic_methods:
    if hasattr(operator, _name):
        _forward(f"__{_name.strip('_')}__", getattr(operator, _name))
for _name in reflectable_magic_methods:
    if hasattr(operator, _name):
        _reflected(f"__r{_name.strip('_')}__", getattr(operator, _name))
Proxy.__hash__ = object.__hash__


class TracerBase:
    """Base class of tracers, which create nodes and proxies for operations.

    Attributes:
        record_stack_traces: whether nodes get the lines of the program that made them.
        check_mutable_operations: whether functions that write to their operands are refused.
        trace_asserts: whether `assert` becomes a node, instead of being refused like other branches.
        proxy_buffer_attributes: whether buffers are nodes, as parameters are.
        traced_func_name: the method of a module that is traced.
    """

    graph = None
    record_stack_traces = False
    _record_forward_stack_traces_only = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        """Create a node whose arguments are nodes and plain values.

        Raises:
            RuntimeError: the function writes to its operand, and `check_mutable_operations` is set.
        """
        if kind == "call_function" and self.check_mutable_operations:
            check_for_mutable_operation(target, args, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        scope = getattr(self, "scope", None)
        if scope is not None:
            self.node_name_to_scope[node.name] = (scope.module_path, scope.module_type)
        if preserved.enabled:
            _inherit(node)
        elif getattr(self, "module_stack", None):
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if self.record_stack_traces and not node.stack_trace:
            frames = self._filter_traceback_frames(
                traceback.StackSummary.extract(_frames(), lookup_lines=False)
            )
            if frames:
                node.stack_trace = "".join(traceback.StackSummary.from_list(frames).format()).strip()
        return node

    def _filter_traceback_frames(self, user_stack_summary) -> list:
        """Return the frames of the program from its first `forward` on; none for a program without one."""
        frames = [f for f in user_stack_summary if not f.filename.startswith(_PASSING_ON)]
        if self._record_forward_stack_traces_only:
            return [f for f in frames if f.name == "forward"]
        first = next((i for i, f in enumerate(frames) if f.name == "forward"), len(frames))
        return frames[first:]

    def proxy(self, node):
        """Return a proxy for the value of a node."""
        return Proxy(node, self)

    def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, proxy_factory_fn=None):
        """Create a node for an operation on proxies and values, and return its proxy."""
        args, kwargs = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, tuple(args), kwargs, name, type_expr)
        return self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)

    def create_arg(self, a):
        """Convert a value to an argument of a node.

        A class may say itself what its objects become, with a method ``__fx_create_arg__(tracer)``.

        Raises:
            NotImplementedError: a node cannot have such an argument.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            parts = [self.create_arg(x) for x in a]
            return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
        if isinstance(a, list):
            return [self.create_arg(x) for x in a]
        if isinstance(a, dict):
            return {self._key(k): self.create_arg(v) for k, v in a.items()}
        if isinstance(a, slice):
            return slice(*(self.create_arg(x) for x in (a.start, a.stop, a.step)))
        if isinstance(a, range):
            return range(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if is_dataclass(a) and not isinstance(a, type):
            kwargs = {f.name: self.create_arg(getattr(a, f.name)) for f in fields(a)}
            return self.create_node("call_function", type(a), (), kwargs)
        if a is None or a is ... or isinstance(a, (Node, OpOverload, enum.Enum, bytes, type, *base_types)):
            return a
        if callable(a):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, key):
        """Return the key of a dict as an argument. It cannot be a traced value."""
        made = key if isinstance(key, str) else self.create_arg(key)
        map_arg(made, _refuse_key)
        return made

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


def _refuse_key(key):
    raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key}")


def _inherit(node: Node) -> None:
    """Give a new node what the node has for which it is made."""
    meta = preserved.meta
    if meta.get("stack_trace"):
        node.stack_trace = meta["stack_trace"]
    for key in (*_COPY_META_FIELDS, "seq_nr"):
        if key in meta:
            node.meta[key] = copy.copy(meta[key])
    replayed = preserved.replayed
    if replayed is not None:
        node.meta["is_functional_regenerated"] = True
        node.meta.update({k: replayed.meta[k] for k in ("custom", "stack_trace") if k in replayed.meta})


def _frames():
    """Yield the frames of the call, the outermost first, as traceback needs them."""
    frames = []
    frame = sys._getframe(2)
    while frame is not None:
        frames.append((frame, frame.f_lineno))
        frame = frame.f_back
    return iter(reversed(frames))


class GraphAppendingTracer(TracerBase):
    """A tracer that adds nodes to an existing graph."""

    def __init__(self, graph):
        self.graph = graph
        self.scope, self.module_stack, self.node_name_to_scope = Scope("", None), {}, {}


def strip_proxy(tree):
    """Return nested containers with nodes in the place of proxies."""
    return map_aggregate(tree, lambda x: x.node if isinstance(x, Proxy) else x)

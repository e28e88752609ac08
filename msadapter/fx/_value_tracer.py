"""Records a program while it runs on example values.

A symbolic trace knows nothing of the values, so a program that looks at them cannot be recorded. Here every proxy carries the value
that its node has for the examples. Sizes are recorded, so that they may differ later; what decides a branch or the length of a loop
is a constant of the graph, and a warning says so. An operation that cannot be recorded meets a proxy, which is not a tensor, and
fails: no result of a traced value becomes a constant unnoticed.
"""

from __future__ import annotations

import contextlib
import inspect
import operator
import sys
import warnings

from .. import nn
from .._errors import unsupported
from ..overrides import TorchFunctionMode
from ..tensor import Tensor
from ..utils import _pytree as pytree
from ._patching import patched, public_function
from ._symbolic_trace import Tracer
from .graph import Graph
from .graph_module import _read
from .node import map_arg
from .proxy import Proxy, proxies_in

__all__ = ["ValueProxy", "ValueTracer"]
_OWN = __name__.rpartition(".")[0]  # torch.fx, whose frames are between the program and its proxies


_NUMBERS = (bool, int, float, complex)


def _holds(value, kinds) -> bool:
    """Return whether a value is of some kinds, or a collection that has one."""
    if isinstance(value, kinds):
        return True
    if isinstance(value, dict):
        return any(_holds(part, kinds) for part in value.values())
    return isinstance(value, (tuple, list)) and any(_holds(part, kinds) for part in value)


# Methods and functions whose answers depend on no value; "is_..." are others. Those of the second list depend on sizes.
_CONSTANT = (
    "dim",
    "ndimension",
    "element_size",
    "get_device",
    "type",
    "can_cast",
    "promote_types",
    "result_type",
)
_OF_SIZES = ("size", "stride", "numel", "nelement", "storage_offset", "getattr", "__len__")


def _asks_no_value(name: str) -> bool:
    return name in _CONSTANT or (name.startswith("is_") and name != "is_nonzero")


class ValueProxy(Proxy):
    """A proxy that also has the value of the run on the examples."""

    @property
    def _value(self):
        return self.tracer.value_of(self.node)

    @property
    def __class__(self):  # programs ask isinstance(x, torch.Tensor)
        return type(self._value)

    def __getattr__(self, name: str):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        value = getattr(self._value, name)
        if isinstance(self._value, dict) and name in ("values", "items"):
            pairs = [(k, self[k]) for k in self._value]
            return lambda: pairs if name == "items" else [v for _, v in pairs]
        if inspect.isroutine(value):
            if isinstance(self._value, Tensor) and _asks_no_value(name):
                return value

            def method(*args, **kwargs):
                return self.tracer.create_proxy("call_method", name, (self, *args), kwargs)

            return method
        if self.tracer.follows(value) and not isinstance(value, bool) and name != "ndim":
            return self.tracer.create_proxy("call_function", getattr, (self, name), {})
        return value

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __setitem__(self, key, value) -> None:
        self.tracer.create_proxy("call_function", operator.setitem, (self, key, value), {})

    def _as(self, kind: type):
        self.tracer.decide(self._value, kind)
        return kind(self._value)

    def __bool__(self) -> bool:
        return self._as(bool)

    def __int__(self) -> int:
        return self._as(int)

    def __index__(self) -> int:
        return operator.index(self._as(int))

    def __float__(self) -> float:
        return self._as(float)

    def __complex__(self) -> complex:
        return self._as(complex)

    def __format__(self, how: str) -> str:
        return format(self._value, how)

    def __len__(self) -> int:
        if isinstance(self._value, Tensor):
            self.tracer.warn("the length of a tensor is a constant of the trace")
        return len(self._value)

    def __iter__(self):
        if isinstance(self._value, dict):
            return iter(self._value)
        if isinstance(self._value, Tensor):
            self.tracer.warn("a loop over a tensor has as many passes in the trace as for the example")
        return (self[i] for i in range(len(self._value)))

    def __contains__(self, key) -> bool:
        return (
            key in self._value if isinstance(self._value, dict) else any(bool(item == key) for item in self)
        )

    def keys(self):
        """Return the keys of a dict, which are constants."""
        return self._value.keys()


def _in_place(name: str) -> None:
    target = getattr(operator, name)

    def method(self, other):
        return self.tracer.create_proxy("call_function", target, (self, other), {})

    setattr(ValueProxy, f"__{name}__", method)


for _name in ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor"):
    _in_place(_name)


class _Recording(TorchFunctionMode):
    """Records every call of a table function, also those without proxies: constants may be drawn anew in every run."""

    def __init__(self, tracer: ValueTracer):
        self.tracer = tracer

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self.tracer.is_running:
            return function(*args, **kwargs)
        return self.tracer.create_proxy("call_function", public_function(function), args, kwargs)


class ValueTracer(Tracer):
    """A tracer that runs on examples.

    warning: the class of the warnings about values that become constants; None: no warnings.
    sizes: whether sizes and other numbers are recorded; otherwise they are constants, and only tensors may differ.
    """

    def __init__(self, warning: type[Warning] | None = None, sizes: bool = True):
        super().__init__()
        self._warning, self._kinds = warning, (Tensor, *_NUMBERS) if sizes else (Tensor,)
        self.is_running = 0  # while a node's value is computed, nothing is recorded

    def follows(self, value) -> bool:
        """Return whether a value may differ for other inputs, so that a proxy has to stand for it."""
        return _holds(value, self._kinds)

    def decide(self, value, kind: type) -> None:
        """Called where the program turns a traced value into a Python number."""
        what = type(value).__name__
        self.warn(f"a {what} becomes a Python {kind.__name__}, which is a constant of the trace from here on")

    def placeholder_name(self, name: str) -> str:
        """Return the name of an argument in the graph."""
        return name

    def warn(self, text: str) -> None:
        """Warn that the trace may not hold for other inputs. Checks in this package's own modules say nothing about a program."""
        frame, level = sys._getframe(1), 2
        while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_OWN):
            frame, level = frame.f_back, level + 1
        if self._warning is not None and frame.f_globals.get("__name__", "").partition(".")[0] not in (
            "msadapter",
            "torch",
        ):
            warnings.warn(
                f"{text}, so the trace may be wrong for other inputs", self._warning, stacklevel=level
            )

    @contextlib.contextmanager
    def running(self):
        """Compute values in this block; nothing is recorded."""
        self.is_running += 1
        try:
            yield
        finally:
            self.is_running -= 1

    # ---- values
    def value_of(self, node):
        """Return the value of a node for the examples."""
        if "val" not in node.meta and node.op == "get_attr":
            with self.running():
                node.meta["val"] = _read(self.root, node.target)
        return node.meta["val"]

    def proxy(self, node):
        return ValueProxy(node, self)

    def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, proxy_factory_fn=None):
        made = super().create_proxy(kind, target, args, kwargs, name, type_expr)
        node = made.node
        if kind in ("placeholder", "get_attr"):
            return made
        args, kwargs = map_arg((tuple(node.args), dict(node.kwargs)), self.value_of)
        with self.running():
            if kind == "call_function":
                value = target(*args, **kwargs)
            elif kind == "call_method":
                value = getattr(args[0], target)(*args[1:], **kwargs)
            else:
                value = _read(self.root, target)(*args, **kwargs)
        node.meta["val"] = value
        if self.follows(value) or kind == "call_module":
            return made
        if value is not None:
            name = target if isinstance(target, str) else getattr(target, "__name__", "")
            if not _asks_no_value(name) and name not in _OF_SIZES and _holds(args, Tensor):
                self.decide(value, type(value))
            self.graph.erase_node(node)
        return value

    def create_arg(self, a):
        if isinstance(a, Proxy):  # which passes for a tensor or a parameter
            return a.node
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return type(a)(*map(self.create_arg, a))
        if callable(a) and not isinstance(a, (nn.Module, Tensor)):
            return a
        if isinstance(a, nn.Parameter) and all(a is not held for held in self.root.parameters()):
            name = f"_param_constant{sum(1 for _ in self.root.parameters())}"
            self.root.register_parameter(name, a)
        return super().create_arg(a)

    def call_module(self, m, forward, args, kwargs):
        if self.is_running or all(
            m is not held for held in self.root.modules()
        ):  # a module that a function calls
            return forward(*args, **kwargs)
        return super().call_module(m, forward, args, kwargs)

    def getattr(self, attr, attr_val, parameter_proxy_cache):
        if self.is_running or not isinstance(attr_val, Tensor) or isinstance(attr_val, Proxy):
            return attr_val
        for name, held in [*self.root.named_parameters(), *self.root.named_buffers()]:
            if held is attr_val:
                if name not in parameter_proxy_cache:
                    parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {})
                return parameter_proxy_cache[name]
        return attr_val

    # ---- the run
    def trace_values(self, root, args: tuple, kwargs: dict):
        """Return the graph of a module or function, run on examples."""
        is_module = isinstance(root, nn.Module)
        self.root = root if is_module else nn.Module()
        function = root.forward if is_module else root
        self.graph, self.tensor_attrs = Graph(tracer_cls=Tracer), {}
        self.inputs_needing_gradients: list[bool] = []  # of each placeholder
        bound = inspect.signature(function).bind(*args, **kwargs)
        held = _state_of(self.root)
        try:
            positional, named = self._examples(bound)
            spaces = [vars(module) for module in self._autowrap_search]
            with patched(self, spaces, self._autowrap_function_ids), _Recording(self):
                result = function(*positional, **named)
                self.create_node("output", "output", (self.create_arg(result),), {})
        finally:
            changed = _restored(self.root, held)
        if changed:
            raise unsupported(
                "tracing", f"forward assigns a traced tensor to {changed}, which a graph cannot do"
            )
        for node in self.graph.nodes:
            node.meta.pop("val", None)
        return self.graph

    def _examples(self, bound):
        def given(name, value):
            made = self.create_proxy("placeholder", self.placeholder_name(name), (), {})
            self.inputs_needing_gradients.append(isinstance(value, Tensor) and value.requires_grad)
            made.node.meta["val"] = pytree.tree_map_only(Tensor, _separate, value)
            return made if pytree.instances_in(value, Tensor) else value

        positional, named = [], {}
        for name, parameter in bound.signature.parameters.items():
            if name not in bound.arguments:
                continue
            value = bound.arguments[name]
            if parameter.kind is parameter.VAR_POSITIONAL:
                positional += [given(f"{name}_{i}", one) for i, one in enumerate(value)]
            elif parameter.kind is parameter.VAR_KEYWORD:
                named |= {key: given(key, one) for key, one in value.items()}
            elif parameter.kind is parameter.KEYWORD_ONLY or named or _gap(bound, name):
                named[name] = given(name, value)
            else:
                positional.append(given(name, value))
        return positional, named


def _gap(bound, name: str) -> bool:
    """Return whether a parameter before this one has no example, so that this one must be given by name."""
    names = list(bound.signature.parameters)
    return any(
        before not in bound.arguments
        and bound.signature.parameters[before].kind is not inspect.Parameter.VAR_POSITIONAL
        for before in names[: names.index(name)]
    )


def _separate(value: Tensor) -> Tensor:
    """Return a copy, so that what the program writes into its inputs does not reach the examples."""
    return value.detach().clone().requires_grad_(value.requires_grad)


def _state_of(root) -> list:
    return [
        (name, space, dict(space))
        for name, module in root.named_modules()
        for space in (module._parameters, module._buffers, module.__dict__)
    ]


def _restored(root, held) -> str:
    """Take proxies out of the modules again. Return the first name that had one, or an empty text."""
    changed = ""
    for path, space, before in held:
        for name, value in list(space.items()):
            if name not in ("_parameters", "_buffers", "_modules") and proxies_in(value):
                changed = changed or ".".join(filter(None, (path, name)))
                if name in before:
                    space[name] = before[name]
                else:
                    del space[name]
    return changed

"""Records a module or function by running it once with proxies."""

from __future__ import annotations

import copy
import inspect
import math
import types
import warnings

import msadapter

from .. import nn
from .._host import extensions
from ..tensor import Tensor
from ..tensor._signatures import signature_of
from ..utils import _pytree as pytree
from ._codegen import PyTreeCodeGen, PyTreeInfo
from ._patching import _wrapped_fns_to_patch as _wrapped_fns_to_patch
from ._patching import _wrapped_methods_to_patch as _wrapped_methods_to_patch
from ._patching import patched, wrap
from .graph import Graph
from .graph_module import GraphModule
from .node import base_types
from .proxy import (
    GraphAppendingTracer,
    ParameterProxy,
    Scope,
    ScopeContextManager,
    TracerBase,
    proxies_in,
)

__all__ = [
    "PH",
    "GraphAppendingTracer",
    "PHBase",
    "PHWithMeta",
    "ProxyableClassMeta",
    "Tracer",
    "is_fx_tracing",
    "symbolic_trace",
    "wrap",
]
_proxyable_classes: dict[type, None] = {}
_running = [0]  # the number of tracers that run


def is_fx_tracing() -> bool:
    """Return whether a program is being recorded now."""
    return _running[0] > 0


is_fx_symbolic_tracing = is_fx_tracing


class ProxyableClassMeta(type):
    """A metaclass of classes whose construction from proxies is recorded."""

    def __init__(cls, name, bases, attrs):
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args, **kwargs):
        found = proxies_in((args, kwargs)) if is_fx_tracing() else []
        if found:
            return found[0].tracer.create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


class PHBase:
    """Stands for an input in ``concrete_args``: it stays an input of the graph."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """Such a stand-in with attributes of its own, which the node of the input gets."""

    def __init__(self, ph_key: str | None = None):
        self.ph_key = ph_key


def _take_attributes(node, stand_in) -> None:
    for name, value in vars(stand_in).items():
        if not callable(value) and not name.startswith("__") and not hasattr(node, name):
            setattr(node, name, value)


@wrap
def _assert_is_none(value, msg: str) -> None:
    """Raise AssertionError for anything but None."""
    if value is not None:
        raise AssertionError(msg)


class Tracer(TracerBase):
    """Runs a module with proxies. ``is_leaf_module`` determines which submodules are recorded as calls."""

    def __init__(self, autowrap_modules=(math,), autowrap_functions=(), param_shapes_constant=False):
        self._autowrap_search = list(autowrap_modules)
        self._autowrap_function_ids = {
            id(value)
            for module in autowrap_modules
            for name, value in vars(module).items()
            if not name.startswith("_") and callable(value)
        } | {id(f) for f in autowrap_functions}
        self.param_shapes_constant = param_shapes_constant
        self.root = None
        self.root_module_name = ""
        self.submodule_paths: dict | None = None
        self.scope = Scope("", None)
        self.module_stack: dict = {}  # the modules whose code runs: path -> (path, class)
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope: dict = {}
        self.tensor_attrs: dict = {}  # constant -> its attribute of the root

    def __deepcopy__(self, memo):
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        for name, value in self.__dict__.items():  # modules cannot be copied
            made.__dict__[name] = list(value) if name == "_autowrap_search" else copy.deepcopy(value, memo)
        return made

    # ---- methods that subclasses may override
    def is_leaf_module(self, m, module_qualified_name: str) -> bool:
        """Return whether a call of this submodule is recorded as such: those of torch.nn are, but not Sequential."""
        space = type(m).__module__
        ours = ("torch.nn", "torch.ao.nn", "msadapter.nn", "msadapter.ao.nn")
        return space.startswith(ours) and not isinstance(m, nn.Sequential)

    def path_of_module(self, mod) -> str:
        """Return the name of a submodule of the root."""
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
        else:
            path = next((name for name, m in self.root.named_modules() if m is mod), None)
        if path is None:
            raise NameError("module is not installed as a submodule")
        return path

    def call_module(self, m, forward, args, kwargs):
        """Handle a call of a submodule: record a node for a leaf, otherwise run the submodule's code."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))):
            calls = self.num_calls.get(path, 0)
            key = f"{path}@{calls}" if calls else path
            self.module_stack[key] = (path, type(m))
            self.num_calls[path] = calls + 1
            try:
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                del self.module_stack[key]

    def getattr(self, attr, attr_val, parameter_proxy_cache):
        """Return a module's attribute while its code is recorded: parameters become nodes."""
        if isinstance(attr_val, nn.Parameter):
            named = self.root.named_parameters()
        elif self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            named = self.root.named_buffers()
        else:
            return attr_val
        name = next((n for n, held in named if held is attr_val), None)
        if name is None:
            return attr_val
        if name not in parameter_proxy_cache:
            options = {}
            if self.param_shapes_constant and isinstance(attr_val, nn.Parameter):
                options["proxy_factory_fn"] = lambda node: ParameterProxy(self, node, name, attr_val)
            parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {}, **options)
        return parameter_proxy_cache[name]

    def create_arg(self, a):
        if isinstance(a, nn.Parameter):
            for name, p in self.root.named_parameters():
                if a is p:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, nn.Module):
            for name, m in self.root.named_modules():
                if a is m:
                    return self.create_node("get_attr", name, (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple(map(self.create_arg, a)), {})
        if isinstance(a, (Tensor, pytree.TreeSpec)):
            return self.create_node("get_attr", self._attribute_of(a), (), {})
        if type(a) in _proxyable_classes:
            name = self.get_fresh_qualname(f"_{type(a).__name__}_constant_")
            setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    def get_fresh_qualname(self, prefix: str) -> str:
        """Return the first free attribute of the root of this name and a number."""
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    def _attribute_of(self, a) -> str:
        """Return the attribute that holds a constant. Constants of the program are added to the module."""
        if isinstance(a, Tensor):
            for name, b in self.root.named_buffers():
                if a is b:
                    return name
        if a not in self.tensor_attrs:
            prefix = "_tensor_constant" if isinstance(a, Tensor) else "_tree_spec_constant"
            self.tensor_attrs[a] = self.get_fresh_qualname(prefix)
            setattr(self.root, self.tensor_attrs[a], a)
        return self.tensor_attrs[a]

    # ---- the run
    def trace(self, root, concrete_args=None) -> Graph:
        """Return the graph of a module, or of a function.

        Args:
            concrete_args: argument -> its value, which the graph takes as given. A container may have `PH` in places that
                stay inputs.
        """
        is_module = isinstance(root, nn.Module)
        if is_module:
            function = getattr(type(root), self.traced_func_name, None)
            if function is None:
                raise AssertionError(
                    f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}"
                )
            self.root, self.root_module_name = root, root._get_name()
            self.submodule_paths = {m: name for name, m in root.named_modules()}
        else:
            self.root, function = nn.Module(), root
        self.graph = Graph(tracer_cls=type(self))
        self.tensor_attrs = dict(_constants(self.root))
        if not isinstance(function, types.FunctionType) and signature_of(function) is None:
            raise AssertionError(f"Expected FunctionType, got {type(function)}")
        _running[0] += 1
        try:
            self._run(function, is_module, concrete_args)
        finally:
            _running[0] -= 1
            self.submodule_paths = None
        return self.graph

    def _run(self, function, is_module: bool, concrete_args) -> None:
        if not isinstance(function, types.FunctionType):
            args, kwargs = self._args_for_builtin(function)
            with patched(self):
                result = self.create_arg(function(*args, **kwargs))
            self.create_node("output", "output", (result,), {})
            return
        code = function.__code__
        self.graph._co_fields = {
            f"co_{k}": getattr(code, f"co_{k}") for k in ("name", "filename", "firstlineno")
        }
        spaces = [function.__globals__, *map(vars, self._autowrap_search)]
        function, args = self.create_args_for_root(function, is_module, concrete_args)
        with patched(self, spaces, self._autowrap_function_ids):
            result = self.create_arg(function(*args))
        kind = inspect.get_annotations(inspect.unwrap(function)).get("return")
        self.create_node("output", "output", (result,), {}, type_expr=kind)

    def _args_for_builtin(self, function):
        """Return the proxies for a function of torch that has a signature but no code of Python."""
        args, kwargs = [], {}
        for p in signature_of(function).parameters.values():
            default = () if p.default is p.empty else (p.default,)
            stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
            made = self.create_proxy("placeholder", stars + p.name, default, {})
            if p.kind is p.VAR_POSITIONAL:
                args += [*made]
            elif p.kind is p.VAR_KEYWORD:
                kwargs |= {**made}
            elif p.kind is p.KEYWORD_ONLY:
                kwargs[p.name] = made
            else:
                args.append(made)
        return args, kwargs

    def create_args_for_root(self, root_fn, is_module: bool, concrete_args=None):
        """Create the placeholders. Return a function and the arguments with which it has to be called.

        Without containers in `concrete_args` this is the function itself, with ``*args`` and ``**kwargs`` as ordinary
        arguments, so that proxies can be given for them.
        """
        analysed = inspect.unwrap(root_fn)
        code = analysed.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        stars = _stars(code)
        args: list = []
        if is_module:
            if count == 0:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            args.append(self.root)
        names = list(code.co_varnames[len(args) : count])
        if isinstance(concrete_args, tuple):
            if concrete_args and stars and count == 1:
                return root_fn, [*args, *self._flat_inputs(concrete_args)]
            if len(names) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(names)} arguments but got {len(concrete_args)} concrete arguments"
                )
            concrete_args = dict(zip(names, concrete_args, strict=True))
        starred = [mark + code.co_varnames[count + i] for i, mark in enumerate(stars)]
        signature = inspect.signature(analysed)
        args += [
            self._placeholder(name, concrete_args or {}, signature, analysed) for name in names + starred
        ]
        if code.co_kwonlyargcount or stars:
            root_fn = _without_stars(root_fn, len(args))
        return self._without_containers(root_fn, args, list(code.co_varnames[:count]))

    def _flat_inputs(self, concrete_args: tuple) -> list:
        """Return proxies for the members of ``*args``."""
        made = []
        for i, given in enumerate(concrete_args):
            made.append(self.create_proxy("placeholder", f"input_{i}", (), {}))
            if isinstance(given, PHWithMeta):
                _take_attributes(made[-1].node, given)
        return made

    def _without_containers(self, function, args: list, names: list[str]):
        """Return the function for flat arguments, if there are containers among them, and the flat arguments."""
        flat, spec = pytree.tree_flatten(tuple(args))
        if all(child.is_leaf() for child in spec.children_specs):
            return function, args
        graph = self.graph
        graph._codegen = PyTreeCodeGen(PyTreeInfo(names, spec, None))

        def on_flat(*args):
            result, out_spec = pytree.tree_flatten(function(*pytree.tree_unflatten(list(args), spec)))
            graph._codegen.pytree_info = graph._codegen.pytree_info._replace(out_spec=out_spec)
            return result

        return on_flat, flat

    def _placeholder(self, name: str, concrete, signature, function):
        starred = name.startswith("*")
        empty = starred or signature.parameters[name].default is inspect.Parameter.empty
        default = () if empty else (signature.parameters[name].default,)
        if name not in concrete:
            kind = function.__annotations__.get(name)
            return self.create_proxy("placeholder", name, default, {}, type_expr=kind)
        leaves, spec = pytree.tree_flatten(concrete[name])
        made = [self._specialized(name, i, leaf, default) for i, leaf in enumerate(leaves, 1)]
        return pytree.tree_unflatten(made, spec)

    def _specialized(self, name: str, number: int, value, default):
        """Add the input for a value that is given, with a check of it. Return what stands for it in the program."""
        out = self.create_proxy("placeholder", f"{name}_{number}", default, {})
        if isinstance(value, PHBase):
            if value is not PH:
                _take_attributes(out.node, value)
            return out
        text = f"{name} has been specialized to have value {value} but got another value"
        if value is None:
            self.create_proxy("call_function", _assert_is_none, (out, text), {})
        elif isinstance(value, base_types) and not isinstance(value, Tensor):
            self.create_proxy("call_function", msadapter._assert, (out == value, text), {})
        else:
            warnings.warn(
                f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is up to the "
                "user to make sure that your inputs match the inputs you specialized the function with.",
                stacklevel=2,
            )
        return value


def _constants(module, prefix: str = ""):
    """Yield the tensors that are plain attributes of a module or of those in it, with their paths."""
    for name, value in module.__dict__.items():
        if isinstance(value, (Tensor, pytree.TreeSpec)):
            yield value, prefix + name
    for name, child in module.named_children():
        yield from _constants(child, f"{prefix}{name}.")


def _stars(code) -> list[str]:
    """Return the marks of ``*args`` and ``**kwargs``, for a function that has them."""
    marks = {inspect.CO_VARARGS: "*", inspect.CO_VARKEYWORDS: "**"}
    return [mark for flag, mark in marks.items() if code.co_flags & flag]


def _without_stars(function, count: int):
    """Return the function with its first variables as ordinary parameters, so that stand-ins can be given for stars."""
    flags = function.__code__.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    plain = function.__code__.replace(
        co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=flags
    )
    made = types.FunctionType(
        plain, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    made.__annotations__ = function.__annotations__
    return made


def symbolic_trace(root, concrete_args=None) -> GraphModule:
    """Return the GraphModule of a module or function. Arguments in ``concrete_args`` are fixed to these values."""
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


extensions.symbolic_tracer.provide(Tracer)  # pickled modules are recorded again
